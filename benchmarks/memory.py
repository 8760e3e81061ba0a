"""Resident memory after `initialize`, and how much of it 100,000 calls add."""

import sys

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.contestants import ASYNC, BUILTIN, FASTMCP_SYNC, FLOOR, INLINE, MCP_SYNC, THREAD
from benchmarks.load import Session, compete, one_core, two_cores

KIB_IN_MB = 1024 / 1e6
AT_REST = (FLOOR, THREAD, BUILTIN, MCP_SYNC, FASTMCP_SYNC)
UNDER_LOAD = (FLOOR, INLINE, ASYNC, THREAD)
WARMUP, CALLS = 1_000, 99_000


def measure(session: Session) -> list[Claim]:
    return [_at_rest(session), _growth(session)]


def _at_rest(session: Session) -> Claim:
    rounds = session.pick(full=5, quick=2)
    samples = compete(session, AT_REST, rounds, "cold", lambda _: two_cores())
    claim = Claim(
        "memory",
        f"Memory: resident after initialize, median of {rounds} spawns",
        "MB",
        base=FLOOR.name,
        targets=[Target(THREAD.name, 0.30, against=MCP_SYNC.name)],
        errors=samples.errors,
    )
    for contestant in AT_REST:
        claim.add(contestant.name, samples.values(contestant, "rss_initialized_kb", scale=KIB_IN_MB))
    return claim


def _growth(session: Session) -> Claim:
    options = ["--warmup", str(WARMUP), "--calls", str(CALLS), *one_core()]
    samples = compete(session, UNDER_LOAD, session.pick(full=3, quick=1), "sequential", lambda _: options)
    claim = Claim(
        "memory_growth",
        f"Memory: grown between call {WARMUP:,} and call {WARMUP + CALLS:,}",
        "MB",
        targets=[Target(contestant.name, 2.0) for contestant in UNDER_LOAD if contestant is not FLOOR],
        errors=samples.errors,
    )
    for contestant in UNDER_LOAD:
        warm = samples.values(contestant, "rss_warm_kb", scale=KIB_IN_MB)
        end = samples.values(contestant, "rss_end_kb", scale=KIB_IN_MB)
        claim.add(contestant.name, [after - before for before, after in zip(warm, end, strict=True)])
    return claim


if __name__ == "__main__":
    sys.exit(main([measure]))
