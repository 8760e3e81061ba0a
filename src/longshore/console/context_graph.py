"""The context graph for a person: search, a node with its history, a picture of what is around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeVar, final

from longshore.errors import StoreError, ToolError
from longshore.registry.toolset import ToolsetHandle
from longshore.server.engine import Engine
from longshore.toolsets.context.neighbourhood import draw_around
from longshore.toolsets.context.records import Details, Interval, Node, Query, Source
from longshore.toolsets.context.search import with_filters
from longshore.toolsets.context.selecting import ID
from longshore.toolsets.context.store import Store
from longshore.toolsets.context.tools import ContextTools
from longshore.transports.http.gate import Denied

MOST_HITS: Final = 50
MOST_DEPTH: Final = 3
MOST_DRAWN: Final = 100
TEXT_CHARACTERS: Final = 2000
"""Of one text."""

T = TypeVar("T")


@final
class ContextGraph:
    """The context graph of one server, opened by the first look at it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def search(self, text: str) -> dict[str, Any]:
        """What a query finds; without words, what has changed last."""
        return await self._read(lambda store: _search(store, text))

    async def node(self, id: str, *, with_history: bool) -> dict[str, Any]:
        """A node with what is known of it, or was."""
        return await self._read(lambda store: _describe(_find(store, id, with_history=with_history)))

    async def picture(self, id: str, depth: int) -> bytes:
        """The SVG of what is around a node."""
        if not 0 <= depth <= MOST_DEPTH:
            raise Denied(400, f"depth: give 0 to {MOST_DEPTH}")

        def draw(store: Store) -> bytes:
            node = _find(store, id, with_history=False).node
            return draw_around(store, [node], depth, MOST_DRAWN, node.name).svg.encode()

        return await self._read(draw)

    async def _read(self, work: Callable[[Store], T]) -> T:
        tools = await self._tools()

        def run() -> T:
            with tools.reading() as store:
                return work(store)

        try:
            return await asyncio.to_thread(run)
        except (ToolError, StoreError) as problem:
            raise Denied(503, str(problem)) from None

    async def _tools(self) -> ContextTools:
        handle: ToolsetHandle | None = self._engine.catalog.toolsets.get("context")
        is_on = handle is not None and any(entry.toolset is handle for entry in self._engine.tools.values())
        if handle is None or not is_on:
            raise Denied(404, "the context toolset is off; [toolsets.context] enabled = true switches it on")
        try:
            await handle.open()
        except ToolError as problem:
            raise Denied(503, str(problem)) from None
        if not isinstance(handle.toolset, ContextTools):
            raise Denied(404, "the toolset `context` of this server is not Longshore's")
        return handle.toolset


def _find(store: Store, id: str, *, with_history: bool) -> Details:
    match = ID.fullmatch(id)
    if match is None or match[1] != "n":
        raise Denied(400, "id: give that of a node, such as n12")
    details = store.details(int(match[2]), with_history=with_history)
    if details is None:
        raise Denied(404, f"there is no node {id}")
    return details


def _search(store: Store, text: str) -> dict[str, Any]:
    if not text.strip():
        return {"hits": [_node(node) for node in store.recent(MOST_HITS)], "recent": True}
    result = store.query(with_filters(Query(text=text, limit=MOST_HITS)))
    hits = [
        {**_node(hit.node), "texts": [each.text[:TEXT_CHARACTERS] for each in hit.observations]} for hit in result.hits
    ]
    return {"hits": hits, "recent": False}


def _node(node: Node) -> dict[str, Any]:
    return {
        "id": f"n{node.id}",
        "kind": node.kind,
        "name": node.name,
        "path": node.path,
        "pinned": node.pinned,
        "importance": node.importance,
        "updated": node.updated_at / 1e6,
        "retracted": node.retracted_at is not None,
    }


def _describe(details: Details) -> dict[str, Any]:
    sources = details.sources
    return {
        **_node(details.node),
        "attributes": details.node.attributes,
        "observations": [
            {
                "id": f"o{each.id}",
                "text": each.text[:TEXT_CHARACTERS],
                "confidence": each.confidence,
                "contradicts": [f"o{other}" for other in details.contradicting.get(each.id, ())],
                **_times(each, sources),
            }
            for each in details.observations
        ],
        "edges": [
            {
                "id": f"e{each.id}",
                "from": f"n{each.from_node}",
                "relation": each.relation,
                "to": f"n{each.to_node}",
                **_times(each, sources),
            }
            for each in details.edges
        ],
        "neighbours": {f"n{id}": {"kind": each.kind, "name": each.name} for id, each in details.neighbours.items()},
    }


def _times(interval: Interval, sources: dict[int, Source]) -> dict[str, Any]:
    """The times in seconds since 1970, and who said it."""
    source = sources.get(interval.source)
    return {
        "valid_from": interval.valid_from / 1e6,
        "valid_to": _seconds(interval.valid_to),
        "recorded": interval.recorded_at / 1e6,
        "superseded": _seconds(interval.superseded_at),
        "closed_as": interval.closed_as,
        "reason": interval.reason,
        "current": interval.is_current,
        "source": None
        if source is None
        else {"type": source.type, "uri": source.uri, "client": source.client, "actor": source.actor},
    }


def _seconds(time: int | None) -> float | None:
    return None if time is None else time / 1e6
