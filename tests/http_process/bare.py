"""Our listener around any ASGI app, on a thread of this process: for what can't be seen from outside."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import uvloop

from longshore.limits import Limits
from longshore.telemetry.recorder import Recorder
from longshore.telemetry.records import Problem
from longshore.transports.http_server.listener import Listener
from serving import SECONDS, Connection, Exchange, Pairs

T = TypeVar("T")


class Bare:
    """A listener that runs."""

    def __init__(self, app: Any, limits: Limits, tls: ssl.SSLContext | None) -> None:
        self.problems: list[str] = []
        self._app, self._limits, self._tls = app, limits, tls
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self._open: list[Connection] = []
        self._ready = threading.Event()
        self._done: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: uvloop.run(self._run()), daemon=True)

    async def _run(self) -> None:
        recorder = Recorder()
        recorder.add(
            lambda record: (
                self.problems.append(f"{record.text}\n{record.trace}") if isinstance(record, Problem) else None
            )
        )
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(lambda _, context: self.problems.append(str(context)))
        self._done = asyncio.Event()
        self.listener = Listener(self._app, self.loop, self._limits, recorder)
        await self.listener.listen([self.socket], self._tls)
        self._ready.set()
        await self._done.wait()
        self.listener.stop()
        tasks = self.listener.cut()
        if tasks:
            await asyncio.wait(tasks, timeout=SECONDS)

    def look(self, at: Callable[[], T]) -> T:
        """Look at something between two turns of the loop."""

        async def look() -> T:
            return at()

        return asyncio.run_coroutine_threadsafe(look(), self.loop).result(SECONDS)

    def connect(self) -> Connection:
        connection = Connection(self.port)
        self._open.append(connection)
        return connection

    def send(self, method: str, path: str = "/", headers: Pairs = (), body: bytes | None = None) -> Exchange:
        return self.connect().send(method, path, headers, body)

    def say(self, data: bytes) -> Exchange:
        """Bytes as they are, on a connection of their own."""
        connection = self.connect()
        connection.write(data)
        return Exchange(connection.wire)

    def serves(self) -> bool:
        """Whether somebody else who asks now is answered."""
        connection = Connection(self.port)
        try:
            return connection.send("GET", "/").finish().status == 200
        finally:
            connection.close()

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(SECONDS), "it does not start"

    def stop(self) -> None:
        for connection in self._open:
            connection.close()
        assert self._done is not None
        self.loop.call_soon_threadsafe(self._done.set)
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "it does not end"


class Peer(asyncio.Transport):
    """A connection from any address, with nobody at its other end."""

    def __init__(self, address: str | None) -> None:
        super().__init__({"peername": address and (address, 1), "sockname": ("192.0.2.9", 9100)})
        self.written = b""
        self.protocol: asyncio.BaseProtocol | None = None
        self._closing = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self._closing = True

    def is_closing(self) -> bool:
        return self._closing

    def can_write_eof(self) -> bool:
        return False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


@contextmanager
def listen(app: Any, *, tls: ssl.SSLContext | None = None, **limits: Any) -> Iterator[Bare]:
    """Serve an app. Whatever it does, nothing may have been reported that the test has not taken from `problems`."""
    bare = Bare(app, Limits(**limits), tls)
    bare.start()
    try:
        yield bare
    finally:
        bare.stop()
    assert not bare.problems, "\n".join(bare.problems)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with what was asked, as JSON."""
    import json

    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        more = message["more_body"]
    said = {
        "method": scope["method"],
        "path": scope["path"],
        "query": scope["query_string"].decode(),
        "headers": [[name.decode("latin-1"), value.decode("latin-1")] for name, value in scope["headers"]],
        "body": body.decode("latin-1"),
    }
    answer = json.dumps(said).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def read_to_end(answer: Exchange) -> bytes:
    """Everything that comes until the other side closes; a reset counts as that."""
    raw = b""
    answer.wire.settimeout(SECONDS)
    try:
        while piece := answer.wire.recv(1 << 16):
            raw += piece
    except ConnectionResetError:
        pass
    return raw


def closes_with(answer: Exchange, status: int) -> bool:
    """Whether a whole response with this status comes, and then the end of the connection."""
    answer.finish()
    assert answer.status == status, answer
    assert answer.headers["connection"] == "close"
    assert read_to_end(answer) == b""
    return True
