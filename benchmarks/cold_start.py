"""From spawn to two moments: `initialize` is answered, when a client can list the tools; and the first call is."""

import sys

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.contestants import BUILTIN, FASTMCP_SYNC, FLOOR, MCP_SYNC, THREAD
from benchmarks.load import Samples, Session, compete, two_cores

# The small server is the one that people write: `def` tools, nothing said about how they run.
CONTESTANTS = (FLOOR, THREAD, BUILTIN, MCP_SYNC, FASTMCP_SYNC)


def measure(session: Session) -> list[Claim]:
    rounds = session.pick(full=21, quick=5)
    return claims(compete(session, CONTESTANTS, rounds + 1, "cold", lambda _: two_cores()), rounds)


def claims(samples: Samples, rounds: int) -> list[Claim]:
    initialized = Claim(
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
    answered = Claim(
        "cold_start_first_answer",
        "Cold start: spawn to the first call's answer, sent as soon as initialize is answered, same runs",
        "ms",
        base=FLOOR.name,
        targets=[
            Target(THREAD.name, 1.6, against=FLOOR.name),
            Target(THREAD.name, 0.12, against=MCP_SYNC.name),
        ],
    )
    for contestant in CONTESTANTS:
        # The first spawn compiles bytecode and fills the page cache.
        initialized.add(contestant.name, samples.values(contestant, "initialize_ms")[1:])
        answered.add(contestant.name, samples.values(contestant, "first_answer_ms")[1:])
    return [initialized, answered]


if __name__ == "__main__":
    sys.exit(main([measure]))
