"""Habits of models, undone where the meaning is plain. Only reached after arguments were refused as they came.

- An array or object as a JSON string, where no string is allowed. Also the arguments as a whole.
- Null for what may be left out and can't be null: some APIs make a model fill in everything.

Whoever takes the arguments judges what comes of it, so nothing is accepted that they would not accept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from longshore.limits import DEFAULT_LIMITS
from longshore.schema.failure import Breach, shorten
from longshore.schema.kinds import is_object
from longshore.schema.phrase import cut, kind, path
from longshore.wire.depth import too_deep

ROUNDS: Final = 16
"""Times that mended arguments are looked at again: what was inside of a string may hold strings in turn."""
PARSED_BYTES: Final = 1 << 20
"""The longest string whose inside is read, and the longest argument in which 3.0 becomes 3."""


_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class NotAnObject(Exception):
    """The arguments as a whole are something else. Its lines are for the model."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = tuple(lines)


class Mended(Struct):
    """Arguments after mending: what is still wrong with them, and what was done."""

    value: dict[str, Any]
    breaches: list[Breach]
    notes: tuple[str, ...] = ()
    touched: frozenset[str | int] = frozenset()
    """The arguments that are not as they came."""


class Opened(Struct):
    """Arguments that are an object at least: their text, out of a string if they came as one, and what it says."""

    text: bytes | Raw
    value: dict[str, Any]
    notes: tuple[str, ...] = ()


def open_arguments(tool: str, raw: bytes | Raw) -> Opened:
    """Read the arguments as a whole. Raises NotAnObject."""
    try:
        value = msgspec.json.decode(raw)
    except _UNREADABLE as error:
        raise NotAnObject(_unread(raw) or [f"arguments: {_why(error)}"]) from None
    if is_object(value):
        return Opened(raw, value)
    inner = _parsed(value, 0)
    if is_object(inner):
        return Opened(value.encode(), inner, ("the arguments came as a JSON string; it was parsed",))
    raise NotAnObject([f"arguments: expected an object with the arguments of {cut(tool)}, got {kind(value)}"])


def _unread(raw: bytes | Raw) -> list[str]:
    """Which of the arguments hold what can't be read: a number out of range, bytes that are no text."""
    lines: list[str] = []
    try:
        for name, part in msgspec.json.decode(raw, type=dict[str, Raw]).items():
            try:
                msgspec.json.decode(part)
            except _UNREADABLE as error:
                lines.append(f"{cut(name)}: {_why(error)}")
    except _UNREADABLE:
        return []
    return shorten(lines)


def _why(error: Exception) -> str:
    said = "some of it is no UTF-8" if isinstance(error, UnicodeDecodeError) else str(error).partition(" - at `")[0]
    return f"not valid JSON ({cut(said)})"


def mend(value: dict[str, Any], find: Callable[[dict[str, Any]], list[Breach]]) -> Mended:
    """Mend what can be, in place, until nothing is wrong or nothing helps. `find` says what is wrong."""
    notes: list[str] = []
    touched: set[str | int] = set()
    breaches = find(value)
    for _ in range(ROUNDS):
        helped = [(breach.where, note) for breach in breaches if (note := _try(value, breach))]
        if not helped:
            break
        notes += [note for _, note in helped]
        touched |= {where[0] for where, _ in helped}
        breaches = find(value)
    return Mended(value, breaches, tuple(shorten(notes)), frozenset(touched))


def _try(value: Any, breach: Breach) -> str | None:
    """Mend one place, and say so; None if it could not be."""
    if breach.mend is None or not breach.where:
        return None
    *way, last = breach.where
    for step in way:
        value = value[step]
    if breach.mend == "omit":
        return f"`{path(breach.where)}` came as null; it was left out" if _left_out(value, last) else None
    parsed = _parsed(value[last], len(breach.where))
    if parsed is None:
        return None
    value[last] = parsed
    return f"`{path(breach.where)}` came as a JSON string; it was parsed"


def _left_out(value: dict[str | int, Any], key: str | int) -> bool:
    return value.pop(key, False) is None  # two rules may have found the same null


def _parsed(text: Any, level: int) -> Any:
    """The JSON inside of a string, at this level of the arguments; None if there is none, or too much."""
    if not isinstance(text, str) or len(text) > PARSED_BYTES:
        return None
    raw = text.encode(errors="replace")
    # The framer counted how deep the message nests, not what is inside its strings.
    if too_deep(raw, DEFAULT_LIMITS.depth - level):
        return None
    try:
        return msgspec.json.decode(raw)
    except _UNREADABLE:
        return None
