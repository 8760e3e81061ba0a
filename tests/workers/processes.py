"""Server processes as the tests see them: started, stopped, killed, and asked one by one."""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from posting import Json, Session, ask_modern, call
from serving import Connection, Exchange, Pairs

PATIENCE = 60.0
"""Seconds that anything may take before the test fails. Never a promise of the product's."""
STATE_KEY = "a key that all processes share, of 32 characters or more"
SCRIPT = Path(__file__).with_name("server.py")

T = TypeVar("T")
_ids = itertools.count(1)


class Nursery:
    """Forks servers on demand; they all end before it does."""

    def __init__(self) -> None:
        argv = [sys.executable, "-W", "error", str(SCRIPT)]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._rest = b""

    def make(self, orders: list[Json]) -> list[Process]:
        """Start some, all at once."""
        waiting: dict[int, Json] = {}
        for order in orders:
            waiting[next(_ids)] = order
        assert self._process.stdin is not None
        for number, order in waiting.items():
            self._process.stdin.write(json.dumps({"number": number, **order}).encode() + b"\n")
        made: dict[int, Process] = {}
        while len(made) < len(waiting):
            for line in self._read(orders):
                number, pid, port = map(int, line.split())
                made[number] = Process(pid, port, Path(waiting[number]["log"]))
        return [made[number] for number in waiting]

    def _read(self, orders: list[Json]) -> list[bytes]:
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        logs = "".join(Path(order["log"]).read_text()[-3000:] for order in orders if Path(order["log"]).exists())
        assert readable, f"the server did not start:\n{logs}"
        *lines, self._rest = (self._rest + os.read(self._process.stdout.fileno(), 1 << 16)).split(b"\n")
        return lines

    def end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._process.stdout.close()


class Process:
    """A server process at a port of its own."""

    def __init__(self, pid: int, port: int, log: Path) -> None:
        self.pid, self.port, self.log = pid, port, log
        self._life = os.pidfd_open(pid)
        self._open: list[Connection] = []

    @property
    def alive(self) -> bool:
        return self._life >= 0 and not select.select([self._life], [], [], 0)[0]

    def send(self, method: str, path: str = "/mcp", headers: Pairs = (), body: bytes | None = None) -> Exchange:
        return self.connect().send(method, path, headers, body)

    def connect(self) -> Connection:
        connection = Connection(self.port)
        self._open.append(connection)
        return connection

    def do(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool here, without a session: how a test tells a process what to do."""
        return do(self, tool, arguments)

    def close_connections(self) -> None:
        """Hang up on it, wherever it is."""
        for connection in self._open:
            connection.close()
        self._open.clear()

    def kill(self) -> None:
        """At once, with no chance to say anything."""
        self._signal(signal.SIGKILL)
        self.wait_ended()

    def stop(self) -> None:
        """As an operator does, and wait until it has ended."""
        self.begin_to_stop()
        self.wait_ended()

    def begin_to_stop(self) -> None:
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if self.alive:
            signal.pidfd_send_signal(self._life, number)

    def wait_ended(self) -> None:
        if self._life >= 0:
            ended = select.select([self._life], [], [], PATIENCE)[0]
            if not ended:
                signal.pidfd_send_signal(self._life, signal.SIGKILL)
            os.close(self._life)
            self._life = -1
            self.close_connections()
            assert ended, f"the server did not end:\n{self.log.read_text()[-3000:]}"


def do(server: Any, tool: str, arguments: Json) -> Any:
    answer = ask_modern(server, call(tool, arguments, next(_ids)))
    answer.close()
    assert answer.status == 200, answer
    result = answer.messages[-1]["result"]
    assert not result.get("isError"), result
    structured = result.get("structuredContent")
    return result["content"][0]["text"] if structured is None or "result" in structured else structured


class Site:
    """The processes that share one store."""

    def __init__(self, nursery: Nursery, store: str, folder: Path, quiet: bool) -> None:
        self.store, self.folder, self.nursery = store, folder, nursery
        self._usual = {"redis_seconds": PATIENCE} if quiet else {}
        self.processes: list[Process] = []

    def start(self, count: int = 2, *, odd: Json | None = None, **settings: Any) -> list[Process]:
        """Start some, all at once. What is `odd` about them stands beside their settings; see `begin` in server.py."""
        both = {"store": self.store, "state_key": STATE_KEY, "rate": 0, "grace": 0.0, **settings}
        both["limits"] = {"stream_after_seconds": 0.05, **both.get("limits", {})}
        logs = [str(self.folder / f"server-{len(self.processes) + n}.log") for n in range(count)]
        made = self.nursery.make([{"settings": both, "log": log, **self._usual, **(odd or {})} for log in logs])
        self.processes += made
        return made

    def end(self) -> None:
        for process in self.processes:
            process.close_connections()
            process.begin_to_stop()
        for process in self.processes:
            process.wait_ended()


@contextmanager
def site(nursery: Nursery, store: str, folder: Path, *, quiet: bool = True) -> Iterator[Site]:
    """Processes for a while. They must have nothing to complain of, unless that is what a test is about.

    So they wait longer for Redis than they would elsewhere: it shares the cores with all that is tested.
    """
    made = Site(nursery, store, folder, quiet)
    try:
        yield made
    finally:
        made.end()
    logs = "".join(process.log.read_text() for process in made.processes)
    assert not quiet or not any(word in logs for word in ('"level":"error"', "Traceback", "never retrieved")), logs


# -- waiting


def until(condition: Callable[[], T], what: str | Callable[[], str] = "it") -> T:
    """Look again and again until something is so. If it never is, `what` says what that was, or is asked then."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what if isinstance(what, str) else what()} did not come to be"
        time.sleep(0.01)
    return found


def wait(exchange: Exchange, condition: Callable[[Exchange], Any], what: str = "what was waited for") -> Exchange:
    """As `Exchange.wait`, for things that take longer: until a process is known to be dead."""
    deadline = time.monotonic() + PATIENCE
    while not condition(exchange):
        more = exchange.read(max(0.0, deadline - time.monotonic()))
        assert more or condition(exchange), f"{what} did not come; there came {exchange!r}"
    return exchange


def wait_messages(exchange: Exchange, count: int) -> list[Any]:
    return exchange.wait(lambda it: len(it.messages) >= count, f"message {count}").messages


# -- sessions


def opened(process: Process, capabilities: Json | None = None, *, headers: Pairs = ()) -> Session:
    return Session(process, headers=headers).open(capabilities)  # type: ignore[arg-type]


def at(session: Session, process: Process) -> Session:
    """The same session, whose next requests go to another process."""
    session.server = process  # type: ignore[assignment]
    return session


def progress(session: Session, tool: str, id: Any, **arguments: Any) -> Exchange:
    """A call that says how far it is."""
    return session.post(call(tool, arguments, id, progressToken=f"p{id}"))
