"""`tools/list` of 1,000 tools, every page of it."""

import sys

from benchmarks import contestants as who
from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.contestants import Contestant
from benchmarks.load import Session, compete, one_core

TOOLS = 1000
OWN_TOOLS = 3  # add, blob and length are there anyway
CONTESTANTS = [
    contestant.with_generated_tools(TOOLS - OWN_TOOLS)
    for contestant in (who.FLOOR, who.INLINE, who.MCP_ASYNC, who.FASTMCP_ASYNC)
]


def measure(session: Session) -> list[Claim]:
    def options(contestant: Contestant) -> list[str]:
        calls = session.pick(full=25, quick=10) if contestant.slow else session.pick(full=500, quick=100)
        return ["--tools", str(TOOLS), "--calls", str(calls), "--warmup", "3", *one_core()]

    rounds = session.pick(full=3, quick=2)
    samples = compete(session, CONTESTANTS, rounds, "list", options)
    claim = Claim(
        "list_tools",
        f"tools/list of {TOOLS:,} tools: p50, median of {rounds} rounds",
        "µs",
        base=who.FLOOR.name,
        targets=[Target(who.INLINE.name, 0.008, against=who.MCP_ASYNC.name)],
        errors=samples.errors,
    )
    for contestant in CONTESTANTS:
        claim.add(contestant.name, samples.values(contestant, "p50_us"))
    return [claim]


if __name__ == "__main__":
    sys.exit(main([measure]))
