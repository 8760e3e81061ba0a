"""The dialect of BrowserOS's JSON-RPC transport: bare requests of JSON-RPC 2.0, run in order, one answer each.

It is for peers without a handshake. Messages begin with the names of its error tables, and what we have to say follows.
`DOCUMENT_TOOLS` are the three tools of its document, with the forms of their results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import msgspec

from longshore.protocol.dialect import Dialect, DocumentTool, FailureKind, ToolFailure
from longshore.protocol.revisions import R2511, Revision
from longshore.wire.codec import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from longshore.wire.messages import Fault

TOOL_NOT_FOUND: Final = -32000
EXECUTION_ERROR: Final = -32001
TIMEOUT: Final = -32002
PERMISSION_DENIED: Final = -32003

_NAMES: Final = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid Request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
    TOOL_NOT_FOUND: "Tool not found",
    EXECUTION_ERROR: "Tool execution error",
    TIMEOUT: "Tool timeout",
    PERMISSION_DENIED: "Permission denied",
}
_CODES: Final[dict[FailureKind, int]] = {
    "invalid_arguments": INVALID_PARAMS,
    "timeout": TIMEOUT,
    "permission": PERMISSION_DENIED,
}
"""Every other failure of a tool is one of its execution."""
_HTTP_ERROR: Final = 400
"""From this status on, a page that was loaded is not the one that was asked for."""


@final
class BrowserosDialect(Dialect, frozen=True, kw_only=True):
    def tool(self, listed: dict[str, Any], available: bool) -> dict[str, Any]:
        return {"name": listed["name"], "available": available}

    def result(self, tool: str, arguments: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
        value = value_of(result)
        documented = (self.tools or {}).get(tool)
        form = None if documented is None else documented.result
        return {"tool": tool, "result": value if form is None else form(arguments, value)}

    def failed(self, failure: ToolFailure) -> Fault:
        if failure.kind != "unknown_tool":
            return _fault(_CODES.get(failure.kind, EXECUTION_ERROR), failure.text)
        data: dict[str, Any] = {"available_tools": list(failure.available)}
        if failure.is_off:
            data["reason"] = failure.text
        return _fault(TOOL_NOT_FOUND, failure.tool, data)

    def error(self, fault: Fault) -> Fault:
        return _fault(fault.code, fault.message, fault.data)


def _fault(code: int, text: str, data: Any = msgspec.UNSET) -> Fault:
    name = _NAMES.get(code)
    return Fault(code, text if name is None else f"{name}: {text}", data)


def value_of(result: dict[str, Any]) -> Any:
    """The value that a tool returned, from its MCP result. Data that is no object comes wrapped, as `result`."""
    content: list[dict[str, Any]] = result["content"]
    texts = [block["text"] for block in content if block["type"] == "text"]
    if "structuredContent" in result:
        value = result["structuredContent"]
        return value["result"] if value.keys() == {"result"} and _read_all(texts) == [value["result"]] else value
    if len(texts) < len(content):
        return content
    return "\n".join(texts) if texts else None


def _read_all(texts: list[str]) -> list[Any]:
    """Texts as JSON; empty if one of them is not."""
    try:
        return [msgspec.json.decode(text) for text in texts]
    except msgspec.DecodeError:
        return []


# -- the tools of the document


def _page(_: dict[str, Any], page: dict[str, Any]) -> dict[str, Any]:
    status: int = page["status"]
    return page | {"status": "success" if status < _HTTP_ERROR else f"HTTP status {status}"}


def _files(arguments: dict[str, Any], content: Any) -> dict[str, Any]:
    return {"success": True, "path": arguments.get("path", "."), "content": content}


def _command(_: dict[str, Any], output: Any) -> dict[str, Any]:
    return {"output": output}


DOCUMENT_TOOLS: Final[Mapping[str, DocumentTool]] = {
    "browser": DocumentTool(result=_page),
    "filesystem": DocumentTool(result=_files),
    "terminal": DocumentTool(result=_command),
}

DIALECT: Final = BrowserosDialect(
    name="browseros",
    before_handshake=Revision("browseros", R2511, plain=False),
    methods=frozenset({"tools/list", "tools/call"}),
    answers={"ping": {"status": "ok"}},
    batches=True,
    unsolicited=False,
    in_order=True,
    lists_unavailable=True,
    cancelled=Fault(EXECUTION_ERROR, f"{_NAMES[EXECUTION_ERROR]}: the call was cancelled"),
)
