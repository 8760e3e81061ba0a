"""The examples of the ContextGraph document, which stand in `examples` as they do there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]
EXAMPLES: Final = Path(__file__).parent / "examples"
COMMAND: Final = str(Path(sys.executable).parent / "contextgraph-ghost")
CODES: Final = {  # line 366
    "parse error": -32700,
    "invalid request": -32600,
    "method not found": -32601,
    "invalid params": -32602,
    "internal error": -32603,
    "request cancelled": -32800,
    "content too large": -32801,
}


def read(name: str) -> Json:
    """An example."""
    example: Json = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return example
