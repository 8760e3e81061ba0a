"""Renders results, failures and exceptions as response frames, in the revision of the peer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from longshore.errors import (
    Cancelled,
    CapabilityMissing,
    Forbidden,
    ProtocolError,
    QuotaReached,
    ResourceNotFound,
    ToolError,
    ToolTimeout,
    UnknownTool,
)
from longshore.limits import Limits
from longshore.protocol.content import CallResult, lower_result
from longshore.protocol.dialect import Failure, FailureKind, render_failure
from longshore.protocol.peer import SERVER_INFO, Peer
from longshore.protocol.revisions import ICONS, R2607
from longshore.registry.results import cut_text
from longshore.schema.output import OutputMismatch
from longshore.telemetry.recorder import Recorder
from longshore.wire.codec import INVALID_PARAMS, METHOD_NOT_FOUND, encode, error
from longshore.wire.messages import Fault, Id, Reply

if TYPE_CHECKING:
    from longshore.server.call import Call
    from longshore.server.policy import Policy
    from longshore.telemetry.records import Outcome

CACHE_HINTS = {"ttlMs": 0, "cacheScope": "private"}
"""A list may change at any moment and may depend on the caller; a client that caches it can listen for changes."""
NOTES = "longshore/notes"
"""The key in `_meta` of the repairs of the arguments."""

_NO_REFUSALS = frozenset({"execution", "cancelled"})
_OUTCOMES: dict[str, Outcome] = {"timeout": "timeout", "cancelled": "cancelled", "execution": "failed"}


class Replies:
    """Renders answers for one server."""

    __slots__ = ("_limits", "_policy", "_recorder", "server_meta")

    def __init__(self, limits: Limits, recorder: Recorder, server_info: dict[str, Any], policy: Policy) -> None:
        self._limits = limits
        self._recorder = recorder
        self._policy = policy
        self.server_meta: dict[str, Any] = {SERVER_INFO: Raw(encode(server_info))}

    def success(self, call: Call, value: Any) -> bytes:
        """Render the value that a handler returned. Raises if it can't be a result."""
        entry, revision = call.entry, call.peer.revision
        result = entry.render(value, call)
        if call.remarks:
            _remark(result, call.remarks)
        if not (revision.plain and entry.plain):
            if result.__class__ is not CallResult:
                if entry.kind == "resource" and revision.modern:
                    result |= {"ttlMs": int(call.max_age * 1000), "cacheScope": "private"}
                return self.result(call.id, call.peer, result)
            if result.is_error is True:
                call.failed = True
                entry.failures += 1
            if entry.result_bytes:
                result = cut_text(result, entry.result_bytes)
            if revision.index >= R2607:
                self.sign(result)
            elif revision.index < ICONS or entry.raw:
                result = lower_result(result, revision)
        frame = encode(Reply(call.id, result))
        if len(frame) > self._limits.frame_bytes:
            raise TooLarge(len(frame), self._limits.frame_bytes)
        return frame

    def sign(self, result: CallResult) -> None:
        """Add the fields of a modern result: that it is complete, and the server's name."""
        result.result_type = "complete"
        result.meta = self.server_meta if result.meta is UNSET else self.server_meta | result.meta

    def result(self, id: Id, peer: Peer, result: dict[str, Any]) -> bytes:
        """Render a result of another method."""
        if peer.revision.modern:
            result = {"resultType": "complete", **result, "_meta": self.server_meta | result.get("_meta", {})}
        frame = encode(Reply(id, result))
        if len(frame) > self._limits.frame_bytes:
            raise TooLarge(len(frame), self._limits.frame_bytes)
        return frame

    def failure(self, call: Call, failure: Failure) -> bytes:
        """Render a known failure of a call."""
        call.entry.failures += 1
        call.link.failed(failure)
        if call.info is not None and failure.kind not in _NO_REFUSALS:
            call.executor.recording.refuse(call, failure.kind)
        shape = render_failure(failure, call.method, call.peer.revision)
        if isinstance(shape, Fault):
            return error(call.id, shape.code, shape.message, shape.data)
        if call.remarks:
            _remark(shape, call.remarks)
        if call.peer.revision.modern:
            self.sign(shape)
        return encode(Reply(call.id, shape))

    def fault(self, id: Id | Raw | None, problem: ProtocolError) -> bytes:
        """Render a JSON-RPC error."""
        problem.__traceback__ = problem.__context__ = None  # they would hold the request in memory
        return error(id, problem.code, problem.message, UNSET if problem.data is None else problem.data, problem)

    def exception(self, call: Call, problem: BaseException) -> tuple[bytes, Outcome]:
        """Render an exception that a handler raised."""
        if isinstance(problem, CapabilityMissing) and not call.peer.revision.modern:
            return self.failure(call, Failure("permission", problem.message)), "refused"
        if isinstance(problem, ProtocolError):
            call.entry.failures += 1
            call.executor.recording.refuse(call, why_refused(problem))
            return self.fault(call.id, problem), "refused"
        failure = self._explain(call, problem)
        return self.failure(call, failure), _OUTCOMES.get(failure.kind, "error")

    def _explain(self, call: Call, problem: BaseException) -> Failure:
        match problem:
            case ToolError():
                if isinstance(problem, QuotaReached):
                    call.executor.recording.refuse(call, "quota")
                kind: FailureKind = "timeout" if isinstance(problem, ToolTimeout) else "execution"
                return Failure(kind, str(problem) or f"{call.entry.name} failed")
            case ResourceNotFound():
                return Failure("not_found", str(problem), {"uri": problem.uri})
            case TooLarge():
                return Failure("too_large", f"{call.entry.name}: {problem}")
            case Cancelled():
                return Failure("cancelled", f"{call.entry.name} was cancelled")
            case OutputMismatch():
                self._recorder.problem("error", f"{call.entry.where}: {problem}")
                return Failure("execution", f"{call.entry.name} returned an invalid result: {problem}")
            case _:
                return self._mask(call, problem)

    def _mask(self, call: Call, problem: BaseException) -> Failure:
        """Log an unexpected exception, and give the model only its number: the text may hold secrets."""
        from secrets import token_hex

        number = token_hex(3)
        self._recorder.problem("error", f"{call.entry.where} raised {type(problem).__name__} (error {number})", problem)
        if self._policy.expose_errors:
            return Failure("execution", f"{call.entry.name} failed: {exception_text(problem)}", problem=problem)
        text = f"{call.entry.name} failed unexpectedly; the server's log has it as error {number}"
        return Failure("execution", text, problem=problem)


def why_refused(problem: ProtocolError) -> str:
    """Why a request was refused, in one word."""
    if isinstance(problem, Forbidden):
        return "permission"
    if isinstance(problem, UnknownTool):
        return "unknown_tool"
    if problem.code == METHOD_NOT_FOUND:
        return "unknown_method"
    return "invalid_arguments" if problem.code == INVALID_PARAMS else f"error {problem.code}"


class TooLarge(Exception):
    """A result larger than one frame."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"the result has {size:,} bytes and the limit is {limit:,}; ask for less, or page by page")


def _remark(result: Any, remarks: tuple[str, ...]) -> None:
    """Report repairs of the arguments in a tool's result, before those that a mounted server reports."""
    from longshore.schema.kinds import as_array

    meta: dict[str, Any] = {} if result.meta is UNSET else result.meta
    result.meta = meta | {NOTES: [*remarks, *as_array(meta.get(NOTES))]}


def exception_text(problem: BaseException) -> str:
    """The type and the text of an exception."""
    try:
        text = str(problem)
    except Exception:
        text = "(its text could not be made)"
    return f"{type(problem).__name__}: {text}"
