"""A client and a server over HTTP on one machine, a core each: calls one after another, and 64 at a time.

Nothing was promised here. One after another, the rate is that of the median call. Servers run as in `http.py`, and each
client talks to the other's server as well.
"""

from __future__ import annotations

import sys

from benchmarks.claim import Claim
from benchmarks.client_run import Caller, run
from benchmarks.command import main
from benchmarks.http import ASYNC, MCP
from benchmarks.http_server import HttpServer, Serving
from benchmarks.load import LoadFailed, Session, progress

SERVERS = {"longshore": ASYNC, "mcp": MCP}
ERAS = ("modern", "legacy")
TOGETHER = (1, 64)


def measure(session: Session) -> list[Claim]:
    rounds = session.pick(full=3, quick=2)
    claims = {together: _claim(together, rounds) for together in TOGETHER}
    rates: dict[tuple[int, str], list[float]] = {}
    for _ in range(rounds):
        for name, server in SERVERS.items():
            _round(session, name, server, claims, rates)
    progress("")
    for (together, name), values in rates.items():
        claims[together].add(name, values)
    return list(claims.values())


def _claim(together: int, rounds: int) -> Claim:
    how = "one after another" if together == 1 else f"{together} at a time"
    title = f"Client and server over HTTP, calls {how}, median of {rounds} rounds"
    return Claim(f"client_http_{together}", title, "calls/s", base="mcp → mcp, modern", settings=ASYNC.settings)


def _round(
    session: Session,
    name: str,
    server: HttpServer,
    claims: dict[int, Claim],
    rates: dict[tuple[int, str], list[float]],
) -> None:
    """Both clients against one server, which runs anew for each round."""
    try:
        with Serving(session, server) as serving:
            for caller in _callers(name, f"http://127.0.0.1:{serving.port}/mcp"):
                for together in TOGETHER:
                    progress(f"client http  {caller.name}, {together}")
                    _one(session, caller, together, claims[together], rates)
    except (LoadFailed, OSError) as failure:
        claims[TOGETHER[0]].errors.append(f"{name}: {failure}")


def _callers(server: str, url: str) -> list[Caller]:
    return [
        Caller(f"{client} → {server}, {era}", client, (url,), era, slow=client == "mcp" or server == "mcp")
        for client in SERVERS
        for era in ERAS
        if client == server or era == "modern"
    ]


def _one(
    session: Session, caller: Caller, together: int, claim: Claim, rates: dict[tuple[int, str], list[float]]
) -> None:
    calls = session.pick(full=1_000, quick=300) if caller.slow else session.pick(full=5_000, quick=1_000)
    options = ["calls", "--calls", str(calls), "--warmup", str(calls // 5), "--together", str(together)]
    try:
        sample = run(session, caller, *options)
    except LoadFailed as failure:
        claim.errors.append(f"{caller.name}: {failure}")
    else:
        rate = 1e6 / sample["p50_us"] if together == 1 else sample["per_second"]
        rates.setdefault((together, caller.name), []).append(rate)


if __name__ == "__main__":
    sys.exit(main([measure]))
