"""Speaks a dialect with the peers that it is for, between a transport and the engine.

The engine knows MCP only: a request of such a peer goes to it through a `DialectLink`, which renders the answer in the
dialect. A server without a dialect has none of this in its path.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from longshore.errors import Forbidden
from longshore.protocol.dialect import Dialect, DocumentTool, Failure, ToolFailure
from longshore.protocol.peer import Peer, is_enveloped
from longshore.protocol.revisions import LOG_LEVELS, METHODS, Revision
from longshore.server.batch import handle_batch
from longshore.server.link import Link, WrappedLink
from longshore.server.methods import handshake_result
from longshore.server.replies import exception_text
from longshore.wire.codec import BROKEN, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, encode, error, read
from longshore.wire.framing import TooLong
from longshore.wire.messages import Batch, Fault, Malformed, Message, Repaired, Reply

if TYPE_CHECKING:
    from longshore.registry.tool import Entry
    from longshore.server.engine import Engine
    from longshore.telemetry.records import Outcome

_PLACE_BYTES = 256
"""What an answer that waits for earlier ones takes beside its frame."""
_TRACE_FRAMES = 20
"""Of a stack trace, the innermost ones: they say where it went wrong."""
_NO_LOG = len(LOG_LEVELS)
"""The rank above all levels: who makes no handshake gets no log messages until it sets a level."""


class _Answer(Struct):
    """A response as the engine made it."""

    id: Any
    result: Any = UNSET
    error: Fault | UnsetType = UNSET


_read_params = msgspec.json.Decoder(dict[str, Any]).decode
_read_answer = msgspec.json.Decoder(_Answer).decode


@final
class DialectAdapter:
    """Handles the frames of one server that speaks a dialect beside MCP."""

    def __init__(self, engine: Engine, dialect: Dialect) -> None:
        self.dialect = dialect
        self.engine = engine
        self._limits = engine.limits
        early = dialect.before_handshake
        self._early = early if isinstance(early, Revision) else None
        """The revision of peers that are served without a handshake."""
        early_revisions = {} if self._early is None else {self._early.name: self._early}
        self._revisions = {**dialect.revisions, **early_revisions}
        self.debug = engine.policy.shows_traces
        """Whether failures carry the stack traces of exceptions."""

    # -- what transports call

    def handle(self, frame: bytes, link: Link) -> bytes | None:
        """Handle one frame, as `Engine.handle` does."""
        if not self._is_for(link):
            return self.engine.handle(frame, link)
        message = read(frame, self._limits.depth, self._limits.batch)
        try:
            return self._handle(message, frame, link)
        except Exception as problem:
            return self.engine.internal_error(message, problem)

    def handle_long(self, frame: memoryview, link: Link) -> bytes | None:
        """Handle a frame in a buffer that will be reused."""
        if self._is_for(link):
            return self.handle(bytes(frame), link)
        return self.engine.handle_long(frame, link)

    def too_long(self, frame: TooLong, link: Link) -> bytes | None:
        """Refuse a frame over the limit."""
        if not (self._is_for(link) and self._speaks(link)):
            return self.engine.too_long(frame, link)
        message = self.engine.refuse_long(frame)
        if isinstance(message, Malformed):
            return self._take_turn(self._refuse(message), self._place(link), link)
        return self.engine.too_long(frame, link)

    # -- messages

    def _is_for(self, link: Link) -> bool:
        """Whether the dialect may be for a peer: it is one of its own, or there was no handshake yet."""
        peer = link.session.peer
        if link.headers is not None:
            return False
        return peer is None or self._revisions.get(peer.revision.name) is peer.revision

    def _handle(self, message: Any, frame: bytes, link: Link) -> bytes | None:
        is_request = isinstance(message, Message) and message.method != "" and message.id is not UNSET
        if is_request and (is_enveloped(message.params) or not self._takes(message, link)):
            return self.engine.handle(frame, link)
        if is_request:
            return self._answer(message, frame, link)
        match message:
            case Malformed() if self._speaks(link):
                return self._take_turn(self._refuse(message), self._place(link), link)
            case Batch() if self._speaks(link):
                outer = self._place(link)
                if self._takes_batches(link):
                    answer = handle_batch(self.engine, message, outer, self.handle, self._refuse_in_batch)
                else:
                    answer = self._refuse_in_batch(None, "a message is one object; arrays are not taken")
                return self._take_turn(answer, outer, link)
            case _:
                return self.engine.handle(frame, link)

    def _takes(self, request: Message, link: Link) -> bool:
        """Whether a request without an envelope is spoken to in the dialect."""
        if request.method == "initialize":
            try:
                version = _read_params(request.params).get("protocolVersion")
            except BROKEN:
                version = None
            if isinstance(version, str) or not self.dialect.revisions:
                return isinstance(version, str) and version in self.dialect.revisions
        return self._speaks(link)

    def _speaks(self, link: Link) -> bool:
        """Whether a peer that the dialect may be for is spoken to in it, whatever it sends."""
        return link.session.peer is not None or self.dialect.before_handshake != "standard"

    def _takes_batches(self, link: Link) -> bool:
        peer = link.session.peer
        return self.dialect.batches or (peer is not None and peer.revision.batches)

    def _place(self, link: Link) -> Link:
        """The link for one answer: with a place after the earlier ones, if they go out in order on one connection."""
        return InOrderLink.after_earlier(link) if self.dialect.in_order and link.home is link else link

    def _take_turn(self, answer: bytes | None, outer: Link, link: Link) -> bytes | None:
        """The answer, if it may go out now; None: it follows, by the link of its place."""
        if outer is link or answer is None or not isinstance(outer, InOrderLink):
            return answer
        return outer.take_turn(answer)

    def _answer(self, request: Message, frame: bytes, link: Link) -> bytes | None:
        dialect = self.dialect
        if link.session.peer is None and self._early is not None:
            link.session.open(Peer(self._early, {}, {}, _NO_LOG))
        try:
            params = _read_params(request.params)
        except BROKEN:
            params = None
        outer = self._place(link)
        fault = self._find_fault(request.method, params, link)
        answer: bytes | None
        if params is None or fault is not None or request.method == "initialize" or request.method in dialect.answers:
            answer = self._answer_here(request, params, fault, link)
        else:
            wrapped = DialectLink(self, outer, request, params)
            answer = self.engine.handle(request.frame if isinstance(request, Repaired) else frame, wrapped)
            answer = None if answer is None else wrapped.render(answer)
        return self._take_turn(answer, outer, link)

    def _find_fault(self, method: str, params: dict[str, Any] | None, link: Link) -> Fault | None:
        """The first fault of a request; None if there is none. bb-mcp-server's document sets the order of checks."""
        dialect = self.dialect
        known = METHODS if dialect.methods is None else dialect.methods
        if method not in known and method not in dialect.answers:
            return dialect.error(Fault(METHOD_NOT_FOUND, f"no method {method[:100]!r}"))
        if link.session.peer is None and method != "initialize":
            return dialect.not_initialized(method)
        if params is None:
            return dialect.error(Fault(INVALID_PARAMS, f"invalid params of {method}: an object is needed"))
        if method == "initialize" and (wrong := dialect.check_initialize(params)):
            return dialect.error(Fault(INVALID_PARAMS, wrong))
        if method == "tools/call" and dialect.needs_arguments and not isinstance(params.get("arguments"), dict):
            return dialect.error(Fault(INVALID_PARAMS, "arguments: an object is needed; {} for none"))
        return None

    def _answer_here(self, request: Message, params: Any, fault: Fault | None, link: Link) -> bytes:
        """Answer a request that the engine does not see."""
        recorder, method, id = self.engine.recorder, request.method, request.id
        assert id is not UNSET
        received = monotonic()
        if recorder.on:
            recorder.request_received(method, id)
        if fault is not None:
            answer: bytes = error(id, fault.code, fault.message, fault.data)
        else:
            result = self.dialect.answers[method] if method != "initialize" else self._initialize(params, link)
            answer = encode(Reply(id, result))
        if recorder.on:
            outcome: Outcome = "ok" if fault is None else "refused"
            recorder.request_completed(method, id, monotonic() - received, outcome)
        return answer

    def _initialize(self, params: dict[str, Any], link: Link) -> dict[str, Any]:
        engine, revision = self.engine, self.dialect.revisions[params["protocolVersion"]]
        declared = engine.capability_names() if self.dialect.unsolicited else frozenset[str]()
        capabilities: dict[str, Any] = params.get("capabilities", {}) if self.dialect.unsolicited else {}
        link.session.open(Peer(revision, capabilities, params.get("clientInfo", {})), declared)
        if self.dialect.unsolicited:
            engine.add_link(link.home)
        return self.dialect.initialize(handshake_result(engine, revision), not engine.catalog.closed)

    def shown_tools(self) -> list[Entry]:
        """The tools that the dialect's lists show, also those that are not on offer."""
        self.engine.listed_tools()  # which finds out what can run here
        tools, names = self.engine.catalog.tools, self.dialect.tools
        return [e for e in tools.values() if e.listed] if names is None else [tools[n] for n in names if n in tools]

    def _refuse_in_batch(self, id: Any, text: str) -> bytes:
        return self._refuse(Malformed(INVALID_REQUEST, text, id))

    def _refuse(self, message: Malformed) -> bytes:
        recorder = self.engine.recorder
        if recorder.on:
            method, id = message.method or "malformed", message.id if isinstance(message.id, (int, str)) else ""
            recorder.request_received(method, id)
            recorder.request_completed(method, id, 0.0, "refused")
        fault = self.dialect.error(Fault(message.code, message.text))
        return error(message.id, fault.code, fault.message, fault.data)


@final
class DialectLink(WrappedLink):
    """One request of a dialect's peer: its answer is rendered in the dialect."""

    __slots__ = ("_adapter", "_failure", "_params", "_request", "_tool")

    def __init__(self, adapter: DialectAdapter, outer: Link, request: Message, params: dict[str, Any]) -> None:
        super().__init__(outer)
        self._adapter, self._request, self._params = adapter, request, params
        self._tool = str(params.get("name", ""))
        self._failure: Failure | None = None

    def failed(self, failure: Failure) -> None:
        self._failure = failure
        super().failed(failure)

    def send(self, frame: bytes) -> None:
        if self._adapter.dialect.unsolicited:
            super().send(frame)

    def answer(self, frame: bytes | None) -> None:
        fault, id = self._adapter.dialect.cancelled, self._request.id
        if frame is not None:
            frame = self.render(frame)
        elif fault is not None and id is not UNSET:
            frame = error(id, fault.code, fault.message, fault.data)
        super().answer(frame)

    def render(self, frame: bytes) -> bytes | None:
        """The engine's answer in the dialect."""
        try:
            return self._render(frame)
        except Exception as problem:
            return self._adapter.engine.internal_error(self._request, problem)

    def _render(self, frame: bytes) -> bytes:
        dialect, answer, failure = self._adapter.dialect, _read_answer(frame), self._failure
        method, cause = self._request.method, getattr(frame, "cause", None)
        if method == "tools/call":
            if isinstance(cause, Forbidden):
                failure = Failure("permission", cause.message)
            failure = failure or _own_failure(answer.result, self._tool)
        fault = None if failure is None else dialect.failed(self._describe(failure))
        if fault is None and answer.error is not UNSET:
            fault = dialect.error(answer.error)
        if fault is not None:
            return error(answer.id, fault.code, fault.message, fault.data, cause)
        result = answer.result
        if method == "tools/call" and failure is None:
            result = dialect.result(self._tool, self._params.get("arguments") or {}, result)
        elif method == "tools/list":
            result = self._render_tools(result)
        return encode(Reply(answer.id, result))

    def _render_tools(self, page: dict[str, Any]) -> dict[str, Any]:
        """The list in the dialect: the page, or all at once where it shows others than the engine's list."""
        dialect = self._adapter.dialect
        if not dialect.lists_unavailable and dialect.tools is None:
            return page | {"tools": [dialect.tool(each, True) for each in page["tools"]]}
        shown = [each for each in self._adapter.shown_tools() if each.offered or dialect.lists_unavailable]
        forms = dialect.tools or {}
        return {
            "tools": [_listed(forms.get(each.name)) or dialect.tool(each.describe(), each.offered) for each in shown]
        }

    def _describe(self, failure: Failure) -> ToolFailure:
        problem, trace, cause = failure.problem, "", failure.text
        if problem is not None:
            cause = exception_text(problem)
            if self._adapter.debug:
                from traceback import format_exception

                trace = "".join(format_exception(problem, limit=-_TRACE_FRAMES))
        described = ToolFailure(failure.kind, self._tool, failure.text, cause, trace)
        if failure.kind != "unknown_tool":
            return described
        names = tuple(each.name for each in self._adapter.shown_tools() if each.offered)
        is_off = self._tool in self._adapter.engine.catalog.tools
        return msgspec.structs.replace(described, is_off=is_off, available=names)


def _listed(documented: DocumentTool | None) -> Mapping[str, Any] | None:
    """A tool as a document's list shows it, if it does."""
    return None if documented is None else documented.listed


def _own_failure(result: Any, tool: str) -> Failure | None:
    """The failure that a tool's own result reports, if it does."""
    if result is UNSET or not result.get("isError"):
        return None
    texts = [block["text"] for block in result["content"] if block.get("type") == "text"]
    return Failure("execution", "\n".join(texts) or f"{tool} failed")


@final
class InOrderLink(WrappedLink):
    """One request whose answer waits for the answers to the earlier requests of its session."""

    __slots__ = ("_frame", "_is_answered", "_queue")

    def __init__(self, outer: Link, queue: deque[InOrderLink]) -> None:
        super().__init__(outer)
        self._queue = queue
        self._frame: bytes | None = None
        self._is_answered = False

    @classmethod
    def after_earlier(cls, link: Link) -> InOrderLink:
        """A link whose place is after the session's earlier requests."""
        if link.session.unanswered is None:
            link.session.unanswered = deque()
        queue: deque[InOrderLink] = link.session.unanswered
        queue.append(cls(link, queue))
        return queue[-1]

    @property
    def congested(self) -> bool:
        """The next answer is never held up by those that wait for it."""
        is_next = not self._queue or self._queue[0] is self
        return self._outer.congested or (self._outer.is_full and not is_next)

    @congested.setter
    def congested(self, _: bool) -> None:
        """It follows from the outer link and the place alone."""

    def hold_part(self, size: int) -> None:
        self._outer.hold_back(size)

    def take_turn(self, frame: bytes) -> bytes | None:
        """The answer, if all earlier ones have gone out; None: it goes out after them."""
        if self._queue[0] is self:
            self._queue.popleft()
            return frame
        self.answer(frame)
        return None

    def answer(self, frame: bytes | None) -> None:
        self._frame, self._is_answered = frame, True
        if self._queue[0] is not self:
            self._outer.hold_back(self._size)
            return
        while self._queue and self._queue[0]._is_answered:
            first = self._queue.popleft()
            if first is not self:
                self._outer.hold_back(-first._size)
            WrappedLink.answer(first, first._frame)

    @property
    def _size(self) -> int:
        return _PLACE_BYTES + len(self._frame or b"")
