"""One HTTP request and its response, as an ASGI app sees them, and the texts of both that a connection makes itself.

uvicorn's request cycle takes nearly twice the time: it writes the head and the body separately, which costs the most,
searches each header twice with a regular expression and makes an Event for each request.
"""

from __future__ import annotations

from asyncio import CancelledError, Future, Task
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import unquote

import httptools

from longshore.transports.http.pending import RESPONSE, Deliverable, PendingResponse

if TYPE_CHECKING:
    from longshore.transports.http_server.connection import Connection

Message = dict[str, Any]
HeaderPairs = list[tuple[bytes, bytes]]

CHUNKED: Final = -1
"""The length of a response that names none."""
UNTIL_CLOSE: Final = -2
"""The same for a client of HTTP/1.0, which knows no chunks: the response ends with the connection."""
_JSON: Final = b"HTTP/1.1 200 OK\r\n%bcontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n%b"
_NO_BODY: Final = frozenset((204, 304))


@final
class Exchange:
    """Hands a request's body to the app and writes the app's response."""

    __slots__ = (
        "_body",
        "_connection",
        "_delivered",
        "_empty",
        "_head",
        "_left",
        "_pending",
        "_waiter",
        "complete",
        "expects",
        "gone",
        "keep_alive",
        "more",
        "scope",
        "started",
        "task",
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
        """Whether the client has hung up."""
        self.started = False
        self.complete = False
        self.task: Task[None] | None = None
        self._pending: PendingResponse | None = None
        """The response that is written here when its answer comes; no task works on it."""
        self._body = b""
        self._delivered = False
        """Whether the app has got the end of the body."""
        self._head = b""
        self._left = 0
        self._empty = False
        self._waiter: Future[None] | None = None

    # -- called by the connection

    def take(self, body: bytes) -> int:
        """Add a piece of the body. Gives how much of it waits for the app."""
        self._body = self._body + body if self._body else body
        if self._waiter is not None:
            self._wake()
        return len(self._body)

    def finish(self) -> None:
        """The request has come to its end."""
        self.more = False
        if self._waiter is not None:
            self._wake()

    def lose(self) -> None:
        """The client has hung up, or its connection is about to be cut."""
        self.gone = True
        self._body = b""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.lose()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def run_app(self) -> None:
        """Run the app in a task. Its context has nothing that other requests have set in theirs."""
        connection = self._connection
        self.task = connection.loop.create_task(self._run(connection.app), context=connection.context.copy())

    # -- called by the app's handler of complete POSTs, and by the pending response

    @property
    def body(self) -> bytes:
        """The part of the body that was not delivered to the app yet."""
        return self._body

    def respond_later(self, pending: PendingResponse) -> None:
        """Write this response when its answer comes."""
        self._pending = pending
        self._body, self._delivered = b"", True
        pending.attach(self)
        self._connection.read_on()  # or a hang-up would not be noticed

    def respond(self, frame: bytes) -> bool:
        """Write a JSON response. False: the client is behind with reading."""
        connection = self._connection
        if self.gone:
            return True
        if connection.write_paused:
            return False
        self.started = self.complete = True
        self._pending, self._body = None, b""
        close = b"" if self.keep_alive else b"connection: close\r\n"
        connection.write(_JSON % (connection.date, len(frame), close, frame))
        connection.responded(self)
        return True

    def deliver(self, response: Deliverable) -> None:
        """Run the app in a task, to deliver a response that was begun."""
        self._pending = None
        self._body, self._delivered = b"", True
        self.scope[RESPONSE] = response
        self.run_app()

    # -- the app's side

    async def _run(self, app: Any) -> None:
        """Run the app. If it fails or returns without a response, the client gets a 500 or a closed connection."""
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
            if self._body or not (self.more or self._delivered):
                body, self._body = self._body, b""
                self._delivered = not self.more
                self._connection.read_on()
                return {"type": "http.request", "body": body, "more_body": self.more}
            self._connection.read_on()
            waiter = self._waiter = self._connection.loop.create_future()
            await waiter
            self._waiter = None
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        connection = self._connection
        if connection.write_paused and not self.gone:
            await connection.drain()
        if self.gone:
            return
        if not self.started:
            self._start(message)
        elif not self.complete:
            self._continue(message)
        else:
            raise RuntimeError(f"{message['type']} after the response was complete")

    def _start(self, message: Message) -> None:
        """Make the head. With a known length it is written together with the first part of the body."""
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
                continue  # the connection chooses it
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


def _chunk(body: bytes, more: bool) -> bytes:
    if not body:
        return b"" if more else b"0\r\n\r\n"
    return b"%x\r\n%b%b" % (len(body), body, b"\r\n" if more else b"\r\n0\r\n\r\n")


# -- status lines, and responses that a connection makes without the app


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


STATUS_LINES: Final = {status: f"HTTP/1.1 {status} {_phrase(status)}\r\n".encode() for status in range(100, 600)}


class Refused(Exception):
    """A request is malformed or too large, and its connection ends with this response."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


def short_response(status: int, text: str, date: bytes, extra: bytes = b"") -> bytes:
    """A whole response after which the connection closes."""
    body = text.encode() + b"\n"
    head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
    return STATUS_LINES[status] + date + head + extra + b"\r\n" + body


# -- the head of a request


def set_target(scope: Message, url: bytes) -> None:
    """Put the path and the query of a request's target into its ASGI scope."""
    raw, query = url, b""
    if not url.startswith(b"/") or b"?" in url or b"#" in url:
        parsed = httptools.parse_url(url)
        raw, query = parsed.path or b"/", parsed.query or b""
        if not url.startswith(b"/"):
            _set_host(scope["headers"], url, parsed)
    path = raw.decode("ascii")
    scope["path"] = unquote(path) if "%" in path else path
    scope["raw_path"] = raw
    scope["query_string"] = query


def _set_host(headers: HeaderPairs, url: bytes, parsed: Any) -> None:
    """`GET http://host/path`: the host in the target counts, whatever the Host header says."""
    if url == b"*":
        return
    if not parsed.host:
        raise Refused(400, "a request names a path on this server")
    authority = url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
    headers[:] = [(name, value) for name, value in headers if name != b"host"]
    headers.append((b"host", authority))


def head_bytes(method: bytes, url: bytes, headers: HeaderPairs) -> int:
    """How long the head of a request was."""
    line = len(method) + len(url) + len("  HTTP/1.1\r\n\r\n")
    return line + sum(len(name) + len(value) + len(": \r\n") for name, value in headers)


def without_upgrade(headers: HeaderPairs) -> HeaderPairs:
    """The headers of a request that offers another protocol, less the offer."""
    kept = [(name, value) for name, value in headers if name not in (b"upgrade", b"http2-settings")]
    return [
        (name, b"keep-alive" if name == b"connection" and b"upgrade" in value.lower() else value)
        for name, value in kept
    ]
