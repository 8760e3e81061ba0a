"""Reading the graph: nodes with their observations and edges, neighbourhoods, events and counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from longshore.errors import ToolError
from longshore.toolsets.context.database import Transaction, batches, marks
from longshore.toolsets.context.derived_names import with_names
from longshore.toolsets.context.records import (
    NOW,
    Details,
    Edge,
    FileState,
    GraphEvent,
    Microseconds,
    Moment,
    Node,
    Observation,
    Targeted,
    Targets,
)
from longshore.toolsets.context.rows import (
    EDGE,
    EVENT,
    NODE,
    OBSERVATION,
    holds,
    name_key,
    nodes_by_id,
    sources_by_id,
    to_edge,
    to_event,
    to_node,
    to_observation,
    was_there,
)

EDGES: Final = 200
"""Of one node, in its details. Some have thousands."""
NEIGHBOURS: Final = 200
"""Nodes of one neighbourhood."""


def node(transaction: Transaction, id_: int) -> Node:
    """A node, retracted or not. Raises ToolError."""
    row = transaction.row(f"SELECT {NODE} FROM node WHERE id = ?", (id_,))
    if row is None:
        raise ToolError(f"there is no node n{id_}; query_context finds nodes and shows their ids")
    return to_node(row)


def observation(transaction: Transaction, id_: int) -> Observation:
    """An observation, current or not. Raises ToolError."""
    row = transaction.row(f"SELECT {OBSERVATION} FROM observation WHERE id = ?", (id_,))
    if row is None:
        raise ToolError(f"there is no observation o{id_}; get_context shows a node's observations")
    return to_observation(row)


def edge(transaction: Transaction, id_: int) -> Edge:
    """An edge, current or not. Raises ToolError."""
    row = transaction.row(f"SELECT {EDGE} FROM edge WHERE id = ?", (id_,))
    if row is None:
        raise ToolError(f"there is no edge e{id_}; get_context shows a node's edges")
    return to_edge(row)


def targeted(transaction: Transaction, targets: Targets, now: Microseconds) -> Targeted:
    """The nodes, observations and edges that ids name. Raises ToolError for an id that names nothing."""
    nodes = {id_: node(transaction, id_) for id_ in targets.nodes}
    observations = {id_: observation(transaction, id_) for id_ in targets.observations}
    edges = {id_: edge(transaction, id_) for id_ in targets.edges}
    owners = {o.node for o in observations.values()} | {e.from_node for e in edges.values()}
    owners |= {e.to_node for e in edges.values()}
    return Targeted(
        nodes=tuple(with_names(transaction, nodes.values(), NOW, now)),
        observations=tuple(observations.values()),
        edges=tuple(edges.values()),
        owners=named_nodes(transaction, owners, NOW, now),
    )


def find_nodes(
    transaction: Transaction, name: str, moment: Moment, now: Microseconds, *, include_retracted: bool = False
) -> list[Node]:
    """The nodes with this name or path in any spelling that are current at a moment."""
    sql = f"SELECT {NODE} FROM node WHERE name_key IN (?, ?) OR (path = ? AND path <> '') ORDER BY id LIMIT ?"
    rows = transaction.rows(sql, (name_key(name, ""), name_key(name, "/"), name, NEIGHBOURS))
    found = map(to_node, rows)
    return [n for n in found if include_retracted or was_there(n.retracted_at, n.retracted_as, moment, now)]


def observations_of(
    transaction: Transaction, nodes: Iterable[int], moment: Moment, now: Microseconds
) -> dict[int, list[Observation]]:
    """The observations of these nodes at a moment, the newest first."""
    found = dict[int, list[Observation]]()
    condition, values = holds("observation", moment, now)
    for batch in batches(nodes):
        sql = f"SELECT {OBSERVATION} FROM observation WHERE node IN ({marks(batch)}) AND {condition} ORDER BY id DESC"
        for row in transaction.rows(sql, (*batch, *values)):
            found.setdefault(row[1], []).append(to_observation(row))
    return found


def named_nodes(transaction: Transaction, ids: set[int], moment: Moment, now: Microseconds) -> dict[int, Node]:
    """These nodes, retracted ones too, with their names at a moment."""
    nodes = with_names(transaction, nodes_by_id(transaction, ids).values(), moment, now)
    return {node.id: node for node in nodes}


def known_nodes(
    transaction: Transaction, nodes: Iterable[int], moment: Moment, now: Microseconds, *, by_edges: bool = True
) -> set[int]:
    """The nodes that have an observation or edge at a moment."""
    listed, found = list(nodes), set[int]()
    edges = (("from_node", "edge"), ("to_node", "edge")) if by_edges else ()
    for column, table in (("node", "observation"), *edges):
        condition, values = holds(table, moment, now)
        for batch in batches(listed):
            sql = f"SELECT DISTINCT {column} FROM {table} WHERE {column} IN ({marks(batch)}) AND {condition}"
            found.update(row[0] for row in transaction.rows(sql, (*batch, *values)))
    return found


def edges_of(
    transaction: Transaction, nodes: Iterable[int], moment: Moment, now: Microseconds, most: int = EDGES
) -> list[Edge]:
    """The edges from and to these nodes at a moment, at most so many of each node and direction."""
    found = dict[int, Edge]()
    condition, values = holds("edge", moment, now)
    listed = list(nodes)
    for end in ("from_node", "to_node"):
        join = transaction.join_picked("edge", f"{end} = node.id AND {condition} ORDER BY id DESC LIMIT ?")
        for batch in batches(listed):
            columns = ", ".join(f"edge.{name}" for name in EDGE.split(", "))
            sql = f"SELECT {columns} FROM node {join} WHERE node.id IN ({marks(batch)})"
            for row in transaction.rows(sql, (*values, most, *batch)):
                found[row[0]] = to_edge(row)
    return sorted(found.values(), key=lambda edge: edge.id)


def contradicting_of(
    transaction: Transaction, observations: Iterable[int], moment: Moment, now: Microseconds
) -> dict[int, tuple[int, ...]]:
    """By observation: the observations marked as contradicting it, as known at a moment."""
    listed, known_at = list(observations), now if moment.known_at is None else moment.known_at
    found = dict[int, set[int]]()
    for here, there in (("older", "newer"), ("newer", "older")):
        for batch in batches(listed):
            sql = f"SELECT {here}, {there} FROM contradiction WHERE {here} IN ({marks(batch)}) AND recorded_at <= ?"
            for one, other in transaction.rows(sql, (*batch, known_at)):
                found.setdefault(one, set()).add(other)
    return {one: tuple(sorted(others)) for one, others in found.items()}


def details(
    transaction: Transaction, node: int, moment: Moment, now: Microseconds, *, with_history: bool = False
) -> Details | None:
    """A node with its observations and edges at a moment, or with all of its history; None if there is none."""
    row = transaction.row(f"SELECT {NODE} FROM node WHERE id = ?", (node,))
    if row is None:
        return None
    if with_history:
        sql = f"SELECT {OBSERVATION} FROM observation WHERE node = ? ORDER BY id DESC"
        observations = [to_observation(row) for row in transaction.rows(sql, (node,))]
        sql = f"SELECT {EDGE} FROM edge WHERE from_node = ? OR to_node = ? ORDER BY id DESC LIMIT ?"
        edges = [to_edge(row) for row in transaction.rows(sql, (node, node, 2 * EDGES))]
    else:
        observations = observations_of(transaction, [node], moment, now).get(node, [])
        edges = edges_of(transaction, [node], moment, now)
    ends = {end for edge in edges for end in (edge.from_node, edge.to_node)}
    return Details(
        node=with_names(transaction, [to_node(row)], moment, now)[0],
        observations=tuple(observations),
        edges=tuple(edges),
        contradicting=contradicting_of(transaction, (o.id for o in observations), moment, now),
        sources=sources_by_id(transaction, {each.source for each in (*observations, *edges)}),
        neighbours=named_nodes(transaction, ends - {node}, moment, now),
    )


def neighbourhood(
    transaction: Transaction, start: Iterable[int], depth: int, moment: Moment, now: Microseconds
) -> tuple[dict[int, Node], list[Edge]]:
    """The nodes within so many links of these, the nearest first and at most `NEIGHBOURS`, and the edges among them."""
    reached = list(dict.fromkeys(start))[:NEIGHBOURS]
    seen, edges = set(reached), dict[int, Edge]()
    frontier = reached
    for _ in range(depth):
        found = edges_of(transaction, frontier, moment, now)
        edges.update((edge.id, edge) for edge in found)
        ends = dict.fromkeys(end for edge in found for end in (edge.from_node, edge.to_node) if end not in seen)
        frontier = list(ends)[: NEIGHBOURS - len(seen)]
        seen.update(frontier)
        if not frontier:
            break
    nodes = named_nodes(transaction, seen, moment, now)
    return nodes, [edge for edge in edges.values() if edge.from_node in nodes and edge.to_node in nodes]


def events(
    transaction: Transaction, *, after: int = 0, node: int | None = None, newest_first: bool = False, limit: int = 100
) -> list[GraphEvent]:
    """Events with a higher sequence number, of one node or of all."""
    of_node, values = ("AND node = ?", (node,)) if node is not None else ("", ())
    order = "DESC" if newest_first else "ASC"
    sql = f"SELECT {EVENT} FROM event WHERE sequence > ? {of_node} ORDER BY sequence {order} LIMIT ?"
    return [to_event(row) for row in transaction.rows(sql, (after, *values, limit))]


def file_states(transaction: Transaction) -> dict[str, FileState]:
    """All ingested files by path."""
    rows = transaction.rows("SELECT path, size, modified_ns, hash, parser FROM file_state")
    return {row[0]: FileState(**dict(zip(FileState.__struct_fields__, row, strict=True))) for row in rows}


def names_in_files(transaction: Transaction) -> dict[str, set[tuple[str, str]]]:
    """The kinds and names of all current nodes that are in files, by path: the files, and the parts in a file.

    A node that has left its file is not among them, even if agents have added observations or edges to it.
    """
    found = dict[str, set[tuple[str, str]]]()
    said = "edge.from_node = node.id AND edge.superseded_at IS NULL AND source.type = 'file'"
    sql = (
        "SELECT path, kind, name FROM node WHERE path <> '' AND retracted_at IS NULL AND (name = path"
        f" OR EXISTS (SELECT 1 FROM edge JOIN source ON source.id = edge.source WHERE {said}))"
    )
    for path, kind, name in transaction.rows(sql):
        found.setdefault(path, set()).add((kind, name))
    return found


def texts_in_file(transaction: Transaction, path: str) -> dict[tuple[str, str], str]:
    """The current texts of a file's nodes that are from files, by kind and name."""
    sql = (
        "SELECT node.kind, node.name, observation.text FROM node JOIN observation ON observation.node = node.id"
        " JOIN source ON source.id = observation.source WHERE node.path = ? AND node.path <> ''"
        " AND observation.superseded_at IS NULL AND source.type = 'file' ORDER BY observation.id"
    )
    return {(kind, name): text for kind, name, text in transaction.rows(sql, (path,))}


def counts(transaction: Transaction) -> dict[str, Any]:
    """The counts of a status."""

    def count(table: str) -> int:
        row = transaction.row(f"SELECT count(*) FROM {table}")
        return int(row[0]) if row else 0

    kinds = transaction.rows(
        "SELECT kind, count(*) FROM node WHERE retracted_at IS NULL GROUP BY kind ORDER BY count(*) DESC, kind LIMIT 50"
    )
    last = transaction.row("SELECT sequence, at FROM event ORDER BY sequence DESC LIMIT 1")
    return {
        "nodes": count("node WHERE retracted_at IS NULL"),
        "observations": count("observation WHERE superseded_at IS NULL"),
        "superseded": count("observation WHERE superseded_at IS NOT NULL"),
        "edges": count("edge WHERE superseded_at IS NULL"),
        "sources": count("source"),
        "events": count("event"),
        "files": count("file_state"),
        "terms": count("term"),
        "kinds": dict(kinds),
        "last_event": last[0] if last else 0,
        "last_change_at": last[1] if last else None,
    }


_INDEX_CHECKS: Final = (
    (
        "current texts are counted wrongly",
        "SELECT 1 FROM totals WHERE nodes <> (SELECT count(*) FROM node WHERE retracted_at IS NULL)"
        " OR texts <> (SELECT count(*) FROM observation WHERE superseded_at IS NULL)",
    ),
    (
        "postings are of no observation",
        "SELECT 1 FROM posting LEFT JOIN observation ON observation.id = posting.observation"
        " WHERE posting.observation <> 0 AND (observation.id IS NULL OR observation.node <> posting.node"
        " OR (observation.superseded_at IS NULL) <> (posting.is_current = 1))",
    ),
    (
        "postings are of no node",
        "SELECT 1 FROM posting LEFT JOIN node ON node.id = posting.node WHERE node.id IS NULL"
        " OR (posting.observation = 0 AND (node.retracted_at IS NULL) <> (posting.is_current = 1))",
    ),
    ("postings have no term", "SELECT 1 FROM posting LEFT JOIN term ON term.id = posting.term WHERE term.id IS NULL"),
    (
        "terms are of no text",
        "SELECT 1 FROM term WHERE NOT EXISTS (SELECT 1 FROM posting WHERE posting.term = term.id)",
    ),
    (
        "terms are counted wrongly",
        "SELECT 1 FROM term WHERE texts <>"
        " (SELECT count(*) FROM posting WHERE posting.term = term.id AND posting.is_current = 1)",
    ),
)


def index_problems(transaction: Transaction) -> list[str]:
    """The problems of the index; rebuilding it fixes all of them."""
    problems = [problem for problem, sql in _INDEX_CHECKS if transaction.row(f"{sql} LIMIT 1")]
    expected = transaction.row("SELECT count(*) FROM observation WHERE length(term_ids) > 0")
    indexed = transaction.row("SELECT count(DISTINCT observation) FROM posting WHERE observation <> 0")
    if expected != indexed:
        problems.append("texts are not in the index")
    return problems
