"""An argument and a result of 10 MB: the peers' strongest ground, where copies and page faults decide.

Measured twice: on one core, where only the software's own cost counts, and on two, as a client and its server live.
"""

import sys

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.contestants import ASYNC, FASTMCP_ASYNC, FLOOR, INLINE, MCP_ASYNC, MCP_SYNC, THREAD
from benchmarks.load import Session, compete, one_core, two_cores

MEGABYTES = 10
LIMITS = {"argument": 0.5, "result": 0.8}
PLACEMENTS = {"one core": one_core, "two cores": two_cores}
CONTESTANTS = (FLOOR, INLINE, ASYNC, THREAD, MCP_SYNC, MCP_ASYNC, FASTMCP_ASYNC)
OURS = (INLINE, ASYNC, THREAD)
MICROSECONDS_IN_MS = 1e-3


def measure(session: Session) -> list[Claim]:
    return [_measure(session, mode, placement) for mode in LIMITS for placement in PLACEMENTS]


def _measure(session: Session, mode: str, placement: str) -> Claim:
    calls = session.pick(full=25, quick=10)
    options = ["--bytes", str(MEGABYTES * 1_000_000), "--calls", str(calls), "--warmup", "5", *PLACEMENTS[placement]()]
    rounds = session.pick(full=3, quick=2)
    samples = compete(session, CONTESTANTS, rounds, mode, lambda _: options)
    claim = Claim(
        f"large_{mode}_{placement.replace(' ', '_')}",
        f"{MEGABYTES} MB {mode}: p50 on {placement}, median of {rounds} rounds",
        "ms",
        base=FLOOR.name,
        notes=["The floor is made for short lines: it copies a long one when it joins its pieces."],
        errors=samples.errors,
    )
    for contestant in CONTESTANTS:
        claim.add(contestant.name, samples.values(contestant, "p50_us", scale=MICROSECONDS_IN_MS))
    mcp = claim.lowest(MCP_SYNC.name, MCP_ASYNC.name)
    claim.targets = [Target(contestant.name, LIMITS[mode], against=mcp) for contestant in OURS]
    return claim


if __name__ == "__main__":
    sys.exit(main([measure]))
