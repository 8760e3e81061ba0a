"""A client and the server that it starts: calls one after another over the pipes between them.

On one core the figure is what both cost in software; placed by the kernel it is what a user sees. With a core each, the
wake-ups across them are about half of what a call of ours takes, so that is shown and nothing is promised. A rate is
that of the median call, so that what else runs on the machine does not enter. The tool is
`async def add(a: int, b: int) -> int` on both servers. Each client talks to the other's server as well, which says
whose part is whose.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.claim import Claim, Target
from benchmarks.client_run import Caller, compete, values
from benchmarks.command import main
from benchmarks.contestants import ASYNC, MCP_ASYNC, MCP_SYNC, THREAD, Contestant
from benchmarks.http_server import cores
from benchmarks.load import Session

LIMIT = 8.0
ERAS = ("modern", "legacy")


def _pair(client: str, server: Contestant, era: str) -> Caller:
    slow = client == "mcp" or server.slow
    return Caller(f"{client} → {server.name}, {era}", client, server.command, era, slow=slow)


OURS = [_pair("longshore", ASYNC, era) for era in ERAS]
MCP = [_pair("mcp", MCP_ASYNC, era) for era in ERAS]
BESIDE = [
    _pair("longshore", THREAD, "modern"),
    _pair("mcp", MCP_SYNC, "modern"),
    *(_pair("longshore", MCP_ASYNC, era) for era in ERAS),
    *(_pair("mcp", ASYNC, era) for era in ERAS),
]


def measure(session: Session) -> list[Claim]:
    free = [replace(caller, free=True) for caller in (*OURS, *MCP)]
    apart = [_apart(caller) for caller in (*OURS, *MCP)]
    return [
        _measure(session, "client_stdio", "both on one core", [*OURS, *MCP, *BESIDE]),
        _measure(session, "client_stdio_free", "placed by the kernel", free),
        _measure(session, "client_stdio_apart", "a core each", apart, promised=False),
    ]


def _apart(caller: Caller) -> Caller:
    command = ("taskset", "-c", str(cores()[1]), *caller.target)
    return replace(caller, target=command)


def _measure(session: Session, name: str, where: str, callers: Sequence[Caller], *, promised: bool = True) -> Claim:
    def options(caller: Caller) -> list[str]:
        calls = session.pick(full=1_000, quick=300) if caller.slow else session.pick(full=10_000, quick=2_000)
        return ["calls", "--calls", str(calls), "--warmup", str(calls // 5)]

    rounds = session.pick(full=3, quick=2)
    samples, errors = compete(session, callers, rounds, options)
    title = f"Client and server over stdio, sequential calls, {where}, median of {rounds} rounds"
    claim = Claim(name, title, "calls/s", errors=errors)
    for caller in callers:
        claim.add(caller.name, [1e6 / p50 for p50 in values(samples, caller.name, "p50_us")])
    # The slower of our eras against the faster of the SDK's.
    claim.base = claim.highest(*(caller.name for caller in MCP))
    ours = claim.lowest(*(caller.name for caller in OURS))
    claim.targets = [Target(ours, LIMIT, against=claim.base, at_most=False)] if promised else []
    return claim


if __name__ == "__main__":
    sys.exit(main([measure]))
