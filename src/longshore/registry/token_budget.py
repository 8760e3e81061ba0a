"""Answers that fit a token budget: a page of lines, or both ends of a text, and what was left out.

A token is counted as four characters of the JSON text. That is near enough for any model's tokenizer, and the same
text costs the same everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Annotated, Final

from msgspec import Meta, Struct
from msgspec.json import encode

CHARACTERS_PER_TOKEN: Final = 4
LEAST_TOKENS: Final = 100
"""Less would not hold a sentence and the note of what was left out."""
MOST_TOKENS: Final = 25_000
"""Claude Code refuses larger results."""
DEFAULT_TOKENS: Final = 6_000
NOTE_CHARACTERS: Final = 240
"""The room for the note at the end of a page. With it even the least budget has space for lines."""
_MARK_CHARACTERS: Final = 32
"""The room for the mark of a cut line."""
_MOST_ESCAPED: Final = 6
"""The most characters that JSON makes of one, as in \\u0001."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

MaxTokens = Annotated[int, Meta(ge=LEAST_TOKENS, le=MOST_TOKENS, description="most tokens of the answer")]
"""The type of a tool's `max_tokens` parameter."""


class Page(Struct, frozen=True):
    """Lines that fit a budget."""

    text: str
    end: int
    """The index after the last line that is in `text`."""
    complete: bool


def json_length(text: str) -> int:
    """How many characters a text takes in JSON, without its quotes."""
    data = encode(text)
    return len(data) - 2 if data.isascii() else len(data.decode()) - 2


def count_tokens(text: str) -> int:
    """The tokens of a text, rounded up."""
    return -(-json_length(text) // CHARACTERS_PER_TOKEN)


def fit_lines(
    lines: Iterable[str],
    max_tokens: int = DEFAULT_TOKENS,
    rest: Callable[[int], str] | None = None,
    start: int = 0,
    heading: str = "",
) -> Page:
    """The first of these lines that fit, at least one of them, followed by `rest(end)` in brackets if there are more.

    `rest` gets the index of the first line that is left out, counted from `start`, and says how many there are and how
    to get them. A line that does not fit alone is cut. `heading` comes before the lines and is not counted.
    """
    room = _room(max_tokens)
    above = [cut_line(heading, room // 4)] if heading else []
    taken, used, end = list[str](), sum(json_length(line) + 2 for line in above), start
    least = used
    marks = list[int]()
    """What was used after each line: a note may take the place of the last ones."""
    remaining: Iterator[str] = map(_without_surrogates, lines)
    for line in remaining:
        cost = json_length(line) + (2 if taken else 0)
        if used + cost > room:
            remaining = chain([line], remaining)
            break
        taken.append(line)
        used += cost
        end += 1
        marks.append(used)
    first = next(remaining, None)
    if first is None:
        return Page("\n".join([*above, *taken]), end, True)
    while taken and marks[-1] + NOTE_CHARACTERS > room:
        first = taken.pop()
        marks.pop()
        end -= 1
    if not taken:
        taken, end = [cut_line(first, room - least - NOTE_CHARACTERS)], end + 1
    note = "more is left out" if rest is None else rest(end)
    return Page("\n".join([*above, *taken, f"[… {cut_line(note, NOTE_CHARACTERS - 10)}]"]), end, False)


def fit_ends(text: str, max_tokens: int = DEFAULT_TOKENS, note: str = "") -> str:
    """The text if it fits, else its beginning and its end, with how much is left out between them, and `note`."""
    room, text = _room(max_tokens), _without_surrogates(text)
    if len(text) <= room and json_length(text) <= room:
        return text
    head, tail = cut_ends(text, text, max_tokens)
    left = text[len(head) : len(text) - len(tail)]
    lines = left.strip("\n").count("\n") + 1
    size = f"{lines:,} lines" if lines > 1 else f"{len(left):,} characters"
    hint = f"; {cut_line(note, NOTE_CHARACTERS - 80)}" if note else ""
    return f"{head}\n[… {size} left out{hint} …]\n{tail}"


def cut_ends(first: str, last: str, max_tokens: int) -> tuple[str, str]:
    """The beginning of one text and the end of another, which fit a budget together with a note between them.

    Broken lines are left out, unless they are most of what there is.
    """
    half = (_room(max_tokens) - NOTE_CHARACTERS) // 2
    head, tail = longest_prefix(first, half), _suffix(last, half)
    if (end := head.rfind("\n")) > len(head) // 2:
        head = head[:end]
    if 0 <= (begin := tail.find("\n")) < len(tail) // 2:
        tail = tail[begin + 1 :]
    return head, tail


def cut_line(line: str, room: int) -> str:
    """A line cut to so many JSON characters, with a mark that says how much is missing if there is room for it."""
    line = _without_surrogates(line)
    if len(line) <= room and json_length(line) <= room:
        return line
    if room < _MARK_CHARACTERS:
        return longest_prefix(line, max(0, room))
    kept = longest_prefix(line, room - _MARK_CHARACTERS)
    return f"{kept}… ({len(line) - len(kept):,} characters more)"


def _without_surrogates(text: str) -> str:
    """A text with U+FFFD for each lone surrogate, which JSON can't hold: file names that are no UTF-8 have them."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _room(max_tokens: int) -> int:
    """The characters of a budget."""
    if not LEAST_TOKENS <= max_tokens <= MOST_TOKENS:
        raise ValueError(f"max_tokens={max_tokens}: an answer has {LEAST_TOKENS} to {MOST_TOKENS:,} tokens")
    return max_tokens * CHARACTERS_PER_TOKEN


def longest_prefix(text: str, room: int) -> str:
    """The longest beginning of a text that takes at most so many characters in JSON."""
    text = text[:room]
    while (over := json_length(text) - room) > 0:
        text = text[: -max(1, over // _MOST_ESCAPED)]
    return text


def _suffix(text: str, room: int) -> str:
    text = text[-room:]
    while (over := json_length(text) - room) > 0:
        text = text[max(1, over // _MOST_ESCAPED) :]
    return text
