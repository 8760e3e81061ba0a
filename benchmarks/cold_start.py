"""Spawn → `initialize` answered: a client that waits two seconds before its first turn must see our tools."""

import sys

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.contestants import BUILTIN, FASTMCP_SYNC, FLOOR, MCP_SYNC, THREAD
from benchmarks.load import Session, compete, two_cores

# The small server is the one that people write: `def` tools, nothing said about how they run.
CONTESTANTS = (FLOOR, THREAD, BUILTIN, MCP_SYNC, FASTMCP_SYNC)


def measure(session: Session) -> list[Claim]:
    rounds = session.pick(full=21, quick=5)
    samples = compete(session, CONTESTANTS, rounds + 1, "cold", lambda _: two_cores())
    claim = Claim(
        "cold_start",
        f"Cold start: spawn to initialize answered, median of {rounds} spawns",
        "ms",
        base=FLOOR.name,
        targets=[
            Target(THREAD.name, 1.5, against=FLOOR.name),
            Target(THREAD.name, 0.12, against=MCP_SYNC.name),
            Target(BUILTIN.name, 2.2, against=FLOOR.name),
        ],
        errors=samples.errors,
    )
    for contestant in CONTESTANTS:
        # The first spawn compiles bytecode and fills the page cache.
        claim.add(contestant.name, samples.values(contestant, "initialize_ms")[1:])
    return [claim]


if __name__ == "__main__":
    sys.exit(main([measure]))
