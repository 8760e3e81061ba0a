"""The place in a text that is most like one that was looked for in vain."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from longshore.registry.token_budget import cut_line
from longshore.sandbox.file_type import printable
from longshore.toolsets.filesystem.whitespace_match import words_of

SHOWN_LINES: Final = 10
SHOWN_CHARACTERS: Final = 200
"""Of each line that is shown."""
_COMPARED_LINES: Final = 200
"""The lines of the searched text that are compared with the file's."""
_TELLING_CHARACTERS: Final = 10
"""A shorter text is in a file by chance."""
_WORD: Final = re.compile(r"\w+")


def show_nearest(text: str, old: str, new: str) -> tuple[str, int | None]:
    """The nearest place as lines with their numbers, in words, and the first line's number; None if there is none."""
    if len(new.strip()) >= _TELLING_CHARACTERS and (at := text.find(new)) >= 0:
        line = text.count("\n", 0, at) + 1
        return f". The new text is already there, at line {line}: was it edited before?", line
    lines = text.split("\n")
    wanted = old.strip("\n").split("\n")
    first = _by_equal_lines(lines, wanted)
    if first is None:
        first = _by_common_words(lines, wanted)
    if first is None:
        return ", and nothing in it is similar. Read it again.", None
    first = max(0, first)
    shown = lines[first : first + min(len(wanted), SHOWN_LINES)]
    numbered = (
        f"{number}\t{cut_line(printable(line), SHOWN_CHARACTERS)}" for number, line in enumerate(shown, first + 1)
    )
    return "\n".join([". Nearest is, with line numbers:", *numbered]), first + 1


def _by_equal_lines(lines: list[str], wanted: list[str]) -> int | None:
    """Where most of the wanted lines stand as wanted, one after another."""
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        places.setdefault(words_of(line), []).append(number)
    votes = Counter[int]()
    for index, line in enumerate(wanted[:_COMPARED_LINES]):
        key = words_of(line)
        if _WORD.search(key):  # a bracket alone says nothing
            votes.update(number - index for number in places.get(key, ())[:_COMPARED_LINES])
    return votes.most_common(1)[0][0] if votes else None


def _by_common_words(lines: list[str], wanted: list[str]) -> int | None:
    """Where a line has most words of the longest wanted line, if at least half of them."""
    index, longest = max(enumerate(wanted), key=lambda pair: len(pair[1]))
    words = set(_WORD.findall(longest[:1_000]))
    best, found = max(1, (len(words) + 1) // 2) - 1, None
    for number, line in enumerate(lines):
        common = len(words.intersection(_WORD.findall(line[:1_000])))
        if common > best:
            best, found = common, number - index
    return found
