"""Small changes after which a schema means the same, in words that more clients know."""

from __future__ import annotations

from typing import Any, Final

from longshore.protocol.subschemas import ALONE, BY_NAME, IN_LISTS
from longshore.schema.kinds import is_array, is_object
from longshore.schema.rewriting.everywhere import Schema, change_everywhere, less, schemas_in

SWITCHES: Final = frozenset(("additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems"))
"""Where a boolean is the usual way of writing, which all clients take."""


def with_object_root(schema: Any) -> Schema:
    """`type: object` at the root: arguments are always an object."""
    if not is_object(schema):
        return {"type": "object"}
    return schema if schema.get("type") == "object" else {"type": "object", **less(schema, "type")}


def without_booleans(schema: Any) -> Any:
    """`{}` for true and `{"not": {}}` for false, wherever a boolean stands for a schema but after a switch."""
    return change_everywhere(schema, _spell_booleans)


def with_items(schema: Any) -> Any:
    """`items` for every array. Left alone is what looks at items that no keyword has spoken of."""
    if any("unevaluatedItems" in each for each in schemas_in(schema)):
        return schema
    return change_everywhere(schema, lambda each: _add(each, "array", "items"))


def with_properties(schema: Any) -> Any:
    """`properties` for every object."""
    return change_everywhere(schema, lambda each: _add(each, "object", "properties"))


def has_type(schema: Schema, kind: str) -> bool:
    """The schema says that a value may be of this type."""
    found = schema.get("type")
    return found == kind or (is_array(found) and kind in found)


def _add(schema: Schema, kind: str, keyword: str) -> Schema:
    return {**schema, keyword: {}} if has_type(schema, kind) and keyword not in schema else schema


def _spell_booleans(schema: Schema) -> Schema:
    return {keyword: _spelled(keyword, value) for keyword, value in schema.items()}


def _spelled(keyword: str, value: Any) -> Any:
    if keyword in BY_NAME and is_object(value):
        return {name: _spell(each) for name, each in value.items()}
    if keyword in IN_LISTS and is_array(value):
        return [_spell(each) for each in value]
    return _spell(value) if keyword in ALONE and keyword not in SWITCHES else value


def _spell(schema: Any) -> Any:
    if schema is True:
        return {}
    return {"not": {}} if schema is False else schema
