"""One HTTP/1.1 connection: httptools parses, this class orders requests and enforces deadlines and bounds.

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
"""

from __future__ import annotations

from asyncio import BaseTransport, Future, Protocol, Transport
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, Literal, cast, final

import httptools

from longshore.limits import Limits
from longshore.transports.http.uploads import BOUNDED, SMALL_BYTES, Upload
from longshore.transports.http_server.exchange import (
    Exchange,
    HeaderPairs,
    Message,
    Refused,
    head_bytes,
    set_target,
    short_response,
    without_upgrade,
)

if TYPE_CHECKING:
    from longshore.transports.http_server.listener import Listener

WAITING_BYTES: Final = 1 << 16
"""How much of a body may wait for the app before reading stops."""
HEADERS: Final = 128
"""Headers of one request. The smallest ones would take forty times their size in memory."""
PIPELINED: Final = 64
"""Requests that one connection may have sent ahead of their answers."""
LINGER_SECONDS: Final = 2.0
"""A refused peer may still be sending, and would lose the refusal to a reset. It has this long to read it."""

Phase = Literal["new", "head", "body", "waiting", "working", "idle", "stalled", "lingering"]
"""What a connection waits for: a first byte, the end of a head, more of a body, room for the body, the app, the next
request, a reader that takes what it was sent, or a refused peer that leaves."""

_VERSIONS: Final = ("1.1", "1.0")
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_EXTENSIONS: Final[Message] = {BOUNDED: {}}
_FULL: Final = "the server holds as many unfinished requests as it can; try again later"
_DISCARD: Final = cast("HeaderPairs", deque(maxlen=0))
"""Takes the headers after a chunked body and drops them: what was checked before the body must not change after it."""


@final
class Connection(Protocol):
    """Reads requests, hands them to the app in turn, and lets neither side wait for ever."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.app, self.loop, self.context = listener.app, listener.loop, listener.context
        self._begin_post = listener.begin_post
        self._most = listener.limits.header_bytes
        self._transport = cast("Transport", None)
        self._parser: Any = httptools.HttpRequestParser(self)
        self._scope: Message = {}
        """What the scopes of all requests have in common."""
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
        self._unfinished = False
        """Whether a request has begun and its end has not come."""
        self._in_head = False
        self._upgrading = False
        self._has_more = False
        """Whether more of the same read follows."""
        self._discarding = False
        """Whether everything that still comes is discarded."""
        self._unusual = True
        """Whether nothing has come yet, or everything is discarded: one test instead of two for each read."""
        self._held = 0
        """Bytes since the last progress in a body."""
        self._received = 0
        """Bytes of requests that did not come in one read."""
        self._counted = 0
        """What `_received` was when a body last made progress."""
        self._seen = 0
        """What `_received` was when the upload was last counted."""
        self._upload: Upload | None = None
        """The body that is being received, if it does not come in one read."""
        # requests and their responses
        self._requests = 0
        self._exchange: Exchange | None = None
        """The one that is being answered, or was last."""
        self._incoming: Exchange | None = None
        """The one that is being read, or was last: another one if the client sends ahead."""
        self._unstarted: Exchange | None = None
        """A POST whose body is being read, before the app is called."""
        self._ahead: deque[Exchange] = deque()
        self._chunked: Exchange | None = None
        self._last = False
        """Whether the connection ends with the current response."""
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
        else:
            self._turn_away(crowded)

    def _turn_away(self, why: str) -> None:
        """Refuse the connection. While the peer reads that, it holds no place; such connections are bounded too."""
        listener = self._listener
        self.write(short_response(503, why, self.date, b"retry-after: 1\r\n"))
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
        for exchange in (self._exchange, *self._ahead):
            if exchange is not None and not exchange.complete:
                exchange.lose()
        self.resume_writing()
        self._parser = None  # it refers to this object

    def data_received(self, data: bytes) -> None:
        if self._unusual and not self._admit(data):
            return
        if len(data) > self._most:
            self._read_in_pieces(data)
            return
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
        """Whether this is to be read as HTTP. The first byte of a connection may say otherwise."""
        if self._discarding:
            return False
        self._unusual = False
        jsonl = data[0] in b"{[" and self._listener.serve_jsonl(self._transport, data)
        if jsonl:
            self._listener.connections.discard(self)
        return not jsonl

    def _read_in_pieces(self, data: bytes) -> None:
        """Read no more at once than a head may have, so that one that is too long is noticed."""
        for start in range(0, len(data), self._most):
            if self._discarding:
                return
            self._has_more = start + self._most < len(data)
            self.data_received(data[start : start + self._most])

    def _count(self, size: int) -> None:
        """Count a read after which the request goes on: what is not body must not grow without bound.

        Twice the limit, because the first piece may be the end of an earlier request for the most part.
        """
        self._held += size
        self._received += size
        self._listener.look_soon()
        if self._held > 2 * self._most:
            self._refuse(self._too_long() if self._in_head else Refused(400, "chunks or trailers without end"))
        elif not (self._in_head or self._has_more or self._incoming is None or self._incoming.complete):
            self._hold(self._incoming)

    def _hold(self, exchange: Exchange) -> None:
        """Count a body that does not come in one read against what all of them may hold."""
        upload, uploads = self._upload, self._listener.uploads
        if upload is None:
            received = len(exchange.body)
            if not received:
                return
            upload = self._upload = Upload(self._address, self._length(exchange), received, self._let_in)
            self._seen = self._received
        else:
            upload.received += self._received - self._seen
            self._seen = self._received
            if upload.received <= upload.size or upload.size > SMALL_BYTES:
                return
            uploads.leave(upload)  # in chunks, and not small after all
            upload.size = self._listener.limits.frame_bytes
        if not uploads.enter(upload):
            self._refuse(Refused(503, _FULL))
        elif upload.waits:
            self._pause_reading()

    def _length(self, exchange: Exchange) -> int:
        """How long the body will be: one in chunks counts as a small one until it is larger."""
        lengths = [value for name, value in exchange.scope["headers"] if name == b"content-length"]
        return min(int(lengths[0]), self._listener.limits.frame_bytes) if lengths else SMALL_BYTES

    def _let_in(self) -> None:
        if self.read_paused and not self._ahead:
            self._resume_reading()

    def _release(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None:
            self._listener.uploads.leave(upload)

    def _misread(self, problem: httptools.HttpParserError) -> None:
        cause = problem.__context__
        if isinstance(cause, Refused):
            self._refuse(cause)
            return
        if not isinstance(cause, (type(None), httptools.HttpParserError, UnicodeError)):
            self.report("a request could not be read", cause)
        self._refuse(Refused(400, "this is not a valid HTTP/1.1 request"))

    def _consider_upgrade(self) -> None:
        if self._parser.get_method() == b"CONNECT":
            raise Refused(400, "this server is no proxy")
        if self._exchange is not None and not self._exchange.complete:
            raise Refused(400, "an offer to change the protocol can't be sent ahead")
        self._upgrading = True

    def _decline_upgrade(self, rest: bytes) -> None:
        """Read a request again without its offer of another protocol: some clients offer HTTP/2 with their first one.

        The parser takes a request with an offer for one without a body.
        """
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        self._upgrading = False
        self._parser = httptools.HttpRequestParser(self)
        head = [b"%b %b HTTP/%b" % (method, self._url, version)]
        head += [b"%b: %b" % header for header in without_upgrade(self._headers)]
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
        """Wait until the client takes more, or is gone."""
        writable = self.loop.create_future()
        self._writable.append(writable)
        await writable

    # -- the parser's side

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = []
        self._expects = False
        self._unfinished = self._in_head = True
        self._requests += 1
        self._held = 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self._expects = True
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        parser, headers = self._parser, self._headers
        if self._held and head_bytes(parser.get_method(), self._url, headers) > self._most:
            raise self._too_long()
        if len(headers) > HEADERS:
            raise Refused(431, f"a request has at most {HEADERS} headers")
        if parser.should_upgrade():
            self._consider_upgrade()
            return
        self._headers = _DISCARD
        version = parser.get_http_version()
        if version not in _VERSIONS:
            raise Refused(505, "this server speaks HTTP/1.1")
        scope = self._scope.copy()
        scope["headers"] = headers
        scope["method"] = parser.get_method().decode("ascii")
        if version != "1.1":
            scope["http_version"] = version
        set_target(scope, self._url)
        keep_alive = version == "1.1" and parser.should_keep_alive() and not self._listener.stopping
        exchange = self._incoming = Exchange(self, scope, keep_alive, self._expects)
        current = self._exchange
        if current is None or current.complete:
            self._begin(exchange)
        else:
            self._queue(exchange)

    def _too_long(self) -> Refused:
        return Refused(431, f"the head of a request is at most {self._most:,} bytes")

    def _begin(self, exchange: Exchange) -> None:
        self._exchange = exchange
        if self._begin_post is not None and exchange.scope["method"] == "POST" and not exchange.expects:
            self._unstarted = exchange  # what is left of it is probably in the same read
        else:
            exchange.run_app()

    def _start(self, exchange: Exchange) -> None:
        """Answer a POST whose body has come, or will take a while."""
        self._unstarted = None
        if exchange.more or self._begin_post is None:
            exchange.run_app()
        else:
            # In a context of its own, as a task has: what a tool sets there is not for the next request.
            copy_context().run(self._begin_post, exchange)

    def _queue(self, exchange: Exchange) -> None:
        if len(self._ahead) >= PIPELINED:
            raise Refused(400, f"at most {PIPELINED} requests may be sent ahead of their answers")
        self._ahead.append(exchange)
        self._pause_reading()

    def on_body(self, body: bytes) -> None:
        exchange = self._incoming
        self._held = 0
        if exchange is not None and not exchange.complete and exchange.take(body) > WAITING_BYTES:
            self._pause_reading()

    def on_chunk_header(self) -> None:
        """Refuse a chunked body with another coding: proxies read such bodies in different ways."""
        exchange = self._incoming
        if exchange is not None and exchange is not self._chunked:
            self._chunked = exchange
            codings = [value.lower() for name, value in exchange.scope["headers"] if name == b"transfer-encoding"]
            if codings != [b"chunked"] or exchange.scope["http_version"] != "1.1":
                raise Refused(400, "a body may be chunked, in HTTP/1.1, and nothing else")

    def on_message_complete(self) -> None:
        if self._upgrading:
            return
        self._unfinished = False
        if self._upload is not None:
            self._release()
        exchange = self._incoming
        if exchange is not None:
            exchange.finish()
            if exchange is self._unstarted:
                self._start(exchange)

    # -- the exchange's side

    @property
    def date(self) -> bytes:
        return self._listener.date

    def write(self, data: bytes) -> None:
        self.sent += len(data)
        self._transport.write(data)

    def read_on(self) -> None:
        """Read more of the body, which the app wants."""
        if self.read_paused and not self._ahead and not (self._upload is not None and self._upload.waits):
            self._resume_reading()

    def responded(self, exchange: Exchange) -> None:
        """Go on to the next request, or to the end, after a response is complete."""
        if exchange.more and not self._transport.is_closing():
            self._linger()  # the client still sends, and should not lose the answer for that
        elif not exchange.keep_alive:
            self._transport.close()
        elif self._ahead:
            # By the app: reading has stopped, and the app asks for the rest of the body.
            self._exchange = self._ahead.popleft()
            self._exchange.run_app()
        elif self._last:
            self._transport.close()
        elif self.read_paused:
            self._resume_reading()

    def fail(self, started: bool) -> None:
        """The app did not answer, or not to the end."""
        if started:
            self._transport.close()  # without the last chunk, so that the client sees that it is not whole
        else:
            self.write(short_response(500, "the server failed; its log says how", self.date))
            self._linger()

    def report(self, text: str, problem: BaseException | None) -> None:
        self._listener.recorder.problem("error", text, problem)

    # -- ending

    def _refuse(self, refusal: Refused) -> None:
        """Answer a request that can't be read on, and end the connection. Answers that are due go first."""
        self._unfinished = False
        self._release()
        incoming, current = self._incoming, self._exchange
        self._discarding = self._unusual = True
        if self._transport.is_closing():
            return  # the last answer has been given
        if current is not None and not current.complete and not (current is incoming and current.more):
            self._last = True
            if self._ahead and incoming is not None and incoming.more and self._ahead[-1] is incoming:
                self._ahead.pop()
            return
        if current is not None and not current.complete:
            current.lose()
            if current.started:
                self._transport.abort()
                return
        extra = b"retry-after: 1\r\n" if refusal.status == 503 else b""
        self.write(short_response(refusal.status, refusal.text, self.date, extra))
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
        """The server has stopped. Gives the task that may still run, cancelled."""
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
        if self._discarding and not self._last:
            return "lingering", None
        if self._unfinished:
            if self._in_head:
                return "head", self._requests
            if self._upload is not None and self._upload.waits:
                return "waiting", self._requests
            incoming = self._incoming
            if incoming is None or incoming.expects or self.read_paused:
                return "working", None
            if self._received - self._counted >= self._listener.limits.body_bytes:
                self._counted = self._received
            return "body", (self._requests, self._counted)
        if exchange is None:
            return "new", None
        return ("idle" if exchange.complete else "working"), self._requests

    def check(self, now: float) -> bool:
        """End what has been in one place for too long. True: it waits for the next request or for the app."""
        limits, place = self._listener.limits, self.place()
        if self._upload is not None and self._listener.uploads.overdue(self._upload, now):
            self._refuse(Refused(503, f"others wait, and the body did not end within {limits.body_seconds:g} s"))
            return False
        if place != self._place:
            self._place, self._since = place, now
        elif now - self._since >= allowed_seconds(place[0], limits):
            self._time_out(place[0], limits)
        return place[0] in ("idle", "working")

    def _time_out(self, phase: Phase, limits: Limits) -> None:
        match phase:
            case "new" | "head":
                self._refuse(Refused(408, f"no request within {limits.header_seconds:g} s"))
            case "body":
                text = f"less than {limits.body_bytes:,} bytes of the body within {limits.body_seconds:g} s"
                self._refuse(Refused(408, text))
            case "waiting":
                self._refuse(Refused(503, _FULL))
            case "idle":
                self._transport.close()
            case "stalled" | "lingering":
                self._transport.abort()
            case "working":
                pass


def allowed_seconds(phase: Phase, limits: Limits) -> float:
    """How many seconds a phase may last without any progress."""
    match phase:
        case "new" | "head":
            return limits.header_seconds
        case "body":
            return limits.body_seconds
        case "waiting":
            return limits.upload_seconds
        case "idle":
            return limits.idle_seconds
        case "stalled":
            return limits.stall_seconds
        case "lingering":
            return LINGER_SECONDS
        case "working":
            return float("inf")


def _address(transport: BaseTransport, side: Literal["peername", "sockname"]) -> tuple[str, int] | None:
    found: Any = transport.get_extra_info(side)  # a Unix socket's address is a string
    return (found[0], found[1]) if found.__class__ is tuple else None
