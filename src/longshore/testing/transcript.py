"""Transcripts: what two sides of a connection said, as a text file that people read and edit.

    # a comment
    @let V "2025-11-25"     $V stands for that text in the lines below
    > {"jsonrpc": …}        the client said this
    < {"jsonrpc": …}        the server said this; `<|` where the order among such lines is not meant

What the holes in a line mean stands in `patterns`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from longshore.errors import LongshoreError
from longshore.files import read_bounded
from longshore.protocol.envelope import SUBSCRIPTION_ID
from longshore.schema.kinds import is_object
from longshore.testing.patterns import read_json, read_pattern
from longshore.wire.codec import BROKEN

MOST_BYTES: Final = 64 << 20
"""Of one transcript, and of all its macros written out. Beyond, it is a log and no test."""
_MACRO: Final = re.compile(r"\$([A-Z]+)")


class Marked(Struct, frozen=True):
    """A line of the file: what it begins with, and the rest with its macros written out."""

    mark: str
    text: str
    number: int


class Line(Struct, frozen=True):
    """What one side said. `message` is that as it stands, `pattern` the same with its holes."""

    client: bool
    message: dict[str, Any]
    pattern: Any
    number: int
    anywhere: bool = False
    """Whether it may come before or after what stands around it."""

    @property
    def method(self) -> str | None:
        """None: it is an answer."""
        found = self.message.get("method")
        return found if isinstance(found, str) else None

    @property
    def id(self) -> Any:
        """None: it is a notification."""
        return self.message.get("id")


def read_marked(text: str, macros: Mapping[str, str], where: str) -> Iterator[Marked]:
    """Every line that says something, except `@let`. Raises LongshoreError."""
    known = dict(macros)
    left = MOST_BYTES

    def write_out(found: re.Match[str]) -> str:
        nonlocal left
        value = known.get(found[1])
        if value is None:
            fix = f"write @let {found[1]} …, or \\u0024 for a $"
            raise LongshoreError(f"{where}:{number}: ${found[1]} stands for nothing; {fix}")
        left -= len(value)
        if left < 0:
            raise LongshoreError(f"{where}:{number}: written out, the macros have more than {MOST_BYTES:,} characters")
        return value

    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        mark, _, rest = line.partition(" ")
        if mark == "@let":
            name, _, value = rest.partition(" ")
            known[name] = _MACRO.sub(write_out, value)
        else:
            yield Marked(mark, _MACRO.sub(write_out, rest), number)


def read_transcript(path: str | os.PathLike[str]) -> list[Line]:
    """All that was said, in its order. Raises LongshoreError, with the line that can't be used."""
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
    lines = [
        _read_line(each, where)
        for each in read_marked(text, {}, where)
        if not each.mark.startswith("@") and each.mark != "--"
    ]
    if not lines:
        raise LongshoreError(f"{where}: nobody says anything in it; lines begin with > or <")
    return lines


def _read_line(marked: Marked, where: str) -> Line:
    place = f"{where}:{marked.number}"
    if marked.mark not in (">", "<", "<|"):
        raise LongshoreError(f"{place}: a line begins with >, <, <|, @ or #, not with {marked.mark[:20]!r}")
    try:
        message, pattern = read_json(marked.text), read_pattern(marked.text)
    except BROKEN as problem:
        raise LongshoreError(f"{place}: that is no JSON: {problem}") from None
    fault = find_fault(message)
    if fault is not None:
        raise LongshoreError(f"{place}: {fault}")
    return Line(marked.mark == ">", message, pattern, marked.number, marked.mark == "<|")


def find_fault(message: Any) -> str | None:
    """Why something that is JSON is no message; None: it is one."""
    if not is_object(message):
        return "a message is a JSON object"
    for name, value in _names(message):
        if value is not None and not is_id(value):
            return f"{name} is a text or a number"
    return None


def is_id(value: Any) -> bool:
    """Whether requests and subscriptions can go by that."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _names(message: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What things go by in a message."""
    yield "id", message.get("id")
    params = message.get("params")
    if is_object(params):
        yield "requestId", params.get("requestId")
        yield "progressToken", params.get("progressToken")
        meta = params.get("_meta")
        if is_object(meta):
            yield "progressToken", meta.get("progressToken")
            yield SUBSCRIPTION_ID, meta.get(SUBSCRIPTION_ID)
