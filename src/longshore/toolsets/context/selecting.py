"""Choosing nodes without words: by id, name, kind or path, pinned nodes, and changed nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from longshore.errors import ToolError
from longshore.toolsets.context.database import Transaction, batches, marks
from longshore.toolsets.context.derived_names import with_names
from longshore.toolsets.context.reading import find_nodes, named_nodes
from longshore.toolsets.context.records import ForgetMode, Microseconds, Moment, Node
from longshore.toolsets.context.rows import NODE, nodes_by_id, to_node

SELECTED: Final = 10_000
"""Nodes that a filter chooses at most."""
MOST_KINDS: Final = 100
"""Of one filter. A database takes a thousand values in one question."""
RECENT_EVENTS: Final = 10
"""Looked at for each of the nodes that have changed last: one change of a node has several."""
ID: Final = re.compile(r"([noe])([1-9][0-9]{0,17})")
"""An id as it is shown: n12 is a node, o34 an observation, e56 an edge."""


class NodeFilter(Struct, frozen=True, kw_only=True):
    """A choice of nodes by kind, and by file or folder."""

    kinds: tuple[str, ...] = ()
    path: str = ""


class Changes(Struct, frozen=True):
    """The nodes, edges and events that have changed since an event."""

    last_event: int
    nodes: frozenset[int]
    """Whose observations, edges or fields have changed."""
    purged: bool
    """Something was erased, of which no event says what it was."""


def select_nodes(transaction: Transaction, chosen: NodeFilter, *, retracted: bool = False) -> list[Node]:
    """The current nodes that a filter chooses, or the retracted ones.

    Raises ToolError for an empty filter or too many nodes.
    """
    where, values = where_chosen(chosen)
    state = "retracted_as = 'retracted'" if retracted else "retracted_at IS NULL"
    sql = f"SELECT {NODE} FROM node WHERE {where} AND {state} ORDER BY id LIMIT ?"
    found = [to_node(row) for row in transaction.rows(sql, (*values, SELECTED + 1))]
    if len(found) > SELECTED:
        raise ToolError(f"more than {SELECTED:,} nodes are chosen; name a path or fewer kinds")
    return found


def check_kinds(kinds: Sequence[str]) -> None:
    """Raise a ToolError for too many kinds."""
    if len(kinds) > MOST_KINDS:
        raise ToolError(f"{len(kinds):,} kinds; at most {MOST_KINDS} are chosen by: name those that matter, or none")


def where_chosen(chosen: NodeFilter) -> tuple[str, list[str]]:
    """The condition of a filter in SQL, with its values. Raises ToolError for an empty filter."""
    conditions, values = list[str](), list[str]()
    check_kinds(chosen.kinds)
    if chosen.kinds:
        conditions.append(f"kind IN ({marks(chosen.kinds)})")
        values += chosen.kinds
    if path := chosen.path.removeprefix("./").rstrip("/"):
        # Paths that begin with "path/" lie between it and "path0", the character after the slash.
        conditions.append("(path = ? OR (path >= ? AND path < ?))")
        values += (path, f"{path}/", f"{path}0")
    if not values:
        raise ToolError("a filter needs kinds or a path")
    return " AND ".join(conditions), values


def choice_code(transaction: Transaction, mode: ForgetMode, nodes: Sequence[Node]) -> str:
    """A code for an operation on a choice of nodes: it differs if the nodes, their texts or their edges do."""
    newest = dict[int, list[int]]()
    for column, table in (("node", "observation"), ("from_node", "edge"), ("to_node", "edge")):
        for batch in batches(node.id for node in nodes):
            sql = f"SELECT {column}, max(id) FROM {table} WHERE {column} IN ({marks(batch)}) GROUP BY {column}"
            for node, id_ in transaction.rows(sql, batch):
                newest.setdefault(node, []).append(id_)
    facts = [(node.id, node.updated_at, newest.get(node.id)) for node in nodes]
    return blake2b(f"{mode} {facts}".encode(), digest_size=4).hexdigest()


def resolve(
    transaction: Transaction, reference: str, moment: Moment, now: Microseconds, *, include_retracted: bool = False
) -> list[Node]:
    """The nodes with an id, a name or a path; for an observation or edge, its nodes.

    An id finds retracted nodes, too; a name or path finds nodes that exist at the moment, or any with
    `include_retracted`.
    """
    match = ID.fullmatch(reference.strip())
    if match is None:
        nodes = find_nodes(transaction, reference, moment, now, include_retracted=include_retracted)
        return with_names(transaction, nodes, moment, now)
    id_, sql = int(match[2]), {"o": "SELECT node FROM observation", "e": "SELECT from_node, to_node FROM edge"}
    ids = [id_]
    if match[1] != "n":
        row = transaction.row(f"{sql[match[1]]} WHERE id = ?", (id_,))
        ids = list(row) if row else []
    found = named_nodes(transaction, set(ids), moment, now)
    return [found[each] for each in dict.fromkeys(ids) if each in found]


def pinned_nodes(transaction: Transaction, limit: int) -> list[Node]:
    """Pinned nodes, the most important first."""
    sql = f"SELECT {NODE} FROM node WHERE pinned = 1 AND retracted_at IS NULL ORDER BY importance DESC, id LIMIT ?"
    return [to_node(row) for row in transaction.rows(sql, (limit,))]


def recent_nodes(transaction: Transaction, limit: int) -> list[Node]:
    """The most recently changed nodes, without retracted ones. Only the newest events are read."""
    sql = "SELECT node FROM event WHERE node IS NOT NULL ORDER BY sequence DESC LIMIT ?"
    ids = list(dict.fromkeys(row[0] for row in transaction.rows(sql, (RECENT_EVENTS * limit,))))
    found = nodes_by_id(transaction, set(ids[: 2 * limit]))
    nodes = [found[id_] for id_ in ids if id_ in found and found[id_].retracted_at is None]
    return nodes[:limit]


def changes_after(transaction: Transaction, event: int) -> Changes:
    """The nodes and events that changed after an event. An edge is a change of both of its nodes."""
    row = transaction.row("SELECT max(sequence) FROM event")
    last = int(row[0]) if row and row[0] else 0
    if last <= event:
        return Changes(last, frozenset(), False)
    rows = transaction.rows("SELECT DISTINCT node FROM event WHERE sequence > ?", (event,))
    rows += transaction.rows(
        "SELECT DISTINCT to_node FROM edge WHERE id IN (SELECT edge FROM event WHERE sequence > ?)", (event,)
    )
    purged = transaction.row("SELECT 1 FROM event WHERE sequence > ? AND operation = 'purge' LIMIT 1", (event,))
    return Changes(last, frozenset(row[0] for row in rows if row[0] is not None), purged is not None)
