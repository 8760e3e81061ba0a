"""One HTTP connection: uvicorn's httptools protocol, with deadlines, bounds and a stricter reading of HTTP.

Deadlines are not timers. The listener looks at every connection once a second while one of them is in a phase that
must end soon (`check`), and what it sees twice in the same place for too long is ended; so a request that goes as it
should pays nothing for them.

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

from asyncio import BaseTransport, Transport
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, Literal, cast, final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from longshore.limits import Limits
from longshore.transports.http.uploads import BOUNDED, SMALL_BYTES, Upload
from longshore.transports.http_server.exchange import (
    Exchange,
    Message,
    Refused,
    head_bytes,
    locate,
    short_response,
    without_offer,
)

if TYPE_CHECKING:
    from longshore.transports.http_server.listener import Listener

WAITING_BYTES: Final = 1 << 16
"""How much of a body may wait for the app before we stop to read."""
HEADERS: Final = 128
"""Headers of one request. The smallest ones would take forty times their size in memory."""
PIPELINED: Final = 64
"""Requests that one connection may have sent ahead of their answers."""
_VERSIONS: Final = ("1.1", "1.0")
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_EXTENSIONS: Final[Message] = {BOUNDED: {}}
_FULL: Final = "the server holds as many unfinished requests as it can; try again later"


class _Trailers(list[tuple[bytes, bytes]]):
    """Headers after a chunked body: whatever was checked before it must not change now, so they are dropped."""

    def append(self, _: tuple[bytes, bytes]) -> None:
        pass


_TRAILERS: Final = _Trailers()


@final
class Connection(HttpToolsProtocol):
    """Reads requests, hands them to the app in turn, and sees to it that neither side waits for ever."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener.uvicorn, listener.state, {}, listener.loop)
        # Data after `Connection: close` is an error, as it should be; uvicorn had that relaxed.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=False)
        self._listener = listener
        self._most = listener.limits.header_bytes
        self._peer = ""
        """The address that holds this place."""
        self._common: Message = {}
        self.context = listener.context
        self._deaf = False
        """Whether what still comes is thrown away."""
        self._unusual = True
        """Whether nothing has come yet, or what comes is thrown away: one look instead of two."""
        self._unfinished = False
        """Whether a request has begun and its end has not come."""
        self._in_head = False
        self._held = 0
        self._received = 0
        """Bytes of requests that did not come at once."""
        self._counted = 0
        """How many they were when a body last got on."""
        self._requests = 0
        self._exchange: Exchange | None = None
        """The one that is being answered, or was last."""
        self._incoming: Exchange | None = None
        """The one that is being read, or was last: another one if the client sends ahead."""
        self._lane = listener.lane
        self._unstarted: Exchange | None = None
        """The one whose body is being read, before anybody works on it."""
        self._ahead: deque[Exchange] = deque()
        self._chunked: Exchange | None = None
        self._upload: Upload | None = None
        """The body that is being received, if it does not come at once."""
        self._seen = 0
        """What `_received` was when the upload was last looked at."""
        self._has_more = False
        """Whether more of the same read follows."""
        self._upgrading = False
        self._last = False
        """Whether the connection ends with the answer that is being made."""
        self.sent = 0
        self._clock = Clock(listener.now)

    # -- the transport's side

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(cast("Transport", transport))
        self._common = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "extensions": _EXTENSIONS,
        }
        peer = self.client[0] if self.client else ""
        crowded = self._listener.enter(peer)
        if crowded is None:
            self._peer = peer
        else:
            self._turn_away(crowded)

    def _turn_away(self, why: str) -> None:
        """Say that there is no place. Those who still read that take none either, but are not too many themselves."""
        listener = self._listener
        self.write(short_response(503, why, self.date, b"retry-after: 1\r\n"))
        self.connections.discard(self)
        if len(listener.leaving) < listener.limits.connections:
            listener.leaving.add(self)
            self._linger()
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.leaving.discard(self)
        self._listener.leave(self._peer)
        self._release()
        for exchange in (self._exchange, *self._ahead):
            if exchange is not None and not exchange.complete:
                exchange.lose()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._unusual and not self._admit(data):
            return
        if len(data) > self._most:
            self._read_in_pieces(data)
            return
        try:
            self.parser.feed_data(data)
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
        if self._deaf:
            return False
        self._unusual = False
        speaks_lines = data[0] in b"{[" and self._listener.take_lines(self.transport, data)
        if speaks_lines:
            self.connections.discard(self)
        return not speaks_lines

    def _read_in_pieces(self, data: bytes) -> None:
        """So that no head that is too long is missed because it came at once."""
        for start in range(0, len(data), self._most):
            if self._deaf:
                return
            self._has_more = start + self._most < len(data)
            self.data_received(data[start : start + self._most])

    def _count(self, size: int) -> None:
        """The request goes on in the next read. What is not body must not grow without bound.

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
        """Count a body that does not come at once against what all of them may hold."""
        upload, uploads = self._upload, self._listener.uploads
        if upload is None:
            received = len(exchange.whole())
            if not received:
                return
            address = self.client[0] if self.client else ""
            upload = self._upload = Upload(address, self._length(exchange), received, self._let_in)
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
            self.flow.pause_reading()

    def _length(self, exchange: Exchange) -> int:
        """How long the body will be: in chunks it is taken for a small one until it is not."""
        lengths = [value for name, value in exchange.scope["headers"] if name == b"content-length"]
        return min(int(lengths[0]), self._listener.limits.frame_bytes) if lengths else SMALL_BYTES

    def _let_in(self) -> None:
        if self.flow.read_paused and not self._ahead:
            self.flow.resume_reading()

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
        if self.parser.get_method() == b"CONNECT":
            raise Refused(400, "this server is no proxy")
        if self._exchange is not None and not self._exchange.complete:
            raise Refused(400, "an offer to change the protocol can't be sent ahead")
        self._upgrading = True

    def _decline_upgrade(self, rest: bytes) -> None:
        """We speak nothing but HTTP/1.1, and some clients offer HTTP/2 with every first request.

        The parser takes such a request for one without a body. So it is read again, without the offer.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        self._upgrading = False
        self.parser = httptools.HttpRequestParser(self)
        head = [b"%b %b HTTP/%b" % (method, self.url, version)]
        head += [b"%b: %b" % header for header in without_offer(self.headers)]
        self.data_received(b"\r\n".join((*head, b"", rest)))

    # -- the parser's side

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._unfinished = self._in_head = True
        self._requests += 1
        self._held = 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        parser, headers = self.parser, self.headers
        if self._held and head_bytes(parser.get_method(), self.url, headers) > self._most:
            raise self._too_long()
        if len(headers) > HEADERS:
            raise Refused(431, f"a request has at most {HEADERS} headers")
        if parser.should_upgrade():
            self._consider_upgrade()
            return
        self.headers = _TRAILERS
        version = parser.get_http_version()
        if version not in _VERSIONS:
            raise Refused(505, "this server speaks HTTP/1.1")
        scope = self._common.copy()
        scope["headers"] = headers
        scope["method"] = parser.get_method().decode("ascii")
        if version != "1.1":
            scope["http_version"] = version
        locate(scope, self.url)
        keep_alive = version == "1.1" and parser.should_keep_alive() and not self._listener.stopping
        exchange = self._incoming = Exchange(self, scope, keep_alive, self.expect_100_continue)
        current = self._exchange
        if current is None or current.complete:
            self._begin(exchange)
        else:
            self._queue(exchange)

    def _too_long(self) -> Refused:
        return Refused(431, f"the head of a request is at most {self._most:,} bytes")

    def _begin(self, exchange: Exchange) -> None:
        self._exchange = exchange
        if exchange.more and self._lane is not None and exchange.scope["method"] == "POST" and not exchange.expects:
            self._unstarted = exchange  # what is left of it is probably in the same read
        else:
            exchange.go_on(self._listener.app)

    def _start(self, exchange: Exchange) -> None:
        """Its body has come, or will take a while."""
        self._unstarted = None
        # In a context of its own, as a task would have: what a tool sets there is not for the next request.
        if exchange.more or self._lane is None or not copy_context().run(self._lane, exchange):
            exchange.go_on(self._listener.app)

    def _queue(self, exchange: Exchange) -> None:
        if len(self._ahead) >= PIPELINED:
            raise Refused(400, f"at most {PIPELINED} requests may be sent ahead of their answers")
        self._ahead.append(exchange)
        self.flow.pause_reading()

    def on_body(self, body: bytes) -> None:
        exchange = self._incoming
        self._held = 0
        if exchange is not None and not exchange.complete and exchange.take(body) > WAITING_BYTES:
            self.flow.pause_reading()

    def on_chunk_header(self) -> None:
        """A body in chunks may have had nothing else done to it: others would read that differently."""
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
        self.transport.write(data)

    def read_on(self) -> None:
        """The app wants more of the body."""
        if self.flow.read_paused and not self._ahead and not (self._upload is not None and self._upload.waits):
            self.flow.resume_reading()

    def responded(self, exchange: Exchange) -> None:
        """A response is complete: on to the next request, or to the end."""
        if exchange.more and not self.transport.is_closing():
            self._linger()  # the client still sends, and should not lose the answer for that
        elif not exchange.keep_alive:
            self.transport.close()
        elif self._ahead:
            # Not by the lane: nobody reads while it waits here, so somebody must ask for the rest of its body.
            self._exchange = self._ahead.popleft()
            self._exchange.go_on(self._listener.app)
        elif self._last:
            self.transport.close()
        elif self.flow.read_paused:
            self.flow.resume_reading()

    def fail(self, started: bool) -> None:
        """The app did not answer, or not to the end."""
        if started:
            self.transport.close()  # without the last chunk, so that nobody takes it for the whole
        else:
            self.write(short_response(500, "the server failed; its log says how", self.date))
            self._linger()

    def report(self, text: str, problem: BaseException | None) -> None:
        """Tell whoever runs the server."""
        self._listener.recorder.problem("error", text, problem)

    # -- ending

    def _refuse(self, refusal: Refused) -> None:
        """Answer a request that can't be read on, and end the connection. Answers that are due go first."""
        self._unfinished = False
        self._release()
        incoming, current = self._incoming, self._exchange
        self._deaf = self._unusual = True
        if self.transport.is_closing():
            return  # the last answer has been given
        if current is not None and not current.complete and not (current is incoming and current.more):
            self._last = True
            if self._ahead and incoming is not None and incoming.more and self._ahead[-1] is incoming:
                self._ahead.pop()
            return
        if current is not None and not current.complete:
            current.lose()
            if current.started:
                self.transport.abort()
                return
        extra = b"retry-after: 1\r\n" if refusal.status == 503 else b""
        self.write(short_response(refusal.status, refusal.text, self.date, extra))
        self._linger()

    def _linger(self) -> None:
        """Say no more, and listen to nothing more, until the peer has had time to read."""
        self._deaf = self._unusual = True
        self._release()
        if self.transport.is_closing():
            return
        self._listener.look_soon()
        if self.transport.can_write_eof():
            self.flow.resume_reading()
            self.transport.write_eof()
        else:
            self.transport.close()

    def retire(self) -> None:
        """The server stops: end after the answer that is being made, or now."""
        if self._exchange is None or self._exchange.complete:
            self.transport.close()
        else:
            self._exchange.keep_alive = False

    def cut(self) -> Any:
        """The server has stopped. Gives the task that may still run, cancelled."""
        self.transport.abort()
        task = self._exchange.task if self._exchange is not None else None
        if task is None or task.done():
            return None
        task.cancel()
        return task

    # -- deadlines

    def place(self) -> tuple[Phase, object]:
        """Where the connection is, and a mark that changes when it gets on."""
        waiting = self.transport.get_write_buffer_size()
        if waiting:
            return "stalled", self.sent - waiting
        exchange = self._exchange
        if self._deaf and not self._last:
            return "lingering", None
        if self._unfinished:
            if self._in_head:
                return "head", self._requests
            if self._upload is not None and self._upload.waits:
                return "waiting", self._requests
            incoming = self._incoming
            if incoming is None or incoming.expects or self.flow.read_paused:
                return "working", None
            if self._received - self._counted >= self._listener.limits.body_bytes:
                self._counted = self._received
            return "body", (self._requests, self._counted)
        if exchange is None:
            return "new", None
        return ("idle" if exchange.complete else "working"), self._requests

    def check(self, now: float) -> bool:
        """End what has been in one place for too long. True: the next request or the app's answer is waited for."""
        limits, place = self._listener.limits, self.place()
        if self._upload is not None and self._listener.uploads.overdue(self._upload, now):
            self._refuse(Refused(503, f"others wait, and the body did not end within {limits.body_seconds:g} s"))
            return False
        match self._clock.overdue(place, now, limits):
            case None | "working":
                pass
            case "new" | "head":
                self._refuse(Refused(408, f"no request within {limits.header_seconds:g} s"))
            case "body":
                text = f"less than {limits.body_bytes:,} bytes of the body within {limits.body_seconds:g} s"
                self._refuse(Refused(408, text))
            case "waiting":
                self._refuse(Refused(503, _FULL))
            case "idle":
                self.transport.close()
            case "stalled" | "lingering":
                self.transport.abort()
        return place[0] in ("idle", "working")


LINGER_SECONDS: Final = 2.0
"""A refused peer may still be sending, and would lose the refusal to a reset. It has this long to read it."""

Phase = Literal["new", "head", "body", "waiting", "working", "idle", "stalled", "lingering"]
"""What a connection waits for: a first byte, the end of a head, more of a body, room for the body, the app, the next
request, a reader that takes what it was sent, or a refused peer that leaves."""


@final
class Clock:
    """Since when a connection has been in one place."""

    __slots__ = ("_mark", "_phase", "_since")

    def __init__(self, now: float) -> None:
        self._phase: Phase = "new"
        self._mark: object = None
        self._since = now

    def overdue(self, place: tuple[Phase, object], now: float, limits: Limits) -> Phase | None:
        """The phase that has lasted for too long, if it has. A mark that changes begins it anew."""
        phase, mark = place
        if phase != self._phase or mark != self._mark:
            self._phase, self._mark, self._since = phase, mark, now
            return None
        return phase if now - self._since >= allowed(phase, limits) else None


def allowed(phase: Phase, limits: Limits) -> float:
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
