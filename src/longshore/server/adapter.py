"""Speaks a dialect with the peers that it is for, between a transport and the engine.

The engine knows MCP only: a request of such a peer goes to it through a `DialectLink`, which renders the answer in the
dialect. A server without a dialect has none of this in its path.
"""

from __future__ import annotations

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
from longshore.server.request_queue import QueuedRequest, RequestQueue
from longshore.wire.codec import (
    BROKEN,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    encode,
    error,
    read,
)
from longshore.wire.framing import TooLong
from longshore.wire.messages import Batch, Blank, Fault, Malformed, Message, Repaired, Reply

if TYPE_CHECKING:
    from longshore.registry.tool import Entry
    from longshore.server.engine import Engine
    from longshore.telemetry.events import RequestInfo, Source
    from longshore.telemetry.records import Outcome

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
            return self._take(message, link)
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
            return self._take(message, link, frame)
        match message:
            case Malformed() if self._speaks(link):
                return self._take(message, link)
            case Blank() if self._speaks(link) and link.has_status:  # an empty line is passed over, but not a POST
                return self._take(Malformed(PARSE_ERROR, "the body is empty; it must be JSON-RPC"), link)
            case Batch() if self._speaks(link):
                if self._takes_batches(link):
                    return handle_batch(self.engine, message, link, self.handle, self._take)
                return self._take(Malformed(INVALID_REQUEST, "a message is one object; arrays are not taken"), link)
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

    def _take(self, message: Message | Malformed, link: Link, frame: bytes = b"") -> bytes | None:
        """Answer a message of the dialect, in its turn if the dialect has requests run one after the other."""
        request = QueuedRequest(message, frame, link)
        if not self.dialect.in_order:
            return self._answer(request)
        queue: RequestQueue | None = link.session.queue
        if queue is None:
            queue = link.session.queue = RequestQueue(self._answer)
        return queue.handle(request)

    def _answer(self, queued: QueuedRequest) -> bytes | None:
        message = queued.message
        try:
            return (
                self._refuse(message, queued.link)
                if isinstance(message, Malformed)
                else self._answer_request(queued, message)
            )
        except Exception as problem:
            return self.engine.internal_error(message, problem)

    def _answer_request(self, queued: QueuedRequest, request: Message) -> bytes | None:
        dialect, link = self.dialect, queued.link
        if link.session.peer is None and self._early is not None:
            peer = Peer(self._early, {}, {}, _NO_LOG)
            link.session.open(peer)
        try:
            params = _read_params(request.params)
        except BROKEN:
            params = None
        fault = self._find_fault(request.method, params, link)
        outcome: Outcome = "ok" if fault is None else "refused"
        if fault is None and (queued.is_cancelled or queued.refusal):
            fault, outcome = self._refuse_unrun(queued, request.method, params), "cancelled"
        if params is None or fault is not None or request.method == "initialize" or request.method in dialect.answers:
            return self._answer_here(queued, request, params, fault, outcome)
        wrapped = DialectLink(self, link, request, params)
        answer = self.engine.handle(request.frame if isinstance(request, Repaired) else queued.frame, wrapped)
        return None if answer is None else wrapped.render(answer)

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

    def _refuse_unrun(self, queued: QueuedRequest, method: str, params: Any) -> Fault:
        """The error for a request that was cancelled, or stopped, before its turn came."""
        if queued.is_cancelled and self.dialect.cancelled is not None:
            return self.dialect.cancelled
        tool = str(params.get("name", "")) if method == "tools/call" else method
        text = queued.refusal or "the call was cancelled"
        return self.dialect.failed(ToolFailure("cancelled", tool, text, text)) or Fault(INTERNAL_ERROR, text)

    def _answer_here(
        self, queued: QueuedRequest, request: Message, params: Any, fault: Fault | None, outcome: Outcome
    ) -> bytes:
        """Answer a request that the engine does not see."""
        recording, method, id, received = self.engine.recording, request.method, request.id, monotonic()
        assert id is not UNSET
        link = DialectLink(self, queued.link, request, params or {})
        info: RequestInfo | None = None
        if recording.recorder.on:
            info = recording.begin_method(request, queued.frame, link, received, self.dialect.answers)
        if fault is not None:
            answer: bytes = error(id, fault.code, fault.message, fault.data)
        else:
            result = self.dialect.answers[method] if method != "initialize" else self._initialize(params, link)
            answer = encode(Reply(id, result))
        if info is not None:
            if outcome == "refused":
                assert fault is not None
                recording.note_refusal(
                    info, "unknown_method" if fault.code == METHOD_NOT_FOUND else "invalid_arguments"
                )
            recording.end_method(info, received, outcome, answer)
        return answer

    def _initialize(self, params: dict[str, Any], link: Link) -> dict[str, Any]:
        engine, revision = self.engine, self.dialect.revisions[params["protocolVersion"]]
        declared = engine.capability_names() if self.dialect.unsolicited else frozenset[str]()
        capabilities: dict[str, Any] = params.get("capabilities", {}) if self.dialect.unsolicited else {}
        peer = Peer(revision, capabilities, params.get("clientInfo", {}))
        link.session.open(peer, declared)
        engine.recording.session_opened(link, peer)
        if self.dialect.unsolicited:
            engine.add_link(link.home)
        return self.dialect.initialize(handshake_result(engine, revision), not engine.catalog.closed)

    def shown_tools(self) -> list[Entry]:
        """The tools that the dialect's lists show, also those that are not on offer."""
        self.engine.listed_tools()  # which finds out what can run here
        tools, names = self.engine.catalog.tools, self.dialect.tools
        return [e for e in tools.values() if e.shown] if names is None else [tools[n] for n in names if n in tools]

    def _refuse(self, message: Malformed, link: Link) -> bytes:
        self.engine.recording.malformed(message, link, "malformed")
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

    def describe(self) -> Source:
        self.source = made = msgspec.structs.replace(super().describe(), dialect=self._adapter.dialect.name)
        return made

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
