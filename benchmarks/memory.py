"""Resident memory after `initialize` and after 1,000 calls, and how much of it 100,000 calls add."""

import sys

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.contestants import ASYNC, BUILTIN, FASTMCP_SYNC, FLOOR, INLINE, MCP_SYNC, THREAD
from benchmarks.load import Samples, Session, compete, one_core, two_cores

KIB_IN_MB = 1024 / 1e6
COMPARED = (FLOOR, THREAD, BUILTIN, MCP_SYNC, FASTMCP_SYNC)
UNDER_LOAD = (FLOOR, INLINE, ASYNC, THREAD)
WARMUP, CALLS = 1_000, 99_000


def measure(session: Session) -> list[Claim]:
    rounds = session.pick(full=5, quick=2)
    options = ["--warmup", str(WARMUP), "--calls", "1", *two_cores()]
    samples = compete(session, COMPARED, rounds, "sequential", lambda _: options)
    return [*claims(samples, rounds), _growth(session)]


def claims(samples: Samples, rounds: int) -> list[Claim]:
    initialized, used = (
        Claim(name, title, "MB", base=FLOOR.name, targets=[Target(THREAD.name, 0.30, against=MCP_SYNC.name)])
        for name, title in (
            ("memory", f"Memory: resident after initialize, median of {rounds} spawns"),
            ("memory_used", f"Memory: resident after {WARMUP:,} calls, same runs"),
        )
    )
    initialized.errors = samples.errors
    for contestant in COMPARED:
        initialized.add(contestant.name, samples.values(contestant, "rss_initialized_kb", scale=KIB_IN_MB))
        used.add(contestant.name, samples.values(contestant, "rss_warm_kb", scale=KIB_IN_MB))
    return [initialized, used]


def _growth(session: Session) -> Claim:
    options = ["--warmup", str(WARMUP), "--calls", str(CALLS), *one_core()]
    samples = compete(session, UNDER_LOAD, session.pick(full=2, quick=1), "sequential", lambda _: options)
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
