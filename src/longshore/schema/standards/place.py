"""Places inside of a tool: how they are shown, and how what stands there is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from longshore.schema.kinds import is_object
from longshore.schema.standards.subject import Json, Node, Subject

SHOWN_CHARS: Final = 70
"""Of a place in a message. Where it is cut, its end is kept: that is what is looked for."""

SCHEMAS: Final = ("inputSchema", "outputSchema")


def show(path: str) -> str:
    """A place as it stands in a message."""
    return path if len(path) <= SHOWN_CHARS else f"…{path[1 - SHOWN_CHARS :]}"


def schemas_of(subject: Subject) -> Iterator[tuple[str, Json]]:
    """The schemas of a tool that are worth the name, each with its key."""
    for key in SCHEMAS:
        schema = subject.tool.get(key)
        if is_object(schema):
            yield key, schema


def nodes_of(subject: Subject, key: str) -> list[Node]:
    """The schemas inside of one of them, which are worth the name too."""
    return [node for node in subject.nodes() if node.path.startswith(key) and is_object(node.schema)]


def changed(change: Callable[[Any], Any], *keys: str) -> Callable[[Json], Json]:
    """What mends a tool by changing its schemas."""

    def mend(tool: Json) -> Json:
        found = {key: change(tool[key]) for key in keys or SCHEMAS if is_object(tool.get(key))}
        return {**tool, **found}

    return mend
