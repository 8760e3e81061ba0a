"""2026-07-28 over HTTP: one POST, one answer. Nothing is stored between two of them."""

from __future__ import annotations

from typing import Final, final

import msgspec
from msgspec import Raw, Struct

from longshore.errors import Forbidden, Unavailable
from longshore.protocol.http_headers import Headers
from longshore.protocol.peer import PREFIX, BadEnvelope, is_enveloped
from longshore.protocol.revisions import LEGACY
from longshore.transports.http.gate import Denied, Gate, HttpRequest
from longshore.transports.http.pending import Delivery, PendingResponse
from longshore.transports.http.responses import HeaderPairs, Send, finish, reply, start_stream
from longshore.transports.http.streams import LAST, Follower, event_writer, follow
from longshore.wire.codec import BROKEN, INTERNAL_ERROR, PARSE_ERROR, ErrorFrame, error, read
from longshore.wire.messages import Message

_ENVELOPE: Final = f'"{PREFIX}'.encode()
_ESCAPES: Final = (rb"\u00", rb"\/")
"""JSON can spell the same key in other ways, but not without one of these."""
_LEGACY: Final = frozenset(name.encode() for name in LEGACY)


_STATUSES: Final = {-32700: 400, -32600: 400, -32601: 404, -32020: 400, -32021: 400, -32022: 400}


class _Body(Struct):
    params: Raw = Raw(b"{}")


_read_body = msgspec.json.Decoder(_Body).decode


def is_modern(version: bytes | None, body: bytes) -> bool:
    """Whether a request is of the era without sessions: its header names a version that is, or it has the envelope."""
    if version is not None and version not in _LEGACY and version.strip() not in _LEGACY:
        return True
    return has_envelope(body)


def has_envelope(body: bytes) -> bool:
    """Whether a message has the envelope. Its keys may also appear in an argument."""
    if _ENVELOPE not in body and _ESCAPES[0] not in body and _ESCAPES[1] not in body:
        return False
    try:
        return is_enveloped(_read_body(body).params)
    except BROKEN:
        return False


@final
class ModernResponse(PendingResponse):
    """The response to a modern POST. An earlier notification makes it a stream; a hang-up cancels the request."""

    __slots__ = ("_events",)
    has_session = False

    def __init__(self, delivery: Delivery, request: HttpRequest) -> None:
        super().__init__(delivery, request)
        self.headers = Headers(request.headers, request.twice)
        self._events: Follower | None = None

    @property
    def owner(self) -> object:
        return self.principal.name

    @property
    def streaming(self) -> bool:
        return self._events is not None

    def send(self, frame: bytes) -> None:
        if self.done or self.gone or not self.accepts_stream:
            return
        if self._delivery.tap.watchers:
            self._delivery.tap.show("out", self, frame)
        self.begin_stream()
        assert self._events is not None
        limits = self._delivery.limits
        if not self._events.overrun(limits):
            self._events.put(0, frame)
            self.congested = self._events.bytes > limits.output_bytes

    def begin_stream(self) -> None:
        if self._events is None:
            self._events = Follower()
            self.wake()

    def answer(self, frame: bytes | None) -> None:
        super().answer(frame)
        if self._events is not None:
            self._events.put(0, (frame or b"") + LAST)

    def lose(self) -> None:
        super().lose()
        if self._events is not None:
            self._events.close()
        if not self.done:
            self._delivery.engine.hang_up(self)

    def status(self, frame: bytes) -> int:
        """The status that 2026-07-28 demands with this answer.

        A refusal by a handler (an unknown tool, say) is 200: a client that speaks both eras takes any other 400 as
        proof of an older server.
        """
        if not isinstance(frame, ErrorFrame):
            return 200
        match frame.cause:
            case Forbidden():
                return 403
            case Unavailable():
                return 503
            case BadEnvelope():
                return 400
            case _:
                return _STATUSES.get(frame.code, 200)

    def answer_headers(self, frame: bytes) -> HeaderPairs:
        headers = super().answer_headers(frame)
        if isinstance(frame, ErrorFrame) and isinstance(frame.cause, Unavailable):
            return (*headers, (b"retry-after", b"1"))
        return headers

    async def send_nothing(self, send: Send) -> None:
        if self.frame is None:
            self.frame = error(None, INTERNAL_ERROR, "the request was cancelled")
            await self.send_answer(send)
        else:
            await reply(send, 202, b"", self.extra)

    async def send_stream(self, send: Send) -> None:
        events, limits, write_event = self._events, self._delivery.limits, event_writer(send)
        assert events is not None

        async def write_and_note(position: int, frame: bytes) -> None:
            self.congested = events.bytes > limits.output_bytes
            await write_event(position, frame)

        await start_stream(send, self.extra)
        await follow(None, "", events, -1, write_and_note, limits.keep_alive_seconds)
        if not events.closed:
            await finish(send)


@final
class ModernEndpoint:
    """Passes modern POSTs to the engine."""

    def __init__(self, delivery: Delivery, gate: Gate) -> None:
        self._delivery = delivery
        self._handle = delivery.engine.handle
        self._gate = gate
        self._has_credentials = delivery.guard.required or delivery.guard.optional

    def handle(self, request: HttpRequest, body: bytes) -> ModernResponse:
        """Have the engine handle a request; the response may be done already."""
        if self._has_credentials:
            self._gate.forget_credentials(request)  # the frame of the call includes its headers
        if not request.accepts_stream and request.headers.get(b"mcp-method") == b"subscriptions/listen":
            raise Denied(406, "subscriptions/listen is answered as text/event-stream; accept it")
        response = ModernResponse(self._delivery, request)
        if self._delivery.tap.watchers:
            self._delivery.tap.show("in", response, body)
        frame = self._handle(body, response)
        if frame is not None:
            response.answer(frame)
        elif not (response.done or response.session.rows):
            self._check_notification(body)
            response.accept()
        return response

    def _check_notification(self, body: bytes) -> None:
        """Refuse an empty body, and a response: in this era servers send no requests."""
        message = read(body, self._delivery.limits.depth, 0)
        if not isinstance(message, Message):
            raise Denied(400, "the body is empty; it must be one JSON-RPC message", code=PARSE_ERROR)
        if message.method == "":
            raise Denied(400, "a response has nothing to answer here: 2026-07-28 servers send no requests")
