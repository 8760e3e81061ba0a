"""256 calls in flight: how many a second, with the generator on a core of its own."""

import sys

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.contestants import ASYNC, FASTMCP_ASYNC, FASTMCP_SYNC, FLOOR, INLINE, MCP_ASYNC, MCP_SYNC, Contestant
from benchmarks.load import Session, compete, two_cores

CONTESTANTS = (FLOOR, INLINE, ASYNC, MCP_SYNC, MCP_ASYNC, FASTMCP_SYNC, FASTMCP_ASYNC)


def measure(session: Session) -> list[Claim]:
    def options(contestant: Contestant) -> list[str]:
        calls = session.pick(full=3000, quick=1500) if contestant.slow else session.pick(full=200_000, quick=50_000)
        return ["--window", "256", "--calls", str(calls), "--warmup", str(calls // 5), *two_cores()]

    rounds = session.pick(full=4, quick=2)
    samples = compete(session, CONTESTANTS, rounds, "windowed", options)
    claim = Claim(
        "in_flight",
        f"256 calls in flight: calls a second, median of {rounds} rounds",
        "calls/s",
        base=FLOOR.name,
        errors=samples.errors,
    )
    for contestant in CONTESTANTS:
        claim.add(contestant.name, samples.values(contestant, "calls_per_s"))
    mcp = claim.highest(MCP_SYNC.name, MCP_ASYNC.name)
    claim.targets = [
        Target(INLINE.name, 150, against=mcp, at_most=False),
        Target(ASYNC.name, 60, against=mcp, at_most=False),
    ]
    return [claim]


if __name__ == "__main__":
    sys.exit(main([measure]))
