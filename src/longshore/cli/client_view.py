"""Printing a server's tools as a client hands them to its model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from longshore.cli.screen import Line, Screen, many, one_line, short

if TYPE_CHECKING:
    from longshore.schema.lint.clients import ClientName
    from longshore.schema.lint.tool_list import ToolList
    from longshore.schema.lint.view import ClientView, ObservedEffect, ToolView

HEAD_CHARACTERS: Final = 100
"""Characters of a description, a name or a path. The JSON form has all of them."""
MOST_LINES: Final = 20
"""Lines about one tool."""


def show(server: ToolList, client: ClientName, form: str, screen: Screen) -> None:
    """Print the tools as `text`, or as `json` with the list that stands in the client's request."""
    from longshore.schema.lint.view import view_as

    view = view_as(server, client)
    if form == "json":
        screen.json(_as_json(view))
    else:
        screen.lines(_lines(view))


def _as_json(view: ClientView) -> dict[str, Any]:
    return {
        "client": view.client,
        "tokens": view.tokens,
        "instructions": view.instructions,
        "tools": view.handed,
        "marks": view.marks,
        "changes": [
            {"tool": tool.name, "sent": "" if tool.is_lost else tool.sent, "marks": tool.marks}
            for tool in view.tools
            if tool.marks
        ],
    }


def _lines(view: ClientView) -> Iterator[Line]:
    for tool in view.tools:
        yield from _tool_lines(tool)
        yield 0, []
    yield from _effect_lines(view.marks, 0)
    handed, listed = sum(not tool.is_lost for tool in view.tools), many(len(view.tools), "tool")
    yield 0, [(f"{view.title} hands on {handed} of {listed}, about {many(view.tokens, 'token')}", "bold")]
    if view.fails:
        yield 0, [("the list can't be read, so none of its tools is there", "bold red")]
    if view.is_refused:
        yield 0, [("no request gets through with this list", "bold red")]


def _tool_lines(tool: ToolView) -> Iterator[Line]:
    name = _head(tool.name if tool.is_lost else tool.sent) or "(no name)"
    yield 0, [(name, "bold"), ("  lost", "bold red") if tool.is_lost else (f"  {many(tool.tokens, 'token')}", "dim")]
    if said := _head(tool.handed.get("description") or ""):
        yield 2, [(said, "")]
    lines = list(_effect_lines(tool.marks, 2))
    yield from lines[:MOST_LINES]
    if more := len(lines[MOST_LINES:]):
        yield 2, [(f"~ and {more} more", "dim")]


def _effect_lines(marks: Iterable[ObservedEffect], indent: int) -> Iterator[Line]:
    """One line for each kind of effect, with the number of places."""
    places: dict[ObservedEffect, list[ObservedEffect]] = {}
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
