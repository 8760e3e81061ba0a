"""Values and failures to frames: the last step before the wire, and the only one that turns exceptions into answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from longshore.errors import Cancelled, CapabilityMissing, ProtocolError, ResourceNotFound, ToolError
from longshore.limits import Limits
from longshore.protocol.content import CallResult, lower_result
from longshore.protocol.dialect import Dialect, Failure
from longshore.protocol.envelope import SERVER_INFO
from longshore.protocol.peer import Peer
from longshore.protocol.revisions import ICONS, R2607
from longshore.registry.results import cut_text
from longshore.schema.kinds import is_array
from longshore.schema.output import OutputMismatch
from longshore.telemetry.recorder import Recorder
from longshore.telemetry.records import Outcome
from longshore.wire.codec import encode, error
from longshore.wire.messages import Fault, Id, Reply

if TYPE_CHECKING:
    from longshore.server.call import Call

NOTES = "longshore/notes"
"""The key in `_meta` of what was mended in the arguments."""

_OUTCOMES: dict[str, Outcome] = {"timeout": "timeout", "cancelled": "cancelled", "execution": "failed"}


class Replies:
    """Renders answers for one server."""

    __slots__ = ("_dialect", "_limits", "_recorder", "expose_errors", "server_meta")

    def __init__(self, dialect: Dialect, limits: Limits, recorder: Recorder, server_info: dict[str, Any]) -> None:
        self._dialect = dialect
        self._limits = limits
        self._recorder = recorder
        self.expose_errors = False
        self.server_meta: dict[str, Any] = {SERVER_INFO: Raw(encode(server_info))}

    def success(self, call: Call, value: Any) -> bytes:
        """The answer to a call whose handler returned. Raises if the value can't be a result."""
        entry, revision = call.entry, call.peer.revision
        result = entry.render(value, call)
        if call.remarks:
            _remark(result, call.remarks)
        if revision.plain and entry.plain:
            frame = encode(Reply(call.id, result))
            if len(frame) > self._limits.frame_bytes:
                raise TooLarge(len(frame), self._limits.frame_bytes)
            return frame
        if result.__class__ is not CallResult:
            if call.entry.kind == "resource" and revision.modern:
                result |= {"ttlMs": int(call.max_age * 1000), "cacheScope": "private"}
            return self.result(call.id, call.peer, result)
        if result.is_error is True:
            call.failed = True
            entry.failures += 1
        if call.entry.result_bytes:
            result = cut_text(result, call.entry.result_bytes)
        if revision.index >= R2607:
            self.sign(result)
        elif revision.index < ICONS or call.entry.raw:
            result = lower_result(result, revision)
        frame = encode(Reply(call.id, result))
        if len(frame) > self._limits.frame_bytes:
            raise TooLarge(len(frame), self._limits.frame_bytes)
        return frame

    def sign(self, result: CallResult) -> None:
        """Say what modern results say: that this is the end of it, and who made it."""
        result.result_type = "complete"
        result.meta = self.server_meta if result.meta is UNSET else self.server_meta | result.meta

    def result(self, id: Id, peer: Peer, result: dict[str, Any]) -> bytes:
        """Any other result. Modern ones say that they are complete and who made them."""
        if peer.revision.modern:
            result = {"resultType": "complete", **result, "_meta": self.server_meta | result.get("_meta", {})}
        frame = encode(Reply(id, result))
        if len(frame) > self._limits.frame_bytes:
            raise TooLarge(len(frame), self._limits.frame_bytes)
        return frame

    def failure(self, call: Call, failure: Failure) -> bytes:
        """The answer to a call that failed in a known way."""
        call.entry.failures += 1
        call.link.failed(failure.kind)
        shape = self._dialect.failed(failure, call.method, call.peer.revision)
        if isinstance(shape, Fault):
            return error(call.id, shape.code, shape.message, shape.data)
        if call.remarks:
            _remark(shape, call.remarks)
        if call.peer.revision.modern:
            self.sign(shape)
        return encode(Reply(call.id, shape))

    def fault(self, id: Id | Raw | None, problem: ProtocolError) -> bytes:
        """A refusal at the level of the protocol."""
        problem.__traceback__ = problem.__context__ = None  # they hold the request for as long as nobody reads this
        return error(id, problem.code, problem.message, UNSET if problem.data is None else problem.data, problem)

    def exception(self, call: Call, problem: BaseException) -> tuple[bytes, Outcome]:
        """The answer to a call whose handler raised."""
        if isinstance(problem, CapabilityMissing) and not call.peer.revision.modern:
            return self.failure(call, Failure("permission", problem.message)), "refused"
        if isinstance(problem, ProtocolError):
            call.entry.failures += 1
            return self.fault(call.id, problem), "refused"
        failure = self._explain(call, problem)
        return self.failure(call, failure), _OUTCOMES.get(failure.kind, "error")

    def _explain(self, call: Call, problem: BaseException) -> Failure:
        match problem:
            case ToolError():
                return Failure("execution", str(problem) or f"{call.entry.name} failed")
            case ResourceNotFound():
                return Failure("not_found", str(problem), {"uri": problem.uri})
            case TooLarge():
                return Failure("too_large", f"{call.entry.name}: {problem}")
            case Cancelled():
                return Failure("cancelled", f"{call.entry.name} was cancelled")
            case OutputMismatch():
                self._recorder.problem("error", f"{call.entry.where}: {problem}")
                return Failure("execution", f"{call.entry.name} returned what it should not: {problem}")
            case _:
                return self._mask(call, problem)

    def _mask(self, call: Call, problem: BaseException) -> Failure:
        """An unexpected exception: whole in the log, a number for the model, which must not see what it may hold."""
        from secrets import token_hex

        number = token_hex(3)
        self._recorder.problem("error", f"{call.entry.where} raised {type(problem).__name__} (error {number})", problem)
        if self.expose_errors:
            return Failure("execution", f"{call.entry.name} failed: {type(problem).__name__}: {_text(problem)}")
        return Failure("execution", f"{call.entry.name} failed unexpectedly; the server's log has it as error {number}")


class TooLarge(Exception):
    """A result that would not fit into one frame."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"the result has {size:,} bytes and the limit is {limit:,}; ask for less, or page by page")


def _remark(result: Any, remarks: tuple[str, ...]) -> None:
    """Tell what was mended. Only tools have arguments that are, and their results are ours to change.

    A mounted server may have told of more."""
    meta: dict[str, Any] = {} if result.meta is UNSET else result.meta
    told = meta.get(NOTES)
    result.meta = meta | {NOTES: [*remarks, *(told if is_array(told) else ())]}


def _text(problem: BaseException) -> str:
    try:
        return str(problem)
    except Exception:
        return "(its text could not be made)"
