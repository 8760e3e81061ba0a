"""A tool's parameters as a model reads them: what each may be, wherever its schema says so."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from longshore.schema.kinds import is_array, is_object
from longshore.schema.phrase import cut
from longshore.schema.standards.subject import Json, Subject
from longshore.schema.walk import resolve

MOST_PARTS: Final = 50
"""Alternatives of one parameter that are looked at."""

MOST_PARAMETERS: Final = 1_000
"""Parameters of one tool that are looked at. No model fills as many."""

TYPES: Final = ("string", "number", "integer", "boolean", "object", "array", "null")
"""Those that there are. No set: what is looked for may be a list."""
NUMBERS: Final = frozenset(("number", "integer"))
_SAYS_INSIDE: Final = frozenset(
    (
        *("properties", "patternProperties", "additionalProperties", "propertyNames"),
        *("$ref", "anyOf", "oneOf", "allOf", "enum", "const"),
    )
)


class Parameter(Struct, frozen=True):
    """`parts` are its schema, what that refers to, and its alternatives: each says what a value may be."""

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
        """The names of its types; null is left out."""
        return {name for part in self.parts for name in type_names(part)} - {"null"}

    @property
    def is_number(self) -> bool:
        return bool(self.types) and self.types <= NUMBERS

    @property
    def is_string(self) -> bool:
        return self.types == {"string"}

    def find(self, *keywords: str) -> Any:
        """What the first of its parts says under one of these keywords."""
        return next((part[each] for part in self.parts for each in keywords if each in part), None)

    def has(self, *keywords: str) -> bool:
        return any(each in part for part in self.parts for each in keywords)


def types_of(schema: Any) -> list[Any]:
    """What a schema has for names of types. They may be anything: an author wrote them."""
    named: Any = schema.get("type", []) if is_object(schema) else []
    return named if is_array(named) else [named]


def type_names(schema: Any) -> list[str]:
    """The names among them."""
    return [each for each in types_of(schema) if isinstance(each, str)]


def is_opaque(schema: Json) -> bool:
    """Whether it takes objects and doesn't say what is in them."""
    return "object" in type_names(schema) and _SAYS_INSIDE.isdisjoint(schema)


@lru_cache(1)  # every rule asks for those of the same tool
def parameters(subject: Subject) -> tuple[Parameter, ...]:
    """The parameters of a tool that have a schema worth the name."""
    required = frozenset(subject.required)
    return tuple(
        _parameter(str(name), schema, subject, name in required)
        for name, schema in islice(subject.properties.items(), MOST_PARAMETERS)
        if is_object(schema)
    )


def _parameter(name: str, schema: Json, subject: Subject, required: bool) -> Parameter:
    path = f"inputSchema.properties.{cut(name)}"
    return Parameter(name, path, schema, find_parts(schema, subject.input), required)


def find_parts(schema: Json, root: Json) -> list[Json]:
    """A schema, what it refers to and its alternatives. Cycles end where they began."""
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
