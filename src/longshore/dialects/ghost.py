"""The dialect of the ContextGraph server: MCP of 2025-03-26, with codes of its own for cancelled and too large.

It is for peers whose handshake names 2025-03-26 or 2024-11-05. `DOCUMENT_TOOLS` is the tool of its document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

from msgspec import UNSET

from longshore.protocol.dialect import Dialect, DocumentTool, FailureKind, ToolFailure
from longshore.protocol.peer import InitializeParams
from longshore.protocol.revisions import NAMES, R2411, R2503, Revision
from longshore.wire.codec import INVALID_PARAMS
from longshore.wire.messages import Fault

REQUEST_CANCELLED: Final = -32800
CONTENT_TOO_LARGE: Final = -32801

_CODES: Final[dict[FailureKind, int]] = {
    "unknown_tool": INVALID_PARAMS,
    "invalid_arguments": INVALID_PARAMS,
    "too_large": CONTENT_TOO_LARGE,
}
"""Every other failure of a tool is a result with `isError`."""
_LISTED: Final = ("name", "description", "inputSchema")


@final
class GhostDialect(Dialect, frozen=True, kw_only=True):
    def initialize(self, result: dict[str, Any], can_grow: bool) -> dict[str, Any]:
        info = result["serverInfo"]
        return {
            "protocolVersion": result["protocolVersion"],
            "capabilities": {"tools": {"listChanged": can_grow}},
            "serverInfo": {"name": info["name"], "version": info["version"]},
        }

    def tool(self, listed: dict[str, Any], available: bool) -> dict[str, Any]:  # noqa: ARG002
        return {key: listed[key] for key in _LISTED if key in listed}

    def result(self, tool: str, arguments: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        return {"content": result["content"], "isError": False}

    def failed(self, failure: ToolFailure) -> Fault | None:
        code = _CODES.get(failure.kind)
        return None if code is None else Fault(code, failure.text, {"tool": failure.tool})

    def error(self, fault: Fault) -> Fault:
        return Fault(fault.code, fault.message, {} if fault.data is UNSET else fault.data)


DOCUMENT_TOOLS: Final[Mapping[str, DocumentTool]] = {
    "query_context": DocumentTool(
        listed={
            "name": "query_context",
            "description": "Query the context graph for relevant information",
            "inputSchema": {
                "type": "object",
                "properties": {"query": {"type": "string", "description": "The search query"}},
                "required": ["query"],
            },
        }
    )
}
"""The tool takes more than the document shows: the filters and limits that other peers see in their list."""

DIALECT: Final = GhostDialect(
    name="ghost",
    revisions={NAMES[index]: Revision(NAMES[index], index, plain=False) for index in (R2411, R2503)},
    initialize_params=InitializeParams,
    cancelled=Fault(REQUEST_CANCELLED, "Request cancelled", {}),
)
