"""Replacements in the text of a file: all of them or none, with byte order mark, encoding and line ends kept."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from longshore.sandbox.file_errors import FileError
from longshore.sandbox.file_type import SAMPLE_BYTES, TextFormat, detect_type
from longshore.toolsets.filesystem.nearest_lines import show_nearest
from longshore.toolsets.filesystem.text_changes import Diff, Replaced, compose
from longshore.toolsets.filesystem.whitespace_match import find_by_words

_NAMED_LINES: Final = 20
"""The lines that an ambiguous match names at most."""


class Edit(Struct, frozen=True):  # One replacement. A docstring would be in the schema of the tool, twice as long.
    old: str
    """The text to replace, exactly as in the file. Must occur once, unless replace_all is set."""
    new: str
    """The text that takes its place."""
    replace_all: bool = False


class Edited(Struct, frozen=True, kw_only=True):
    """The result of edits. Nothing has been written."""

    data: bytes
    replacements: int
    diff: Diff
    notes: tuple[str, ...]
    """Which edits matched only when whitespace was ignored."""


def apply_edits(data: bytes, edits: Sequence[Edit]) -> Edited:
    """Applies edits in order, each to the result of those before it. Raises FileError if one of them can't be."""
    if not edits:
        raise FileError("", "invalid", "there are no edits", "give at least one")
    text_format = _format_of(data)
    raw = text_format.decode(data[len(text_format.bom) :])
    original = raw.replace("\r\n", "\n")
    text, changes, notes, replacements = original, list[Replaced](), list[str](), 0
    for number, edit in enumerate(edits, 1):
        where = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        try:
            spans, note = _spans(text, edit, text_format)
        except FileError as problem:
            raise FileError(
                "", problem.kind, where + problem.detail, problem.fix, **problem.facts, edit=number
            ) from None
        if note:
            notes.append(where + note)
        text, later = _replace(text, spans)
        changes = compose(changes, later)
        replacements += len(spans)
    edited = text_format.bom + text_format.encode(_restore_line_ends(raw, text, changes))
    return Edited(data=edited, replacements=replacements, diff=Diff(original, text, changes), notes=tuple(notes))


class _Span(Struct, frozen=True):
    """A part of the text, and what takes its place."""

    start: int
    end: int
    new: str


def _format_of(data: bytes) -> TextFormat:
    file_type = detect_type(data[:SAMPLE_BYTES])
    if file_type.text is None:
        what = f" {file_type.mime} ({len(data):,} bytes)"
        raise FileError("", "binary", what, "write it whole", mime=file_type.mime, size=len(data))
    if len(data) % file_type.text.width:
        raise FileError("", "encoding", "it is no valid UTF-16: half a character is at its end", "write it whole")
    return file_type.text


def _spans(text: str, edit: Edit, text_format: TextFormat) -> tuple[list[_Span], str]:
    """The spans that an edit replaces, in order, and a note if it was found only when whitespace was ignored."""
    old, new = edit.old.replace("\r\n", "\n"), edit.new.replace("\r\n", "\n")
    if not old:
        raise FileError("", "invalid", "old is empty", "give the text to replace, or write or append to the file")
    if old == new:
        fix = "give a different text; to change line ends, write the file whole"
        raise FileError("", "invalid", "old and new are the same text", fix)
    _check_characters(new, text_format)
    if starts := _occurrences(text, old, edit.replace_all):
        return [_Span(start, start + len(old), new) for start in starts], ""
    found = find_by_words(text, old, new)
    if not found:
        shown, line = show_nearest(text, old, new)
        raise FileError("", "no_match", f"old does not occur in the file; nothing was changed{shown}", "", line=line)
    if len(found) > 1 and not edit.replace_all:
        raise _ambiguous(text, [start for start, _, _ in found], "old occurs (but for whitespace)")
    lines = ", ".join(str(_line_of(text, start)) for start, _, _ in found[:_NAMED_LINES])
    note = f"old differs in whitespace from the file; it was matched at line {lines}, and new was indented like it"
    return [_Span(*part) for part in found], note


def _check_characters(new: str, text_format: TextFormat) -> None:
    """Raises FileError for a character that the file's encoding does not have."""
    try:
        new.encode(text_format.encoding)
    except UnicodeEncodeError as problem:
        character = problem.object[problem.start]
        what = f"{character!a} can't be written in {text_format.name}, the file's encoding"
        fix = "use another character, or write the file whole as UTF-8"
        raise FileError("", "encoding", what, fix, encoding=text_format.encoding, character=character) from None


def _occurrences(text: str, old: str, replace_all: bool) -> list[int]:
    """Where the old text begins. Raises FileError if there are several places for one, or they overlap."""
    starts = list[int]()
    at = text.find(old)
    while at >= 0:
        starts.append(at)
        if len(starts) > 1 and at < starts[-2] + len(old):
            break
        at = text.find(old, at + 1)
    if len(starts) > 1 and not replace_all:
        raise _ambiguous(text, starts, "old occurs")
    if any(second < first + len(old) for first, second in pairwise(starts[-2:])):
        lines = [_line_of(text, start) for start in starts[-2:]]
        what = f"the places where old occurs overlap, at lines {lines[0]} and {lines[1]}"
        raise FileError("", "overlapping", what, "give a longer text", lines=lines)
    return starts


def _ambiguous(text: str, starts: list[int], what: str) -> FileError:
    lines = [_line_of(text, start) for start in starts[:_NAMED_LINES]]
    more = f" and {len(starts) - len(lines):,} more" if len(starts) > len(lines) else ""
    what = f"{what} {len(starts):,} times, at lines {', '.join(map(str, lines))}{more}; nothing was changed"
    fix = "add lines around it to old so that it occurs once, or set replace_all"
    return FileError("", "ambiguous", what, fix, lines=lines, count=len(starts))


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _replace(text: str, spans: list[_Span]) -> tuple[str, list[Replaced]]:
    """The text with all spans replaced, and what was replaced by what."""
    parts, changes, at, length = list[str](), list[Replaced](), 0, 0
    for span in spans:
        parts += (text[at : span.start], span.new)
        start = length + span.start - at
        length, at = start + len(span.new), span.end
        changes.append(Replaced(span.start, span.end, start, length))
    return "".join([*parts, text[at:]]), changes


def _restore_line_ends(raw: str, text: str, changes: list[Replaced]) -> str:
    """The edited text with the line ends of the file: its own outside the changes, its most frequent within them."""
    crlf = _crlf_positions(raw)
    frequent = "\r\n" if 2 * len(crlf) > raw.count("\n") else "\n"
    parts, at = list[str](), 0
    for change in changes:
        # Every CRLF before a position made it smaller by one.
        start = change.old_start + bisect_left(crlf, change.old_start)
        parts += (raw[at:start], text[change.new_start : change.new_end].replace("\n", frequent))
        at = change.old_end + bisect_left(crlf, change.old_end)
    return "".join([*parts, raw[at:]])


def _crlf_positions(raw: str) -> list[int]:
    """Where each CRLF is in the text in which it is one character."""
    positions, at = list[int](), raw.find("\r\n")
    while at >= 0:
        positions.append(at - len(positions))
        at = raw.find("\r\n", at + 2)
    return positions
