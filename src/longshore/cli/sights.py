"""Showing a server's tools as a client hands them to its model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from longshore.cli.screen import Line, Screen, many, one_line, short

if TYPE_CHECKING:
    from longshore.schema.standards.habit import ClientName
    from longshore.schema.standards.seen import Mark, Seen, Sight
    from longshore.schema.standards.subject import Surface

HEAD_CHARACTERS: Final = 100
"""Of a description, a name or a place: enough to know it again. The whole of it is in the JSON."""
MOST_LINES: Final = 20
"""Of changes to one tool."""


def show(surface: Surface, client: ClientName, form: str, screen: Screen) -> None:
    """Print the tools as this client sees them: `text` for people, `json` with the list as it stands in a request."""
    from longshore.schema.standards.seen import see

    sight = see(surface, client)
    if form == "json":
        screen.json(_as_json(sight))
    else:
        screen.lines(_lines(sight))


def _as_json(sight: Sight) -> dict[str, Any]:
    return {
        "client": sight.client,
        "tokens": sight.tokens,
        "instructions": sight.instructions,
        "tools": sight.handed,
        "marks": sight.marks,
        "changes": [
            {"tool": tool.name, "sent": "" if tool.is_lost else tool.sent, "marks": tool.marks}
            for tool in sight.tools
            if tool.marks
        ],
    }


def _lines(sight: Sight) -> Iterator[Line]:
    for tool in sight.tools:
        yield from _tool_lines(tool)
        yield 0, []
    yield from _told(sight.marks, 0)
    kept, listed = sum(not tool.is_lost for tool in sight.tools), many(len(sight.tools), "tool")
    yield 0, [(f"{sight.title} hands on {kept} of {listed}, about {many(sight.tokens, 'token')}", "bold")]
    if sight.fails:
        yield 0, [("the list can't be read, so none of its tools is there", "bold red")]
    if sight.is_refused:
        yield 0, [("no request gets through with this list", "bold red")]


def _tool_lines(tool: Seen) -> Iterator[Line]:
    name = _head(tool.name if tool.is_lost else tool.sent) or "(no name)"
    yield 0, [(name, "bold"), ("  lost", "bold red") if tool.is_lost else (f"  {many(tool.tokens, 'token')}", "dim")]
    if said := _head(tool.handed.get("description") or ""):
        yield 2, [(said, "")]
    told = list(_told(tool.marks, 2))
    yield from told[:MOST_LINES]
    if more := len(told[MOST_LINES:]):
        yield 2, [(f"~ and {more} more", "dim")]


def _told(marks: Iterable[Mark], indent: int) -> Iterator[Line]:
    """What happened in many places is said once."""
    places: dict[Mark, list[Mark]] = {}
    for mark in marks:
        places.setdefault(replace(mark, path=""), []).append(mark)
    for first, *others in places.values():
        where = f"{_head(first.path)}: " if first.path else ""
        more = f", and in {many(len(others), 'more place')}" if others else ""
        known = f"  ({first.rule}; {first.known})" if first.rule else f"  ({first.known})"
        text = f"{'!' if first.costs else '~'} {where}{one_line(first.what)}{more}"
        yield indent, [(text, "red" if first.costs else "yellow"), (known, "dim")]


def _head(text: str) -> str:
    return short(text, HEAD_CHARACTERS)
