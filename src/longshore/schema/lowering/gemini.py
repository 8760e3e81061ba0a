"""Gemini's older field for parameters: a record of its own, which refuses keywords that it has no member for."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from longshore.protocol.annotation import ANNOTATION
from longshore.schema.kinds import is_array, is_object
from longshore.schema.lowering.strict import tell_default
from longshore.schema.nullable import NULL, without_null
from longshore.schema.rewriting.combinators import with_all_joined
from longshore.schema.rewriting.everywhere import Schema, TooMuch, Walk, less, tell
from longshore.schema.rewriting.references import resolve

_FIELDS: Final = frozenset(
    (
        *("type", "format", "title", "description", "nullable", "enum", "default", "example", "anyOf"),
        *("items", "minItems", "maxItems", "properties", "required", "minProperties", "maxProperties"),
        *("minLength", "maxLength", "pattern", "minimum", "maximum", "propertyOrdering"),
    )
)

_MOST_VALUES: Final = 20
"""Values that are named in a description, where an enum can't be."""


def in_fields_of_gemini(schema: Any) -> Any:
    """One type and `nullable` for a list of types, no references, and nothing but what the record has."""
    if not is_object(schema):
        return schema
    try:
        once = Walk(lambda each: _write(each, schema)).visit(schema)
        return Walk(lambda each: _write(each, schema)).visit(once)  # an option that was left alone has come up a level
    except TooMuch:
        return {"type": "object"}  # whatever else it says would be refused


def _write(schema: Schema, root: Schema) -> Schema:
    if "prefixItems" in schema:
        schema = less(schema, "items")  # which speaks only of what comes after them
    written = _bound(_separate_null(_choose(with_all_joined(_follow(schema, root)))))
    fields = {key: value for key, value in written.items() if key in _FIELDS or key == ANNOTATION}
    return _spread(fields) if "anyOf" in fields else _complete(fields)


def _follow(schema: Schema, root: Schema) -> Schema:
    """A reference that is still there is to something that holds itself. Its type is all that can be said of it."""
    target = resolve({"$ref": schema["$ref"]}, root) if "$ref" in schema else None
    kind = target.get("type") if is_object(target) else None
    return {**({} if kind is None else {"type": kind}), **less(schema, "$ref")}


def _choose(schema: Schema) -> Schema:
    """Alternatives as `anyOf`, a single value as `enum`."""
    if "oneOf" in schema:
        schema = {"anyOf": schema["oneOf"], **less(schema, "oneOf")}
    return {"enum": [schema["const"]], **less(schema, "const")} if "const" in schema else schema


def _separate_null(schema: Schema) -> Schema:
    schema = _without_null_option(_split_types(schema))
    values = schema.get("enum")
    if not is_array(values):
        return schema
    others = [each for each in values if each is not None]
    null = {"nullable": True} if len(others) < len(values) else {}
    if others and schema.get("type", "string") == "string" and all(isinstance(each, str) for each in others):
        return {**schema, "type": "string", "enum": others, **null}
    return {**_tell_values(less(schema, "enum"), others), **null}


def _split_types(schema: Schema) -> Schema:
    kinds = without_null(schema).get("type")
    if not is_array(kinds):
        null = {"nullable": True} if kinds != schema.get("type") else {}
        return {**without_null(schema), **null}
    options = [{"type": kind} for kind in kinds]
    return less(schema, "type") if "anyOf" in schema else {**less(schema, "type"), "anyOf": options}


def _without_null_option(schema: Schema) -> Schema:
    options = schema.get("anyOf")
    if not is_array(options) or NULL not in options:
        return schema
    rest = [each for each in options if each != NULL]
    beside = {**less(schema, "anyOf"), "nullable": True}
    if len(rest) == 1 and is_object(rest[0]):
        return _choose(with_all_joined({**beside, "allOf": rest}))
    return {**beside, "anyOf": rest} if rest else beside


def _tell_values(schema: Schema, values: list[Any]) -> Schema:
    """Only texts can be enumerated, so other values are named in words."""
    if not 0 < len(values) <= _MOST_VALUES:
        return schema
    try:
        return tell(schema, f"One of {', '.join(msgspec.json.encode(each).decode() for each in values)}.")
    except Exception:  # an author may have put anything there
        return schema


def _bound(schema: Schema) -> Schema:
    """There are no exclusive bounds; the bound itself is let in."""
    for bound in ("minimum", "maximum"):
        exclusive = schema.get(f"exclusive{bound.capitalize()}")
        if isinstance(exclusive, (int, float)) and not isinstance(exclusive, bool) and bound not in schema:
            schema = {**schema, bound: exclusive}
    return schema


def _spread(schema: Schema) -> Schema:
    """Nothing may stand beside `anyOf`, so each option says it. A default might not fit all of them."""
    beside = less(tell_default(schema), "anyOf", "default", ANNOTATION)
    if not beside or not is_array(schema["anyOf"]):
        return schema if is_array(schema["anyOf"]) else _complete(beside)
    options = [_joined(beside, each) if is_object(each) else each for each in schema["anyOf"]]
    return {**{key: schema[key] for key in schema if key == ANNOTATION}, "anyOf": options}


def _joined(beside: Schema, option: Schema) -> Schema:
    """Both, the option where they differ. What is looser than both is well."""
    joined = {**beside, **option}
    if is_object(beside.get("properties")) and is_object(option.get("properties")):
        joined["properties"] = {**beside["properties"], **option["properties"]}
    if is_array(beside.get("required")) and is_array(option.get("required")):
        joined["required"] = [
            *beside["required"],
            *(each for each in option["required"] if each not in beside["required"]),
        ]
    return joined


def _complete(schema: Schema) -> Schema:
    """Every array has items, and only what is described can be required."""
    if schema.get("type") == "array" and not is_object(schema.get("items")):
        schema = {**schema, "items": {}}
    required, named = schema.get("required"), schema.get("properties")
    if not is_array(required):
        return schema
    known = [each for each in required if isinstance(each, str) and is_object(named) and each in named]
    return {**schema, "required": known} if known else less(schema, "required")
