"""Folders to ingest, and what a store then holds of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.roots import configured_roots
from longshore.toolsets.context.ingest import IngestReport, ingest
from longshore.toolsets.context.records import Node
from longshore.toolsets.context.store import Store


def write(root: Path, **files: str) -> None:
    """Write files; `__` in a name is a slash and `_dot_` a dot."""
    for name, text in files.items():
        put(root / name.replace("__", "/").replace("_dot_", "."), text)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run(store: Store, root: Path, path: str = ".", **options: Any) -> IngestReport:
    return ingest(store, ConfinedFiles(configured_roots([str(root)])), path, **options)


def nodes(store: Store, path: str) -> dict[tuple[str, str], Node]:
    """The current nodes of a file by kind and name."""
    found = [node for node in store.find(path) if node.path == path]
    return {(node.kind, node.name): node for node in found}


def links(store: Store) -> set[tuple[str, str, str]]:
    """All current links between files' nodes: from, relation, to, each as path and name."""
    found = set[tuple[str, str, str]]()
    for path in store.names_in_files():
        for node in nodes(store, path).values():
            details = store.details(node.id)
            assert details is not None
            for edge in details.edges:
                if edge.from_node == node.id:
                    found.add((shown(node), edge.relation, shown(details.neighbours[edge.to_node])))
    return found


def shown(node: Node) -> str:
    return node.path if node.name == node.path else f"{node.path}:{node.name}"


def content(store: Store) -> dict[str, list[str]]:
    """All current nodes of files with their texts: equal for stores that know the same."""
    return {
        f"{node.kind} {shown(node)} {node.attributes}": sorted(o.text for o in store.observations(node.id))
        for path in store.names_in_files()
        for node in nodes(store, path).values()
    }
