"""Rows of a context graph that refer to a missing row, or that nothing refers to. An intact store has none."""

from __future__ import annotations

from typing import Final

from longshore.toolsets.context.database import Transaction
from longshore.toolsets.context.store import Store

_UNUSED_SOURCE: Final = (
    "FROM source WHERE NOT EXISTS (SELECT 1 FROM observation WHERE observation.source = source.id)"
    " AND NOT EXISTS (SELECT 1 FROM edge WHERE edge.source = source.id)"
)
_CLOSED_END: Final = (
    "superseded_at IS NULL AND EXISTS (SELECT 1 FROM node WHERE node.id IN (edge.from_node, edge.to_node)"
    " AND node.retracted_at IS NOT NULL)"
)
_CLOSED_NODE: Final = (
    "superseded_at IS NULL AND EXISTS (SELECT 1 FROM node WHERE node.id = observation.node"
    " AND node.retracted_at IS NOT NULL)"
)
_SUPERSEDED: Final = "superseded_at = (SELECT max(at) FROM event), ended_at = NULL, closed_as = 'retracted with node'"


def _absent(table: str) -> str:
    other = f"SELECT 1 FROM {table} AS other WHERE other.id = {table}.superseded_by"
    return f"superseded_by IS NOT NULL AND NOT EXISTS ({other})"


_KINDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("sources that nothing is from", f"SELECT count(*) {_UNUSED_SOURCE}", f"DELETE {_UNUSED_SOURCE}"),
    (
        "current edges of retracted nodes",
        f"SELECT count(*) FROM edge WHERE {_CLOSED_END}",
        f"UPDATE edge SET {_SUPERSEDED} WHERE {_CLOSED_END}",
    ),
    (
        "current observations of retracted nodes",
        f"SELECT count(*) FROM observation WHERE {_CLOSED_NODE}",
        f"UPDATE observation SET {_SUPERSEDED} WHERE {_CLOSED_NODE}",
    ),
    *(
        (
            f"{table}s whose superseded_by is absent",
            f"SELECT count(*) FROM {table} WHERE {_absent(table)}",
            f"UPDATE {table} SET superseded_by = NULL WHERE {_absent(table)}",
        )
        for table in ("observation", "edge")
    ),
)
"""The kind of row, the query that counts them, and the repair."""


def find_orphans(store: Store) -> dict[str, int]:
    """Counts of the orphaned rows by kind, without empty kinds."""
    with store.database.reading() as transaction:
        return {name: found for name, counting, _ in _KINDS if (found := _count(transaction, counting))}


def remove_orphans(store: Store) -> None:
    """Delete rows that nothing refers to, and close or clear dangling references. Rebuild the index afterwards."""
    with store.database.writing() as transaction:
        for _, counting, repair in _KINDS:
            if _count(transaction, counting):
                transaction.run(repair)


def _count(transaction: Transaction, sql: str) -> int:
    row = transaction.row(sql)
    return int(row[0]) if row else 0
