"""Makes the telemetry events of requests, where there is a recorder that takes them, and reads their trace context."""

from __future__ import annotations

from collections.abc import Container
from functools import cached_property
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final, final

import msgspec
from msgspec import UNSET, structs

from longshore.errors import ProtocolError
from longshore.protocol.peer import AnyParams
from longshore.protocol.revisions import METHODS
from longshore.server.replies import Replies, why_refused
from longshore.telemetry.recorder import Recorder
from longshore.wire.codec import BROKEN
from longshore.wire.messages import Id

if TYPE_CHECKING:
    from longshore.protocol.peer import Peer
    from longshore.server.call import Call, CallRequest
    from longshore.server.link import Link
    from longshore.telemetry.events import RequestInfo, Size
    from longshore.telemetry.records import Outcome, TraceContext
    from longshore.telemetry.ring import Event
    from longshore.wire.messages import Message

ID_CHARACTERS: Final = 100
"""Of a request's id in records. It is the client's, and may be as long as a frame."""
_read_params: Final = msgspec.json.Decoder(AnyParams).decode
CLIENT_CHARACTERS: Final = 100
"""Of the name and version that a client gives itself."""


@final
class Recording:
    """The events of one server's requests."""

    def __init__(self, recorder: Recorder, replies: Replies) -> None:
        self.recorder = recorder
        self._replies = replies

    # -- tools/call

    def begin(self, call: Call, received: float, frame: bytes | memoryview) -> None:
        """Prepare what is recorded of a call, and read which trace it belongs to. `received` is 0: nothing is recorded.

        That it came in is recorded with its beginning, or before anything else is recorded of it.
        """
        recorder = self.recorder
        if recorder.traces or (call.meta is not UNSET and call.meta.trace_parent is not UNSET):
            from longshore.telemetry.trace import read

            call.trace = read(call.meta, spans=recorder.traces)
        if received:
            id, link, entry = call.id, call.link, call.entry
            call.info = self._make_info(
                link.source or link.describe(),
                id if id.__class__ is int else shorten(id),
                call.method,
                entry.name if entry.kind == "tool" else "",
                call.peer.revision.name,
                call.trace,
                len(frame),
            )
            call.received = received
            if recorder.keeps_values:
                call.recorded_arguments = self._head(bytes(call.arguments))

    def announce(self, call: Call) -> None:
        """Record that a call came in, unless that was recorded."""
        if call.info is not None and not call.announced:
            call.announced = True
            recorder = self.recorder
            recorder.put((next(recorder.numbers), 1, call.info, call.received, call.recorded_arguments))

    def refused(self, call: Call, answer: bytes) -> bytes:
        """Record that a call was refused before it ran."""
        self.completed(call, "refused", answer)
        return answer

    def refused_call(
        self, request: CallRequest, frame: bytes | memoryview, link: Link, call: Call | None, problem: ProtocolError
    ) -> bytes:
        """Answer a call with an error, and record that. It may have failed before its tool was known."""
        answer = self._replies.fault(request.id, problem)
        if call is not None:
            self.refuse(call, why_refused(problem))
            self.completed(call, "refused", answer)
            return answer
        recorder = self.recorder
        info, received = self._info(link, request.id, "tools/call", len(frame)), monotonic()
        arguments = self._head(bytes(request.params.arguments)) if recorder.keeps_values else b""
        recorder.put((next(recorder.numbers), 1, info, received, arguments))
        recorder.refused(info, why_refused(problem))
        self.end_method(info, received, "refused", answer)
        return answer

    def failed_call(self, call: Call, received: float, frame: bytes | memoryview, problem: BaseException) -> bytes:
        """Answer a call whose tool raised, and record all of it."""
        self.begin(call, received, frame)
        self.invoked(call, received)
        answer, outcome = self._replies.exception(call, problem)
        self.completed(call, outcome, answer)
        return answer

    def invoked(self, call: Call, now: float) -> None:
        """Record that the handler is about to run. Also that the call came in, unless that was recorded."""
        info = call.info
        call.started = now
        if info is None or not info.tool:
            self.announce(call)
            return
        recorder = self.recorder
        if call.announced:
            event: Event = (next(recorder.numbers), 2, info, now)
        else:
            call.announced = True
            event = (next(recorder.numbers), 3, info, call.received, call.recorded_arguments, now)
        recorder.put(event)

    def completed(self, call: Call, outcome: Outcome, answer: bytes | None) -> None:
        """Record the end of a call."""
        info = call.info
        if info is None:
            return
        if not call.announced:
            self.announce(call)
        if call.failed and outcome == "ok":
            outcome = "failed"
        if answer is None:
            answer = b""
        size = len(answer) if answer.isascii() else _size(answer)
        recorder = self.recorder
        kept = self._head(answer) if recorder.keeps_values else b""
        recorder.put((next(recorder.numbers), 4, info, call.received, call.started, monotonic(), outcome, size, kept))

    def refuse(self, call: Call, why: str) -> None:
        """Record why a call is refused, or which limit it met."""
        if call.info is not None:
            self.announce(call)
            self.recorder.refused(call.info, why)

    # -- other methods

    def begin_method(
        self, message: Message, frame: bytes, link: Link, received: float, others: Container[str] = ()
    ) -> RequestInfo:
        """Record that a request came in. `others` are methods that exist beside MCP's."""
        known = message.method in METHODS or message.method in others
        info = self._info(link, message.id, message.method if known else "unknown", len(frame))
        recorder = self.recorder
        if recorder.traces:
            info = structs.replace(info, trace=_read_trace(message.params))
        params = self._head(bytes(message.params)) if recorder.keeps_values else b""
        recorder.put((next(recorder.numbers), 1, info, received, params))
        return info

    def join(self, call: Call, info: RequestInfo | None, received: float) -> None:
        """Have a call that answers a request of another method recorded as that request, which was announced."""
        if info is not None and info.trace is not None:
            call.trace = info.trace
        elif call.meta is not UNSET and call.meta.trace_parent is not UNSET:
            from longshore.telemetry.trace import read

            call.trace = read(call.meta, spans=False)
        if info is not None:
            call.info = structs.replace(info, revision=call.peer.revision.name, trace=call.trace)
            call.received, call.announced = received, True

    def end_method(self, info: RequestInfo, received: float, outcome: Outcome, answer: bytes) -> None:
        """Record that it was answered."""
        recorder = self.recorder
        kept = self._head(answer) if recorder.keeps_values else b""
        recorder.put((next(recorder.numbers), 4, info, received, 0.0, monotonic(), outcome, _size(answer), kept))

    def note_refusal(self, info: RequestInfo | None, why: str) -> None:
        """Record why a request was refused."""
        if info is not None:
            self.recorder.refused(info, why)

    def malformed(self, message: Any, link: Link, why: str) -> None:
        """Record a message that could not be read as a request that was refused."""
        if self.recorder.on:
            method = message.method if message.method in METHODS else "unknown"
            info, received = self._info(link, message.id, method), monotonic()
            self.recorder.put((next(self.recorder.numbers), 1, info, received, b""))
            self.recorder.refused(info, why)
            self.end_method(info, received, "refused", b"")

    def _info(self, link: Link, id: Any, method: str, size: int = 0) -> RequestInfo:
        peer = link.session.peer
        revision = "" if peer is None else peer.revision.name
        return self._make_info(link.source or link.describe(), shorten(id), method, "", revision, None, size)

    @cached_property
    def _make_info(self) -> type[RequestInfo]:
        """The class. An import statement takes longer than a record, so there is only one."""
        from longshore.telemetry.events import RequestInfo

        return RequestInfo

    @staticmethod
    def _head(value: bytes | None) -> bytes:
        """What is kept of arguments or a result until it is read."""
        from longshore.telemetry.redactor import KEPT_BYTES

        return (value or b"")[:KEPT_BYTES]

    # -- sessions

    def session_opened(self, link: Link, peer: Peer) -> None:
        """Note a handshake."""
        if self.recorder.on:
            from longshore.telemetry.records import SessionOpened
            from longshore.telemetry.redactor import redact

            source = link.source or link.describe()
            link.session.opened_at = monotonic()
            name = " ".join(str(peer.client.get(key, "")) for key in ("name", "version"))[:CLIENT_CHARACTERS].strip()
            self.recorder.emit(
                SessionOpened(
                    session=source.session,
                    transport=source.transport,
                    principal=source.principal,
                    dialect=source.dialect,
                    revision=peer.revision.name,
                    client=redact(name),
                    at=time(),
                )
            )

    def session_closed(self, link: Link) -> None:
        """Note the end of a session, if its handshake was noted here."""
        session = link.session
        if session.opened_at and self.recorder.on:
            from longshore.telemetry.records import SessionClosed

            source = link.source or link.describe()
            self.recorder.emit(
                SessionClosed(
                    session=source.session,
                    transport=source.transport,
                    principal=source.principal,
                    dialect=source.dialect,
                    seconds=monotonic() - session.opened_at,
                    at=time(),
                )
            )
        session.opened_at = 0.0


def _read_trace(params: Any) -> TraceContext | None:
    """The span that a request with these parameters is."""
    from longshore.telemetry.trace import read

    try:
        meta = _read_params(params).meta
    except BROKEN:
        meta = UNSET
    return read(meta, spans=True)


def _size(answer: bytes) -> Size:
    """The bytes of an answer, and its characters if there are not as many."""
    return len(answer) if answer.isascii() else (len(answer), len(answer.decode(errors="replace")))


def shorten(id: Any) -> Id:
    """An id as records have it."""
    if id.__class__ is int:
        return id
    if not isinstance(id, str):
        return ""
    if len(id) < 8:
        return id
    from longshore.telemetry.redactor import redact

    return redact(id[: 2 * ID_CHARACTERS])[:ID_CHARACTERS]
