"""The picture of some nodes and their neighbours, and the choice of the nodes to draw if there are too many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from longshore.toolsets.context.picture import draw
from longshore.toolsets.context.records import Node
from longshore.toolsets.context.store import Store

TEXT_CHARACTERS: Final = 200
"""Of a text that is shown where the pointer rests."""


class Drawn(NamedTuple):
    """A picture, with the number of drawn and of left-out nodes."""

    svg: str
    nodes: int
    left_out: int


def draw_around(store: Store, start: Sequence[Node], depth: int, limit: int, title: str) -> Drawn:
    """Draw these nodes and those linked to them, up to a number of links and of nodes."""
    ids = [node.id for node in start]
    around, edges = store.neighbourhood(ids, depth)
    # The given nodes come first, then those with the most links: the limit must not remove the nodes that connect
    # others.
    linked = [end for edge in edges for end in (edge.from_node, edge.to_node)]
    order = sorted(around, key=lambda id_: (id_ not in ids, -linked.count(id_), id_))
    nodes = [around[id_] for id_ in order if around[id_].retracted_at is None][:limit]
    texts = {node.id: "; ".join(o.text[:TEXT_CHARACTERS] for o in store.observations(node.id)[:3]) for node in nodes}
    return Drawn(draw(nodes, edges, set(ids), texts, title), len(nodes), len(around) - len(nodes))
