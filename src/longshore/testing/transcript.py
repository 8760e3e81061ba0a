"""Transcripts: what both sides of a connection said, as a text file that people read and edit.

    # a comment
    @let V "2025-11-25"     $V stands for that text in the lines below
    > {"jsonrpc": …}        the client sent this
    < {"jsonrpc": …}        the server sent this; `<|` if its order among such lines does not matter

Values may be patterns. `"…"` matches any value and `"…word…"` any text with the word. `"…name"` matches any value and
binds it: the same token in a later line matches only that value. `"…": "…"` in an object allows other members. An array
that begins with `"…any order"` matches its other elements in any order. A text
that really begins with `…` is written `"\\u2026"`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from longshore.client.channel import CLIENT_LIMITS
from longshore.errors import LongshoreError
from longshore.files import read_bounded
from longshore.schema.diff import same
from longshore.schema.kinds import is_array, is_object
from longshore.wire.codec import BROKEN, too_deep

MOST_BYTES: Final = 64 << 20
"""Of one transcript."""
ANY: Final = "…"
ANY_ORDER: Final = "…any order"
LITERAL: Final = "\ue000"
"""Marks a text of the file that is no pattern."""
_ESCAPED: Final = re.compile(rf'(?<!\\)"(?:\\u2026|(?={LITERAL}))')
_MACRO: Final = re.compile(r"\$([A-Z]+)")

Bindings = dict[str, Any]


class MarkedLine(Struct, frozen=True):
    """A line of the file: its mark, and the rest with its macros written out."""

    mark: str
    text: str
    number: int


class TranscriptLine(Struct, frozen=True):
    """A message of one side: `message` as it stands, `pattern` with its tokens."""

    client: bool
    message: dict[str, Any]
    pattern: Any
    number: int

    @property
    def method(self) -> str | None:
        """None for a response."""
        found = self.message.get("method")
        return found if isinstance(found, str) else None

    @property
    def id(self) -> Any:
        """None for a notification."""
        return self.message.get("id")


# -- reading


def read_json(text: str | bytes) -> Any:
    """Decode JSON within the limits of our client. Raises one of BROKEN."""
    data = text.encode() if isinstance(text, str) else text
    if too_deep(data, CLIENT_LIMITS.depth):
        raise ValueError(f"nesting is deeper than {CLIENT_LIMITS.depth} levels")
    return msgspec.json.decode(data)


def read_pattern(text: str) -> Any:
    """Decode an expected value as a file has it. Raises one of BROKEN."""
    return read_json(_ESCAPED.sub(lambda found: f'"{LITERAL}' + ("…" if len(found[0]) > 1 else ""), text))


def write_literal(text: str) -> str:
    """JSON for a file, with nothing in it that would be read as a pattern or a macro."""
    return text.replace("$", "\\u0024").replace('"…', '"\\u2026')


def read_marked(text: str, macros: Mapping[str, str], where: str) -> Iterator[MarkedLine]:
    """Every line but comments and `@let`. Raises LongshoreError."""
    known = dict(macros)
    left = MOST_BYTES
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        unknown = next((name for name in _MACRO.findall(line) if name not in known), None)
        if unknown is not None:
            fix = f"write @let {unknown} …, or \\u0024 for a $"
            raise LongshoreError(f"{where}:{number}: ${unknown} is not defined; {fix}")
        left -= sum(len(known[name]) for name in _MACRO.findall(line))
        if left < 0:
            raise LongshoreError(f"{where}:{number}: written out, the macros have more than {MOST_BYTES:,} characters")
        mark, _, rest = _MACRO.sub(lambda found: known[found[1]], line).partition(" ")
        if mark == "@let":
            name, _, known[name] = rest.partition(" ")
        else:
            yield MarkedLine(mark, rest, number)


def read_transcript(path: str | os.PathLike[str]) -> list[TranscriptLine]:
    """All messages of a file in order. Raises LongshoreError with the line that can't be used."""
    where = os.fspath(path)
    try:
        data = read_bounded(where, MOST_BYTES)
        text = data.decode().replace("\r\n", "\n")
    except FileNotFoundError:
        fix = "longshore.testing.record(target, file) makes one"
        raise LongshoreError(f"{where}: there is no such transcript; {fix}") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise LongshoreError(f"{where}: the transcript can't be read: {problem}") from None
    if len(data) > MOST_BYTES:
        raise LongshoreError(f"{where}: the transcript is longer than {MOST_BYTES:,} bytes")
    marked = (each for each in read_marked(text, {}, where) if not each.mark.startswith("@") and each.mark != "--")
    lines = [_read_line(each, where) for each in marked]
    if not lines:
        raise LongshoreError(f"{where}: it holds no messages; their lines begin with > or <")
    return lines


def _read_line(marked: MarkedLine, where: str) -> TranscriptLine:
    place = f"{where}:{marked.number}"
    if marked.mark not in (">", "<", "<|"):
        raise LongshoreError(f"{place}: a line begins with >, <, <|, @ or #, not with {marked.mark[:20]!r}")
    try:
        message, pattern = read_json(marked.text), read_pattern(marked.text)
    except BROKEN as problem:
        raise LongshoreError(f"{place}: that is no JSON: {problem}") from None
    if not is_object(message):
        raise LongshoreError(f"{place}: a message is a JSON object")
    return TranscriptLine(marked.mark == ">", message, pattern, marked.number)


# -- matching


def matches(expected: Any, actual: Any, bindings: Bindings) -> bool:
    """Whether a value matches a pattern. Named tokens are added to `bindings`."""
    if isinstance(expected, str) and expected.startswith((ANY, LITERAL)):
        return _matches_token(expected, actual, bindings)
    if is_object(expected) and is_object(actual):
        return _matches_object(expected, actual, bindings)
    if is_array(expected) and is_array(actual):
        if expected[:1] == [ANY_ORDER]:
            left = list(actual)
            return len(expected) == len(left) + 1 and all(take(one, left, bindings) for one in expected[1:])
        pairs = zip(expected, actual, strict=False)
        return len(expected) == len(actual) and all(matches(one, other, bindings) for one, other in pairs)
    if type(expected) is not type(actual):
        return False
    return bool(expected == actual)


def take(expected: Any, left: list[Any], bindings: Bindings) -> bool:
    """Remove the first value that matches; whether there was one."""
    for index, candidate in enumerate(left):
        trial = dict(bindings)
        if matches(expected, candidate, trial):
            bindings.update(trial)
            del left[index]
            return True
    return False


def _matches_object(expected: dict[str, Any], actual: dict[str, Any], bindings: Bindings) -> bool:
    named = {key.removeprefix(LITERAL): value for key, value in expected.items() if key != ANY}
    if not (named.keys() <= actual.keys() if ANY in expected else named.keys() == actual.keys()):
        return False
    return all(matches(value, actual[key], bindings) for key, value in named.items())


def _matches_token(token: str, actual: Any, bindings: Bindings) -> bool:
    if token.startswith(LITERAL):
        return bool(token[1:] == actual)
    if token == ANY:
        return True
    if token.endswith(ANY):
        return isinstance(actual, str) and token[1:-1] in actual
    return same(bindings.setdefault(token[1:], actual), actual)
