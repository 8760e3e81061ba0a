"""Wire dialects: one taxonomy of failures, rendered in the form that the peer expects.

The standard dialect follows MCP: a failure that a model can correct (its arguments, a failed tool, a time limit) is a
result with `isError`; any other (an unknown tool, a missing handshake) is a JSON-RPC error.
"""

from __future__ import annotations

from typing import Any, Final, Literal, Protocol

from msgspec import UNSET, Struct

from longshore.protocol.content import CallResult, Text
from longshore.protocol.revisions import R2607, Revision
from longshore.wire.codec import INTERNAL_ERROR, INVALID_PARAMS
from longshore.wire.messages import Fault

FailureKind = Literal[
    "unknown_tool",
    "invalid_arguments",
    "execution",
    "timeout",
    "permission",
    "cancelled",
    "too_large",
    "busy",
    "rate",
    "not_initialized",
    "not_found",
]
RESOURCE_NOT_FOUND: Final = -32002
"""Up to 2025-11-25; since 2026-07-28 a missing resource is an error of the parameters."""


class Failure(Struct, frozen=True):
    """Why a request did not succeed, in words for the model."""

    kind: FailureKind
    text: str
    data: Any = UNSET


class Dialect(Protocol):
    """How failures look on the wire."""

    def failed(self, failure: Failure, method: str, revision: Revision) -> Fault | CallResult: ...


_PROTOCOL_KINDS: Final[frozenset[FailureKind]] = frozenset({"unknown_tool", "not_initialized", "not_found"})
_CODES: Final[dict[FailureKind, int]] = {
    "unknown_tool": INVALID_PARAMS,
    "invalid_arguments": INVALID_PARAMS,
    "not_initialized": INVALID_PARAMS,
    "not_found": INVALID_PARAMS,
}


class Standard:
    """MCP's own rendering."""

    def failed(self, failure: Failure, method: str, revision: Revision) -> Fault | CallResult:
        if method == "tools/call" and failure.kind not in _PROTOCOL_KINDS:
            return CallResult([Text(failure.text)], is_error=True)
        if failure.kind == "not_found" and revision.index < R2607:
            return Fault(RESOURCE_NOT_FOUND, failure.text, failure.data)
        return Fault(_CODES.get(failure.kind, INTERNAL_ERROR), failure.text, failure.data)


STANDARD: Final = Standard()
