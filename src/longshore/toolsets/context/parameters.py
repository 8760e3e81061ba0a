"""The types of the context tools' parameters, and how they become records of the store."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Final, final, overload

from msgspec import Struct
from msgspec.structs import replace

from longshore.errors import ToolError
from longshore.redaction.rules import MARKER
from longshore.redaction.texts import remove_secrets
from longshore.registry.token_budget import MaxTokens
from longshore.schema.annotations import Hidden
from longshore.toolsets.context.checks import to_word
from longshore.toolsets.context.records import ForgetMode, Microseconds, Moment, NewItem, NewLink, Targets
from longshore.toolsets.context.selecting import ID

# Parameters are None where they are left out: a default in the schema would cost a model tokens in every list.
Flag = bool | None
Tokens = Annotated[MaxTokens, Hidden()]
Time = Annotated[str | None, "date or time"]
Kinds = Annotated[list[str] | None, "such as decision"]
Ids = list[str]
Mode = ForgetMode

RELATED: Final = "related_to"
"""The relation of a link that names none."""
MOST_IDS: Final = 100
"""Nodes, observations and edges that one call names."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Link(Struct, frozen=True, forbid_unknown_fields=True):  # A docstring would appear in the schema of the tool.
    to: str
    relation: str | None = None


class Item(Struct, frozen=True, forbid_unknown_fields=True):
    kind: str | None = None
    name: str | None = None
    text: str | None = None
    links: list[Link] | None = None
    path: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    contradicts: str | None = None
    pinned: bool | None = None
    importance: float | None = None


@final
class SecretRemover:
    """Removes credentials from the texts of one call, and counts them."""

    def __init__(self) -> None:
        self._removed = 0

    @overload
    def clean(self, text: str) -> str: ...
    @overload
    def clean(self, text: str | None) -> str | None: ...
    def clean(self, text: str | None) -> str | None:
        """The text without credentials."""
        if text is None:
            return None
        text, count = remove_secrets(text)
        self._removed += count
        return text

    def clean_word(self, text: str | None) -> str | None:
        """A kind or relation without credentials."""
        cleaned = self.clean(text)
        return cleaned if cleaned is None or cleaned == text else to_word(cleaned)

    @property
    def note(self) -> str:
        """The note for removed credentials."""
        count = self._removed
        return f"{count} credential{'s' * (count > 1)} in it replaced by {MARKER}: none is stored\n" if count else ""


def to_items(given: Sequence[Item]) -> tuple[list[NewItem], str]:
    """The items of a call without credentials, and the note on these. Raises ToolError."""
    secrets = SecretRemover()
    items = [to_item(_without_secrets(item, secrets), number) for number, item in enumerate(given, 1)]
    return items, secrets.note


def _without_secrets(item: Item, secrets: SecretRemover) -> Item:
    links = [Link(to=secrets.clean(link.to), relation=secrets.clean_word(link.relation)) for link in item.links or ()]
    return replace(
        item,
        kind=secrets.clean_word(item.kind),
        name=secrets.clean(item.name),
        text=secrets.clean(item.text),
        path=secrets.clean(item.path),
        links=links,
    )


def to_item(given: Item, number: int) -> NewItem:
    """An item of a call as a record of the store. Raises ToolError."""
    where = f"item {number}: "
    return NewItem(
        text=given.text or "",
        name=given.name or "",
        kind=given.kind or "note",
        path=given.path or "",
        links=tuple(NewLink(to=link.to, relation=link.relation or RELATED) for link in given.links or ()),
        importance=given.importance,
        pinned=given.pinned,
        valid_from=to_time(given.valid_from, f"{where}valid_from"),
        valid_to=to_time(given.valid_to, f"{where}valid_to"),
        contradicts=None if given.contradicts is None else to_id(given.contradicts, "o", f"{where}contradicts"),
    )


def to_time(text: str | None, name: str) -> Microseconds | None:
    """An ISO date (its first moment) or time, in UTC unless it has another zone. Raises ToolError."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text.strip())
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
        return (at - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise ToolError(f"{name}={text[:100]!r}: give a date such as 2026-11-18, or 2026-11-18T09:30:00Z") from None


def to_moment(as_of: str | None) -> Moment:
    """The moment of `as_of`; a date means its last moment, so that facts recorded on that day are included.

    Raises ToolError.
    """
    at = to_time(as_of, "as_of")
    if at is not None and as_of is not None and _is_date(as_of.strip()):
        at += timedelta(days=1) // timedelta(microseconds=1) - 1
    return Moment(valid_at=at)


def _is_date(text: str) -> bool:
    """Whether an ISO text in any of its forms is a date without a time."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def to_id(text: str, letter: str, name: str) -> int:
    """The number of an id with this letter. Raises ToolError."""
    match = ID.fullmatch(text.strip())
    if match is None or match[1] != letter:
        raise ToolError(f"{name}={text[:100]!r}: give an id such as {letter}12, as the answers show it")
    return int(match[2])


def to_targets(ids: Sequence[str]) -> Targets:
    """The nodes, observations and edges that ids name. Raises ToolError."""
    if len(ids) > MOST_IDS:
        raise ToolError(f"{len(ids)} ids: give at most {MOST_IDS}")
    found: dict[str, list[int]] = {"n": [], "o": [], "e": []}
    for text in ids:
        match = ID.fullmatch(text.strip())
        if match is None:
            raise ToolError(f"{text[:100]!r} is no id; give ids such as n12, o34 or e56, as the answers show them")
        found[match[1]].append(int(match[2]))
    return Targets(nodes=tuple(found["n"]), observations=tuple(found["o"]), edges=tuple(found["e"]))


def to_offset(cursor: str | None) -> int:
    """The offset at which a page begins. Raises ToolError."""
    if cursor is None:
        return 0
    if not re.fullmatch(r"[0-9]{1,6}", cursor.strip()):
        raise ToolError(f"cursor={cursor[:100]!r}: give the cursor of the last answer, or none")
    return int(cursor)


def within(value: int | None, default: int, most: int, name: str) -> int:
    """A number from 1 to `most`. Raises ToolError."""
    if value is None:
        return default
    if not 1 <= value <= most:
        raise ToolError(f"{name}={value}: give 1 to {most:,}")
    return value
