"""Tool calls over HTTP: how many a second, and how long the slowest of a hundred takes.

wrk keeps 1, 64 or 256 connections busy from one core; the server has another. The floor is a raw ASGI app; it and the
peers run on the same uvicorn with the same parser and loop. Below it is a second floor, a bare httptools protocol on
uvloop. All answer in JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks import wrk
from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.environment import SetupFailed
from benchmarks.http_messages import MODERN_HEADERS, Connection, Unexpected, session_headers
from benchmarks.http_server import HttpServer, Serving, on_longshore, on_python, on_uvicorn
from benchmarks.load import LoadFailed, Session, progress

CONNECTIONS = (1, 64, 256)
MAIN = 64
SESSIONS = 16  # legacy sessions that the requests of a run take turns in

# So high that nothing is refused, so what counting costs is in the figures.
UNREACHED = {"LONGSHORE_HTTP_RATE": "100000000", "LONGSHORE_HTTP_BURST": "100000000"}

FLOOR = on_uvicorn("floor", "longshore", "http_floor", "--lifespan", "off")
PROTOCOL = on_python("bare httptools", "httptools_floor")
INLINE = on_longshore("longshore inline", TOOLS="inline", **UNREACHED)
ASYNC = on_longshore("longshore async", TOOLS="async", **UNREACHED)
MCP = on_uvicorn("mcp", "mcp", "mcp_http")
FASTMCP = on_uvicorn("fastmcp", "fastmcp", "fastmcp_http", FASTMCP_LOG_LEVEL="CRITICAL")


@dataclass(frozen=True)
class Row:
    """A server in one era."""

    server: HttpServer
    modern: bool = True

    @property
    def name(self) -> str:
        if self.server in (FLOOR, PROTOCOL):
            return self.server.name
        return f"{self.server.name}, {'modern' if self.modern else 'legacy stateful'}"


BOTTOM, BARE = Row(FLOOR), Row(PROTOCOL)
OURS_MODERN = (Row(INLINE), Row(ASYNC))
OURS_LEGACY = (Row(INLINE, modern=False), Row(ASYNC, modern=False))
MCP_MODERN, MCP_LEGACY = Row(MCP), Row(MCP, modern=False)
FASTMCP_MODERN, FASTMCP_LEGACY = Row(FASTMCP), Row(FASTMCP, modern=False)
ROWS = (BOTTOM, BARE, *OURS_MODERN, *OURS_LEGACY, MCP_MODERN, MCP_LEGACY, FASTMCP_MODERN, FASTMCP_LEGACY)

MODERN_RATE, LEGACY_RATE, P99 = 0.8, 7.0, 0.10
RATE_TARGETS = [
    *(Target(row.name, MODERN_RATE, against=BOTTOM.name, at_most=False) for row in OURS_MODERN),
    *(Target(row.name, LEGACY_RATE, against=MCP_LEGACY.name, at_most=False) for row in OURS_LEGACY),
]
P99_TARGETS = [
    *(Target(row.name, P99, against=MCP_MODERN.name) for row in OURS_MODERN),
    *(Target(row.name, P99, against=MCP_LEGACY.name) for row in OURS_LEGACY),
]
NOTES = [
    "The floor is a raw ASGI app; the peers have an async tool and no log, on the same uvicorn, httptools and uvloop.",
]


@dataclass
class Samples:
    """What wrk counted, by row and connections, round by round; and what went wrong."""

    counted: dict[tuple[Row, int], list[dict[str, Any]]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def values(self, row: Row, connections: int, key: str) -> list[float]:
        return [sample[key] for sample in self.counted.get((row, connections), [])]


def measure(session: Session) -> list[Claim]:
    try:
        wrk.find()
    except SetupFailed as failure:
        return [Claim("http", "HTTP tools/call", "calls/s", errors=[str(failure)])]
    rounds = session.pick(full=4, quick=2)
    samples = Samples()
    alive = list(dict.fromkeys(row.server for row in ROWS))
    for number in range(1, rounds + 1):
        for server in tuple(alive):
            progress(f"http {number}/{rounds}  {server.name}")
            try:
                _measure_server(session, server, samples)
            except (LoadFailed, Unexpected, OSError) as failure:
                samples.errors.append(f"{server.name}: {failure}")
                alive.remove(server)
    progress("")
    return list(_claims(samples, rounds))


def _measure_server(session: Session, server: HttpServer, samples: Samples) -> None:
    """One round of a server, in a fresh process, in each era that it has."""
    with Serving(session, server) as serving:
        for row in ROWS:
            if row.server is server:
                _measure_row(session, row, serving, samples)


def _measure_row(session: Session, row: Row, serving: Serving, samples: Samples) -> None:
    headers = _headers(row, serving)
    wrk.run(session, serving, row.modern, headers, MAIN, seconds=1)  # to warm up
    for connections in CONNECTIONS:
        seconds = session.pick(full=2 if connections == MAIN else 1, quick=1)
        with Connection(serving.port) as connection:
            connection.check_call(connections, row.modern, dict(headers))
        sample = wrk.run(session, serving, row.modern, headers, connections, seconds)
        if sample["troubles"]:
            samples.errors.append(f"{row.name}, {connections} connections: {sample['troubles']} errors")
        samples.counted.setdefault((row, connections), []).append(sample)


def _headers(row: Row, serving: Serving) -> list[tuple[str, str]]:
    """The headers of every request; those of the sessions take turns."""
    if row.modern:
        return list(MODERN_HEADERS.items())
    with Connection(serving.port) as connection:
        sessions = [connection.open_session() for _ in range(SESSIONS)]
    headers = list(session_headers(sessions[0]).items())
    return headers + [item for each in sessions[1:] for item in session_headers(each).items() if each in item]


def _claims(samples: Samples, rounds: int) -> Iterator[Claim]:
    for connections in CONNECTIONS:
        main = connections == MAIN
        title = f"HTTP tools/call, {connections} {'connections' if connections > 1 else 'connection'}"
        rate = Claim(
            f"http_rate_{connections}",
            f"{title}: requests a second, median of {rounds} rounds",
            "calls/s",
            base=BOTTOM.name,
            targets=RATE_TARGETS if main else [],
            settings=INLINE.settings,
            notes=NOTES if main else [],
            errors=samples.errors if main else [],
        )
        slowest = Claim(
            f"http_p99_{connections}",
            f"{title}: p99, same runs",
            "ms",
            base=MCP_MODERN.name,
            targets=P99_TARGETS if main else [],
            settings=INLINE.settings,
        )
        processor = Claim(f"http_cpu_{connections}", f"{title}: the server's CPU time a call", "µs", base=BOTTOM.name)
        processor.settings = INLINE.settings
        for claim, key in ((rate, "per_second"), (slowest, "p99_ms"), (processor, "cpu_us")):
            for row in ROWS:
                claim.add(row.name, samples.values(row, connections, key))
        yield from (rate, slowest, processor) if main else (rate, slowest)
    yield _bare_claim(samples, rounds)


def _bare_claim(samples: Samples, rounds: int) -> Claim:
    """How close the server comes to a protocol that does nothing but decode, call and answer."""
    title = f"HTTP tools/call, {MAIN} connections, against bare httptools: requests a second, median of {rounds} rounds"
    claim = Claim(f"http_bare_{MAIN}", title, "calls/s", base=BARE.name, settings=INLINE.settings)
    for row in (BARE, *OURS_MODERN):
        claim.add(row.name, samples.values(row, MAIN, "per_second"))
    return claim


if __name__ == "__main__":
    sys.exit(main([measure]))
