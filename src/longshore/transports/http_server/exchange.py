"""Status lines, and the short responses that a connection gives by itself, before any app is asked."""

from __future__ import annotations

from asyncio import CancelledError, Future, Task
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import unquote

import httptools

if TYPE_CHECKING:
    from longshore.transports.http_server.connection import Connection


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


STATUS_LINES: Final = {status: f"HTTP/1.1 {status} {_phrase(status)}\r\n".encode() for status in range(100, 600)}


class Refused(Exception):
    """What is wrong with a request's form. Ends its connection."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


def short_response(status: int, text: str, date: bytes, extra: bytes = b"") -> bytes:
    """A whole response after which the connection closes."""
    body = text.encode() + b"\n"
    head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
    return STATUS_LINES[status] + date + head + extra + b"\r\n" + body


Headers = list[tuple[bytes, bytes]]


def locate(scope: dict[str, Any], url: bytes) -> None:
    """Put the path and the query where ASGI has them."""
    raw, query = url, b""
    if not url.startswith(b"/") or b"?" in url or b"#" in url:
        parsed = httptools.parse_url(url)
        raw, query = parsed.path or b"/", parsed.query or b""
        if not url.startswith(b"/"):
            _name_host(scope["headers"], url, parsed)
    path = raw.decode("ascii")
    scope["path"] = unquote(path) if "%" in path else path
    scope["raw_path"] = raw
    scope["query_string"] = query


def _name_host(headers: Headers, url: bytes, parsed: Any) -> None:
    """`GET http://host/path`: the host in there is what counts, whatever the Host header says."""
    if url == b"*":
        return
    if not parsed.host:
        raise Refused(400, "a request names a path on this server")
    authority = url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
    headers[:] = [(name, value) for name, value in headers if name != b"host"]
    headers.append((b"host", authority))


def head_bytes(method: bytes, url: bytes, headers: Headers) -> int:
    """How long the head is that these came from."""
    line = len(method) + len(url) + len("  HTTP/1.1\r\n\r\n")
    return line + sum(len(name) + len(value) + len(": \r\n") for name, value in headers)


def without_offer(headers: Headers) -> Headers:
    """The headers of a request that offers to switch to another protocol, less the offer."""
    kept = [(name, value) for name, value in headers if name not in (b"upgrade", b"http2-settings")]
    return [
        (name, b"keep-alive" if name == b"connection" and b"upgrade" in value.lower() else value)
        for name, value in kept
    ]


Message = dict[str, Any]

CHUNKED: Final = -1
"""A response whose length nobody said."""
UNTIL_CLOSE: Final = -2
"""The same to a client of HTTP/1.0, which knows no chunks: it ends with the connection."""
_JSON: Final = b"HTTP/1.1 200 OK\r\n%bcontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n%b"
_NO_BODY: Final = frozenset((204, 304))


@final
class Exchange:
    """Hands a request's body to the app and writes what the app answers."""

    __slots__ = (
        "_body",
        "_connection",
        "_empty",
        "_head",
        "_left",
        "_told",
        "_waiter",
        "complete",
        "expects",
        "gone",
        "keep_alive",
        "more",
        "scope",
        "started",
        "task",
        "when_lost",
    )

    def __init__(self, connection: Connection, scope: Message, keep_alive: bool, expects: bool) -> None:
        self._connection = connection
        self.scope = scope
        self.keep_alive = keep_alive
        self.expects = expects
        """Whether the client waits for `100 Continue` before it sends the body."""
        self.more = True
        """Whether some of the request is still to come."""
        self.gone = False
        """Whether nobody is there any more to take the response."""
        self.started = False
        self.complete = False
        self.task: Task[None] | None = None
        self.when_lost: Callable[[], None] = _nothing
        """For a request that no task works on: what to do when its client is gone."""
        self._body = b""
        self._told = False
        self._head = b""
        self._left = 0
        self._empty = False
        self._waiter: Future[None] | None = None

    # -- what the connection says

    def take(self, body: bytes) -> int:
        """A piece of the body came. Gives how much of it waits for the app."""
        self._body = self._body + body if self._body else body
        if self._waiter is not None:
            self._wake()
        return len(self._body)

    def finish(self) -> None:
        """The request is there, all of it."""
        self.more = False
        if self._waiter is not None:
            self._wake()

    def lose(self) -> None:
        """The client is gone, or as good as gone."""
        self.gone = True
        self._body = b""
        self.when_lost()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- the lane's side

    def whole(self) -> bytes:
        return self._body

    def taken(self) -> None:
        self._body, self._told = b"", True

    def respond(self, frame: bytes) -> bool:
        """Write a whole JSON answer. False: the client is behind with reading."""
        connection = self._connection
        if self.gone:
            return True
        if connection.flow.write_paused:
            return False
        self.started = self.complete = True
        self.when_lost = _nothing  # or what it knows would live for as long as the connection is idle
        close = b"" if self.keep_alive else b"connection: close\r\n"
        connection.write(_JSON % (connection.date, len(frame), close, frame))
        connection.responded(self)
        return True

    def go_on(self, app: Any) -> None:
        """Let an app do the rest, in a task. What other requests have set in their contexts is not in its own."""
        connection = self._connection
        self.task = connection.loop.create_task(self.run(app), context=connection.context.copy())

    # -- what the app does

    async def run(self, app: Any) -> None:
        """Have the app answer. Whatever it does instead of that, the client is not left waiting."""
        try:
            await app(self.scope, self.receive, self.send)
        except CancelledError:
            self._fail()
        except Exception as problem:
            self._connection.report(f"{self._name} failed", problem)
            self._fail()
        else:
            if not (self.complete or self.gone):
                self._connection.report(f"{self._name} was not answered", None)
                self._fail()

    @property
    def _name(self) -> str:
        return f"{self.scope['method']} {self.scope['path']}"

    def _fail(self) -> None:
        if not (self.complete or self.gone):
            self.lose()
            self._connection.fail(started=self.started and not self._head)

    async def receive(self) -> Message:
        if self.expects and not (self.gone or self.started):
            self.expects = False
            self._connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self.gone or self.complete):
            if self._body or not (self.more or self._told):
                body, self._body = self._body, b""
                self._told = not self.more
                self._connection.read_on()
                return {"type": "http.request", "body": body, "more_body": self.more}
            self._connection.read_on()
            waiter = self._waiter = self._connection.loop.create_future()
            await waiter
            self._waiter = None
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        connection = self._connection
        if connection.flow.write_paused and not self.gone:
            await connection.flow.drain()
        if self.gone:
            return
        if not self.started:
            self._start(message)
        elif not self.complete:
            self._continue(message)
        else:
            raise RuntimeError(f"{message['type']} after the response was complete")

    def _start(self, message: Message) -> None:
        """Make the head. With a known length the body follows at once, and both are written as one."""
        if message["type"] != "http.response.start":
            raise RuntimeError(f"{message['type']} before http.response.start")
        status, headers = message["status"], message.get("headers", ())
        parts = [STATUS_LINES[status], self._connection.date]
        left = CHUNKED if self.scope["http_version"] == "1.1" else UNTIL_CLOSE
        lines = 3
        if self.more:
            self.keep_alive = False  # the rest of the body is not waited for
        for name, value in headers:
            if name == b"content-length":
                left = int(value)
            elif name == b"connection":
                self.keep_alive = self.keep_alive and value.lower() != b"close"
                continue
            elif name == b"transfer-encoding":
                continue  # that is for us to choose
            parts += (name, b": ", value, b"\r\n")
            lines += 1
        self._empty = status in _NO_BODY or self.scope["method"] == "HEAD"
        if left == UNTIL_CLOSE:
            self.keep_alive = False
        elif left == CHUNKED and not self._empty:
            parts.append(b"transfer-encoding: chunked\r\n")
            lines += 1
        if not self.keep_alive:
            parts.append(b"connection: close\r\n")
            lines += 1
        parts.append(b"\r\n")
        head = b"".join(parts)
        if head.count(b"\n") != lines or head.count(b"\r") != lines or b"\0" in head:
            raise RuntimeError(f"a header of the response holds a line break: {headers!r}")
        self.started = True
        self._left = left
        if left >= 0:
            self._head = head
        else:
            self._connection.write(head)

    def _continue(self, message: Message) -> None:
        if message["type"] != "http.response.body":
            raise RuntimeError(f"{message['type']} instead of http.response.body")
        body: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        if self._empty:
            body = b""
        elif self._left >= 0:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):
                raise RuntimeError("the response's body is not as long as its content-length")
        elif self._left == CHUNKED:
            body = _chunk(body, more)
        if self._head:
            body, self._head = self._head + body, b""
        if body:
            self._connection.write(body)
        if not more:
            self.complete = True
            self._body = b""
            if self._waiter is not None:
                self._wake()
            self._connection.responded(self)


def _nothing() -> None:
    pass


def _chunk(body: bytes, more: bool) -> bytes:
    if not body:
        return b"" if more else b"0\r\n\r\n"
    return b"%x\r\n%b%b" % (len(body), body, b"\r\n" if more else b"\r\n0\r\n\r\n")
