"""An ASGI app on a real port of the loopback, and a client that is nothing but a socket.

with serve(app.asgi()) as server:
    answer = server.send("POST", body=b"{…}")     # an Exchange: its response as it comes
    answer.finish()                               # until it is whole; answer.status, .headers, .body, .events
    answer.drop()                                 # hang up, at whatever byte it is

Every wait is bounded. A server that could not be stopped, that logged or recorded an error or that left a task behind
fails its test. Only what tools raise is no error of the server's.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from select import select
from typing import Any, NamedTuple, TypeVar

import httptools
import uvicorn
import uvloop

from longshore.telemetry.recorder import Recorder
from longshore.transports.http.app import HttpApp
from longshore.transports.http_server.listener import Listener

OWN: ContextVar[bool] = ContextVar("OWN", default=False)
"""Whether apps of ours are served by our own server, not by uvicorn's."""
SECONDS = 60.0
"""The longest that anything is waited for."""

T = TypeVar("T")
Pairs = Sequence[tuple[str, str]]


def eventually(condition: Callable[[], Any], what: str = "it") -> Any:
    """Ask until it is so."""
    deadline = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not come to be within {SECONDS:g} s"
        time.sleep(0.002)
    return found


# -- the client


class Event(NamedTuple):
    """One event of a stream."""

    data: str
    id: str = ""
    retry: int | None = None
    kind: str = "message"

    @property
    def message(self) -> Any:
        return json.loads(self.data)


class Exchange:
    """A request on a socket, and what has come back so far."""

    def __init__(self, wire: socket.socket, *, alone: bool = False) -> None:
        self.wire = wire
        self.port: int = wire.getsockname()[1]
        self.alone = alone
        """The connection is for nothing else, and closed when the response is whole."""
        self.raw = b""
        """All bytes of the response as they came."""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.ended = False
        """The response is whole."""
        self.lost = False
        """The connection is closed."""
        self._parser = httptools.HttpResponseParser(self)

    # -- reading

    def read(self, seconds: float = SECONDS, most: int = 1 << 16) -> bool:
        """Take what is there, or comes within this time. False: nothing was and did."""
        if self.lost or self.ended or not select([self.wire], [], [], seconds)[0]:
            return False
        try:
            data = self.wire.recv(most)
        except ConnectionResetError:
            data = b""
        self.raw += data
        self.lost = not data
        if data:
            self._parser.feed_data(data)
        return bool(data)

    def drain(self) -> Exchange:
        """Take all that is there."""
        while self.read(0.0):
            pass
        return self

    def wait(self, condition: Callable[[Exchange], Any], what: str = "what was waited for") -> Exchange:
        """Read until something is so."""
        deadline = time.monotonic() + SECONDS
        while not condition(self):
            more = self.read(max(0.0, deadline - time.monotonic()))
            assert more or condition(self), f"{what} did not come; there came {self!r}"
        return self

    def finish(self) -> Exchange:
        self.wait(lambda it: it.ended, "the end of the response")
        if self.alone:
            self.close()
        return self

    def begin(self) -> Exchange:
        return self.wait(lambda it: it.status, "the head of the response")

    def wait_closed(self) -> Exchange:
        return self.wait(lambda it: it.lost, "the end of the connection")

    def drop(self) -> None:
        """Hang up at once: what is on its way is lost."""
        self.lost = True
        self.wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.wire.close()

    def close(self) -> None:
        self.lost = True
        self.wire.close()

    # -- what came

    @property
    def type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def json(self) -> Any:
        assert self.type == "application/json", self
        return json.loads(self.body)

    @property
    def events(self) -> list[Event]:
        """The whole events so far; comments are none."""
        blocks = self.body.decode().split("\r\n\r\n")[:-1]
        return [event for event in map(_read_event, blocks) if event is not None]

    @property
    def messages(self) -> list[Any]:
        """The messages so far, whichever way they came."""
        if self.type == "text/event-stream":
            return [event.message for event in self.events if event.data]
        return [self.json] if self.ended and self.body else []

    @property
    def comments(self) -> int:
        return sum(block.startswith(":") for block in self.body.decode().split("\r\n\r\n")[:-1])

    def __repr__(self) -> str:
        return f"<{self.status} {self.headers} {self.body[:1000]!r} ended={self.ended} lost={self.lost}>"

    # -- for the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode().lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.ended = True


def _read_event(block: str) -> Event | None:
    fields: dict[str, str] = {}
    for line in block.split("\r\n"):
        name, _, value = line.partition(":")
        if name:
            assert name not in fields, f"two {name} in one event"
            fields[name] = value.removeprefix(" ")
    if not fields:
        return None
    assert fields.keys() <= {"data", "id", "retry", "event"}, block
    retry = int(fields["retry"]) if "retry" in fields else None
    return Event(fields.get("data", ""), fields.get("id", ""), retry, fields.get("event", "message"))


class Connection:
    """A connection that is kept: one request after the other."""

    def __init__(self, port: int, *, buffer: int = 0) -> None:
        """`buffer` is how many bytes the system takes for a client that does not read; 0: as many as it likes."""
        self.port = port
        self.wire = socket.socket()
        self.wire.settimeout(SECONDS)
        if buffer:
            self.wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.wire.connect(("127.0.0.1", port))
        self.wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, method: str, path: str = "/mcp", headers: Pairs = (), body: bytes | None = None) -> Exchange:
        self.write(request_head(self.port, method, path, headers, body) + (body or b""))
        return Exchange(self.wire)

    def write(self, data: bytes) -> None:
        self.wire.sendall(data)

    def close(self) -> None:
        self.wire.close()


def request_head(port: int, method: str, path: str, headers: Pairs = (), body: bytes | None = None) -> bytes:
    """The head of a request, with what every client sends unless it is given."""
    given = {name.lower() for name, _ in headers}
    usual = [("Host", f"127.0.0.1:{port}"), ("Accept", "application/json, text/event-stream")]
    if body is not None:
        usual.append(("Content-Type", "application/json"))
        if "transfer-encoding" not in given:
            usual.append(("Content-Length", str(len(body))))
    lines = [f"{name}: {value}" for name, value in usual if name.lower() not in given]
    lines += [f"{name}: {value}" for name, value in headers if value != ABSENT]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1")


ABSENT = "\0"
"""As the value of a header: don't send it, though every client does."""


# -- the server


class Served:
    """A server on a thread with a loop of its own."""

    def __init__(self, app: Any, shut: Iterable[Any], lifespan: str, own: bool) -> None:
        self._app = app
        self._own = own and hasattr(app, "begin_post")
        self._stopped: asyncio.Event | None = None
        self._listener: Listener | None = None
        self.problems: list[str] = []
        """What it logged or recorded as an error, and what became of tasks that nobody waited for."""
        self.left: list[str] = []
        """Tasks that were still there when it had stopped."""
        self._shut = list(shut)
        for each in self._shut:
            _hear(each.engine.recorder, self.problems)
        # With its protocol named, or asyncio leaves Nagle's algorithm on and each answer waits for 40 ms.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(1024)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan=lifespan,  # type: ignore[arg-type]
            log_config=None,
            access_log=False,
            timeout_keep_alive=int(SECONDS),  # after its own 5 s a client that was held up for as long loses a request
        )
        self._server = uvicorn.Server(config)
        self._open: list[Connection] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"server {self.port}", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def send(self, method: str, path: str = "/mcp", headers: Pairs = (), body: bytes | None = None) -> Exchange:
        """A request on a connection of its own."""
        exchange = self.connect().send(method, path, headers, body)
        exchange.alone = True
        return exchange

    def connect(self, *, buffer: int = 0) -> Connection:
        connection = Connection(self.port, buffer=buffer)
        self._open.append(connection)
        return connection

    def do(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run something on the server's loop."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(_await(work), self._loop).result(SECONDS)

    def look(self, at: Callable[[], T]) -> T:
        """Look at something between two turns of the server's loop."""

        async def look() -> T:
            return at()

        return self.do(look)

    def settle(self, turns: int = 30) -> None:
        """Let the server do everything that it can do by now."""

        async def turn() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self.do(turn)

    def until(self, condition: Callable[[], Any], what: str = "it") -> Any:
        """Look again and again, between turns of the server's loop, until something is so."""
        return eventually(lambda: self.look(condition), what)

    @property
    def busy(self) -> bool:
        """Whether it has a connection or deals with a request."""
        if self._listener is not None:
            return bool(self._listener.connections)
        state = self._server.server_state
        return bool(state.connections or state.tasks)

    def take_problem(self, text: str) -> str:
        """An error that the test brought about on purpose: that it was recorded, so that it fails no test."""
        [found] = [problem for problem in self.look(lambda: list(self.problems)) if text in problem]
        self.problems.remove(found)
        return found

    # -- starting and stopping

    def start(self) -> None:
        self._handler = _Keep(self.problems)
        logging.getLogger("uvicorn.error").addHandler(self._handler)
        self._thread.start()
        assert self._ready.wait(SECONDS), "the server does not start"
        self.until(lambda: self._listener is not None or self._server.started, "the server")

    def stop(self, grace: float = 0.0) -> None:
        """End it. What still runs gets this long."""
        if self._thread.is_alive():
            for app in self._shut:
                self.do(lambda app=app: app.shut(grace))
            if self._stopped is not None:
                self.look(self._stopped.set)
            self._server.should_exit = True
        for connection in self._open:
            connection.close()
        self._thread.join(SECONDS)
        logging.getLogger("uvicorn.error").removeHandler(self._handler)
        assert not self._thread.is_alive(), "the server does not end"

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop if self._own else None) as runner:
            runner.run(self._serve())
        gc.collect()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(lambda _, context: self.problems.append(str(context)))
        self._ready.set()
        if self._own:
            await self._serve_by_ourselves()
        else:
            await self._server.serve(sockets=[self._socket])
        for _ in range(3):
            await asyncio.sleep(0)
        self.left = [str(task) for task in asyncio.all_tasks() - {asyncio.current_task()}]

    async def _serve_by_ourselves(self) -> None:
        """As `longshore serve --http` does."""
        outer, self._stopped = self._app, asyncio.Event()
        app = outer if isinstance(outer, HttpApp) else outer.app
        await app.start()
        lines = app.engine if app.config.http.lines else None
        listener = Listener(outer, asyncio.get_running_loop(), app.limits, app.engine.recorder, lines=lines)
        await listener.listen([self._socket], None)
        self._listener = listener
        await self._stopped.wait()
        listener.stop()
        tasks = listener.cut()
        if tasks:
            await asyncio.wait(tasks, timeout=SECONDS)
        listener.end()
        await app.close()


async def _await(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


def _hear(recorder: Recorder, where: list[str]) -> None:
    """Keep what whoever runs the server would hear of as an error, beside whoever hears of it already."""
    before = recorder.fallback

    def hear(record: Any) -> None:
        if record.level == "error" and not _RAISED.search(record.text):
            where.append(f"{record.text}\n{record.trace}")
        if before is not None:
            before()(record)

    recorder.fallback = lambda: hear


_RAISED = re.compile(r" raised \w+ \(error [0-9a-f]+\)$")
"""A tool failed in a way that it did not foresee: those of the tests do on purpose."""


class _Keep(logging.Handler):
    def __init__(self, where: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._where = where

    def emit(self, record: logging.LogRecord) -> None:
        self._where.append(self.format(record))


@contextmanager
def serve(
    app: Any,
    *,
    shut: Iterable[Any] | None = None,
    lifespan: str = "on",
    tidy: bool = True,
    own: bool | None = None,
) -> Iterator[Served]:
    """Serve while the block lasts. `shut` are the apps of ours inside of `app`, if it is not one itself.

    An app that nobody shuts can't be `tidy`: what it does by itself goes on until its loop ends. `own`: by our own
    server, not by uvicorn's; as `OWN` says unless it is given.
    """
    server = Served(app, [app] if shut is None else shut, lifespan, OWN.get() if own is None else own)
    server.start()
    try:
        yield server
    finally:
        server.stop()
    assert not server.problems, "\n".join(server.problems)
    assert not server.left or not tidy, "\n".join(server.left)
