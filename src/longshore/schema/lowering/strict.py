"""OpenAI's strict form: every object closed, every property required, null for what may be left out."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from longshore.protocol.annotation import ANNOTATION
from longshore.schema.kinds import is_array, is_object
from longshore.schema.nullable import ANNOTATIONS, CLOSED, NULL, with_null
from longshore.schema.rewriting.combinators import with_all_joined, without_root_combinators
from longshore.schema.rewriting.everywhere import Schema, TooMuch, Walk, less, tell
from longshore.schema.rewriting.plain import has_type

_KEPT: Final = frozenset(
    (
        *("type", "description", "enum", "const", "anyOf", "$ref", "$defs"),
        *("properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format"),
    )
)
_FORMATS: Final = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"),
)


class _Unfit(Exception):
    """Made strict, it would lose calls that can be made now: an object of any keys, a value of any type."""


def made_strict(schema: Any) -> Any:
    """The strict form, or the schema as it is where that would lose calls: it can still be sent without `strict`.

    Closing an object loses what it takes but does not name. A root that names nothing takes nothing.
    """
    if "$ref" in schema:
        return schema  # to what is not there
    try:
        return Walk(_write).visit({**schema, "properties": schema.get("properties", {})})
    except (_Unfit, TooMuch):
        return schema


def _write(schema: Schema) -> Schema:
    if isinstance(schema.get("$ref"), str):
        return {key: schema[key] for key in ("$ref", "$defs") if key in schema}  # a reference stands alone
    joined = with_all_joined(schema)
    if "oneOf" in joined:
        joined = {**less(joined, "oneOf"), "anyOf": joined["oneOf"]}
    if has_type(joined, "object") and "anyOf" in joined:
        joined = _one_object(joined)
    if not {"type", "enum", "const", "anyOf"}.intersection(joined):
        raise _Unfit
    if has_type(joined, "array") and ("prefixItems" in joined or not is_object(joined.get("items"))):
        raise _Unfit
    if str(joined.get("format")) not in _FORMATS:
        joined = less(joined, "format")
    told = tell_default(_close(joined) if has_type(joined, "object") else joined)
    return {key: value for key, value in told.items() if key in _KEPT or key == ANNOTATION}


def _one_object(schema: Schema) -> Schema:
    """An object that is closed beside alternatives would refuse what only those name, so it can't have both."""
    if less(schema, "type", "anyOf").keys() <= ANNOTATIONS and is_array(schema["anyOf"]):
        options = [{"type": schema["type"], **each} if is_object(each) else each for each in schema["anyOf"]]
        return {**less(schema, "type"), "anyOf": options}
    return tell(*without_root_combinators(schema))


def _close(schema: Schema) -> Schema:
    rest, required = schema.get("additionalProperties"), schema.get("required")
    named = schema.get("properties", {} if rest is False else None)
    if not is_object(named) or is_object(rest) or "patternProperties" in schema:
        raise _Unfit
    needed = [name for name in required if isinstance(name, str)] if is_array(required) else []
    if any(name not in named for name in needed):
        raise _Unfit
    properties = {name: each if name in needed else _optional(each) for name, each in named.items()}
    return {**schema, "properties": properties, "required": [*properties], "additionalProperties": False}


def _optional(schema: Any) -> Any:
    if not is_object(schema) or _takes_null(schema):
        return schema
    if ANNOTATION in schema:
        raise _Unfit  # what a header repeats has one type
    return with_null(schema) or {"anyOf": [schema, NULL]}


def _takes_null(schema: Schema) -> bool:
    if schema.keys() <= ANNOTATIONS | {"anyOf"}:
        return is_array(schema.get("anyOf")) and NULL in schema["anyOf"]
    values = schema.get("enum", [None])
    return has_type(schema, "null") and is_array(values) and None in values and CLOSED.isdisjoint(schema)


def tell_default(schema: Schema) -> Schema:
    """A default can't be written, but a model should know what null stands for."""
    default = schema.get("default")
    if default is None or "default" in str(schema.get("description")).lower():
        return schema
    try:
        return tell(schema, f"Default: {msgspec.json.encode(default).decode()}.")
    except Exception:  # an author may have put anything there
        return schema
