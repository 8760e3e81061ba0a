"""Snapshots as text: lines within a token budget, an outline of a long page, and the difference of two snapshots."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Final

from msgspec import Struct

from longshore.registry.token_budget import DEFAULT_TOKENS, Page, fit_lines
from longshore.toolsets.browser.script import REF, SnapshotLine

__all__ = ["SnapshotLine", "compose", "diff", "fold_behind", "fold_repeated", "outline", "render", "shorten_texts"]

MOST_COMPARED: Final = 4_000
"""Lines of each side that are compared in order. Longer pages are compared as sets of lines, which stays fast."""
MOST_CONTEXT: Final = 60
"""Characters of the line above a change, which says where it is."""
MOST_GONE: Final = 8
"""Lines that went in one place and are named."""
LEAST_REPEATED: Final = 3
"""Fewer lines that are as before are shown again: the line in their place would be no shorter."""
MOST_TEXT: Final = 120
"""A longer text of the page is cut where the page itself is not what was asked for. browser_read has the whole."""
CUT_TEXT: Final = 100
Key = Callable[[SnapshotLine], str]
"""The part of a line that is compared."""
_KINDS: Final = {"+": "new", "~": "changed", "-": "removed"}


class LineChange(Struct, frozen=True):
    """A line of a difference, which can stand for several."""

    mark: str
    """`+` new, `~` changed, `-` removed; `after` names the line above."""
    text: str
    lines: int = 1


_REPEATED: Final = frozenset(("banner", "navigation", "contentinfo", "complementary"))
_REFS_AND_PLACE: Final = re.compile(rf"\b{REF} |,(?:current|focused)\b")
_HEADING: Final = re.compile(r"(^|,)h[1-6]$")
_OUTLINED: Final = frozenset(
    ("banner", "navigation", "main", "complementary", "contentinfo", "search", "form", "region", "dialog", "table")
)


def compose(lines: Sequence[SnapshotLine], children: Mapping[str, Sequence[SnapshotLine]]) -> list[SnapshotLine]:
    """The lines with those of the frames, by the refs of their iframe elements, below them."""
    made: list[SnapshotLine] = []
    for line in lines:
        made.append(line)
        if line.frame and line.ref is not None and line.ref in children:
            made += [_within(line, each) for each in children[line.ref]]
    return made


def render(lines: Sequence[SnapshotLine], max_tokens: int = DEFAULT_TOKENS, start: int = 0) -> Page:
    """The lines from `start` on that fit. The note on omitted lines names the cursor of the rest."""
    total = len(lines)

    def rest(end: int) -> str:
        return (
            f"{total - end:,} of {total:,} lines left out: cursor={end}, a scope, browser_find, or a larger max_tokens"
        )

    return fit_lines((_indented(line) for line in lines[start:]), max_tokens, rest, start)


def fold_repeated(lines: Sequence[SnapshotLine], before: Sequence[SnapshotLine]) -> list[SnapshotLine]:
    """The lines of a page with one line for each landmark equal to that of the previous page, such as a site's menu."""
    known = {_content(section) for section in _landmarks(before).values()}
    sections = _landmarks(lines)
    folded: list[SnapshotLine] = []
    skip = 0
    for n, line in enumerate(lines):
        if n < skip:
            continue
        section = sections.get(n, ())
        if len(section) > LEAST_REPEATED and _content(section) in known:
            skip = n + len(section)
            line = SnapshotLine(line.depth, f"{line.text} ({len(section) - 1} lines as on the page before)")
        folded.append(line)
    return folded


def shorten_texts(lines: Sequence[SnapshotLine]) -> tuple[list[SnapshotLine], bool]:
    """The lines with long texts of the page cut, and whether there were any."""
    long = {n for n, line in enumerate(lines) if line.text.startswith("> ") and len(line.text) > MOST_TEXT}
    return [
        SnapshotLine(line.depth, f"{line.text[:CUT_TEXT]}…") if n in long else line for n, line in enumerate(lines)
    ], bool(long)


def fold_behind(lines: Sequence[SnapshotLine]) -> list[SnapshotLine]:
    """The lines with one for each visible part that can't be used, such as the page behind a dialog."""
    folded: list[SnapshotLine] = []
    for behind, group in groupby(lines, lambda line: line.behind):
        part = list(group)
        folded += [SnapshotLine(part[0].depth, f"({len(part)} lines that can't be used now)")] if behind else part
    return folded


def _within(frame: SnapshotLine, line: SnapshotLine) -> SnapshotLine:
    """A line of a frame's page below the line of its iframe."""
    return SnapshotLine(line.depth + frame.depth + 1, line.text, line.ref, line.frame, line.behind or frame.behind)


def _landmarks(lines: Sequence[SnapshotLine]) -> dict[int, Sequence[SnapshotLine]]:
    """The lines of each landmark that a site repeats, with those in it, by the index of the first."""
    found: dict[int, Sequence[SnapshotLine]] = {}
    for n, line in enumerate(lines):
        if line.ref is None and line.text.partition(" ")[0] in _REPEATED:
            end = next((m for m in range(n + 1, len(lines)) if lines[m].depth <= line.depth), len(lines))
            found[n] = lines[n:end]
    return found


def _content(section: Sequence[SnapshotLine]) -> tuple[str, ...]:
    """The text of a section, without refs and without the reader's position."""
    return tuple(_REFS_AND_PLACE.sub("", line.text) for line in section)


def outline(lines: Sequence[SnapshotLine], max_tokens: int = DEFAULT_TOKENS) -> str:
    """Landmarks and headings with the number of their lines, for a page that is too long."""
    marks = [n for n, line in enumerate(lines) if _is_outlined(line)]
    if not marks:
        return render(lines, max_tokens).text
    ends = [*marks[1:], len(lines)]
    shown = [f"{_indented(lines[n])} ({end - n - 1} lines)" for n, end in zip(marks, ends, strict=True)]
    controls = sum(line.ref is not None for line in lines)
    heading = f"{len(lines):,} lines with {controls:,} refs; in outline:"
    hint = "use browser_find, or browser_snapshot with a scope or cursor"
    return f"{fit_lines([heading, *shown], max_tokens, lambda _: 'more headings').text}\n[{hint}]"


def diff(
    before: Sequence[SnapshotLine], after: Sequence[SnapshotLine], max_tokens: int = 400, truncated: bool = False
) -> str:
    """The difference: `+` new, `-` removed, `~` changed lines, each group below the line that it follows.

    Truncated snapshots are compared up to the last line that both have: one may reach further than the other.
    """
    if truncated:
        before, after = _until_last_in(before, after), _until_last_in(after, before)
    compare = _compare_sets if _is_long(before, after) else _compare
    # Almost every action moves the focus: that is shown only if nothing else happened.
    changes = compare(before, after, _without_focus) or compare(before, after, _with_focus)
    if not changes:
        return ""

    def rest(end: int) -> str:
        return f"{_count(changes[end:])} left out; browser_snapshot shows the page"

    return fit_lines((f"{change.mark} {change.text}" for change in changes), max_tokens, rest).text


def _count(changes: Sequence[LineChange]) -> str:
    """The number of lines of each kind."""
    counts = {kind: sum(each.lines for each in changes if each.mark == mark) for mark, kind in _KINDS.items()}
    return f"{', '.join(f'{count} {kind}' for kind, count in counts.items() if count)} lines"


def _until_last_in(lines: Sequence[SnapshotLine], others: Sequence[SnapshotLine]) -> Sequence[SnapshotLine]:
    """The lines up to the last that the others contain, too."""
    known = {_without_focus(line) for line in others}
    end = next((n for n in range(len(lines), 0, -1) if _without_focus(lines[n - 1]) in known), len(lines))
    return lines[:end]


def _compare(before: Sequence[SnapshotLine], after: Sequence[SnapshotLine], key: Key) -> list[LineChange]:
    old, new = [key(line) for line in before], [key(line) for line in after]
    changes: list[LineChange] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if c > 0 and b - a != d - c:
            changes.append(LineChange("after", after[c - 1].text[:MOST_CONTEXT]))
        changes += _change(before[a:b], after[c:d])
    return changes


def _change(gone: Sequence[SnapshotLine], new: Sequence[SnapshotLine]) -> list[LineChange]:
    """A replaced part. A line whose ref stayed, or that replaced one without a ref, is a changed one."""
    by_ref = {line.ref: line for line in gone if line.ref is not None}
    kept = {line.ref for line in new if line.ref in by_ref}
    if len(gone) == len(new) == 1 or [line.ref for line in gone] == [line.ref for line in new]:
        return [LineChange("~", line.text) for line in new]
    return [
        *_gone([line for line in gone if line.ref is None or line.ref not in kept]),
        *(LineChange("~" if line.ref in kept else "+", line.text) for line in new),
    ]


def _gone(lines: Sequence[SnapshotLine]) -> list[LineChange]:
    """Removed lines. Of many, only the first are named: new lines matter more."""
    shown = lines if len(lines) <= MOST_GONE else lines[: MOST_GONE // 2]
    rest = len(lines) - len(shown)
    return [
        *(LineChange("-", line.text) for line in shown),
        *([LineChange("-", f"{rest} more lines", rest)] if rest else []),
    ]


def _compare_sets(before: Sequence[SnapshotLine], after: Sequence[SnapshotLine], key: Key) -> list[LineChange]:
    old, new = {key(line) for line in before}, {key(line) for line in after}
    refs = {line.ref for line in before if line.ref is not None}
    changed_refs = {line.ref for line in after if line.ref in refs and key(line) not in old}
    return [
        *_gone([line for line in before if key(line) not in new and line.ref not in changed_refs]),
        *(LineChange("~" if line.ref in changed_refs else "+", line.text) for line in after if key(line) not in old),
    ]


def _is_long(before: Sequence[SnapshotLine], after: Sequence[SnapshotLine]) -> bool:
    return len(before) > MOST_COMPARED or len(after) > MOST_COMPARED


def _with_focus(line: SnapshotLine) -> str:
    return line.text


def _without_focus(line: SnapshotLine) -> str:
    return line.text if line.ref is None else line.text.replace(",focused", "", 1)


def _indented(line: SnapshotLine) -> str:
    return f"{' ' * line.depth}{line.text}"


def _is_outlined(line: SnapshotLine) -> bool:
    words = line.text.split(" ", 2)
    word = words[0] if line.ref is None else words[1]
    return word in _OUTLINED or _HEADING.search(word) is not None
