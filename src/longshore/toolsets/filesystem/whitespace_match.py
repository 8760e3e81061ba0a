"""Lines that equal others but for their whitespace: what models get wrong most often."""

from __future__ import annotations

from itertools import accumulate


def find_by_words(text: str, old: str, new: str) -> list[tuple[int, int, str]]:
    """Where whole lines have the words of `old`'s lines: start, end, and `new` with the whitespace of the place."""
    whole_lines = old.endswith("\n") and not new
    old, new = _trim(old, new)
    if not old.strip():
        return []
    lines, wanted = text.split("\n"), old.split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    found = list[tuple[int, int, str]]()
    for first in _find_lines(lines, wanted):
        last = first + len(wanted)
        adapted = "\n".join(_adapt(new.split("\n"), wanted, lines[first:last]))
        end = min(starts[last], len(text)) if whole_lines else starts[last] - 1
        found.append((starts[first], end, adapted))
    return found


def _trim(old: str, new: str) -> tuple[str, str]:
    """Both without the line ends around the old text: the place has its own."""
    while old.startswith("\n"):
        old, new = old[1:], new.removeprefix("\n")
    while old.endswith("\n"):
        old, new = old[:-1], new.removesuffix("\n")
    return old, new


def words_of(line: str) -> str:
    """A line without what is only whitespace."""
    return " ".join(line.split())


def _find_lines(lines: list[str], wanted: list[str]) -> list[int]:
    """Where lines with the same words begin, not overlapping."""
    # One search in a text of all lines is linear; comparing line by line is not.
    within = "\n" + "".join(f"{words_of(line)}\n" for line in lines)
    searched = "\n" + "".join(f"{words_of(line)}\n" for line in wanted)
    found, line, counted = list[int](), 0, 0
    at = within.find(searched)
    while at >= 0:
        line, counted = line + within.count("\n", counted, at), at
        found.append(line)
        at = within.find(searched, at + len(searched) - 1)
    return found


def _adapt(new: list[str], old: list[str], place: list[str]) -> list[str]:
    """The new lines with the whitespace of the place: unchanged ones as they are there, others indented alike."""
    same = dict(zip(old, place, strict=True))
    indents: dict[str, str] = {}
    for was, there in zip(old, place, strict=True):
        if was.strip():
            indents.setdefault(_indent(was), _indent(there))
    return [same[line] if line in same else _reindent(line, indents) for line in new]


def _reindent(line: str, indents: dict[str, str]) -> str:
    indent = _indent(line)
    if not line.strip():
        return line
    known = max((was for was in indents if indent.startswith(was)), key=len, default=None)
    return line if known is None else indents[known] + line[len(known) :]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
