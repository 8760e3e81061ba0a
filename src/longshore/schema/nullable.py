"""Null beside a type, in one list: `["string", "null"]`.

Two of three clients send that to their model as it is and the third understands it. A union with null is a union,
which all of them handle worse.
"""

from __future__ import annotations

from typing import Any, Final

from longshore.schema.kinds import is_array, is_object

Schema = dict[str, Any]

NULL: Final = {"type": "null"}
ANNOTATIONS: Final = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment")
)
"""Keywords that tell something and check nothing."""
CLOSED: Final = frozenset(("const", "not", "anyOf", "oneOf", "allOf", "if", "$ref", "$dynamicRef", "$recursiveRef"))
"""Keywords that speak of null too, so that a type beside them is not enough. `enum` is one, and gets it as a value."""


def with_null(schema: Schema) -> Schema | None:
    """The same or null, as a list of types. None where that can't be written."""
    kind = schema.get("type")
    if not isinstance(kind, str) or not CLOSED.isdisjoint(schema):
        return None
    values = schema.get("enum")
    choice = {"enum": [*values, None]} if is_array(values) and None not in values else {}
    return {**schema, "type": kind if kind == "null" else [kind, "null"], **choice}


def list_null(schema: Schema) -> Schema:
    """A union with null as a list of types, where it can be one."""
    keyword = "anyOf" if "anyOf" in schema else "oneOf"
    options: Any = schema.get(keyword)
    others = [each for each in options if each != NULL] if is_array(options) else []
    written = with_null(others[0]) if len(others) == 1 and len(options) == 2 and is_object(others[0]) else None
    beside = {key: value for key, value in schema.items() if key != keyword}
    if written is None or not all(key in ANNOTATIONS or str(key).startswith("x-") for key in beside):
        return schema
    return {**written, **beside}


def without_null(schema: Schema) -> Schema:
    """The other way round: what `with_null` wrote, as it was. All else as it is."""
    match schema.get("type"):
        case [str(kind), "null"]:
            values = schema.get("enum")
            choice = {"enum": [each for each in values if each is not None]} if is_array(values) else {}
            return {**schema, "type": kind, **choice}
        case _:
            return schema
