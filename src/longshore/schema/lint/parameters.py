"""A tool's parameters: what each may be, wherever its schema says so."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from longshore.schema.kinds import is_array, is_object
from longshore.schema.lint.tool_list import Json, LintedTool
from longshore.schema.phrase import cut
from longshore.schema.walk import resolve

MOST_PARTS: Final = 50
"""Alternatives of one parameter that are checked."""
MOST_PARAMETERS: Final = 1_000
"""Parameters of one tool that are checked."""
TYPES: Final = ("string", "number", "integer", "boolean", "object", "array", "null")
"""The types of JSON Schema. Not a set: the value that is looked for may be a list."""
NUMBERS: Final = frozenset(("number", "integer"))
_SAYS_INSIDE: Final = frozenset(
    (
        *("properties", "patternProperties", "additionalProperties", "propertyNames"),
        *("$ref", "anyOf", "oneOf", "allOf", "enum", "const"),
    )
)


class ToolParameter(Struct, frozen=True):
    """`parts` are its schema, the schemas that it refers to, and its alternatives."""

    name: str
    path: str
    schema: Json
    parts: list[Json]
    required: bool

    @property
    def description(self) -> str:
        return next((text for part in self.parts if isinstance(text := part.get("description"), str) and text), "")

    @property
    def types(self) -> set[str]:
        """The names of its types without null."""
        return {name for part in self.parts for name in type_names(part)} - {"null"}

    @property
    def is_number(self) -> bool:
        return bool(self.types) and self.types <= NUMBERS

    @property
    def is_string(self) -> bool:
        return self.types == {"string"}

    def find(self, *keywords: str) -> Any:
        """The value of the first of these keywords in the first part that has one."""
        return next((part[each] for part in self.parts for each in keywords if each in part), None)

    def has(self, *keywords: str) -> bool:
        return any(each in part for part in self.parts for each in keywords)


def types_of(schema: Any) -> list[Any]:
    """The value of `type` as a list. Its items may be any JSON value."""
    named: Any = schema.get("type", []) if is_object(schema) else []
    return named if is_array(named) else [named]


def type_names(schema: Any) -> list[str]:
    """The strings among them."""
    return [each for each in types_of(schema) if isinstance(each, str)]


def is_opaque(schema: Json) -> bool:
    """Whether it accepts objects and doesn't say what is in them."""
    return "object" in type_names(schema) and _SAYS_INSIDE.isdisjoint(schema)


@lru_cache(1)  # every rule asks for the parameters of the same tool
def parameters(tool: LintedTool) -> tuple[ToolParameter, ...]:
    """The parameters of a tool whose schema is an object."""
    required = frozenset(tool.required)
    return tuple(
        _parameter(str(name), schema, tool, name in required)
        for name, schema in islice(tool.properties.items(), MOST_PARAMETERS)
        if is_object(schema)
    )


def _parameter(name: str, schema: Json, tool: LintedTool, required: bool) -> ToolParameter:
    path = f"inputSchema.properties.{cut(name)}"
    return ToolParameter(name, path, schema, find_parts(schema, tool.input), required)


def find_parts(schema: Json, root: Json) -> list[Json]:
    """A schema, the schemas that it refers to, and its alternatives; each once."""
    parts, waiting, seen = list[Json](), [schema], set[int]()
    while waiting and len(parts) < MOST_PARTS:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            parts.append(part)
            waiting += reversed([each for each in _next(part, root) if is_object(each)])
    return parts


def _next(part: Json, root: Json) -> list[Any]:
    choices = [part[key][:MOST_PARTS] for key in ("anyOf", "oneOf", "allOf") if is_array(part.get(key))]
    return [resolve(root, part.get("$ref")), *(each for group in choices for each in group)]
