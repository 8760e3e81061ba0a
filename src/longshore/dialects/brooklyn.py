"""The dialect of Brooklyn: MCP without a handshake, with `input_schema` in lists, and failed tools as JSON-RPC errors.

It is for peers without a handshake. `DOCUMENT_TOOLS` are the tools that have Brooklyn's names here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

from longshore.protocol.dialect import Dialect, DocumentTool, FailureKind, ToolFailure
from longshore.protocol.revisions import R2511, Revision
from longshore.wire.codec import INTERNAL_ERROR
from longshore.wire.messages import Fault

TOOL_FAILED: Final = "Tool execution failed"
_NOT_RUN: Final[frozenset[FailureKind]] = frozenset({"unknown_tool", "invalid_arguments", "permission"})
"""Failures of calls that reached no tool. The documents are silent about them, so they are MCP's."""


@final
class BrooklynDialect(Dialect, frozen=True, kw_only=True):
    def tool(self, listed: dict[str, Any], available: bool) -> dict[str, Any]:  # noqa: ARG002
        category = listed.get("_meta", {}).get("longshore/category")
        return {
            "name": listed["name"],
            **({} if category is None else {"category": category}),
            "description": listed.get("description", ""),
            "input_schema": listed["inputSchema"],
        }

    def failed(self, failure: ToolFailure) -> Fault | None:
        if failure.kind in _NOT_RUN:
            return None
        return Fault(INTERNAL_ERROR, TOOL_FAILED, {"toolName": failure.tool, "error": failure.text})


DOCUMENT_TOOLS: Final[Mapping[str, DocumentTool]] = dict.fromkeys(
    (
        "brooklyn_status",
        "launch_browser",
        "close_browser",
        "list_active_browsers",
        "navigate_to_url",
        "go_back",
        "click_element",
        "fill_text",
        "wait_for_element",
        "get_text_content",
        "execute_script",
        "get_html",
        "take_screenshot",
    ),
    DocumentTool(),
)

DIALECT: Final = BrooklynDialect(name="brooklyn", before_handshake=Revision("brooklyn", R2511, plain=True))
