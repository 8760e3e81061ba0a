"""A type -> the form that asks a person for it: a flat object of texts, numbers, yes-or-no and choices."""

from __future__ import annotations

from typing import Any

from longshore.schema.custom_type import Schema
from longshore.schema.infer import type_schema
from longshore.schema.rewrite import inlined
from longshore.schema.signature import SignatureProblem
from longshore.schema.walk import NULL, without_null

_KEYWORDS = {
    "string": ("minLength", "maxLength", "format", "enum", "oneOf"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems", "items"),
}
"""Keywords of a field beside type, title, description and default. The others are checked when the answer comes."""
_FORMATS = ("email", "uri", "date", "date-time")
_FLAT = "ask for a bool, a text, a number, a Literal, an enum, a list of choices, or a flat record of those"


def form_schema(tp: Any, key: str) -> tuple[Schema, bool]:
    """The form of a type, and whether it is a single field, named `key`. SignatureProblem if there is no form."""
    schema = inlined(type_schema(tp))
    if len(options := _options(schema)) == 1 and options[0].get("type") == "object":
        schema = options[0]  # a record or nothing: to give nothing is to decline
    if schema.get("type") == "object":
        properties = schema.get("properties")
        if not properties:
            raise SignatureProblem("a form needs named fields", _FLAT)
        required = schema.get("required", [])
        return _form(properties, required), False
    return _form({key: schema}, [key]), True


def _form(fields: dict[str, Schema], required: list[str]) -> Schema:
    properties = {name: _field(name, schema) for name, schema in fields.items()}
    form: Schema = {"type": "object", "properties": properties}
    needed = [name for name in required if not _options(fields[name])]
    return {**form, "required": needed} if needed else form


def _field(name: str, schema: Schema) -> Schema:
    """One field as forms write it. A field that may be null may be left out."""
    options = _options(schema)
    if len(options) == 1:
        schema = {**options[0], **{k: v for k, v in schema.items() if k not in ("anyOf", "type", "enum")}}
    kind = schema.get("type", "string" if "enum" in schema else None)
    if kind not in _KEYWORDS or (kind == "array" and not _is_choice(schema.get("items", {}))):
        raise SignatureProblem(f"a form has no field for {name!r}, which is {kind or 'of several types'}", _FLAT)
    kept = {k: schema[k] for k in ("title", "description", "default", *_KEYWORDS[kind]) if schema.get(k) is not None}
    if kept.get("format") not in _FORMATS:
        kept.pop("format", None)
    if "enum" in schema:
        return {"type": "string", **kept, **_as_texts(schema)}
    return {"type": kind, **kept}


def _options(schema: Schema) -> list[Schema]:
    """The alternatives to null; none if it may not be null."""
    if (single := without_null(schema)) is not schema:
        return [single]
    options = schema.get("anyOf", ())
    return [option for option in options if option != NULL] if NULL in options else []


def _as_texts(schema: Schema) -> Schema:
    """Choices are texts in a form; numbers among them are read back as numbers."""
    texts: Schema = {"enum": [str(choice) for choice in schema["enum"]]}
    return texts if schema.get("default") is None else {**texts, "default": str(schema["default"])}


def _is_choice(items: Schema) -> bool:
    return items.get("type") == "string" and "enum" in items
