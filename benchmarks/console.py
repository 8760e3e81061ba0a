"""What an open console costs the calls of others: p99 at 5,000 calls a second, with and without a page that reads.

The generator sends at a fixed rate on 16 connections and counts from when a call was due, so a server that falls behind
is not asked less. The page reads the stream with its records; a second one also gets frames of the wire. One server
with a console and one without run all the time and are measured in turns, in phases of a few seconds and in both
orders: what a neighbour on the machine does hits all of them, and the ratio is that of phases beside each other. A
phase's figure is the median of the p99 of its windows, each longer than the page's interval, so that one stall of the
machine does not decide it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections import deque
from statistics import median
from time import perf_counter
from types import TracebackType
from typing import final

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.http_messages import MODERN_HEADERS, PATH, call, encode
from benchmarks.http_server import Serving, cores, goes_ahead, on_longshore
from benchmarks.load import LoadFailed, Session, progress

RATE = 5_000
CONNECTIONS = 16
WINDOW_SECONDS = 0.5
"""A page is sent records every 0.2 s and the state every 0.6 s, so each window has the work of a page in it."""
WORSE = 1.5
WITHOUT, CLOSED, OPEN, WIRE = "no console", "no page is open", "a page is open", "a page with the wire is open"
_SETTINGS = {"LONGSHORE_AUTH_MODE": "off", "LONGSHORE_HTTP_RATE": "0"}
SERVERS = {
    True: on_longshore("longshore", TOOLS="inline", LONGSHORE_HTTP_CONSOLE="true", **_SETTINGS),
    False: on_longshore("longshore", TOOLS="inline", LONGSHORE_HTTP_CONSOLE="false", **_SETTINGS),
}
QUERIES = {OPEN: "records=1", WIRE: "records=1&wire=1"}
_READER = "import socket, sys\ns = socket.socket(fileno=int(sys.argv[1]))\nwhile s.recv(1 << 20): pass"


def measure(session: Session) -> list[Claim]:
    rounds, seconds = session.pick(full=15, quick=5), session.pick(full=3, quick=2)
    slowest = Claim(
        "console_p99",
        f"HTTP tools/call at {RATE:,} a second: p99 of {WINDOW_SECONDS} s, median of {rounds} phases",
        "ms",
        base=WITHOUT,
    )
    pairs = Claim("console_ratio", "The same: p99 over that of the phase without a console beside it, median", "×")
    pairs.targets = [Target(OPEN, WORSE)]
    processor = Claim("console_cpu", "The server's CPU time a call, same phases", "µs", base=WITHOUT)
    slowest.settings = pairs.settings = processor.settings = SERVERS[True].settings
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in (WITHOUT, CLOSED, OPEN, WIRE)}
    affinity, priority = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    try:
        with Serving(session, SERVERS[False]) as bare, Serving(session, SERVERS[True]) as console:
            os.sched_setaffinity(0, {cores()[0]})
            if goes_ahead(session):
                os.setpriority(os.PRIO_PROCESS, 0, -20)  # a generator that others hold up measures itself
            for serving in (bare, console):
                asyncio.run(Load(serving.port).run(2))  # to warm up, and to fill the ring
            for number in range(rounds):
                for name in reversed(figures) if number % 2 else figures:
                    progress(f"console {number + 1}/{rounds}  {name}")
                    figures[name].append(_run(bare if name == WITHOUT else console, name, seconds))
    except (LoadFailed, OSError) as failure:
        slowest.errors.append(str(failure))
    finally:
        os.sched_setaffinity(0, affinity)
        os.setpriority(os.PRIO_PROCESS, 0, priority)
    progress("")
    for name, found in figures.items():
        slowest.add(name, [p99 for p99, _ in found])
        pairs.add(name, [p99 / base for (p99, _), (base, _) in zip(found, figures[WITHOUT], strict=False)])
        processor.add(name, [cpu for _, cpu in found])
    return [slowest, pairs, processor]


def _run(serving: Serving, name: str, seconds: int) -> tuple[float, float]:
    """One phase: the p99 in ms and the server's CPU time of a call in µs."""
    with Page(serving.port, QUERIES.get(name)):
        used = serving.cpu_seconds()
        load = Load(serving.port)
        asyncio.run(load.run(seconds))
        used = serving.cpu_seconds() - used
    if len(load.times) < 0.95 * RATE * seconds:
        raise LoadFailed(f"{name}: only {len(load.times):,} of {RATE * seconds:,} calls were answered")
    return median(load.p99s()) * 1000, used / len(load.times) * 1e6


@final
class Page:
    """A page that reads its stream, in a process of its own; without a query there is none."""

    def __init__(self, port: int, query: str | None) -> None:
        self._port, self._query = port, query
        self._reader: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Page:
        if self._query is not None:
            with socket.create_connection(("127.0.0.1", self._port), timeout=10) as wire:
                head = f"GET /console/api/stream?{self._query} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n\r\n"
                wire.sendall(head.encode())
                answer = wire.recv(4096)
                if b" 200 " not in answer[:20]:
                    raise LoadFailed(f"the console answered {answer[:200]!r}")
                wire.setblocking(True)
                number = wire.fileno()
                command = ["taskset", "-c", str(cores()[0]), sys.executable, "-c", _READER, str(number)]
                self._reader = subprocess.Popen(command, pass_fds=(number,))
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        if self._reader is not None:
            self._reader.kill()
            self._reader.wait()


@final
class Load:
    """Calls at a fixed rate."""

    def __init__(self, port: int) -> None:
        self._port, self.request = port, make_request(port)
        self.times: list[tuple[float, float]] = []
        """When a call was due, and how long after that it was answered."""
        self._idle: deque[_Wire] = deque()
        self._due: deque[float] = deque()

    async def run(self, seconds: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(CONNECTIONS):
            await loop.create_connection(lambda: _Wire(self), "127.0.0.1", self._port)
        began = perf_counter()
        sent, most = 0, RATE * seconds
        while sent < most:
            now = perf_counter()
            for number in range(sent, min(most, int((now - began) * RATE))):
                self._due.append(began + number / RATE)
                sent = number + 1
            self._send_due()
            await asyncio.sleep(0.001)
        for _ in range(1000):
            if len(self.times) == most:
                break
            await asyncio.sleep(0.005)
        for wire in self._idle:
            wire.close()

    def p99s(self) -> list[float]:
        """The p99 of each window."""
        windows: dict[int, list[float]] = {}
        for due, seconds in self.times:
            windows.setdefault(int(due / WINDOW_SECONDS), []).append(seconds)
        return [
            sorted(each)[int(0.99 * len(each))] for each in windows.values() if len(each) > RATE * WINDOW_SECONDS / 2
        ]

    def _send_due(self) -> None:
        while self._due and self._idle:
            self._idle.popleft().ask(self._due.popleft())

    def ready(self, wire: _Wire) -> None:
        self._idle.append(wire)
        self._send_due()


@final
class _Wire(asyncio.Protocol):
    """One connection, with one call at a time."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._due = 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._load.ready(self)

    def ask(self, due: float) -> None:
        assert self._transport is not None
        self._due = due
        self._transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"HTTP/1.1 200") and data.endswith(b"}"):
            self._load.times.append((self._due, perf_counter() - self._due))
            self._load.ready(self)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


def make_request(port: int) -> bytes:
    """The bytes of a call."""
    body = encode(call(1, modern=True))
    headers = {**MODERN_HEADERS, "Host": f"127.0.0.1:{port}", "Content-Length": str(len(body))}
    lines = [f"POST {PATH} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body


if __name__ == "__main__":
    sys.exit(main([measure]))
