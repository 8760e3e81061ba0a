"""The words of older dialects, in those of today."""

from __future__ import annotations

from typing import Any, Final

from longshore.schema.kinds import is_array, is_object
from longshore.schema.rewriting.everywhere import ANNOTATIONS, Schema, change_everywhere, less

_OLD: Final = ("draft-03", "draft-04", "draft-05", "draft-06", "draft-07")
_BOUNDS: Final = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))


def is_old(schema: Schema) -> bool:
    """It says itself that it is of a dialect in which nothing counts that stands beside a reference."""
    return any(draft in str(schema.get("$schema", "")) for draft in _OLD)


def modernised(schema: Any) -> Any:
    """`$defs` for `definitions`, `prefixItems` for a list of `items`, numbers for exclusive bounds, `$id` for `id`.

    What means nothing today is given a meaning only where the schema says that it is an old one.
    """
    if not is_object(schema):
        return schema
    old, moves = is_old(schema), _may_move(schema)

    def change(each: Schema) -> Schema:
        kept = _split_dependencies(_rename_id(_drop_beside(each))) if old else each
        return _name_rows(_write_bounds(_follow_definitions(kept) if moves else kept))

    changed = change_everywhere(_rename_id(_move_definitions(schema) if moves else schema), change)
    return less(changed, "$schema") if old else changed


def _drop_beside(schema: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    return {
        keyword: value for keyword, value in schema.items() if keyword in ANNOTATIONS | {"$ref", "$defs", "definitions"}
    }


def _write_bounds(schema: Schema) -> Schema:
    for bound, exclusive in _BOUNDS:
        if schema.get(exclusive) is True and bound in schema:
            schema = {**less(schema, bound), exclusive: schema[bound]}
        elif isinstance(schema.get(exclusive), bool):
            schema = less(schema, exclusive)
    return schema


def _rename_id(schema: Schema) -> Schema:
    name = schema.get("id")
    named = isinstance(name, str) and "#" not in name and "$id" not in schema
    return {"$id" if keyword == "id" else keyword: value for keyword, value in schema.items()} if named else schema


def _may_move(root: Schema) -> bool:
    named, newer = root.get("definitions"), root.get("$defs", {})
    return is_object(named) and is_object(newer) and named.keys().isdisjoint(newer)


def _move_definitions(root: Schema) -> Schema:
    return {**less(root, "definitions", "$defs"), "$defs": {**root["definitions"], **root.get("$defs", {})}}


def _follow_definitions(schema: Schema) -> Schema:
    ref = schema.get("$ref")
    if not isinstance(ref, str) or not ref.startswith("#/definitions/"):
        return schema
    return {**schema, "$ref": ref.replace("#/definitions/", "#/$defs/", 1)}


def _name_rows(schema: Schema) -> Schema:
    row = schema.get("items")
    if not is_array(row) or "prefixItems" in schema:
        return schema
    rest = {"items": schema["additionalItems"]} if "additionalItems" in schema else {}
    named = {"prefixItems": row} if row else {}  # the newer word may not stand for nothing
    return {**less(schema, "items", "additionalItems"), **named, **rest}


def _split_dependencies(schema: Schema) -> Schema:
    found = schema.get("dependencies")
    if not is_object(found) or not {"dependentRequired", "dependentSchemas"}.isdisjoint(schema):
        return schema
    lists = {name: each for name, each in found.items() if is_array(each)}
    schemas = {name: each for name, each in found.items() if not is_array(each)}
    rest = less(schema, "dependencies")
    return rest | ({"dependentRequired": lists} if lists else {}) | ({"dependentSchemas": schemas} if schemas else {})
