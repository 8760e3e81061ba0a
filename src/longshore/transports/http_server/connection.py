"""One HTTP/1.1 connection: httptools parses, `Connection` orders requests and enforces deadlines and bounds, and an
`HttpExchange` is one request and its response as an ASGI app sees them.

Deadlines are not timers. The listener checks every connection once a second while one of them is in a phase that must
end soon (`check`), and ends a connection that is found in the same place for too long; so a request without trouble
pays nothing for them.

| what the peer does | limit | what it gets |
|---|---|---|
| does not finish a request's head | `header_seconds` | 408 |
| sends a head that is too long | `header_bytes` | 431 |
| sends less than `body_bytes` of a body | `body_seconds` | 408 |
| sends a body when all bodies hold too much | `upload_bytes` | is not read, then 503 after `upload_seconds` |
| holds what other bodies wait for | `body_seconds` | 503 |
| takes nothing of what waits for it | `stall_seconds` | a reset |
| says nothing between requests | `idle_seconds` | a close |
| comes when all places are taken | `connections` | 503 |
| comes when its own address has too many | `peer_connections` | 503 |

uvicorn's request cycle takes nearly twice the time: it writes the head and the body separately, which costs the most,
searches each header twice with a regular expression and makes an Event for each request.
"""

from __future__ import annotations

from asyncio import BaseTransport, CancelledError, Future, Protocol, Task, Transport
from collections import deque
from contextvars import copy_context
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time
from typing import TYPE_CHECKING, Any, Final, Literal, cast, final
from urllib.parse import unquote

import httptools

from longshore.limits import Limits
from longshore.transports.http.pending import RESPONSE, Deliverable, PendingResponse
from longshore.transports.http.uploads import BOUNDED, SMALL_BYTES, PendingUpload

if TYPE_CHECKING:
    from longshore.transports.http_server.listener import Listener

Message = dict[str, Any]
HeaderPairs = list[tuple[bytes, bytes]]

WAITING_BYTES: Final = 1 << 16
"""How much of a body may wait for the app before reading stops."""
HEADERS: Final = 128
"""Headers of one request. The smallest ones would take forty times their size in memory."""
LINGER_SECONDS: Final = 2.0
"""A refused peer may still be sending, and would lose the refusal to a reset. It has this long to read it."""
HIDDEN_BYTES: Final = 1 << 16
"""Under TLS the transport does not say how much output waits. This much is in the kernel's buffer at once."""
CHUNKED: Final = -1
"""The length of a response that names none."""
UNTIL_CLOSE: Final = -2
"""The same for a client of HTTP/1.0, which knows no chunks: the response ends with the connection."""

Phase = Literal["new", "head", "body", "waiting", "working", "idle", "stalled", "lingering"]
"""The phase of a connection.

It waits for a first byte, the end of a head, more of a body, memory for the body, the app, the next request, a reader
of its output, or the close of a refused peer.
"""

_JSON: Final = b"HTTP/1.1 200 OK\r\n%bcontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n%b"
_NO_BODY: Final = frozenset((204, 304))
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_EXTENSIONS: Final[Message] = {BOUNDED: {}}
_FULL: Final = "the server holds as many unfinished requests as it can; try again later"
_DISCARD: Final = cast("HeaderPairs", deque(maxlen=0))
"""Takes the headers after a chunked body and drops them: what was checked before the body must not change after it."""


class RefusedRequest(Exception):
    """A request is malformed or too large, and its connection ends with this response."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


@final
class HttpExchange:
    """Passes a request's body to the app and writes the app's response."""

    __slots__ = (
        "_connection",
        "_delivered",
        "_empty",
        "_head",
        "_left",
        "_pending",
        "_waiter",
        "body",
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
        self.body = b""
        """The part of the body that was not delivered to the app yet."""
        self.more = True
        """Whether some of the request is still to come."""
        self.gone = False
        """Whether the client has hung up."""
        self.started = False
        self.complete = False
        self.task: Task[None] | None = None
        self._pending: PendingResponse | None = None
        """The response that is written here when its answer comes; no task works on it."""
        self._delivered = False
        """Whether the app has got the end of the body."""
        self._head = b""
        self._left = 0
        self._empty = False
        self._waiter: Future[None] | None = None

    # -- called by the connection

    def take(self, body: bytes) -> int:
        """Add a piece of the body. Returns how much of it waits for the app."""
        self.body = self.body + body if self.body else body
        if self._waiter is not None:
            self._wake()
        return len(self.body)

    def finish(self) -> None:
        """Mark the request as complete."""
        self.more = False
        if self._waiter is not None:
            self._wake()

    def lose(self) -> None:
        """The client has hung up, or its connection is about to be cut."""
        self.gone = True
        self.body = b""
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

    def respond_later(self, pending: PendingResponse) -> None:
        """Write this response when its answer comes."""
        self._pending = pending
        self.body, self._delivered = b"", True
        pending.attach(self)
        self._connection.read_on()  # otherwise a hang-up would not be noticed

    def respond(self, frame: bytes) -> bool:
        """Write a JSON response. False: the client reads too slowly."""
        connection = self._connection
        if self.gone:
            return True
        if connection.write_paused:
            return False
        self.started = self.complete = True
        self._pending, self.body = None, b""
        close = b"" if self.keep_alive else b"connection: close\r\n"
        connection.write(_JSON % (date_header(int(time())), len(frame), close, frame))
        connection.responded(self)
        return True

    def deliver(self, response: Deliverable) -> None:
        """Run the app in a task, to deliver a response that was begun."""
        self._pending = None
        self.body, self._delivered = b"", True
        self.scope[RESPONSE] = response
        self.run_app()

    # -- the app's side

    async def _run(self, app: Any) -> None:
        """Run the app. If it fails or returns without a response, the client gets a 500 or a closed connection."""
        name = f"{self.scope['method']} {self.scope['path']}"
        try:
            await app(self.scope, self.receive, self.send)
        except CancelledError:
            pass
        except Exception as problem:
            self._connection.report(f"{name} failed", problem)
        else:
            if not (self.complete or self.gone):
                self._connection.report(f"{name} was not answered", None)
        if not (self.complete or self.gone):
            self.lose()
            self._connection.fail(started=self.started and not self._head)

    async def receive(self) -> Message:
        if self.expects and not (self.gone or self.started):
            self.expects = False
            self._connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self.gone or self.complete):
            if self.body or not (self.more or self._delivered):
                body, self.body = self.body, b""
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
        expected = "http.response.body" if self.started else "http.response.start"
        if self.complete or message["type"] != expected:
            raise RuntimeError(f"{message['type']} where {expected} or nothing may follow")
        if self.started:
            self._continue(message)
        else:
            self._start(message)

    def _start(self, message: Message) -> None:
        """Make the head. With a known length it is written together with the first part of the body."""
        status, headers = message["status"], message.get("headers", ())
        parts = [STATUS_LINES[status], date_header(int(time()))]
        left = CHUNKED if self.scope["http_version"] == "1.1" else UNTIL_CLOSE
        lines = 3
        if self.more:
            self.keep_alive = False  # without waiting for the rest of the body
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
        body: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        if self._empty:
            body = b""
        elif self._left >= 0:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):
                raise RuntimeError("the response's body is not as long as its content-length")
        elif self._left == CHUNKED:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = chunk if more else chunk + b"0\r\n\r\n"
        if self._head:
            body, self._head = self._head + body, b""
        if body:
            self._connection.write(body)
        if not more:
            self.complete = True
            self.body = b""
            self._wake()
            self._connection.responded(self)


@final
class Connection(Protocol):
    """Reads requests, passes them to the app in turn, and lets neither side wait forever."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.app, self.loop, self.context = listener.app, listener.loop, listener.context
        self._begin_post = listener.begin_post
        self._most = listener.limits.header_bytes
        self._transport = cast("Transport", None)
        self._parser: Any = httptools.HttpRequestParser(self)
        self._scope: Message = {}
        """The common part of the scopes of all requests."""
        self._address = ""
        """The client's IP address."""
        self._place_holder = ""
        """The same if it counts against the places of this address."""
        # flow control
        self.read_paused = False
        self.write_paused = False
        self._writable: list[Future[None]] = []
        # the request that is being parsed
        self._url = b""
        self._headers: HeaderPairs = []
        self._expects = False
        self._chunked = False
        self._unfinished = False
        """Whether a request has begun and its end has not come."""
        self._in_head = False
        self._upgrading = False
        self._discarding = False
        """Whether everything that still comes is discarded."""
        self._unusual = True
        """Whether nothing has come yet, or everything is discarded: one test instead of two for each read."""
        self._held = 0
        """Bytes since the last progress in a body."""
        self._read_bytes = 0
        """Bytes of the current read; if it holds a body or the end of a request, at most one more than a head has."""
        self._received = 0
        """Bytes of requests that did not come in one read."""
        self._counted = 0
        """The value of `_received` when a body last made progress."""
        self._upload: PendingUpload | None = None
        """The body that is being received, if it does not come in one read."""
        # requests and their responses
        self._requests = 0
        self._exchange: HttpExchange | None = None
        """The one that is being read or answered, or was last."""
        self._unstarted: HttpExchange | None = None
        """A POST whose body is being read, before the app is called."""
        self.sent = 0
        # deadlines
        self._place: tuple[Phase, object] = "new", None
        self._since = listener.now

    # -- the transport's side

    def connection_made(self, transport: BaseTransport) -> None:
        listener = self._listener
        listener.connections.add(self)
        self._transport = cast("Transport", transport)
        client = _address(transport, "peername")
        self._scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": "1.1",
            "server": _address(transport, "sockname"),
            "client": client,
            "scheme": "https" if transport.get_extra_info("sslcontext") else "http",
            "root_path": "",
            "extensions": _EXTENSIONS,
        }
        self._address = client[0] if client else ""
        crowded = listener.enter(self._address)
        if crowded is None:
            self._place_holder = self._address
            return
        # While a refused peer reads that, it does not count as a connection; such connections are bounded too.
        self.write(short_response(503, crowded))
        listener.connections.discard(self)
        if len(listener.leaving) < listener.limits.connections:
            listener.leaving.add(self)
            self._linger()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's signature)
        listener = self._listener
        listener.connections.discard(self)
        listener.leaving.discard(self)
        listener.leave(self._place_holder)
        self._release()
        if self._exchange is not None and not self._exchange.complete:
            self._exchange.lose()
        self.resume_writing()
        self._parser = None  # it refers to this object

    def data_received(self, data: bytes) -> None:
        if self._unusual and not self._admit(data):
            return
        self._read_bytes = len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._decline_upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError as problem:
            self._misread(problem)
        if self._unfinished:
            if self._unstarted is not None:
                self._start(self._unstarted)
            self._count(len(data))

    def _admit(self, data: bytes) -> bool:
        """Whether to read this as HTTP. The first byte of a connection that is no blank may indicate JSON lines."""
        first = data.lstrip()[:1]
        if self._discarding or (not first and self._listener.takes_lines):
            return False
        self._unusual = False
        jsonl = first in (b"{", b"[") and self._listener.serve_jsonl(self._transport, data)
        if jsonl:
            self._listener.connections.discard(self)
        return not jsonl

    def _count(self, size: int) -> None:
        """Count the bytes of a read that are not body, which must not grow without bound.

        Twice the limit, because the first read may mostly be the end of an earlier request.
        """
        self._held += self._read_bytes
        self._received += size
        self._listener.look_soon()
        if self._held > 2 * self._most:
            self._refuse(self._too_long() if self._in_head else RefusedRequest(400, "chunks or trailers without end"))
        elif not (self._in_head or self._exchange is None or self._exchange.complete):
            self._hold(self._exchange, size)

    def _hold(self, exchange: HttpExchange, size: int) -> None:
        """Count a body that does not arrive in one read against the limit of all bodies."""
        upload, listener = self._upload, self._listener
        if upload is None:
            if not exchange.body:
                return
            # A chunked one counts as a small one until it is larger.
            lengths = [int(value) for name, value in exchange.scope["headers"] if name == b"content-length"]
            length = min(lengths[0], listener.limits.frame_bytes) if lengths else SMALL_BYTES
            upload = self._upload = PendingUpload(self._address, length, len(exchange.body), self._resume_reading)
        else:
            upload.received += size
            if upload.received <= upload.size or upload.size > SMALL_BYTES:
                return
            listener.uploads.leave(upload)  # chunked, and not small after all
            upload.size = listener.limits.frame_bytes
        if not listener.uploads.enter(upload):
            self._refuse(RefusedRequest(503, _FULL))
        elif upload.waits:
            self._pause_reading()

    def _release(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None:
            self._listener.uploads.leave(upload)

    def _misread(self, problem: httptools.HttpParserError) -> None:
        cause = problem.__context__
        if isinstance(cause, RefusedRequest):
            self._refuse(cause)
            return
        if not isinstance(cause, (type(None), httptools.HttpParserError, UnicodeError)):
            self.report("a request could not be read", cause)
        self._refuse(RefusedRequest(400, "this is not a valid HTTP/1.1 request"))

    def _decline_upgrade(self, rest: bytes) -> None:
        """Read a request again without its offer of another protocol: Java's client offers HTTP/2 with its first one.

        The parser takes a request with an offer for one without a body.
        """
        self._upgrading = False
        head = [b"%b %b HTTP/%b" % (self._parser.get_method(), self._url, self._parser.get_http_version().encode())]
        for name, value in self._headers:
            if name == b"connection" and b"upgrade" in value.lower():
                head.append(b"connection: keep-alive")
            elif name not in (b"upgrade", b"http2-settings"):
                head.append(b"%b: %b" % (name, value))
        self._parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join((*head, b"", rest)))

    # -- flow control

    def _pause_reading(self) -> None:
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.write_paused = True

    def resume_writing(self) -> None:
        self.write_paused = False
        for writable in self._writable:
            if not writable.done():
                writable.set_result(None)
        self._writable.clear()

    async def drain(self) -> None:
        """Wait until the client reads more, or has closed."""
        writable = self.loop.create_future()
        self._writable.append(writable)
        await writable

    # -- the parser's side

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = []
        self._expects = self._chunked = False
        self._unfinished = self._in_head = True
        self._requests += 1
        self._held = 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self._expects = True
        elif name == b"transfer-encoding":
            if value.lower() != b"chunked" or self._chunked:  # proxies read other codings in different ways
                raise RefusedRequest(400, "a body may be chunked, in HTTP/1.1, and nothing else")
            self._chunked = True
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        parser, headers, current = self._parser, self._headers, self._exchange
        method, version = parser.get_method(), parser.get_http_version()
        most = self._most
        if (self._held or self._read_bytes > most) and _head_bytes(method, self._url, headers) > most:
            raise self._too_long()
        if len(headers) > HEADERS:
            raise RefusedRequest(431, f"a request has at most {HEADERS} headers")
        if current is not None and not current.complete:
            raise RefusedRequest(400, "a request was sent before the answer to the last one")
        if parser.should_upgrade():
            if method == b"CONNECT":
                raise RefusedRequest(400, "this server is no proxy")
            self._upgrading = True
            return
        self._headers = _DISCARD
        scope = self._scope.copy()
        scope["headers"] = headers
        scope["method"] = method.decode("ascii")
        if version != "1.1":
            if version != "1.0":
                raise RefusedRequest(505, "this server speaks HTTP/1.1")
            if self._chunked:
                raise RefusedRequest(400, "a body may be chunked, in HTTP/1.1, and nothing else")
            scope["http_version"] = version
        _set_target(scope, self._url)
        keep_alive = version == "1.1" and parser.should_keep_alive() and not self._listener.stopping
        exchange = self._exchange = HttpExchange(self, scope, keep_alive, self._expects)
        if self._begin_post is not None and method == b"POST" and not exchange.expects:
            self._unstarted = exchange  # what is left of it is probably in the same read
        else:
            exchange.run_app()

    def _too_long(self) -> RefusedRequest:
        return RefusedRequest(431, f"the head of a request is at most {self._most:,} bytes")

    def _start(self, exchange: HttpExchange) -> None:
        """Answer a POST whose body is complete, or will take a while."""
        self._unstarted = None
        if exchange.more or self._begin_post is None:
            exchange.run_app()
            return
        try:
            # In a context of its own, like a task: variables set by a tool must not reach the next request.
            copy_context().run(self._begin_post, exchange)
        except Exception as problem:
            self.report(f"POST {exchange.scope['path']} failed", problem)
            if not exchange.complete:
                exchange.lose()
                self.fail(started=exchange.started)

    def on_body(self, body: bytes) -> None:
        exchange = self._exchange
        self._held = 0
        if self._read_bytes > self._most:
            self._read_bytes = self._most + 1
        if exchange is not None and not exchange.complete and exchange.take(body) > WAITING_BYTES:
            self._pause_reading()

    def on_message_complete(self) -> None:
        if self._upgrading:
            return
        self._unfinished = False
        if self._read_bytes > self._most:
            self._read_bytes = self._most + 1
        if self._upload is not None:
            self._release()
        exchange = self._exchange
        if exchange is not None:
            exchange.finish()
            if exchange is self._unstarted:
                self._start(exchange)

    # -- the exchange's side

    def write(self, data: bytes) -> None:
        self.sent += len(data)
        self._transport.write(data)

    def read_on(self) -> None:
        """Read more of the body, which the app wants."""
        if self.read_paused and not (self._upload is not None and self._upload.waits):
            self._resume_reading()

    def responded(self, exchange: HttpExchange) -> None:
        """Wait for the next request, or end, after a response is complete."""
        if (exchange.more or self._discarding) and not self._transport.is_closing():
            self._linger()  # the client is still sending, and must not lose the answer for that
        elif not exchange.keep_alive:
            self._transport.close()
        elif self.read_paused:
            self._resume_reading()

    def fail(self, started: bool) -> None:
        """End the response of an app that did not answer, or not completely."""
        if started:
            self._transport.close()  # without the last chunk, so that the client notices that it is incomplete
        else:
            self.write(short_response(500, "the server failed; its log says how"))
            self._linger()

    def report(self, text: str, problem: BaseException | None) -> None:
        self._listener.recorder.problem("error", text, problem)

    # -- ending

    def _refuse(self, refusal: RefusedRequest) -> None:
        """Answer a request that can't be read further, and end the connection after the pending answer."""
        self._unfinished = False
        self._release()
        current = self._exchange
        self._discarding = self._unusual = True
        if self._transport.is_closing():
            return  # the last answer has been given
        if current is not None and not current.complete:
            if not current.more:
                current.keep_alive = False
                return
            current.lose()
            if current.started:
                self._transport.abort()
                return
        self.write(short_response(refusal.status, refusal.text))
        self._linger()

    def _linger(self) -> None:
        """Write and read nothing more, and close when the peer has had time to read."""
        self._discarding = self._unusual = True
        self._release()
        if self._transport.is_closing():
            return
        self._listener.look_soon()
        if self._transport.can_write_eof():
            self._resume_reading()
            self._transport.write_eof()
        else:
            self._transport.close()

    def retire(self) -> None:
        """The server stops: end after the current response, or now."""
        if self._exchange is None or self._exchange.complete:
            self._transport.close()
        else:
            self._exchange.keep_alive = False

    def cut(self) -> Any:
        """Abort the connection: the server has stopped. Returns the task that may still run, cancelled."""
        self._transport.abort()
        task = self._exchange.task if self._exchange is not None else None
        if task is None or task.done():
            return None
        task.cancel()
        return task

    # -- deadlines

    def place(self) -> tuple[Phase, object]:
        """The phase that the connection is in, and a mark that changes with its progress."""
        waiting = self._transport.get_write_buffer_size()
        if waiting:
            return "stalled", self.sent - waiting
        exchange = self._exchange
        if self._discarding and (exchange is None or exchange.complete or exchange.gone):
            return "lingering", None
        if self._unfinished:
            if self._in_head:
                return "head", self._requests
            if self._upload is not None and self._upload.waits:
                return "waiting", self._requests
            if exchange is None or exchange.expects or self.read_paused:
                return "working", None
            if self._received - self._counted >= self._listener.limits.body_bytes:
                self._counted = self._received
            return "body", (self._requests, self._counted)
        if exchange is None:
            return "new", None
        return ("idle" if exchange.complete else "working"), self._requests

    def check(self, now: float) -> bool:
        """End a connection that made no progress for too long. True: it waits for the next request or for the app."""
        limits, place = self._listener.limits, self.place()
        if self._upload is not None and self._listener.uploads.overdue(self._upload, now):
            self._refuse(RefusedRequest(503, f"others wait, and the body did not end within {limits.body_seconds:g} s"))
            return False
        if place != self._place:
            self._place, self._since = place, now
        else:
            self._check_deadline(place[0], now - self._since, limits)
        return place[0] in ("idle", "working")

    @property
    def _may_hold_output(self) -> bool:
        """Whether TLS may hold output that the peer has not taken. TLS has a deadline for that, `stall_seconds`."""
        return self.sent > HIDDEN_BYTES and not self._transport.can_write_eof()

    def _check_deadline(self, phase: Phase, seconds: float, limits: Limits) -> None:
        """End the connection if a phase has lasted for too long without any progress."""
        match phase:
            case "new" | "head" if seconds >= limits.header_seconds:
                self._refuse(RefusedRequest(408, f"no request within {limits.header_seconds:g} s"))
            case "body" if seconds >= limits.body_seconds:
                text = f"less than {limits.body_bytes:,} bytes of the body within {limits.body_seconds:g} s"
                self._refuse(RefusedRequest(408, text))
            case "waiting" if seconds >= limits.upload_seconds:
                self._refuse(RefusedRequest(503, _FULL))
            case "idle" if seconds >= limits.idle_seconds:
                self._transport.close()
            case "stalled" if seconds >= limits.stall_seconds:
                self._transport.abort()
            case "lingering" if seconds >= LINGER_SECONDS and not self._may_hold_output:
                self._transport.abort()
            case _:
                pass


# -- responses


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


STATUS_LINES: Final = {status: f"HTTP/1.1 {status} {_phrase(status)}\r\n".encode() for status in range(100, 600)}


@lru_cache(maxsize=1)
def date_header(second: int) -> bytes:
    """The Date header of a response, made once a second."""
    return b"date: %b\r\n" % formatdate(second, usegmt=True).encode()


def short_response(status: int, text: str) -> bytes:
    """A whole response without the app, after which the connection closes."""
    body = text.encode() + b"\n"
    head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
    retry = b"retry-after: 1\r\n" if status == 503 else b""
    return b"".join((STATUS_LINES[status], date_header(int(time())), head, retry, b"\r\n", body))


# -- the head of a request


def _address(transport: BaseTransport, side: Literal["peername", "sockname"]) -> tuple[str, int] | None:
    found: Any = transport.get_extra_info(side)  # a Unix socket's address is a string
    return (found[0], found[1]) if found.__class__ is tuple else None


def _head_bytes(method: bytes, url: bytes, headers: HeaderPairs) -> int:
    """How long the head of a request was."""
    line = len(method) + len(url) + len("  HTTP/1.1\r\n\r\n")
    return line + sum(len(name) + len(value) + len(": \r\n") for name, value in headers)


def _set_target(scope: Message, url: bytes) -> None:
    """Put the path and the query of a request's target into its ASGI scope."""
    raw, query = url, b""
    if not url.startswith(b"/") or b"?" in url or b"#" in url:
        parsed = httptools.parse_url(url)
        raw, query = parsed.path or b"/", parsed.query or b""
        if not url.startswith(b"/") and url != b"*":
            # `GET http://host/path`: the host in the target counts, whatever the Host header says.
            if not parsed.host:
                raise RefusedRequest(400, "a request names a path on this server")
            authority = url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
            headers = scope["headers"]
            headers[:] = [(name, value) for name, value in headers if name != b"host"] + [(b"host", authority)]
    path = raw.decode("ascii")
    scope["path"] = unquote(path) if "%" in path else path
    scope["raw_path"] = raw
    scope["query_string"] = query
