"""One change, made to every schema inside of a schema.

Authors and strangers wrote what is changed here: it may be as deep, as large and as wrong as it likes. What is too much
is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, final

from longshore.protocol.subschemas import ALONE, BY_NAME, IN_LISTS, subschemas
from longshore.schema.kinds import is_array, is_object
from longshore.schema.nullable import ANNOTATIONS as ANNOTATIONS

Schema = dict[str, Any]
Change = Callable[[Schema], Schema]

MOST_LEVELS: Final = 64
"""Schemas inside each other. Few have ten, and no client takes as many as this."""

MOST_SCHEMAS: Final = 20_000
"""Schemas inside of one. It also ends what holds itself."""


class TooMuch(Exception):
    """It is deeper or larger than anything that a client would take."""


def change_everywhere(schema: Any, change: Change) -> Any:
    """A new schema in which each has been changed, the outer before the inner; the same one if it is too much."""
    try:
        return Walk(change).visit(schema)
    except TooMuch:
        return schema


def schemas_in(schema: Any) -> Iterator[Schema]:
    """Every schema inside of one, itself first; the first of them, where there are too many."""
    waiting: list[Any] = [schema]
    for _ in range(MOST_SCHEMAS):
        if not waiting:
            return
        found = waiting.pop()
        if is_object(found):
            yield found
            waiting.extend(inner for keyword, value in found.items() for inner in subschemas(keyword, value))


def less(schema: Schema, *keywords: str) -> Schema:
    """The schema without some keywords."""
    return {keyword: value for keyword, value in schema.items() if keyword not in keywords}


def tell(described: dict[str, Any], more: str) -> dict[str, Any]:
    """A schema, or a tool, with a sentence more in its description."""
    said = described.get("description")
    text = f"{said.rstrip()} {more}" if isinstance(said, str) and said.strip() else more
    return {**described, "description": text} if more else described


@final
class Walk:
    """One way through a schema. It ends, with `TooMuch` where it must."""

    def __init__(self, change: Change, most: int = MOST_SCHEMAS) -> None:
        self._change = change
        self._left = most

    def visit(self, schema: Any, levels: int = MOST_LEVELS) -> Any:
        if not is_object(schema):
            return schema
        if levels == 0:
            raise TooMuch
        self.spend()
        return {keyword: self._inner(keyword, value, levels - 1) for keyword, value in self._change(schema).items()}

    def spend(self) -> None:
        """One schema more."""
        self._left -= 1
        if self._left < 0:
            raise TooMuch

    def _inner(self, keyword: str, value: Any, levels: int) -> Any:
        if keyword in BY_NAME and is_object(value):
            return {name: self.visit(schema, levels) for name, schema in value.items()}
        if keyword in IN_LISTS and is_array(value):
            return [self.visit(schema, levels) for schema in value]
        return self.visit(value, levels) if keyword in ALONE else value
