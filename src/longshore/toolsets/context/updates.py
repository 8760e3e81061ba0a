"""The changes of `update_context` (a text, an end, a contradiction or a node's fields) and their answers."""

from __future__ import annotations

from time import time_ns
from typing import Final, TypeAlias

from msgspec import Struct

from longshore.errors import ToolError
from longshore.toolsets.context.packing import node_line, show_time
from longshore.toolsets.context.parameters import to_id, to_time
from longshore.toolsets.context.records import Microseconds, NewSource, NodeChange
from longshore.toolsets.context.selecting import ID
from longshore.toolsets.context.store import Store

LISTED: Final = 20
"""Texts of a node that an error names."""


class NewText(Struct, frozen=True, kw_only=True):
    """A text that supersedes an observation."""

    text: str
    valid_from: Microseconds | None
    is_correction: bool
    reason: str


class End(Struct, frozen=True, kw_only=True):
    """The time until which an observation or edge is true."""

    valid_to: Microseconds
    reason: str


class Contradicted(Struct, frozen=True, kw_only=True):
    """A contradiction of one observation by another."""

    observation: int


Update: TypeAlias = NewText | End | Contradicted | NodeChange


def to_update(
    fields: NodeChange,
    *,
    text: str | None,
    correction: bool | None,
    reason: str | None,
    valid_from: str | None,
    valid_to: str | None,
    contradicts: str | None,
) -> Update:
    """The one change that a call's arguments describe.

    Raises ToolError for several, none, or arguments that don't belong.
    """
    changes_node = fields != NodeChange()
    if sum((changes_node, text is not None, valid_to is not None, contradicts is not None)) != 1:
        fix = "give one of text, valid_to, contradicts, or fields of a node (name, kind, pinned)"
        raise ToolError(f"each call makes one change: {fix}")
    if text is None and (correction or valid_from is not None):
        raise ToolError(
            f"{'correction' if correction else 'valid_from'} goes with text; leave it out, or give the text"
        )
    if reason and (changes_node or contradicts is not None):
        raise ToolError("reason goes with text or valid_to; leave it out")
    if text is not None:
        begins = to_time(valid_from, "valid_from")
        return NewText(text=text, valid_from=begins, is_correction=bool(correction), reason=reason or "")
    if contradicts is not None:
        return Contradicted(observation=to_id(contradicts, "o", "contradicts"))
    if (ends := to_time(valid_to, "valid_to")) is not None:
        return End(valid_to=ends, reason=reason or "")
    return fields


def apply_update(store: Store, id: str, update: Update, source: NewSource) -> str:
    """Apply the change; return the answer. Raises ToolError."""
    match update:
        case NodeChange():
            return f"changed {node_line(store.change_node(to_id(id, 'n', 'id'), update, source))}"
        case Contradicted(observation=other):
            store.mark_contradiction(one := to_id(id, "o", "id"), other, source)
            return f"o{one} and o{other} contradict each other; both are shown until one is superseded"
        case End():
            return _end(store, id, update, source)
        case NewText():
            return _supersede(store, _observation_of(store, id), update, source)


def _end(store: Store, id: str, update: End, source: NewSource) -> str:
    if id.strip().startswith("e"):
        letter, old = "e", to_id(id, "e", "id")
        new = store.end_edge(old, source, valid_to=update.valid_to, reason=update.reason)
    else:
        letter, old = "o", _observation_of(store, id)
        new = store.end_observation(old, source, valid_to=update.valid_to, reason=update.reason)
    place = f"{letter}{new}" if new == old else f"{letter}{new} takes the place of {letter}{old}, and"
    tense = "is" if update.valid_to > time_ns() // 1000 else "was"
    return f"{place} {tense} true until {show_time(update.valid_to)}"


def _supersede(store: Store, old: int, update: NewText, source: NewSource) -> str:
    begins = update.valid_from
    new = store.supersede(
        old, update.text, source, valid_from=begins, is_correction=update.is_correction, reason=update.reason
    )
    if new == old:
        return f"o{old} says that already, so nothing changed"
    if update.is_correction:
        return f"o{new} supersedes o{old}, which was never true"
    tense = "is" if begins is not None and begins > time_ns() // 1000 else "was"
    return f"o{new} supersedes o{old}, which {tense} true until {'now' if begins is None else show_time(begins)}"


def _observation_of(store: Store, id: str) -> int:
    """The observation with an id, or the only one of a node that is true now. Raises ToolError."""
    match = ID.fullmatch(id.strip())
    if match is None or match[1] == "e":
        raise ToolError(f"id={id[:100]!r}: give an observation such as o34, or a node with one text")
    if match[1] == "o":
        return int(match[2])
    node = store.node(int(match[2]))
    true_now = store.observations(node.id)
    if len(true_now) != 1:
        listed = ", ".join(f"o{each.id}" for each in true_now[:LISTED])
        fix = f": {listed}; name one" if true_now else "; name one that get_context shows, or add one"
        raise ToolError(f"n{node.id} has {len(true_now)} texts that are true now{fix}")
    return true_now[0].id
