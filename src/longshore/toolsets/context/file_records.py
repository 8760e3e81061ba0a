"""The nodes of ingested files: updated when a file has changed, was renamed, or was deleted."""

from __future__ import annotations

from collections.abc import Sequence

from longshore.toolsets.context.additions import PreparedItem, add_items
from longshore.toolsets.context.changes import Fact, GraphChange
from longshore.toolsets.context.records import AddedItem, FileState, Node, NodeChange
from longshore.toolsets.context.rows import EDGE, NODE, name_key, sources_by_id, text_hash, to_edge, to_node


def replace_file(
    change: GraphChange, state: FileState, items: Sequence[PreparedItem], words: dict[str, str]
) -> list[AddedItem]:
    """Replace a file's nodes by those of the items: equal texts stay, others are superseded, missing nodes leave it.

    All of the items have the file's path, and the change's source is of type `file` with the path as its URI.
    Observations and edges that agents have added to its nodes stay: only those of files are closed.
    """
    added = add_items(change, items, words)
    texts, edges = dict[int, set[str]](), dict[int, set[int]]()
    for prepared, result in zip(items, added, strict=True):
        texts.setdefault(result.node, set()).add(text_hash(prepared.item.text))
        edges.setdefault(result.node, set()).update(result.edges)
    for node in _nodes_of(change, state.path):
        if node.id not in texts:
            _leave(change, node)
    for id_ in texts:
        _supersede_others(change, id_, texts[id_])
        _close_other_edges(change, id_, edges[id_])
    save_state(change, state)
    return added


def move_file(change: GraphChange, old: str, state: FileState) -> int:
    """Move the nodes of a file to another path, with their ids and history; return how many left the file instead."""
    left = 0
    for node in _nodes_of(change, old):
        name = state.path if node.name == old else node.name  # a file's own node is named for its path
        sql = "SELECT 1 FROM node WHERE name_key = ? AND kind = ? AND path = ?"
        if change.transaction.row(sql, (name_key(name, state.path), node.kind, state.path)):
            left += _leave(change, node)
        else:
            change.change_node(node, NodeChange(path=state.path, name=name))
            _name_sources(change, node, state.path)
    change.transaction.run("DELETE FROM file_state WHERE path = ?", (old,))
    save_state(change, state)
    return left


def _name_sources(change: GraphChange, node: Node, path: str) -> None:
    """Make this path the source of all statements that files make about a node."""
    for table, column in (("observation", "node"), ("edge", "from_node")):
        rows = change.transaction.rows(f"SELECT DISTINCT source FROM {table} WHERE {column} = ?", (node.id,))
        for source in sources_by_id(change.transaction, {row[0] for row in rows}).values():
            if source.type == "file" and source.uri != path:
                sql = f"UPDATE {table} SET source = ? WHERE {column} = ? AND source = ?"
                change.transaction.run(sql, (change.source_with_uri(source, path), node.id, source.id))
                sql = (
                    "DELETE FROM source WHERE id = ? AND NOT EXISTS (SELECT 1 FROM observation WHERE source = ?)"
                    " AND NOT EXISTS (SELECT 1 FROM edge WHERE source = ?)"
                )
                change.transaction.run(sql, (source.id,) * 3)


def forget_file(change: GraphChange, path: str) -> int:
    """Remove the nodes of a deleted file, except the statements of agents about them; return how many it had."""
    count = sum(_leave(change, node) for node in _nodes_of(change, path))
    change.transaction.run("DELETE FROM file_state WHERE path = ?", (path,))
    return count


def _nodes_of(change: GraphChange, path: str) -> list[Node]:
    # `path <> ''` lets SQLite use the index of nodes with a path.
    sql = f"SELECT {NODE} FROM node WHERE path = ? AND path <> '' AND retracted_at IS NULL ORDER BY id"
    return [to_node(row) for row in change.transaction.rows(sql, (path,))]


def _leave(change: GraphChange, node: Node) -> bool:
    """Remove a node from its file: close all statements of files about it. Return whether it was in the file.

    Statements of agents stay, and with them the node: the file may come back with another branch.
    """
    facts: list[Fact] = [*change.current_observations(node.id), *change.current_edges(node.id)]
    of_files = _of_files(change, {fact.source for fact in facts})
    for fact in facts:
        if fact.source in of_files:
            change.close(fact, "not in file", ended_at=change.at)
    was_in_file = bool(of_files) or node.name == node.path
    if was_in_file and all(fact.source in of_files for fact in facts):
        change.close_node(node, "not in file")
    return was_in_file


def _supersede_others(change: GraphChange, node: int, hashes: set[str]) -> None:
    """Close the previous statements of the file about a node; the last of its new texts replaces them."""
    current = change.current_observations(node)
    new = next((o.id for o in reversed(current) if text_hash(o.text) in hashes), None)
    others = [o for o in current if text_hash(o.text) not in hashes]
    of_files = _of_files(change, {o.source for o in others})
    for old in others:
        if old.source in of_files:
            change.close(old, "superseded" if new else "not in file", ended_at=change.at, by=new)


def _close_other_edges(change: GraphChange, node: int, edges: set[int]) -> None:
    """Close the links of a node that the file does not contain any more."""
    sql = f"SELECT {EDGE} FROM edge WHERE from_node = ? AND superseded_at IS NULL"
    others = [edge for edge in map(to_edge, change.transaction.rows(sql, (node,))) if edge.id not in edges]
    of_files = _of_files(change, {edge.source for edge in others})
    for old in others:
        if old.source in of_files:
            change.close(old, "not in file", ended_at=change.at)


def _of_files(change: GraphChange, sources: set[int]) -> set[int]:
    """The sources that are files. A node has one path, so each is its file, at its current or a former path."""
    return {id_ for id_, source in sources_by_id(change.transaction, sources).items() if source.type == "file"}


def save_state(change: GraphChange, state: FileState) -> None:
    """Store the state of a file."""
    sql = (
        "INSERT INTO file_state (path, size, modified_ns, hash, parser) VALUES (?, ?, ?, ?, ?) ON CONFLICT (path)"
        " DO UPDATE SET size = excluded.size, modified_ns = excluded.modified_ns, hash = excluded.hash,"
        " parser = excluded.parser"
    )
    change.transaction.run(sql, (state.path, state.size, state.modified_ns, state.hash, state.parser))
