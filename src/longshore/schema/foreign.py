"""A JSON Schema that another library made (pydantic's), rewritten in our form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import NODEFAULT

from longshore.protocol.annotation import ANNOTATION
from longshore.protocol.subschemas import ALONE, BY_NAME, IN_LISTS
from longshore.schema.kinds import is_array, is_object
from longshore.schema.nullable import list_null
from longshore.schema.standin import Schema

if TYPE_CHECKING:
    from longshore.schema.infer import Schemas

# Titles repeat the names; a discriminator's mapping points into the `$defs` that we dissolve.
_NOISE = ("title", "$defs", "discriminator")

_TYPES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def common_type(values: list[Any]) -> Schema:
    """The keyword `type` of an enum whose values are all of one type, or null. Some clients demand it."""
    types = {_TYPES.get(v.__class__, "") for v in values}
    others = types - {"null"}
    if len(others) > 1 or "" in types:
        return {}
    kind = others.pop() if others else "null"
    return {"type": kind if types == {kind} else [kind, "null"]} if types else {}


def readable(schema: Schema) -> Schema:
    """A pattern as JavaScript reads it; without it where that can't be: one client would lose all tools by it."""
    if not isinstance(pattern := schema.get("pattern"), str):
        return schema
    from longshore.schema.ecmascript import translate

    written = translate(pattern)
    return {k: written if k == "pattern" else v for k, v in schema.items() if k != "pattern" or written is not None}


class Foreign:
    """One foreign schema and its definitions."""

    def __init__(self, schemas: Schemas, defs: dict[str, Schema]) -> None:
        self.schemas, self.defs = schemas, defs

    def rewrite(self, schema: Any) -> Schema:
        """The schema with its references dissolved, without noise, with `items` on every array."""
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        kept = {k: v for k, v in schema.items() if k not in _NOISE and not (k == "required" and not v)}
        ref = str(kept.pop("$ref", "")).removeprefix("#/$defs/")
        if ref:
            body = self.schemas.named(self._key(ref), ref, lambda: self.rewrite(self.defs[ref]))
            return body | self._inner(kept)
        rewritten = readable(self._inner(kept))
        if rewritten.get("type") == "array" and not isinstance(rewritten.get("items"), dict):
            rewritten["items"] = {}
        if rewritten.get("type") == "object":
            rewritten.setdefault("properties", {})
        if "enum" in rewritten:
            rewritten = common_type(rewritten["enum"]) | rewritten
        return list_null(rewritten)

    def _key(self, name: str) -> tuple[str, str]:
        # Two models of one name are told apart by their schemas.
        return name, repr(self.defs[name])

    def _inner(self, schema: Schema) -> Schema:
        written: Schema = {}
        for keyword, value in schema.items():
            if keyword == "properties":
                written[keyword] = {name: self._field(name, s, schema) for name, s in value.items()}
            elif keyword in BY_NAME and is_object(value):
                written[keyword] = {name: s if is_array(s) else self.rewrite(s) for name, s in value.items()}
            elif keyword in IN_LISTS and is_array(value):
                written[keyword] = [self.rewrite(s) for s in value]
            elif keyword == "additionalProperties" and isinstance(value, bool):
                written |= {} if value else {keyword: False}
            elif keyword in ALONE:
                written[keyword] = self.rewrite(value)
            else:
                written[keyword] = value
        return written

    def _field(self, name: str, schema: Any, parent: Schema) -> Schema:
        field = self.rewrite(schema)
        if name in parent.get("required", ()):
            return field
        default = field.get("default", NODEFAULT)
        lowered = self.schemas.optional(field, default, headed=ANNOTATION in field)
        if lowered is field or default is not None:
            return lowered
        return {k: v for k, v in lowered.items() if k != "default"}
