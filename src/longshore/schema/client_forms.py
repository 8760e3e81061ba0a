"""A tool in the form that one kind of client accepts: its schemas in the keywords that this client knows.

Lowering only loosens. Every valid call stays valid; constraints that a client's keywords can't express are left out of
the schema, and the server still validates by the author's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import Struct

from longshore.schema.combinators import with_all_joined, without_root_combinators
from longshore.schema.header_params import ANNOTATION
from longshore.schema.kinds import as_array, is_array, is_object
from longshore.schema.rewrite import (
    definition_of,
    inlined,
    modernised,
    with_items,
    with_object_root,
    with_properties,
    without_booleans,
)
from longshore.schema.walk import (
    ANNOTATIONS,
    CLOSED,
    NULL,
    Rewriter,
    Schema,
    SchemaTooLarge,
    add_sentence,
    has_type,
    with_null,
    without,
)

Form = Literal["claude", "openai", "openai-strict", "gemini", "vscode", "cursor", "brooklyn"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)

Step = Callable[[Any], Any]


def lower(tool: dict[str, Any], form: Form) -> dict[str, Any]:
    """Convert a tool, as in `tools/list`, to one of the forms.

    It may be any server's, and malformed; nothing raises.
    """
    lowering = _LOWERINGS[form]
    schema, sentence = _lower_input(tool.get("inputSchema"), lowering)
    lowered = add_sentence({**tool, "inputSchema": schema}, sentence)
    if "outputSchema" in lowered:
        lowered = _lower_output(lowered)
    return {**lowered, "input_schema": schema} if lowering.snake else lowered


def _lower_input(schema: Any, lowering: _Lowering) -> tuple[dict[str, Any], str]:
    schema = _with_open_root(schema)
    for step in lowering.first:
        schema = step(schema)
    # Both big APIs refuse combinators at the root, and the clients that don't belong to one of them send to either.
    schema, sentence = without_root_combinators(schema)
    schema = with_object_root(without_booleans(schema))
    for step in lowering.then:
        schema = step(schema)
    return schema, sentence


def _with_open_root(schema: Any) -> Any:
    """A root needs a type and properties of its own."""
    return inlined(schema) if is_object(schema) and "$ref" in schema else schema


def _lower_output(tool: dict[str, Any]) -> dict[str, Any]:
    """Clients built on the official SDK drop a whole list for an output schema that is not of an object."""
    schema = _with_open_root(tool["outputSchema"])
    if is_object(schema) and schema.get("type") == "object":
        return {**tool, "outputSchema": without_booleans(schema)}
    return without(tool, "outputSchema")


# -- OpenAI's strict form: every object closed, every property required, null for an optional one

_STRICT_KEYWORDS: Final = frozenset(
    (
        *("type", "description", "enum", "const", "anyOf", "$ref", "$defs"),
        *("properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format"),
    )
)
_STRICT_FORMATS: Final = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"),
)


class _NotStrict(Exception):
    """The strict form would refuse calls that are possible now: an object of any keys, a value of any type."""


def made_strict(schema: Any) -> Any:
    """The strict form, or the schema unchanged where that would lose calls: it can still be sent without `strict`.

    Closing an object loses the keys that it allows but does not name. A root that names none takes none.
    """
    if "$ref" in schema:
        return schema  # a reference to something that does not exist
    try:
        return Rewriter(_write_strict).rewrite({**schema, "properties": schema.get("properties", {})})
    except (_NotStrict, SchemaTooLarge):
        return schema


def _write_strict(schema: Schema) -> Schema:
    if isinstance(schema.get("$ref"), str):
        return {key: schema[key] for key in ("$ref", "$defs") if key in schema}  # nothing may be beside a reference
    joined = with_all_joined(schema)
    if "oneOf" in joined:
        joined = {**without(joined, "oneOf"), "anyOf": joined["oneOf"]}
    if has_type(joined, "object") and "anyOf" in joined:
        joined = _one_object(joined)
    if not {"type", "enum", "const", "anyOf"}.intersection(joined):
        raise _NotStrict
    if has_type(joined, "array") and ("prefixItems" in joined or not is_object(joined.get("items"))):
        raise _NotStrict
    if str(joined.get("format")) not in _STRICT_FORMATS:
        joined = without(joined, "format")
    described = _describe_default(_close(joined) if has_type(joined, "object") else joined)
    return {key: value for key, value in described.items() if key in _STRICT_KEYWORDS or key == ANNOTATION}


def _one_object(schema: Schema) -> Schema:
    """Closing an object that has alternatives would refuse the properties that only they name: move it into them."""
    if without(schema, "type", "anyOf").keys() <= ANNOTATIONS and is_array(schema["anyOf"]):
        options = [{"type": schema["type"], **each} if is_object(each) else each for each in schema["anyOf"]]
        return {**without(schema, "type"), "anyOf": options}
    return add_sentence(*without_root_combinators(schema))


def _close(schema: Schema) -> Schema:
    rest = schema.get("additionalProperties")
    named = schema.get("properties", {} if rest is False else None)
    if not is_object(named) or is_object(rest) or "patternProperties" in schema:
        raise _NotStrict
    needed = [name for name in as_array(schema.get("required")) if isinstance(name, str)]
    if any(name not in named for name in needed):
        raise _NotStrict
    properties = {name: each if name in needed else _optional(each) for name, each in named.items()}
    return {**schema, "properties": properties, "required": [*properties], "additionalProperties": False}


def _optional(schema: Any) -> Any:
    if not is_object(schema) or _accepts_null(schema):
        return schema
    if ANNOTATION in schema:
        raise _NotStrict  # an argument that is repeated in a header has one type
    return with_null(schema) or {"anyOf": [schema, NULL]}


def _accepts_null(schema: Schema) -> bool:
    if schema.keys() <= ANNOTATIONS | {"anyOf"}:
        return is_array(schema.get("anyOf")) and NULL in schema["anyOf"]
    values = schema.get("enum", [None])
    return has_type(schema, "null") and is_array(values) and None in values and CLOSED.isdisjoint(schema)


def _describe_default(schema: Schema) -> Schema:
    """Write the default into the description: the form has no keyword for it, and a model needs the meaning of null."""
    default = schema.get("default")
    if default is None or "default" in str(schema.get("description")).lower():
        return schema
    return _describe_values(schema, "Default: {}.", [default])


def _describe_values(schema: Schema, sentence: str, values: list[Any]) -> Schema:
    return add_sentence(schema, sentence.format(", ".join(msgspec.json.encode(each).decode() for each in values)))


# -- Gemini's older field for parameters: a record of its own, which refuses keywords that it has no member for

_GEMINI_FIELDS: Final = frozenset(
    (
        *("type", "format", "title", "description", "nullable", "enum", "default", "example", "anyOf"),
        *("items", "minItems", "maxItems", "properties", "required", "minProperties", "maxProperties"),
        *("minLength", "maxLength", "pattern", "minimum", "maximum", "propertyOrdering"),
    )
)

_MAX_VALUES: Final = 20
"""Values that a description lists where an enum can't."""


def in_fields_of_gemini(schema: Any) -> Any:
    """One type and `nullable` for a list of types, no references, and no keyword that the record doesn't have."""
    if not is_object(schema):
        return schema
    try:
        once = Rewriter(lambda each: _write_gemini(each, schema)).rewrite(schema)
        # Again: a single option has moved up a level.
        return Rewriter(lambda each: _write_gemini(each, schema)).rewrite(once)
    except SchemaTooLarge:
        return {"type": "object"}


def _write_gemini(schema: Schema, root: Schema) -> Schema:
    if "prefixItems" in schema:
        schema = without(schema, "items")  # which is about the items after the prefix
    written = _inclusive(_separate_null(_choose(with_all_joined(_without_ref(schema, root)))))
    fields = {key: value for key, value in written.items() if key in _GEMINI_FIELDS or key == ANNOTATION}
    return _spread(fields) if "anyOf" in fields else _complete(fields)


def _without_ref(schema: Schema, root: Schema) -> Schema:
    """A reference that is still there is recursive. Only the type of its definition can be written."""
    target = definition_of({"$ref": schema["$ref"]}, root) if "$ref" in schema else None
    kind = target.get("type") if is_object(target) else None
    return {**({} if kind is None else {"type": kind}), **without(schema, "$ref")}


def _choose(schema: Schema) -> Schema:
    """Alternatives as `anyOf`, a single value as `enum`."""
    if "oneOf" in schema:
        schema = {"anyOf": schema["oneOf"], **without(schema, "oneOf")}
    return {"enum": [schema["const"]], **without(schema, "const")} if "const" in schema else schema


def _separate_null(schema: Schema) -> Schema:
    """`nullable` for null among the types, the options or the values."""
    null = False
    if is_array(kinds := schema.get("type")):
        named = [each for each in kinds if each != "null"]
        null, schema = len(named) < len(kinds), without(schema, "type")
        if len(named) == 1:
            schema["type"] = named[0]
        elif named and "anyOf" not in schema:
            schema["anyOf"] = [{"type": each} for each in named]
    if is_array(options := schema.get("anyOf")) and NULL in options:
        rest = [each for each in options if each != NULL]
        null, schema = True, without(schema, "anyOf")
        if len(rest) == 1 and is_object(rest[0]):
            schema = _choose(with_all_joined({**schema, "allOf": rest}))
        elif rest:
            schema["anyOf"] = rest
    values = schema.get("enum")
    null |= is_array(values) and None in values
    return {**_enumerate(schema), **({"nullable": True} if null else {})}


def _enumerate(schema: Schema) -> Schema:
    """Only texts can be enumerated, so other values go into the description."""
    values = schema.get("enum")
    if not is_array(values):
        return schema
    rest, others = without(schema, "enum"), [each for each in values if each is not None]
    if others and schema.get("type", "string") == "string" and all(isinstance(each, str) for each in others):
        return {**rest, "type": "string", "enum": others}
    return _describe_values(rest, "One of {}.", others) if 0 < len(others) <= _MAX_VALUES else rest


def _inclusive(schema: Schema) -> Schema:
    """The record has no exclusive bounds, so the bound itself is allowed."""
    for bound in ("minimum", "maximum"):
        exclusive = schema.get(f"exclusive{bound.capitalize()}")
        if isinstance(exclusive, (int, float)) and not isinstance(exclusive, bool) and bound not in schema:
            schema = {**schema, bound: exclusive}
    return schema


def _spread(schema: Schema) -> Schema:
    """Nothing may be beside `anyOf`, so each option gets it; but not a default, which might not fit all of them."""
    beside = without(_describe_default(schema), "anyOf", "default", ANNOTATION)
    if not beside or not is_array(schema["anyOf"]):
        return schema if is_array(schema["anyOf"]) else _complete(beside)
    options = [_joined(beside, each) if is_object(each) else each for each in schema["anyOf"]]
    return {**{key: schema[key] for key in schema if key == ANNOTATION}, "anyOf": options}


def _joined(beside: Schema, option: Schema) -> Schema:
    """Both, the option where they differ. The result may be looser than both."""
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
    """Every array has items, and only described properties are required."""
    if schema.get("type") == "array" and not is_object(schema.get("items")):
        schema = {**schema, "items": {}}
    required, named = schema.get("required"), schema.get("properties")
    if not is_array(required):
        return schema
    known = [each for each in required if isinstance(each, str) and is_object(named) and each in named]
    return {**schema, "required": known} if known else without(schema, "required")


# -- the forms


class _Lowering(Struct, frozen=True):
    """The steps of one form: before the combinators at the root are removed, and after."""

    first: tuple[Step, ...] = ()
    then: tuple[Step, ...] = ()
    snake: bool = False
    """Whether the schema is repeated under the key `input_schema`."""


_COPILOT: Final = _Lowering((modernised, inlined), (with_items,))
_LOWERINGS: Final[dict[Form, _Lowering]] = {
    "claude": _Lowering(),
    "openai": _Lowering((modernised,), (with_items, with_properties)),
    "openai-strict": _Lowering((modernised, inlined), (made_strict, with_items, with_properties)),
    "gemini": _Lowering((modernised, inlined), (in_fields_of_gemini,)),
    "vscode": _COPILOT,
    "cursor": _COPILOT,
    "brooklyn": _Lowering(snake=True),
}
