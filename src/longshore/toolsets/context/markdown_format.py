"""The current state of a context graph as Markdown that people read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from time import time_ns
from typing import Final

from longshore.toolsets.context.native_format import EXPORT_SECONDS
from longshore.toolsets.context.packing import one_line, source_label
from longshore.toolsets.context.reading import details
from longshore.toolsets.context.records import NOW, Details
from longshore.toolsets.context.rows import NODE, to_node
from longshore.toolsets.context.store import Store

_TAG_OR_HEADING: Final = re.compile(r"(<|(?<!\S)(?:#|=+$|-+$))")
"""What could pass for a part of the page in a text; other markup of it stays."""
_MARKUP: Final = re.compile(r"([\\`*_\[\]<>#|~])")


def export_markdown(store: Store) -> Iterator[str]:
    """A heading for each kind and node, with its texts, each with its source, and its links."""
    yield "# Context graph"
    with store.database.reading(EXPORT_SECONDS) as transaction:
        sql = "SELECT DISTINCT kind FROM node WHERE retracted_at IS NULL ORDER BY kind"
        for (kind,) in transaction.rows(sql):
            yield f"\n## {_plain(kind)}"
            where = "kind = ? AND retracted_at IS NULL ORDER BY name_key, id"
            for row in transaction.rows(f"SELECT {NODE} FROM node WHERE {where}", (kind,)):
                found = details(transaction, to_node(row).id, NOW, time_ns() // 1000)
                if found is not None and (found.observations or not found.node.has_derived_name):
                    yield from _section(found)


def _section(found: Details) -> Iterator[str]:
    node = found.node
    path = f" ({_plain(node.path)})" if node.path and node.path != node.name else ""
    yield f"\n### {_plain(node.name)}{path}\n"
    for each in found.observations:
        origin = source_label(each, found.sources.get(each.source))[1:-1].partition(" from ")[2]
        text = "\n  ".join(_TAG_OR_HEADING.sub(r"\\\1", line) for line in each.text.splitlines())
        yield f"- {text}  \n  *{_plain(origin)}*"
    for edge in found.edges:
        if edge.from_node == node.id and edge.to_node in found.neighbours:
            to = found.neighbours[edge.to_node]
            yield f"- {_plain(edge.relation)} → {_plain(to.name)} ({_plain(to.kind)})"


def _plain(text: str) -> str:
    """A text on one line, without markup."""
    return _MARKUP.sub(r"\\\1", one_line(text))
