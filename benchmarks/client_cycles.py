"""Start a server, call it once, close it, a thousand times: what is left of it then, and how fast that goes.

What is left is counted by the client's own process: its children, ended ones among them, and every process on the
machine that carries the run's mark, its threads, and its descriptors; after against before.
"""

from __future__ import annotations

import sys

from benchmarks.claim import Claim, Target
from benchmarks.client_run import Caller, run
from benchmarks.command import main
from benchmarks.contestants import MCP_ASYNC, THREAD
from benchmarks.load import LoadFailed, Sample, Session, progress

OURS = Caller("longshore", "longshore", THREAD.command)
MCP = Caller("mcp", "mcp", MCP_ASYNC.command)
KINDS = ("processes", "threads", "descriptors")
WARMUP = 3


def measure(session: Session) -> list[Claim]:
    cycles = session.pick(full=1_000, quick=50)
    left = Claim(
        "client_cycles",
        f"What {cycles:,} open/close cycles of a stdio child leave behind",
        "left",
        targets=[Target(kind, 0) for kind in (*KINDS, "tasks")],
    )
    rate = Claim("client_cycles_rate", "Open, one call, close: cycles a second, a server process each", "a second")
    rate.base = MCP.name
    ours = _cycle(session, OURS, cycles, left, rate)
    if ours is not None:
        _count(left, ours, cycles)
    _cycle(session, MCP, session.pick(full=20, quick=3), rate, rate)
    progress("")
    return [left, rate]


def _cycle(session: Session, caller: Caller, cycles: int, blamed: Claim, rate: Claim) -> Sample | None:
    progress(f"cycles  {caller.name}: {cycles:,}")
    try:
        sample = run(session, caller, "cycles", "--calls", str(cycles), "--warmup", str(WARMUP))
    except LoadFailed as failure:
        blamed.errors.append(f"{caller.name}: {failure}")
        return None
    rate.add(caller.name, [sample["per_second"]])
    return sample


def _count(claim: Claim, sample: Sample, cycles: int) -> None:
    for kind in KINDS:
        before, after = sample[kind]
        claim.add(kind, [after - before])
    claim.add("tasks", [sample["tasks"]])
    counts = ", ".join(f"{kind} {sample[kind][0]} → {sample[kind][1]}" for kind in KINDS)
    before, after = sample["resident_mb"]
    claim.notes.append(f"Before → after: {counts}; memory {before:.1f} → {after:.1f} MB.")


if __name__ == "__main__":
    sys.exit(main([measure]))
