"""The hits of a query as JSON text that fits a token budget."""

from __future__ import annotations

from typing import Any, Final

from longshore.registry.token_budget import CHARACTERS_PER_TOKEN, json_length, longest_prefix
from longshore.text_search.query_text import parse
from longshore.toolsets.context.packing import excerpt, notes_of, pack, show_time
from longshore.toolsets.context.records import Hit, Observation, QueryResult, Source
from longshore.toolsets.context.rows import to_json

_AROUND: Final = 160
"""For the counts, the cursor and the brackets."""
_LEAST: Final = 80
"""Of a text, in characters of the JSON text within the answer; less is left out."""


def pack_json(result: QueryResult, max_tokens: int) -> str:
    """An object with `hits`, `total` and `more`; optionally `cursor`, `notes` and `why`.

    `cursor` leads to further hits, `notes` are on the search, and `why` explains an empty result. Its quotes are
    escaped once more in the answer, and counted so.

    The hits share the budget: each gets an equal part of the rest, so a text may be cut to the context of the words,
    and `characters` gives its whole length.
    """
    room = max_tokens * CHARACTERS_PER_TOKEN - _AROUND
    if not result.hits:
        why = _cut(pack(result, max_tokens).text, room)
        return to_json({"hits": [], "total": result.total, "more": result.more, "why": why})
    notes = _cut("\n".join(notes_of(result)), room // 3)
    room -= _cost(notes) if notes else 0
    terms = set(parse(result.query.text).terms)
    shown = list[dict[str, Any]]()
    for place, hit in enumerate(result.hits):
        share = room // (len(result.hits) - place)
        made = _fitting(hit, terms, share if shown else room)
        cost = _cost(made)
        if cost > room and not shown:
            made = {"id": f"n{hit.node.id}", "name": _cut(hit.node.name, _LEAST)}
            cost = _cost(made)
        if cost > room:
            break
        shown.append(made)
        room -= cost
    end = result.query.offset + len(shown)
    answer: dict[str, Any] = {"hits": shown, "total": result.total, "more": result.more}
    if notes:
        answer["notes"] = notes
    if end < result.total or result.more:
        answer["cursor"] = str(end)
    return to_json(answer)


def _fitting(hit: Hit, terms: set[str], share: int) -> dict[str, Any]:
    """A hit cut to its share, unless its names alone exceed it."""
    observations, contradictions = list[dict[str, Any]](), list[dict[str, Any]]()
    made = _node(hit) | {"observations": observations, "contradictions": contradictions}
    for each in hit.contradictions:
        known = each.observation
        other = {"node": f"n{each.node}", "name": each.name[:200]}
        contradictions.append(other | ({} if known is None else {"observation": f"o{known.id}"}))
        if _cost(made) > share:
            contradictions.pop()
            break
    for observation in hit.observations:
        described = _observation(observation, hit.sources.get(observation.source))
        observations.append(described)
        if (over := _cost(made) - share) > 0:
            # The text is a JSON text within a JSON text, so it is measured twice escaped.
            room = _cost(described["text"]) - over - 40
            if room < _LEAST:
                observations.pop()
                break
            described["text"] = _cut(excerpt(observation.text, terms, room), room)
            described["characters"] = len(observation.text)
            break
    return made


def _cut(text: str, room: int) -> str:
    text = longest_prefix(text, room)
    while _cost(text) > room:
        text = text[: len(text) * 3 // 4]
    return text


def _cost(value: object) -> int:
    return json_length(to_json(value)) + 1


def _node(hit: Hit) -> dict[str, Any]:
    node = hit.node
    linked = {"linked_from": hit.linked_from[:200]} if hit.linked_from else {}
    return {
        "id": f"n{node.id}",
        "kind": node.kind,
        "name": node.name[:200],
        "path": node.path[:200],
        "score": round(hit.score, 6),
        "found_by": hit.found_by,
        **linked,
    }


def _observation(observation: Observation, source: Source | None) -> dict[str, Any]:
    fields = () if source is None else ("type", "uri", "actor", "client")
    origin = {name: getattr(source, name)[:200] for name in fields}
    return {
        "id": f"o{observation.id}",
        "text": observation.text,
        "source": {name: value for name, value in origin.items() if value},
        "valid_from": show_time(observation.valid_from),
    }
