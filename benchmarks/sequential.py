"""One call at a time, generator and server on one core: what a call costs in software.

On two cores the wake-up across them (about 40 µs) would hide every difference.
"""

import sys

from benchmarks import contestants as who
from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.contestants import Contestant
from benchmarks.load import Session, compete, one_core

CONTESTANTS = (
    who.FLOOR,
    who.INLINE,
    who.INLINE_IN_LOOP,
    who.ASYNC,
    who.SUSPENDING,
    who.HANDOVER,
    who.THREAD,
    who.MCP_SYNC,
    who.MCP_ASYNC,
    who.FASTMCP_SYNC,
    who.FASTMCP_ASYNC,
)
FLOOR, HANDOVER = who.FLOOR.name, who.HANDOVER.name
TARGETS = [
    Target(who.INLINE.name, 1.4, against=FLOOR),
    Target(who.INLINE_IN_LOOP.name, 2.0, against=FLOOR),
    Target(who.ASYNC.name, 2.6, against=FLOOR),
    Target(who.SUSPENDING.name, 3.0, against=FLOOR),
    Target(who.THREAD.name, 1.5, against=HANDOVER),
]


def measure(session: Session) -> list[Claim]:
    def options(contestant: Contestant) -> list[str]:
        calls = session.pick(full=1500, quick=500) if contestant.slow else session.pick(full=20000, quick=5000)
        return ["--calls", str(calls), "--warmup", str(calls // 5), *one_core()]

    rounds = session.pick(full=5, quick=2)
    samples = compete(session, CONTESTANTS, rounds, "sequential", options)
    latency = Claim(
        "sequential",
        f"Sequential calls: p50 on one core, median of {rounds} rounds",
        "µs",
        base=FLOOR,
        targets=TARGETS,
        errors=samples.errors,
    )
    processor = Claim("sequential_cpu", "Sequential calls: the server's CPU time a call, same runs", "µs", base=FLOOR)
    for contestant in CONTESTANTS:
        latency.add(contestant.name, samples.values(contestant, "p50_us"))
        processor.add(contestant.name, samples.values(contestant, "server_cpu_us"))
    return [latency, processor]


if __name__ == "__main__":
    sys.exit(main([measure]))
