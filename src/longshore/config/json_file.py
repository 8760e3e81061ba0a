"""A JSON configuration file of another program: bytes → a table whose keys know their lines."""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

from longshore.config.toml_file import DEPTH, Document, Path, read_text, shown_path
from longshore.errors import ConfigError

_TOKEN: Final = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]|[^\s"{}\[\],:]+')


def read(path: str, cwd: str, text: str | None = None) -> Document:
    """Read and parse a file, or the `text` that counts in its place. Raises ConfigError with the line."""
    shown = shown_path(path, cwd)
    text = read_text(path, shown, "JSON") if text is None else text
    try:
        tables = json.loads(text)
    except json.JSONDecodeError as error:
        what = error.msg[:1].lower() + error.msg[1:]
        raise ConfigError(f"{shown}:{error.lineno}: not JSON: {what} (column {error.colno})") from None
    except (RecursionError, ValueError):  # ValueError: a number of thousands of digits
        raise ConfigError(f"{shown}: nested too deeply, or with a number of too many digits") from None
    if not isinstance(tables, dict):
        raise ConfigError(f"{shown}:1: expected a JSON object")
    return Document(shown, cast("dict[str, Any]", tables), lines_of(text, shown))


def lines_of(text: str, shown: str) -> dict[Path, int]:
    """The line of each key of a valid text, to a depth of DEPTH. Raises ConfigError for a key that comes twice."""
    found: dict[Path, int] = {}
    opened: list[str] = []
    """The key at each level of nesting; empty in an array."""
    is_key, line, place = False, 1, 0
    for token in _TOKEN.finditer(text):
        line, place = line + text.count("\n", place, token.start()), token.start()
        match token[0]:
            case "{" | "[":
                opened.append("")
                is_key = token[0] == "{"
            case "}" | "]":
                opened.pop()
                is_key = False
            case ",":
                is_key = opened[-1] != ""
            case _ if is_key:
                opened[-1], is_key = json.loads(token[0]), False
                path = tuple(opened)
                if len(path) <= DEPTH and "" not in path and found.setdefault(path, line) != line:
                    raise ConfigError(f"{shown}:{line}: {'.'.join(path)}: set twice")
            case _:
                pass
    return found
