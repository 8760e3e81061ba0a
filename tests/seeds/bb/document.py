"""The examples of the document of bb-mcp-server, which stand in `examples` as they do there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

EXAMPLES: Final = Path(__file__).parent / "examples"
Json = dict[str, Any]


def _read(name: str) -> Json:
    example: Json = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return example


INITIALIZE: Final = _read("initialize")
INITIALIZED: Final = _read("initialized")
LIST: Final = _read("list")
LISTED: Final = _read("listed")
CALL: Final = _read("call")
CALLED: Final = _read("called")
FAILED: Final = _read("failed")
"""The exception and its trace are those of the tool."""
MESSAGES: Final = {  # lines 77 and 87
    -32700: "Parse error",
    -32600: "Invalid Request",
    -32601: "Method not found",
    -32602: "Invalid params",
    -32603: "Internal error",
    -32000: "Tool not found",
    -32001: "Tool execution failed",
    -32002: "Invalid tool params",
    -32003: "Server not initialized",
}
