"""The answer to a tool call in HTTP's words: a status, and one envelope for success and failure.

The engine's frame is not decoded further than to see what it is; content and structured content go out as they came.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.errors import CapabilityMissing, Forbidden
from longshore.protocol.dialect import Kind
from longshore.wire.codec import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, ErrorFrame, encode
from longshore.wire.messages import Fault

STATUSES: Final = {
    "invalid_arguments": 400,
    "permission": 403,
    "unknown_tool": 404,
    "not_found": 404,
    "method": 405,
    "body_too_large": 413,
    "media_type": 415,
    "question": 422,
    "rate": 429,
    "execution": 500,
    "too_large": 500,
    "internal": 500,
    "busy": 503,
    "cancelled": 503,
    "timeout": 504,
}
"""The kinds of failure. A result that is too large is our trouble, not that of the request; so it is no 413."""

_AGAIN: Final = ((b"retry-after", b"1"),)
_HEADERS: Final = {
    "rate": _AGAIN,  # a bucket fills by at least one call a second, so nobody has to wait for longer
    "busy": _AGAIN,
    "cancelled": _AGAIN,
    "body_too_large": ((b"connection", b"close"),),
}
_CALLERS_FAULT: Final = (PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS)


class Trouble(Exception):
    """A call that can't be made. The headers of its answer go with the kind, unless there are others."""

    def __init__(self, kind: str, text: str, headers: tuple[tuple[bytes, bytes], ...] | None = None) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text
        self.headers = _HEADERS.get(kind, ()) if headers is None else headers


class Outcome(Struct):
    """What is sent back. `needed` are the scopes that the caller would need, where that is why it failed."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    needed: frozenset[str] = frozenset()


class _Result(Struct, frozen=True, rename="camel"):
    content: Raw = Raw(b"[]")
    structured: Raw | UnsetType = field(name="structuredContent", default=UNSET)
    is_error: bool = False
    result_type: str = "complete"


class _Answer(Struct):
    result: _Result = _Result()
    error: Fault | UnsetType = UNSET


class _Block(Struct):
    type: str = ""
    text: str = ""


class Success(Struct, rename="camel"):
    """The envelope of a result. `data` is the structured content, else the text, else null."""

    success: bool
    data: Any
    content: Raw
    execution_time: float
    timestamp: str


class Failed(Struct, rename="camel", omit_defaults=True):
    """The envelope of a failure. `data` is what the tool itself returned beside its text."""

    success: bool
    error: dict[str, str]
    data: Raw | UnsetType = UNSET
    execution_time: float | UnsetType = UNSET
    timestamp: str = ""


_read_answer = msgspec.json.Decoder(_Answer).decode
_read_blocks = msgspec.json.Decoder(list[_Block]).decode


def failure(trouble: Trouble, seconds: float | None = None, data: Raw | UnsetType = UNSET) -> Outcome:
    """The answer to a call that failed, or was not even made."""
    milliseconds = UNSET if seconds is None else _milliseconds(seconds)
    envelope = Failed(False, {"kind": trouble.kind, "message": trouble.text}, data, milliseconds, _now())
    return Outcome(STATUSES[trouble.kind], encode(envelope), trouble.headers)


def read_outcome(name: str, frame: bytes | None, kind: Kind | None, seconds: float) -> Outcome:
    """What the engine's answer to a call of the tool says. `kind` is why it failed, where the engine knew."""
    if frame is None:
        return failure(Trouble("cancelled", f"{name} was cancelled"), seconds)
    answer = _read_answer(frame)
    if answer.error is not UNSET:
        return _refused(name, frame, answer.error.message, kind, seconds)
    result = answer.result
    if result.result_type != "complete":
        return failure(_question(name), seconds)
    text = "\n".join(block.text for block in _read_blocks(result.content) if block.type == "text")
    if kind is not None or result.is_error:
        return failure(Trouble(kind or "execution", text or f"{name} failed"), seconds, result.structured)
    data: Any = result.structured if result.structured is not UNSET else (text or None)
    return Outcome(200, encode(Success(True, data, result.content, _milliseconds(seconds), _now())))


def _refused(name: str, frame: bytes, text: str, kind: Kind | None, seconds: float) -> Outcome:
    cause = frame.cause if isinstance(frame, ErrorFrame) else None
    if isinstance(cause, CapabilityMissing):
        return failure(_question(name), seconds)
    if isinstance(cause, Forbidden):
        outcome = failure(Trouble("permission", text), seconds)
        outcome.needed = cause.needed
        return outcome
    code = frame.code if isinstance(frame, ErrorFrame) else 0
    return failure(Trouble(kind or ("invalid_arguments" if code in _CALLERS_FAULT else "internal"), text), seconds)


def _question(name: str) -> Trouble:
    fix = "call it over MCP, with a client that can answer"
    return Trouble("question", f"{name} asks its caller a question, which REST can't pass on; {fix}")


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
