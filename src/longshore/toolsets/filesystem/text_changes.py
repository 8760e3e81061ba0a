"""Which parts of a text were replaced by which, after replacements one after another; as a unified diff."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final, NamedTuple

from longshore.registry.token_budget import CHARACTERS_PER_TOKEN, DEFAULT_TOKENS, NOTE_CHARACTERS, cut_line, fit_lines
from longshore.sandbox.file_type import printable

CONTEXT_LINES: Final = 3
_LINE_CHARACTERS: Final = 500
"""Longer lines of a diff are cut."""
_BEFORE_CHARACTERS: Final = 60
"""The characters that are shown before the difference of two long lines."""
_COMPARED_LINES: Final = 200
"""Larger changes are shown as a whole: a comparison line by line takes quadratic time."""


class Replaced(NamedTuple):
    """A part of a text and the part of another that took its place: characters, or lines, as the user of it says."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def compose(changes: Iterable[Replaced], later: Iterable[Replaced]) -> list[Replaced]:
    """Changes from a first text to a second and from there to a third, as changes from the first to the third.

    Both are in order and do not overlap. Changes that touch in the second text become one.
    """
    # Each is on the scale of the second text: where it lies there, and by how much it is longer or shorter elsewhere.
    spans = sorted(
        [(c.new_start, c.new_end, (c.old_end - c.old_start) - (c.new_end - c.new_start), 0) for c in changes]
        + [(c.old_start, c.old_end, 0, (c.new_end - c.new_start) - (c.old_end - c.old_start)) for c in later]
    )
    merged = list[list[int]]()
    for start, end, first, third in spans:
        if merged and start <= merged[-1][1]:
            last = merged[-1]
            last[1], last[2], last[3] = max(last[1], end), last[2] + first, last[3] + third
        else:
            merged.append([start, end, first, third])
    found, first_shift, third_shift = list[Replaced](), 0, 0
    for start, end, first, third in merged:
        old_start, new_start = start + first_shift, start + third_shift
        first_shift, third_shift = first_shift + first, third_shift + third
        found.append(Replaced(old_start, end + first_shift, new_start, end + third_shift))
    return found


class Diff:
    """The difference of two texts, made from the parts that were replaced: linear in their size."""

    def __init__(self, old: str, new: str, changes: Iterable[Replaced]) -> None:
        self._old, self._new = _split(old), _split(new)
        self.changes: list[Replaced] = list(self._line_changes(changes))
        self.removed = sum(change.old_end - change.old_start for change in self.changes)
        self.added = sum(change.new_end - change.new_start for change in self.changes)

    def text(self, max_tokens: int = DEFAULT_TOKENS) -> str:
        """The unified diff, without file names; if it does not fit, as many of its lines as do."""
        room = min(_LINE_CHARACTERS, max_tokens * CHARACTERS_PER_TOKEN - NOTE_CHARACTERS)
        lines = (cut_line(printable(line), room) for line in self._hunks())
        note = f"the rest of the diff is left out: {self.removed:,} lines removed, {self.added:,} added in all"
        return fit_lines(lines, max_tokens, lambda _: note).text

    def _line_changes(self, changes: Iterable[Replaced]) -> Iterator[Replaced]:
        """The lines that differ, in order."""
        old_starts, new_starts = _line_starts(self._old), _line_starts(self._new)
        whole = list[Replaced]()
        for change in changes:
            lines = Replaced(
                max(0, bisect_right(old_starts, change.old_start) - 1),
                bisect_right(old_starts, change.old_end),
                max(0, bisect_right(new_starts, change.new_start) - 1),
                bisect_right(new_starts, change.new_end),
            )
            if whole and (lines.old_start < whole[-1].old_end or lines.new_start < whole[-1].new_end):
                lines = Replaced(whole[-1].old_start, lines.old_end, whole.pop().new_start, lines.new_end)
            whole.append(lines)
        for lines in whole:
            yield from self._compare(lines)

    def _compare(self, lines: Replaced) -> Iterator[Replaced]:
        """The lines that differ within a part."""
        old = self._old[lines.old_start : lines.old_end]
        new = self._new[lines.new_start : lines.new_end]
        before = _common(old, new)
        after = _common(old[before:][::-1], new[before:][::-1])
        old, new = old[before : len(old) - after], new[before : len(new) - after]
        old_start, new_start = lines.old_start + before, lines.new_start + before
        if min(len(old), len(new)) <= 1 or len(old) + len(new) > _COMPARED_LINES:
            yield Replaced(old_start, old_start + len(old), new_start, new_start + len(new))
            return
        from difflib import SequenceMatcher  # slow to import

        for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind != "equal":
                yield Replaced(old_start + a, old_start + b, new_start + c, new_start + d)

    def _hunks(self) -> Iterator[str]:
        group = list[Replaced]()
        for change in self.changes:
            if group and change.old_start - group[-1].old_end > 2 * CONTEXT_LINES:
                yield from self._hunk(group)
                group = []
            group.append(change)
        if group:
            yield from self._hunk(group)

    def _hunk(self, group: list[Replaced]) -> Iterator[str]:
        first, last = group[0], group[-1]
        start = max(0, first.old_start - CONTEXT_LINES)
        end = min(len(self._old), last.old_end + CONTEXT_LINES)
        new_start = first.new_start - (first.old_start - start)
        new_end = last.new_end + (end - last.old_end)
        yield f"@@ -{_span(start, end)} +{_span(new_start, new_end)} @@"
        at = start
        for change in group:
            yield from _marked(" ", self._old[at : change.old_start])
            old, new = self._old[change.old_start : change.old_end], self._new[change.new_start : change.new_end]
            if len(old) == len(new) == 1:
                old[0], new[0] = _from_difference(old[0], new[0])
            yield from _marked("-", old)
            yield from _marked("+", new)
            at = change.old_end
        yield from _marked(" ", self._old[at:end])


def _split(text: str) -> list[str]:
    """The lines of a text with their line feeds."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _line_starts(lines: list[str]) -> list[int]:
    return list(accumulate((len(line) for line in lines[:-1]), initial=0)) if lines else []


def _common(one: list[str], other: list[str]) -> int:
    """How many lines at the beginning are the same."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _from_difference(old: str, new: str) -> tuple[str, str]:
    """Two lines; if they are long, from shortly before their difference on."""
    if max(len(old), len(new)) <= _LINE_CHARACTERS:
        return old, new
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[low:middle] == new[low:middle] else (low, middle - 1)
    begin = low - _BEFORE_CHARACTERS
    return (f"…{old[begin:]}", f"…{new[begin:]}") if begin > 0 else (old, new)


def _span(start: int, end: int) -> str:
    """A range of lines as in the heading of a hunk."""
    count = end - start
    return str(start + 1) if count == 1 else f"{start + 1 if count else start},{count}"
