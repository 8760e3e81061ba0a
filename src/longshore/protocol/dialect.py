"""Failures as one taxonomy, and dialects: the wire forms of peers that do not speak MCP as published.

A dialect is data and pure functions over wire records. It says which peers it is for; every other peer of the same
server, and every request that names 2026-07-28, gets MCP. `server.adapter` applies it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Struct, ValidationError, convert

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
    problem: BaseException | None = None
    """The exception that an author's function raised. MCP peers see nothing of it."""


_PROTOCOL_KINDS: Final[frozenset[FailureKind]] = frozenset({"unknown_tool", "not_initialized", "not_found"})
_CODES: Final[dict[FailureKind, int]] = {
    "unknown_tool": INVALID_PARAMS,
    "invalid_arguments": INVALID_PARAMS,
    "not_initialized": INVALID_PARAMS,
    "not_found": INVALID_PARAMS,
}


def render_failure(failure: Failure, method: str, revision: Revision) -> Fault | CallResult:
    """A failure as MCP has it.

    A failure that a model can correct (its arguments, a failed tool, a time limit) is a result with `isError`; any
    other (an unknown tool, a missing handshake) is a JSON-RPC error.
    """
    if method == "tools/call" and failure.kind not in _PROTOCOL_KINDS:
        return CallResult([Text(failure.text)], is_error=True)
    if failure.kind == "not_found" and revision.index < R2607:
        return Fault(RESOURCE_NOT_FOUND, failure.text, failure.data)
    return Fault(_CODES.get(failure.kind, INTERNAL_ERROR), failure.text, failure.data)


class ToolFailure(Struct, frozen=True):
    """A failed `tools/call`, as a dialect renders it."""

    kind: FailureKind
    tool: str
    text: str
    """In words for the model."""
    cause: str
    """The type and text of the exception behind it, where there is one; else the same text."""
    trace: str = ""
    """The stack trace of the exception, in debug mode only."""
    is_off: bool = False
    """Whether there is a tool of this name, which is not on offer; the text says why."""
    available: tuple[str, ...] = ()
    """The tools that can be called, where this one can't."""


ResultForm: TypeAlias = Callable[[dict[str, Any], Any], Any]
"""Makes a document's own form of a tool's result from the call's arguments and the tool's value."""


class DocumentTool(Struct, frozen=True, kw_only=True):
    """A tool that a dialect's document describes, where its form differs from MCP's or from the dialect's own."""

    listed: Mapping[str, Any] | None = None
    """The tool as the document's list shows it; None: as the dialect shows any tool."""
    result: ResultForm | None = None
    """The form of its result; None: the value that it returned."""


class Dialect(Struct, frozen=True, kw_only=True):
    """One dialect. The defaults are what MCP does, so a dialect says only where it differs."""

    name: str
    revisions: Mapping[str, Revision] = {}
    """The versions of handshakes that it is for, and the revision that each of them means."""
    before_handshake: Literal["standard", "refuse"] | Revision = "standard"
    """What a peer gets before a handshake: MCP's own errors, this dialect's refusal, or service in this revision."""
    methods: frozenset[str] | None = None
    """The methods that exist; None: those of the revision."""
    answers: Mapping[str, Any] = {}
    """Methods with a fixed result."""
    batches: bool = False
    unsolicited: bool = True
    """Whether peers may get lines that they did not ask for: notifications, progress, log messages."""
    in_order: bool = False
    """Whether the requests of a session run one after the other, so that answers go out in their order."""
    initialize_params: type[Struct] | None = None
    """What the parameters of `initialize` must be; None: anything."""
    needs_arguments: bool = False
    """Whether a `tools/call` without `arguments` is refused."""
    lists_unavailable: bool = False
    """Whether a list also shows the tools that are off, and those of toolsets that can't run here."""
    tools: Mapping[str, DocumentTool] | None = None
    """The tools that lists show; None: those that MCP's list shows."""
    cancelled: Fault | None = None
    """The answer to a cancelled request; None: there is none."""

    def check_initialize(self, params: dict[str, Any]) -> str | None:
        """The fault in the parameters of `initialize`; None if there is none."""
        if self.initialize_params is None:
            return None
        try:
            convert(params, self.initialize_params)
        except ValidationError as problem:
            return str(problem)
        return None

    def initialize(self, result: dict[str, Any], can_grow: bool) -> dict[str, Any]:  # noqa: ARG002
        """The result of a handshake. `can_grow` says whether tools can be added while the server runs."""
        return result

    def tool(self, listed: dict[str, Any], available: bool) -> dict[str, Any]:  # noqa: ARG002
        """A tool as a list shows it."""
        return listed

    def result(self, tool: str, arguments: dict[str, Any], result: dict[str, Any]) -> Any:  # noqa: ARG002
        """The result of a tool."""
        return result

    def failed(self, failure: ToolFailure) -> Fault | None:  # noqa: ARG002
        """The error for a failed tool; None: as MCP has it."""
        return None

    def error(self, fault: Fault) -> Fault:
        """Any other error."""
        return fault

    def not_initialized(self, method: str) -> Fault:
        """The error for a request that came before the handshake."""
        return self.error(Fault(INVALID_PARAMS, f"{method} came before initialize; send initialize first"))
