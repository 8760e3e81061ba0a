"""The matches in a file, as both engines report it."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from longshore.sandbox.gitignore import Above

MOST_LINES: Final = 20_000
"""Lines, with their context, that one search collects beyond its cursor. No one pages that far."""
MOST_FILES: Final = 50_000
"""Files that one search collects beyond its cursor."""
MOST_CONTEXT: Final = 20
LINE_CHARACTERS: Final = 400
"""The part of a line that is shown: minified files have lines of megabytes."""
_BEFORE: Final = 100
"""Bytes that are shown before a match in a long line."""
_LINE_BYTES: Final = 4 * LINE_CHARACTERS
FRAME: Final = 4
"""Bytes of the length before each of the worker's messages."""

Output = Literal["content", "files", "count"]


class Line(Struct, frozen=True, array_like=True):
    """A line with a match, or one near it."""

    number: int
    text: str
    is_match: bool


class FileMatches(Struct, frozen=True, array_like=True):
    """A file with matches. Its path is in bytes: not every name is text."""

    path: bytes
    count: int
    """Lines that match."""
    lines: list[Line]


TOO_DEEP: Final = FileMatches(b"", 0, [])
"""In place of a file: something lies more folders down than are searched."""


class WorkerQuery(Struct, frozen=True):
    """The worker's question."""

    python: str
    strict: str
    ignore_case: bool
    globs: tuple[str, ...]
    deny: tuple[str, ...]
    within: str
    """The path from the root to the folder."""
    gitignore: bool
    above: Above
    context: int
    with_lines: bool
    max_file_size: int
    file: str
    """The name of the only file in the folder that is searched; empty: all."""
    after: bytes
    """Files before this path are left out."""
    after_line: int
    seconds: float


def excerpt(line: bytes, start: int = 0) -> str:
    """The text of a line without its end, cut around the place of its match."""
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    if len(line) <= LINE_CHARACTERS:
        return line.decode("utf-8", "replace")
    begin = max(0, start - _BEFORE) if start > LINE_CHARACTERS - _BEFORE else 0
    while begin and begin < len(line) and line[begin] & 0xC0 == 0x80:
        begin -= 1
    text = line[begin : begin + _LINE_BYTES].decode("utf-8", "replace")[:LINE_CHARACTERS]
    left = len(line) - begin - len(text.encode())
    return f"{'…' if begin else ''}{text}{f'… (line of {len(line):,} bytes)' if begin or left > 0 else ''}"


def sort_key(path: bytes) -> list[bytes]:
    """Paths sort by their parts, as a walk that reads each folder sorted meets them."""
    return path.split(b"/")
