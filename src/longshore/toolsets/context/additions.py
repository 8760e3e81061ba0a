"""Adding items: nodes are recognised by kind, name and path, observations by their text, and links by their ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from longshore.errors import ToolError
from longshore.toolsets.context.changes import Fact, GraphChange
from longshore.toolsets.context.checks import check_item
from longshore.toolsets.context.forgetting import mark_contradiction, revive
from longshore.toolsets.context.postings import terms_of_name, terms_of_text, words_by_term
from longshore.toolsets.context.records import (
    CONCEPT,
    AddedItem,
    Edge,
    NewItem,
    NewLink,
    Node,
    NodeChange,
    Observation,
    Outcome,
)
from longshore.toolsets.context.rows import NODE, name_key, to_node

ITEMS: Final = 1_000
"""In one call: they are written in one transaction, for which other writers wait."""
NODE_ID: Final = re.compile(r"n([1-9][0-9]{0,17})")


class PreparedItem(Struct, frozen=True):
    """An item whose terms were made before the transaction began, so that other writers wait for a shorter time."""

    item: NewItem
    has_derived_name: bool
    name_terms: Counter[str]
    text_terms: Counter[str]


def prepare(items: Iterable[NewItem]) -> tuple[list[PreparedItem], dict[str, str]]:
    """Check the items and compute their terms, with one word to display for each term. Raises ToolError."""
    prepared, texts = list[PreparedItem](), list[str]()
    for number, given in enumerate(items, 1):
        item = check_item(given, number)
        is_derived = not given.name.strip()
        name_terms = terms_of_name("" if is_derived else item.name, item.path)
        prepared.append(PreparedItem(item, is_derived, name_terms, terms_of_text(item.text)))
        texts += (item.name, item.path, item.text)
    posted = set[str]().union(*(terms for each in prepared for terms in (each.name_terms, each.text_terms)))
    return prepared, words_by_term(texts, posted)


def add_items(change: GraphChange, items: Sequence[PreparedItem], words: dict[str, str]) -> list[AddedItem]:
    """Add items, then their links, which may name items of the same call. Raises ToolError."""
    change.postings.declare(words)
    placed = [_place(change, prepared) for prepared in items]
    return [_link(change, prepared.item, added) for prepared, added in zip(items, placed, strict=True)]


def _place(change: GraphChange, prepared: PreparedItem) -> AddedItem:
    """Find or create the item's node, and add its text."""
    item = prepared.item
    if item.valid_to is not None and item.valid_to <= (change.at if item.valid_from is None else item.valid_from):
        raise ToolError(f"{item.name!r} is said to end before it begins; give valid_from, too")
    node, outcome = _find_or_create(change, prepared)
    observation = None
    if item.text:
        new = Observation(id=0, node=node, text=item.text, source=0, confidence=item.confidence, **_times(change, item))
        observation, is_new = _state(change, new, item, prepared.text_terms)
        if item.contradicts is not None:
            is_new |= _contradict(change, observation, item.contradicts)
        if is_new and outcome == "unchanged":
            outcome = "merged"
            change.touch(node)
    return AddedItem(node=node, kind=item.kind, name=item.name, outcome=outcome, observation=observation)


def _times(change: GraphChange, item: NewItem) -> dict[str, Any]:
    begins = change.at if item.valid_from is None else item.valid_from
    return {"valid_from": begins, "valid_to": item.valid_to, "recorded_at": change.at}


def _state(change: GraphChange, new: Fact, item: NewItem, terms: Counter[str] | None = None) -> tuple[int, bool]:
    """Return the observation or edge for what an item says, and whether it is new.

    An equal text or link that is stored already changes nothing, except where the item says that it began earlier or
    that it ends: then the stored row is closed, and recorded again with these times.
    """
    begins, ends = new.valid_from, new.valid_to
    same = change.same(new)
    known = next((fact for fact in same if fact.holds(begins, change.at)), None)
    if known is not None and (ends is None or ends == known.valid_to):
        return known.id, False
    if known is None and item.valid_from is not None and ends is None:
        known = min((fact for fact in same if fact.valid_from > begins), key=lambda fact: fact.valid_from, default=None)
    if known is None:
        return change.insert(new, terms), True
    begins = min(begins, known.valid_from)
    return change.record_again(known, valid_from=begins, valid_to=known.valid_to if ends is None else ends), True


def _contradict(change: GraphChange, observation: int, other: int) -> bool:
    """Mark a contradiction with what an item names; return whether it is new. An existing mark stays as it is."""
    if change.is_contradiction(observation, other):
        return False
    mark_contradiction(change, change.observation(observation), change.observation(other))
    return True


def _find_or_create(change: GraphChange, prepared: PreparedItem) -> tuple[int, Outcome]:
    item = prepared.item
    sql = f"SELECT {NODE} FROM node WHERE name_key = ? AND kind = ? AND path = ?"
    row = change.transaction.row(sql, (name_key(item.name, item.path), item.kind, item.path))
    if row is None:
        new = Node(
            id=0,
            kind=item.kind,
            name=item.name,
            path=item.path,
            importance=0.5 if item.importance is None else item.importance,
            pinned=bool(item.pinned),
            attributes=item.attributes,
            has_derived_name=prepared.has_derived_name,
        )
        return change.insert_node(new, prepared.name_terms), "created"
    node = to_node(row)
    if node.retracted_at is not None:
        revive(change, node)
    attributes = {**node.attributes, **item.attributes} if item.attributes else None
    changed = change.change_node(
        node, NodeChange(importance=item.importance, pinned=item.pinned, attributes=attributes)
    )
    if node.retracted_at is not None:
        return node.id, "restored"
    return node.id, "merged" if changed is not node else "unchanged"


def _link(change: GraphChange, item: NewItem, added: AddedItem) -> AddedItem:
    """Add the item's links."""
    edges, created, is_new = list[int](), list[int](), False
    for link in item.links:
        target = _target(change, link)
        if target is None:
            target = _create_linked(change, link)
            created.append(target)
        new = Edge(
            id=0,
            from_node=added.node,
            relation=link.relation,
            to_node=target,
            source=0,
            weight=link.weight,
            **_times(change, item),
        )
        id_, inserted = _state(change, new, item)
        edges.append(id_)
        is_new = is_new or inserted
    outcome: Outcome = "merged" if added.outcome == "unchanged" and is_new else added.outcome
    return replace(added, outcome=outcome, edges=tuple(edges), linked=tuple(created))


def _create_linked(change: GraphChange, link: NewLink) -> int:
    """Create a node for a name that no node has, or revive the retracted node that has it."""
    kind = link.kind or CONCEPT
    sql = f"SELECT {NODE} FROM node WHERE name_key = ? AND kind = ? AND path = ?"
    if row := change.transaction.row(sql, (name_key(link.to, link.path), kind, link.path)):
        revive(change, to_node(row))
        return int(row[0])
    return change.insert_node(Node(id=0, kind=kind, name=link.to, path=link.path))


def _target(change: GraphChange, link: NewLink) -> int | None:
    """The node that a link names; None if no node has the name. Raises ToolError if several nodes have it."""
    if not link.path and (match := NODE_ID.fullmatch(link.to)):  # in a file, `n1` is the name of a function
        node = change.node(int(match[1]))
        if node.retracted_at is not None:
            raise ToolError(f"n{node.id} is retracted; restore it, or link to another node")
        return node.id
    key = name_key(link.to, link.path)
    # The key of a symbol keeps its case, the key of a note does not.
    sql = f"SELECT {NODE} FROM node WHERE name_key IN (?, ?) AND retracted_at IS NULL"
    found = [to_node(row) for row in change.transaction.rows(sql, (key, name_key(link.to, "/")))]
    found = [node for node in found if link.kind in ("", node.kind) and link.path in ("", node.path)]
    if len(found) > 1:
        some = ", ".join(f"n{node.id} ({node.kind}{' in ' + node.path if node.path else ''})" for node in found[:5])
        raise ToolError(f"{len(found)} nodes are named {link.to[:100]!r}: {some}; link to one of these ids")
    return found[0].id if found else None
