"""The examples of BrowserOS's document, which stand in `examples` as they do there."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

EXAMPLES: Final = Path(__file__).parent / "examples"
SERVER: Final = (sys.executable, "-m", "browseros.mcp.server")
URL: Final = "https://example.com"
"""The page of the examples, in place of which tests load one on loopback."""
TITLE: Final = "Example Domain"
NAMES: Final = {  # lines 88 and 98
    -32700: "Parse error",
    -32600: "Invalid Request",
    -32601: "Method not found",
    -32602: "Invalid params",
    -32603: "Internal error",
    -32000: "Tool not found",
    -32001: "Tool execution error",
    -32002: "Tool timeout",
    -32003: "Permission denied",
}
Json = dict[str, Any]


def text_of(name: str, url: str = URL) -> str:
    """An example, with its page at another address."""
    return (EXAMPLES / name).read_text(encoding="utf-8").replace(URL, url)


def read(name: str, url: str = URL) -> Any:
    """An example that is JSON."""
    return json.loads(text_of(name, url))


def error_of(answer: Json) -> Json:
    """The error of an answer, whose message begins with the name that the document's tables give its code."""
    assert set(answer) == {"jsonrpc", "id", "error"}, answer
    error: Json = answer["error"]
    name = NAMES[error["code"]]
    assert error["message"] == name or error["message"].startswith(f"{name}: "), error
    return error


def with_python(env: dict[str, str]) -> dict[str, str]:
    """An environment in which `python` is this one, as in the shell of who has installed the package."""
    return env | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"}
