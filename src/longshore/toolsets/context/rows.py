"""Rows of the tables as records, the condition of a moment, and the keys by which names and texts are equal."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final
from unicodedata import normalize

from msgspec.json import decode, encode

from longshore.toolsets.context.database import Row, Transaction, batches, marks
from longshore.toolsets.context.records import (
    ContradictingPair,
    Edge,
    GraphEvent,
    Microseconds,
    Moment,
    Node,
    Observation,
    Source,
)

NODE: Final = (
    "id, kind, name, path, importance, pinned, attributes, created_at, updated_at, retracted_at, retracted_as,"
    " has_derived_name"
)
_INTERVAL: Final = "valid_from, valid_to, recorded_at, superseded_at, ended_at, closed_as, superseded_by, reason"
OBSERVATION: Final = "id, node, text, source, confidence, " + _INTERVAL
EDGE: Final = "id, from_node, relation, to_node, source, weight, " + _INTERVAL
PAIR: Final = "older, newer, recorded_at"
SOURCE: Final = "id, type, uri, session, client, actor, at"
EVENT: Final = "sequence, at, actor, operation, node, observation, edge, detail"


def to_node(row: Row) -> Node:
    id_, kind, name, path, importance, pinned, attributes, created_at, updated_at, retracted_at, *rest = row
    retracted_as, has_derived_name = rest
    return Node(
        id=id_,
        kind=kind,
        name=name,
        path=path,
        importance=importance,
        pinned=bool(pinned),
        attributes=decode(attributes),
        created_at=created_at,
        updated_at=updated_at,
        retracted_at=retracted_at,
        retracted_as=retracted_as,
        has_derived_name=bool(has_derived_name),
    )


def to_observation(row: Row) -> Observation:
    return Observation(**dict(zip(OBSERVATION.split(", "), row, strict=True)))


def to_edge(row: Row) -> Edge:
    return Edge(**dict(zip(EDGE.split(", "), row, strict=True)))


def to_pair(row: Row) -> ContradictingPair:
    return ContradictingPair(**dict(zip(PAIR.split(", "), row, strict=True)))


def to_source(row: Row) -> Source:
    return Source(**dict(zip(SOURCE.split(", "), row, strict=True)))


def to_event(row: Row) -> GraphEvent:
    fields: dict[str, Any] = dict(zip(EVENT.split(", "), (*row[:7], decode(row[7])), strict=True))
    return GraphEvent(**fields)


def to_json(value: object) -> str:
    """JSON text; equal values give equal texts."""
    return encode(value, order="deterministic").decode()


def nodes_by_id(transaction: Transaction, ids: set[int]) -> dict[int, Node]:
    """These nodes, retracted ones too."""
    found = dict[int, Node]()
    for batch in batches(ids):
        for row in transaction.rows(f"SELECT {NODE} FROM node WHERE id IN ({marks(batch)})", batch):
            found[row[0]] = to_node(row)
    return found


def sources_by_id(transaction: Transaction, ids: set[int]) -> dict[int, Source]:
    found = dict[int, Source]()
    for batch in batches(ids):
        for row in transaction.rows(f"SELECT {SOURCE} FROM source WHERE id IN ({marks(batch)})", batch):
            found[row[0]] = to_source(row)
    return found


def last_known_at(transaction: Transaction) -> Microseconds:
    """The time of the last change."""
    row = transaction.row("SELECT at FROM event ORDER BY sequence DESC LIMIT 1")
    return int(row[0]) if row else 0


def is_past(moment: Moment) -> bool:
    """Whether a question about a moment reads superseded rows."""
    return moment.valid_at is not None or moment.known_at is not None


def holds(table: str, moment: Moment, now: Microseconds) -> tuple[str, tuple[int, ...]]:
    """The condition that an observation or edge holds at a moment, and its values: `Interval.holds` in SQL."""
    valid = now if moment.valid_at is None else moment.valid_at
    true_then = f"{table}.valid_from <= ? AND ({table}.valid_to IS NULL OR {table}.valid_to > ?)"
    if not is_past(moment):
        return f"{table}.superseded_at IS NULL AND {true_then}", (valid, valid)
    known = now if moment.known_at is None else moment.known_at
    believed = f"{table}.superseded_at IS NULL OR {table}.superseded_at > ? OR {table}.ended_at > ?"
    return f"{table}.recorded_at <= ? AND {true_then} AND ({believed})", (known, valid, valid, known, valid)


def was_there(retracted_at: Microseconds | None, retracted_as: str | None, moment: Moment, now: Microseconds) -> bool:
    """The condition that a node exists at a moment: never if it was retracted; until then if it left its file."""
    if retracted_at is None:
        return True
    known = now if moment.known_at is None else moment.known_at
    valid = now if moment.valid_at is None else moment.valid_at
    return retracted_at > (min(valid, known) if retracted_as == "not in file" else known)


def name_key(name: str, path: str) -> str:
    """The key of a name: equal for names that differ in case and spaces only; the case counts in files (symbols)."""
    key = " ".join(normalize("NFKC", name).split())
    return key if path else key.casefold()


def text_hash(text: str) -> str:
    """A hash of a text: equal for texts that differ in line ends and in the composition of characters only."""
    lines = text.strip().replace("\r\n", "\n").replace("\r", "\n")
    return blake2b(normalize("NFC", lines).encode(errors="replace"), digest_size=16).hexdigest()
