"""On which line a key stands. `tomllib` forgets it, so a small scanner finds the statements again.

It runs only on text that tomllib has accepted, so it needs to know just enough of TOML to tell where a statement ends:
strings, comments and brackets. Keys inside an inline table or an array count as standing on its first line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

from msgspec import Struct

DEPTH = 4
"""The longest path that an error or an origin names: `toolsets.NAME.options.KEY`."""

_PIECE = re.compile(
    r"""
    \#[^\n]*
    | \"{3} (?: \\. | [^\\] )*? \"{3,5}      # the closing quotes may follow one or two of the text's own
    | '{3} .*? '{3,5}
    | " (?: \\. | [^"\\\n] )* "
    | ' [^'\n]* '
    | [\[\]{}=\n]
    | [^\s\#"'\[\]{}=] [^\#"'\[\]{}=\n]*
    """,
    re.VERBOSE | re.DOTALL,
)
_BARE = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")

Path: TypeAlias = tuple[str, ...]


class Statement(Struct):
    """`[key]`, `[[key]]` or `key = …`, as it grows piece by piece."""

    line: int
    key: str = ""
    is_header: bool = False
    is_value: bool = False
    depth: int = 0

    def add(self, piece: str) -> None:
        if piece in ("[", "{", "]", "}"):
            self.depth += 1 if piece in "[{" else -1
            self.is_header = self.is_header or not self.is_value
        elif piece == "=" and not self.is_header:
            self.is_value = True
        elif not self.is_value:
            self.key += piece


def lines_of(text: str) -> dict[Path, int]:
    """The first line of each key and table, by its path. Longer paths are cut to DEPTH."""
    found: dict[Path, int] = {}
    table: Path = ()
    for statement in _statements(text):
        path = _path(statement.key)
        if statement.is_header:
            table = path
        else:
            path = table + path
        for length in range(1, len(path) + 1):
            found.setdefault(path[:length], statement.line)
    return found


def line_of(lines: dict[Path, int], path: Path) -> int:
    """The line of a key, else of the nearest table around it."""
    for length in range(min(len(path), DEPTH), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


def _statements(text: str) -> Iterator[Statement]:
    line = 1
    current: Statement | None = None
    for match in _PIECE.finditer(text + "\n"):
        piece = match[0]
        if piece == "\n":
            if current and current.depth == 0:
                yield current
                current = None
        elif not piece.startswith("#"):
            current = current or Statement(line)
            current.add(piece)
        line += piece.count("\n")


def _path(key: str) -> Path:
    """The parts of a key, at most DEPTH. Quoted ones are left to tomllib, which knows the escapes."""
    key = key.strip()
    if _BARE.fullmatch(key):
        return tuple(key.split(".", DEPTH)[:DEPTH])
    parts: list[str] = []
    node: Any = tomllib.loads(f"{key} = 0")
    while isinstance(node, dict) and len(parts) < DEPTH:
        name, node = next(iter(cast("dict[str, Any]", node).items()))
        parts.append(name)
    return tuple(parts)
