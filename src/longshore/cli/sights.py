"""Showing a server's tools as a client hands them to its model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from longshore.cli.screen import Screen, one_line

if TYPE_CHECKING:
    from longshore.schema.standards.clients import ClientName
    from longshore.schema.standards.seen import Mark, Seen, Sight
    from longshore.schema.standards.subject import Surface

HEAD_CHARACTERS = 100
"""Of a description: enough to know the tool again. The whole of it is in the JSON."""
MOST_LINES = 20
"""Of changes to one tool."""


def show(surface: Surface, client: ClientName, form: Literal["text", "json"], screen: Screen) -> None:
    """Print the tools as this client sees them: for people, or the list as it stands in the client's request."""
    from longshore.schema.standards.seen import see

    sight = see(surface, client)
    if form == "json":
        screen.json(_as_json(sight))
    else:
        screen.text("\n".join(_lines(sight)))


def _as_json(sight: Sight) -> dict[str, object]:
    return {
        "client": sight.client,
        "tokens": sight.tokens,
        "instructions": sight.instructions,
        "tools": sight.handed,
        "marks": sight.marks,
        "changes": [{"tool": tool.name, "sent": tool.sent, "marks": tool.marks} for tool in sight.tools if tool.marks],
    }


def _lines(sight: Sight) -> Iterator[str]:
    for tool in sight.tools:
        yield from _tool_lines(tool)
        yield ""
    for mark in sight.marks:
        yield f"server: {_told(mark)}"
    handed, all_tools = sum(not tool.is_lost for tool in sight.tools), _count(len(sight.tools), "tool")
    yield f"{sight.title} hands on {handed} of {all_tools}, about {_count(sight.tokens, 'token')}."
    if any(mark.costs == "request" for mark in sight.every_mark()):
        yield "No request gets through with this list."


def _tool_lines(tool: Seen) -> Iterator[str]:
    name = one_line(tool.name if tool.is_lost else tool.sent) or "(no name)"
    yield f"{name}  lost" if tool.is_lost else f"{name}  {_count(tool.tokens, 'token')}"
    if head := one_line(str(tool.handed.get("description", ""))):
        yield f"  {head[:HEAD_CHARACTERS]}{'…' if len(head) > HEAD_CHARACTERS else ''}"
    told = list(_told_together(tool.marks))
    yield from (f"  {line}" for line in told[:MOST_LINES])
    if more := len(told[MOST_LINES:]):
        yield f"  ~ and {more} more"


def _told_together(marks: tuple[Mark, ...]) -> Iterator[str]:
    """What happened in many places is said once."""
    places: dict[Mark, list[Mark]] = {}
    for mark in marks:
        places.setdefault(replace(mark, path=""), []).append(mark)
    for first, *others in places.values():
        more = f", and in {_count(len(others), 'more place')}" if others else ""
        yield f"{'!' if first.costs else '~'} {_told(first)}{more}"


def _told(mark: Mark) -> str:
    place = f"{one_line(mark.path)}: " if mark.path else ""
    rule = f"{mark.rule}; " if mark.rule else ""
    return f"{place}{one_line(mark.what)} ({rule}{mark.known})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
