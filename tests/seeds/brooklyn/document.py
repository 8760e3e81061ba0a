"""The examples of Brooklyn's two documents, which stand in `examples` as they do there, with their slips and signs."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]
EXAMPLES: Final = Path(__file__).parent / "examples"
SCRIPTS: Final = Path(sys.executable).parent
COMMAND: Final = str(SCRIPTS / "brooklyn")
SERVER: Final = (COMMAND, "mcp", "start")
LIST: Final = {"jsonrpc": "2.0", "method": "tools/list", "id": 1}
STATUS: Final = {
    "jsonrpc": "2.0",
    "method": "tools/call",
    "params": {"name": "brooklyn_status", "arguments": {}},
    "id": 1,
}
"""What the document pipes into the command."""


def text_of(name: str) -> str:
    """An example."""
    return (EXAMPLES / name).read_text(encoding="utf-8")


def read(name: str) -> Json:
    """An example that is JSON."""
    example: Json = json.loads(text_of(f"{name}.json"))
    return example


def literals(name: str) -> list[Any]:
    """The object literals of an example in TypeScript, in their order; a member alone becomes an object of it."""
    found = list[Any]()
    for raw in text_of(f"{name}.ts").split("\n\n"):
        part = re.sub(r"/\*.*?\*/|//[^\n]*", "", raw).strip()
        quoted = re.sub(r"([{,\s])(\w+): ", r'\1"\2": ', part if part.startswith("{") else "{" + part + "}")
        found.append(json.loads(re.sub(r",(\s*[}\]])", r"\1", quoted)))
    return found


def with_scripts(env: dict[str, str]) -> dict[str, str]:
    """An environment in which `brooklyn` is ours, as in the shell of who has installed the package."""
    return env | {"PATH": f"{SCRIPTS}{os.pathsep}{env['PATH']}"}
