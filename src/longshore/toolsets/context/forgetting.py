"""Superseding, retracting, restoring and purging, and the deletion of expired history."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from longshore.errors import ToolError
from longshore.toolsets.context import reading
from longshore.toolsets.context.changes import Fact, GraphChange
from longshore.toolsets.context.checks import derive_name
from longshore.toolsets.context.database import Transaction, batches, marks
from longshore.toolsets.context.packing import show_time
from longshore.toolsets.context.postings import NAME
from longshore.toolsets.context.records import ForgetReport, Microseconds, Node, NodeChange, Observation, Targets
from longshore.toolsets.context.rows import (
    EDGE,
    EVENT,
    OBSERVATION,
    nodes_by_id,
    text_hash,
    to_edge,
    to_event,
    to_observation,
)

EVENTS_AT_ONCE: Final = 500
"""Old events that one change deletes at most: it is not to wait long."""
HISTORY_AT_ONCE: Final = 500
"""Superseded observations, and as many edges, that one change deletes at most."""
FORGOTTEN: Final = "forgotten"
"""In place of its parser, in the state of a file whose nodes were retracted or purged."""


def supersede(
    change: GraphChange,
    old: Observation,
    text: str,
    *,
    valid_from: Microseconds | None = None,
    is_correction: bool = False,
    reason: str = "",
) -> int:
    """Replace the text of an observation; return the id of the current observation. Raises ToolError.

    The old text was true until `valid_from` (None: until now). A correction says that it never was true: the new one
    then has the validity of the old one.
    """
    _check_current(old)
    if text_hash(text) == text_hash(old.text) and valid_from is None:
        return old.id
    if is_correction:
        begins, ended = old.valid_from if valid_from is None else valid_from, None
    else:
        begins = ended = change.at if valid_from is None else valid_from
        if ended <= old.valid_from:
            what = f"o{old.id} is true from {show_time(old.valid_from)} on, so it can't have been true until"
            fix = "with correction the new text takes its place as if it had never been true"
            raise ToolError(f"{what} {show_time(ended)}; {fix}")
    new = _new(change, old, text, begins)
    known = next((each for each in change.same(new) if each.holds(begins, change.at) and each.id != old.id), None)
    by = change.insert(new) if known is None else known.id
    if ended is not None and ended > change.at:
        # The old text is true until then: a row with that end replaces it, so the present is always a current row.
        ends = ended if old.valid_to is None else min(ended, old.valid_to)
        change.record_again(old, valid_from=old.valid_from, valid_to=ends, reason=reason)
    else:
        change.close(old, "superseded", ended_at=ended, by=by, reason=reason)
    change.touch(old.node)
    return by


def _new(change: GraphChange, old: Observation, text: str, begins: Microseconds) -> Observation:
    """An observation with the new text, from this source."""
    return Observation(
        id=0,
        node=old.node,
        text=text,
        source=0,
        confidence=old.confidence,
        valid_from=begins,
        valid_to=old.valid_to if old.valid_to is not None and old.valid_to > begins else None,
        recorded_at=change.at,
    )


def end(change: GraphChange, old: Fact, valid_to: Microseconds | None, reason: str = "") -> int:
    """End an observation or edge at a time (None: now); return the id of its row from now on. Raises ToolError.

    Until a future end it is a current row with that end.
    """
    _check_current(old)
    ends = change.at if valid_to is None else valid_to
    if ends == old.valid_to:
        return old.id
    if ends <= old.valid_from:
        what = f"{_id(old)} is true from {show_time(old.valid_from)} on, so it can't end at {show_time(ends)}"
        raise ToolError(f"{what}; if it was never true, retract it")
    change.touch(old.owner)
    if ends > change.at or (old.valid_to is not None and ends > old.valid_to):
        return change.record_again(old, valid_from=old.valid_from, valid_to=ends, reason=reason)
    change.close(old, "ended", ended_at=ends, reason=reason)
    return old.id


def _check_current(fact: Fact) -> None:
    """Raise a ToolError with the fix for an observation or edge that is not current."""
    if fact.superseded_by is not None:
        raise ToolError(f"{_id(fact)} is not current: {_successor(fact)} has superseded it; change that one")
    match fact.closed_as:
        case None:
            return
        case "ended":
            raise ToolError(f"{_id(fact)} is not current: it has ended; add it again, or restore it without its end")
        case "not in file" | "superseded" | "recorded again":
            raise ToolError(f"{_id(fact)} is not current; add what is true now")
        case "retracted" | "retracted with node":
            raise ToolError(f"{_id(fact)} is not current: it was retracted; restore it first")


def _id(fact: Fact) -> str:
    return f"{'o' if isinstance(fact, Observation) else 'e'}{fact.id}"


def _successor(fact: Fact) -> str:
    return f"{'o' if isinstance(fact, Observation) else 'e'}{fact.superseded_by}"


def retract(change: GraphChange, targets: Targets, reason: str = "") -> ForgetReport:
    """Close all current observations and edges of the targets as never true; `restore` reverts it. Raises ToolError."""
    nodes, observations, edges = list[int](), list[int](), list[int]()
    for id_ in targets.nodes:
        node = change.node(id_)
        if node.retracted_at is None:
            for observation in change.current_observations(id_):
                change.close(observation, "retracted with node", reason=reason)
                observations.append(observation.id)
            for edge in change.current_edges(id_):
                change.close(edge, "retracted with node", reason=reason)
                edges.append(edge.id)
            change.close_node(node, "retracted", reason)
            read_again(change, node.path)
            nodes.append(id_)
    for id_ in targets.observations:
        old = change.observation(id_)
        if old.is_current:
            change.close(old, "retracted", reason=reason)
            change.touch(old.node)
            observations.append(id_)
    for id_ in targets.edges:
        edge = change.edge(id_)
        if edge.is_current:
            change.close(edge, "retracted", reason=reason)
            change.touch(edge.from_node)
            edges.append(id_)
    return ForgetReport(nodes=tuple(nodes), observations=tuple(observations), edges=tuple(edges))


def read_again(change: GraphChange, path: str) -> None:
    """Let the next ingest read a file again whose nodes were forgotten: otherwise it would count as unchanged."""
    if path:
        change.transaction.run("UPDATE file_state SET parser = ? WHERE path = ?", (FORGOTTEN, path))


def restore(change: GraphChange, targets: Targets) -> ForgetReport:
    """Record retracted targets again; a node together with all that was retracted with it. Raises ToolError.

    An edge is restored when both of its ends are. All get new ids: the store did not believe them in the meantime, and
    answers so for that time.
    """
    nodes, facts = list[int](), list[Fact]()
    for id_ in targets.nodes:
        node = change.node(id_)
        if node.retracted_as == "not in file":
            raise ToolError(f"n{id_} is not in {node.path} any more; ingest_path brings it back when it is there again")
        if node.retracted_at is not None:
            change.revive(node)
            nodes.append(id_)
    for id_ in targets.nodes:
        facts += _retracted_with(change, id_)
    facts += [change.observation(id_) for id_ in targets.observations]
    facts += [change.edge(id_) for id_ in targets.edges]
    observations, edges = list[int](), list[int]()
    for fact in facts:
        if (new := _restored(change, fact)) is not None:
            (observations if isinstance(fact, Observation) else edges).append(new)
    return ForgetReport(nodes=tuple(nodes), observations=tuple(observations), edges=tuple(edges))


_WITH_NODE: Final = "closed_as = 'retracted with node' AND superseded_by IS NULL"


def _retracted_with(change: GraphChange, node: int) -> list[Fact]:
    """All rows that were retracted with a node and are not restored; of edges, those with both ends current."""
    sql = f"SELECT {OBSERVATION} FROM observation WHERE node = ? AND {_WITH_NODE} ORDER BY id"
    found: list[Fact] = [to_observation(row) for row in change.transaction.rows(sql, (node,))]
    sql = f"SELECT {EDGE} FROM edge WHERE (from_node = ? OR to_node = ?) AND {_WITH_NODE} ORDER BY id"
    edges = [to_edge(row) for row in change.transaction.rows(sql, (node, node))]
    nodes = nodes_by_id(change.transaction, {end for edge in edges for end in (edge.from_node, edge.to_node)})
    return found + [e for e in edges if nodes[e.from_node].retracted_at is nodes[e.to_node].retracted_at is None]


def _restored(change: GraphChange, old: Fact) -> int | None:
    """The new row of a retracted one; None if it was restored already. Raises ToolError."""
    if old.is_current or (old.superseded_by is not None and old.closed_as in _RETRACTED):
        return None
    if old.closed_as not in (*_RETRACTED, "ended"):
        _check_current(old)
    for owner in (old.node,) if isinstance(old, Observation) else (old.from_node, old.to_node):
        if change.node(owner).retracted_at is not None:
            raise ToolError(f"{_id(old)} belongs to n{owner}, which is retracted; restore that")
    same = [fact for fact in change.same(old) if fact.overlaps(old.valid_from, old.valid_to)]
    begins = min(fact.valid_from for fact in (old, *same))
    ends = [fact.valid_to for fact in (old, *same) if fact.valid_to is not None]
    last = max(ends) if len(ends) == len(same) + 1 else None
    if any((fact.valid_from, fact.valid_to) == (begins, last) for fact in same):
        return None  # added again since then
    change.touch(old.owner)
    again = change.record_again(old, valid_from=begins, valid_to=last)
    for fact in same:
        change.take_place(fact, again)
    return again


_RETRACTED: Final = ("retracted", "retracted with node")


def revive(change: GraphChange, node: Node) -> None:
    """Make a retracted node current without its observations and edges, which stay retracted."""
    change.revive(node)
    for table, where in (("observation", "node = ?"), ("edge", "? IN (from_node, to_node)")):
        change.transaction.run(f"UPDATE {table} SET closed_as = 'retracted' WHERE {where} AND {_WITH_NODE}", (node.id,))


def purge(change: GraphChange, targets: Targets) -> ForgetReport:
    """Erase rows for good, with their history, postings and terms, and what events say of them. Raises ToolError.

    A text is erased in all rows of its node that have it, such as those that were recorded again; an edge likewise.
    """
    targets = with_same(change.transaction, targets)
    for id_ in targets.observations:
        _forget_name(change, change.observation(id_), targets)
    return _erase(change, targets)


def with_same(transaction: Transaction, targets: Targets) -> Targets:
    """The targets with the rows of their nodes that have the same content. Raises ToolError."""
    observations, edges = set[int](), set[int]()
    for id_ in targets.observations:
        text = reading.observation(transaction, id_)
        sql = "SELECT id FROM observation WHERE node = ? AND text_hash = ?"
        observations |= {row[0] for row in transaction.rows(sql, (text.node, text_hash(text.text)))}
    for id_ in targets.edges:
        edge = reading.edge(transaction, id_)
        sql = "SELECT id FROM edge WHERE from_node = ? AND relation = ? AND to_node = ?"
        edges |= {row[0] for row in transaction.rows(sql, (edge.from_node, edge.relation, edge.to_node))}
    return Targets(nodes=targets.nodes, observations=tuple(sorted(observations)), edges=tuple(sorted(edges)))


def _forget_name(change: GraphChange, purged: Observation, targets: Targets) -> None:
    """Remove the name that a purged text gave its node from the node and from the events."""
    derived = derive_name(purged.text)
    node = change.node(purged.node)
    if node.id in targets.nodes:
        return
    if node.name == derived:
        left = [o for o in change.current_observations(node.id) if o.id not in targets.observations]
        names = (*(derive_name(each.text) for each in reversed(left)), f"n{node.id}, whose text was purged")
        for name in names:
            with suppress(ToolError):  # another node has the name
                change.change_node(node, NodeChange(name=name), is_derived=True)
                break
    sql = f"SELECT {EVENT} FROM event WHERE node = ? AND operation IN ('create', 'change')"
    for event in map(to_event, change.transaction.rows(sql, (node.id,))):
        details = (event.detail, event.detail.get("before", {}), event.detail.get("after", {}))
        if any(detail.get("name") == derived for detail in details):
            change.transaction.run("UPDATE event SET detail = '{}' WHERE sequence = ?", (event.sequence,))


def _erase(change: GraphChange, targets: Targets) -> ForgetReport:
    """Delete rows, with those of the nodes among them, and what refers to them. Raises ToolError."""
    transaction = change.transaction
    found = {id_: change.node(id_) for id_ in sorted(targets.nodes)}
    nodes = list(found)
    for path in {node.path for node in found.values()}:
        read_again(change, path)
    observations = {change.observation(id_).id for id_ in targets.observations}
    edges = {change.edge(id_).id for id_ in targets.edges}
    for batch in batches(nodes):
        observations |= {
            row[0] for row in transaction.rows(f"SELECT id FROM observation WHERE node IN ({marks(batch)})", batch)
        }
        for end in ("from_node", "to_node"):
            edges |= {row[0] for row in transaction.rows(f"SELECT id FROM edge WHERE {end} IN ({marks(batch)})", batch)}
    _delete_postings(change, nodes, sorted(observations))
    for batch in batches(sorted(observations)):
        listed = f"IN ({marks(batch)})"
        transaction.run(f"UPDATE observation SET superseded_by = NULL WHERE superseded_by {listed}", batch)
        for column in ("older", "newer"):
            transaction.run(f"DELETE FROM contradiction WHERE {column} {listed}", batch)
    for batch in batches(sorted(edges)):
        transaction.run(f"UPDATE edge SET superseded_by = NULL WHERE superseded_by IN ({marks(batch)})", batch)
    for table, column, ids in (
        ("observation", "observation", sorted(observations)),
        ("edge", "edge", sorted(edges)),
        ("node", "node", nodes),
    ):
        for batch in batches(ids):
            transaction.run(f"DELETE FROM {table} WHERE id IN ({marks(batch)})", batch)
            transaction.run(f"UPDATE event SET detail = '{{}}' WHERE {column} IN ({marks(batch)})", batch)
    change.postings.flush()
    _delete_unused_sources(transaction)
    change.log("purge", nodes=len(nodes), observations=len(observations), edges=len(edges))
    return ForgetReport(nodes=tuple(nodes), observations=tuple(sorted(observations)), edges=tuple(sorted(edges)))


def _delete_postings(change: GraphChange, nodes: list[int], observations: list[int]) -> None:
    for table, ids in (("node", nodes), ("observation", observations)):
        columns = f"id, {NAME}, term_ids, retracted_at" if table == "node" else "node, id, term_ids, superseded_at"
        for batch in batches(ids):
            sql = f"SELECT {columns} FROM {table} WHERE id IN ({marks(batch)})"
            for node, observation, term_ids, ended in change.transaction.rows(sql, batch):
                change.postings.remove(node, observation, bytes(term_ids), is_current=ended is None)


def _delete_unused_sources(transaction: Transaction) -> None:
    transaction.run(
        "DELETE FROM source WHERE NOT EXISTS (SELECT 1 FROM observation WHERE observation.source = source.id)"
        " AND NOT EXISTS (SELECT 1 FROM edge WHERE edge.source = source.id)"
    )


def drop_old_events(change: GraphChange, most: int) -> None:
    """Delete the oldest events beyond this number, a bounded number at once.

    The last one stays: it has the last known time.
    """
    newest = change.transaction.row("SELECT max(sequence) FROM event")
    if newest and newest[0]:
        oldest = change.transaction.row("SELECT min(sequence) FROM event")
        if oldest and newest[0] - oldest[0] >= most:
            end = min(newest[0] - most, oldest[0] + EVENTS_AT_ONCE)
            change.transaction.run("DELETE FROM event WHERE sequence <= ?", (end,))


def drop_old_history(change: GraphChange, before: Microseconds) -> bool:
    """Delete observations and edges superseded before a time, a bounded number; return whether these were all."""
    found = list[tuple[int, ...]]()
    for table in ("observation", "edge"):
        sql = f"SELECT id FROM {table} WHERE superseded_at < ? ORDER BY id LIMIT ?"
        found.append(tuple(row[0] for row in change.transaction.rows(sql, (before, HISTORY_AT_ONCE))))
    observations, edges = found
    if observations or edges:
        _erase(change, Targets(observations=observations, edges=edges))
    return max(len(observations), len(edges)) < HISTORY_AT_ONCE


def mark_contradiction(change: GraphChange, one: Observation, other: Observation) -> None:
    """Mark two current observations as contradicting each other. Raises ToolError."""
    if one.id == other.id:
        raise ToolError("an observation does not contradict itself; name two")
    for each in (one, other):
        _check_current(each)
    change.contradict(one.id, other.id)
    for each in (one, other):
        change.log("contradict", node=each.node, observation=each.id)
