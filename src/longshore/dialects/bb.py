"""The dialect of bb-mcp-server: protocol "1.0", three methods, and error codes of its own.

It is for peers before a handshake and after one that asks for "1.0". Messages are those of its error tables, and what
we have to say is in `data`.
"""

from __future__ import annotations

from typing import Any, Final, final

from msgspec import Struct

from longshore.protocol.dialect import Dialect, FailureKind, ToolFailure
from longshore.protocol.revisions import R2411, Revision
from longshore.wire.codec import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from longshore.wire.messages import Fault

VERSION: Final = "1.0"
TOOL_NOT_FOUND: Final = -32000
EXECUTION_FAILED: Final = -32001
INVALID_TOOL_PARAMS: Final = -32002
NOT_INITIALIZED: Final = -32003

_MESSAGES: Final = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid Request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
    TOOL_NOT_FOUND: "Tool not found",
    EXECUTION_FAILED: "Tool execution failed",
    INVALID_TOOL_PARAMS: "Invalid tool params",
    NOT_INITIALIZED: "Server not initialized",
}
_CODES: Final[dict[FailureKind, int]] = {
    "unknown_tool": TOOL_NOT_FOUND,
    "invalid_arguments": INVALID_TOOL_PARAMS,
}
"""Every other failure of a tool is one of its execution."""


class _ClientInfo(Struct):
    name: str
    version: str = ""


class _InitializeParams(Struct, rename="camel"):
    protocol_version: str
    client_info: _ClientInfo


@final
class BbDialect(Dialect, frozen=True, kw_only=True):
    def initialize(self, result: dict[str, Any], can_grow: bool) -> dict[str, Any]:
        info = result["serverInfo"]
        return {
            "protocolVersion": VERSION,
            "serverInfo": {"name": info["name"], "version": info["version"]},
            "capabilities": {"tools": True, "dynamicToolRegistration": can_grow},
        }

    def tool(self, listed: dict[str, Any], available: bool) -> dict[str, Any]:  # noqa: ARG002
        return {
            "name": listed["name"],
            "description": listed.get("description", ""),
            "inputSchema": listed["inputSchema"],
        }

    def result(self, tool: str, arguments: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        return {"content": result["content"]}

    def failed(self, failure: ToolFailure) -> Fault:
        code = _CODES.get(failure.kind, EXECUTION_FAILED)
        data = {"tool": failure.tool, "error": failure.cause}
        if failure.trace:
            data["stacktrace"] = failure.trace
        return Fault(code, _MESSAGES[code], data)

    def error(self, fault: Fault) -> Fault:
        return Fault(fault.code, _MESSAGES.get(fault.code, fault.message), {"error": fault.message})

    def not_initialized(self, method: str) -> Fault:
        text = f"{method} came before initialize; send initialize first"
        return Fault(NOT_INITIALIZED, _MESSAGES[NOT_INITIALIZED], {"error": text})


DIALECT: Final = BbDialect(
    name="bb",
    revisions={VERSION: Revision(VERSION, R2411, plain=False)},
    before_handshake="refuse",
    initialize_params=_InitializeParams,
    methods=frozenset({"initialize", "tools/list", "tools/call"}),
    unsolicited=False,
    needs_arguments=True,
)
