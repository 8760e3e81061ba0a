"""A client and its server in one process: the round trip of a call, as tests make them by the thousand.

The tool is the same everywhere, `async def add(a: int, b: int) -> int`, and every client has listed it first and so
checks results against its output schema. Each connects the way that it recommends for tests. The SDK's modern way in
memory leaves JSON out; ours encodes and decodes every message in both eras, as over any transport.
"""

from __future__ import annotations

import sys

from benchmarks.claim import Claim, Target
from benchmarks.client_run import Caller, compete, values
from benchmarks.command import main
from benchmarks.load import Session

OURS = (
    Caller("longshore, modern", "longshore", era="modern"),
    Caller("longshore, legacy", "longshore", era="legacy"),
)
OURS_BESIDE = (
    Caller("longshore, modern, inline tool", "longshore", era="modern", tools="inline"),
    Caller("longshore, modern, def tool", "longshore", era="modern", tools="thread"),
)
MCP = (
    Caller("mcp, modern (direct)", "mcp", era="modern", slow=True),
    Caller("mcp, legacy (streams)", "mcp", era="legacy", slow=True),
)
PEERS_BESIDE = (
    Caller("mcp, modern, def tool", "mcp", era="modern", tools="sync", slow=True),
    Caller("fastmcp", "fastmcp", slow=True),
)
CALLERS = (*OURS, *OURS_BESIDE, *MCP, *PEERS_BESIDE)


def measure(session: Session) -> list[Claim]:
    def options(caller: Caller) -> list[str]:
        calls = session.pick(full=2_000, quick=500) if caller.slow else session.pick(full=20_000, quick=5_000)
        return ["calls", "--calls", str(calls), "--warmup", str(calls // 5)]

    rounds = session.pick(full=5, quick=3)
    samples, errors = compete(session, CALLERS, rounds, options)
    claim = Claim(
        "client_memory", f"In-memory round trip: p50 of a call, median of {rounds} rounds", "µs", errors=errors
    )
    for caller in CALLERS:
        claim.add(caller.name, values(samples, caller.name, "p50_us"))
    # The slower of our eras against the faster of the SDK's.
    claim.base = claim.lowest(*(caller.name for caller in MCP))
    claim.targets = [Target(claim.highest(*(caller.name for caller in OURS)), 0.1, against=claim.base)]
    return [claim]


if __name__ == "__main__":
    sys.exit(main([measure]))
