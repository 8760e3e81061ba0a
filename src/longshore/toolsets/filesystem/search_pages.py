"""Matches as text within a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from msgspec import Struct

from longshore.registry.token_budget import CHARACTERS_PER_TOKEN, fit_lines
from longshore.sandbox.file_errors import FileError
from longshore.toolsets.filesystem.matches import FileMatches, Line, Output
from longshore.toolsets.filesystem.shown_paths import show_name


class Cursor(NamedTuple):
    """Where the next page goes on: after a line of a file, or after a file."""

    path: bytes
    line: int = 0

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read a cursor. An empty one is the beginning."""
        line, _, path = text.partition(":") if text else ("0", "", "")
        if not (line.isascii() and line.isdigit() and len(line) < 12):
            raise FileError(
                "", "invalid", f"cursor={text!r} is none that a search returned", "leave it out to begin anew"
            )
        return cls(unquote_to_bytes(path), int(line))

    def __str__(self) -> str:
        return f"{self.line}:{quote_from_bytes(self.path, safe='/')}"


class Page(Struct, frozen=True):
    """A part of what a search found."""

    text: str
    cursor: str
    """For the next page; empty if this is the last."""
    matches: int
    """Matching lines from the cursor on; at least so many if `is_cut`."""
    files: int
    is_cut: bool
    """Whether there is more than was counted."""


class _Row(NamedTuple):
    """A line of the answer, and where the next page begins if it is the last one."""

    text: str
    next: Cursor | None
    matches: int
    """Matches shown up to here."""


def page_matches(
    found: Sequence[FileMatches],
    output: Output,
    *,
    limit: int,
    max_tokens: int,
    is_cut: bool,
    prefix: str = "",
    heading: str = "",
) -> Page:
    """The first of these files or matches as text below a heading, at most `limit`. `prefix` comes before each path."""
    if output == "content":
        files = [file for file in found if file.lines]
        total = sum(line.is_match for file in files for line in file.lines)
        rows = _content_rows(files, limit, prefix)
    else:
        files, total = list(found), sum(file.count for file in found)
        rows = _file_rows(files, output, prefix)[:limit]
    units = total if output == "content" else len(files)
    if not rows:
        return Page("", "", 0, 0, False)
    page = Page(heading, "", total, len(files), is_cut)
    return _fit(rows, _plain_rows(files, prefix), output, units, page, max_tokens)


def _fit(rows: list[_Row], shortest: list[_Row], output: Output, units: int, page: Page, max_tokens: int) -> Page:
    """The rows that fit; if not even one match does, the shortest form of it."""
    unit = "matching lines" if output == "content" else "files"

    def describe_rest(end: int) -> str:
        last = _last(rows[:end])
        more = "more than " if page.is_cut else ""
        return f"{more}{units - last.matches:,} more {unit}; cursor={last.next}"

    is_whole = rows[-1].matches == units and not page.is_cut
    lines = [row.text for row in rows]
    if not is_whole:
        lines.append(" " * max_tokens * CHARACTERS_PER_TOKEN)  # never fits: the note comes in its place
    fitted = fit_lines(lines, max_tokens, describe_rest, heading=page.text)
    if not fitted.complete and not any(row.next for row in rows[: fitted.end]):
        return _fit(shortest, shortest, output, units, page, max_tokens)
    if fitted.complete:
        return Page(fitted.text, "", page.matches, page.files, False)
    return Page(fitted.text, str(_last(rows[: fitted.end]).next), page.matches, page.files, page.is_cut)


def _last(rows: Sequence[_Row]) -> _Row:
    return next((row for row in reversed(rows) if row.next is not None), rows[0])


def _content_rows(files: Sequence[FileMatches], limit: int, prefix: str) -> list[_Row]:
    """A heading for each file, its lines below it, a mark between lines that don't follow each other."""
    rows, shown = list[_Row](), 0
    for file in files:
        rows.append(_Row(_path(file, prefix), None, shown))
        has_context = any(not line.is_match for line in file.lines)
        before = 0
        for line in file.lines:
            if shown == limit and line.is_match:
                return rows if before else rows[:-1]
            if has_context and before and line.number > before + 1:
                rows.append(_Row("--", None, shown))
            before = line.number
            shown += line.is_match
            rows.append(_Row(_show(line), Cursor(file.path, line.number) if line.is_match else None, shown))
    return rows


def _plain_rows(files: Sequence[FileMatches], prefix: str) -> list[_Row]:
    """The first match with its path in front: without heading and context it fits."""
    file = files[0]
    line = next((line for line in file.lines if line.is_match), None)
    shown = _path(file, prefix)
    return [_Row(f"{shown}:{_show(line)}" if line else shown, Cursor(file.path, line.number if line else 0), 1)]


def _file_rows(files: Sequence[FileMatches], output: Output, prefix: str) -> list[_Row]:
    rows = list[_Row]()
    for number, file in enumerate(files, 1):
        path = _path(file, prefix)
        text = path if output == "files" else f"{path}: {file.count}"
        rows.append(_Row(text, Cursor(file.path), number))
    return rows


def _path(file: FileMatches, prefix: str) -> str:
    return show_name(prefix + file.path.decode("utf-8", "surrogateescape"))


def _show(line: Line) -> str:
    return f"{line.number}{':' if line.is_match else '-'}{line.text}"
