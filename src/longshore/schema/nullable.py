"""Null beside a type, in one list: `["string", "null"]`.

Two of three clients send that to their model as it is and the third understands it. A union with null is a union,
which all of them handle worse.
"""

from __future__ import annotations

from typing import Any, Final

from longshore.schema.kinds import is_array

Schema = dict[str, Any]

NULL: Final = {"type": "null"}
_CLOSED: Final = frozenset(("const", "not", "anyOf", "oneOf", "allOf", "if", "$ref", "$dynamicRef", "$recursiveRef"))
"""Keywords that speak of null too, so that a type beside them is not enough. `enum` is one, and gets it as a value."""


def with_null(schema: Schema) -> Schema | None:
    """The same or null, as a list of types. None where that can't be written."""
    kind = schema.get("type")
    if not isinstance(kind, str) or not _CLOSED.isdisjoint(schema):
        return None
    values = schema.get("enum")
    choice = {"enum": [*values, None]} if is_array(values) and None not in values else {}
    return {**schema, "type": kind if kind == "null" else [kind, "null"], **choice}


def without_null(schema: Schema) -> Schema:
    """The other way round: what `with_null` wrote, as it was. All else as it is."""
    match schema.get("type"):
        case [str(kind), "null"]:
            values = schema.get("enum")
            choice = {"enum": [each for each in values if each is not None]} if is_array(values) else {}
            return {**schema, "type": kind, **choice}
        case _:
            return schema
