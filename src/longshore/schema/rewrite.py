"""Rewrites of a schema into keywords that more clients know.

Pure functions: nothing is changed in place, and nothing raises, whatever the schema is. The lint rules repair schemas
with them, and `client_forms` is composed of them.
"""

from __future__ import annotations

from typing import Any, Final, final

from longshore.schema.kinds import is_array, is_object
from longshore.schema.walk import (
    ANNOTATIONS,
    Rewriter,
    Schema,
    SchemaTooLarge,
    edit_subschemas,
    has_type,
    resolve,
    rewrite,
    walk_objects,
    without,
)

# -- types, items and booleans

SWITCHES: Final = frozenset(("additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems"))
"""Keywords whose value is usually a boolean, which all clients accept there."""


def with_object_root(schema: Any) -> Schema:
    """`type: object` at the root: arguments are always an object."""
    if not is_object(schema):
        return {"type": "object"}
    return schema if schema.get("type") == "object" else {"type": "object", **without(schema, "type")}


def without_booleans(schema: Any) -> Any:
    """`{}` for true and `{"not": {}}` for false, wherever a boolean is a subschema but under a switch."""

    def spell(each: Any, keyword: str, _: Any) -> Any:
        if not isinstance(each, bool) or keyword in SWITCHES:
            return each
        return {} if each else {"not": {}}

    return rewrite(schema, lambda each: edit_subschemas(each, spell))


def with_items(schema: Any) -> Any:
    """`items` for every array. A schema with `unevaluatedItems` stays as it is: `items` would evaluate all of them."""
    if any("unevaluatedItems" in each for each in walk_objects(schema)):
        return schema
    return rewrite(schema, lambda each: _add(each, "array", "items"))


def with_properties(schema: Any) -> Any:
    """`properties` for every object."""
    return rewrite(schema, lambda each: _add(each, "object", "properties"))


def _add(schema: Schema, kind: str, keyword: str) -> Schema:
    return {**schema, keyword: {}} if has_type(schema, kind) and keyword not in schema else schema


# -- older dialects

_OLD: Final = ("draft-03", "draft-04", "draft-05", "draft-06", "draft-07")


def is_old(schema: Schema) -> bool:
    """Whether `$schema` names a dialect in which keywords beside a `$ref` are ignored."""
    return any(draft in str(schema.get("$schema", "")) for draft in _OLD)


def modernised(schema: Any) -> Any:
    """`$defs` for `definitions`, `prefixItems` for a list of `items`, numbers for exclusive bounds, `$id` for `id`.

    A keyword without a meaning today is rewritten only in a schema that names an old dialect.
    """
    if not is_object(schema):
        return schema
    old, moves = is_old(schema), _may_move(schema)

    def change(each: Schema) -> Schema:
        kept = _split_dependencies(_rename_id(_drop_beside(each))) if old else each
        return _name_rows(_write_bounds(_follow_definitions(kept) if moves else kept))

    moved = (
        {**without(schema, "definitions", "$defs"), "$defs": {**schema["definitions"], **schema.get("$defs", {})}}
        if moves
        else schema
    )
    changed = rewrite(_rename_id(moved), change)
    return without(changed, "$schema") if old else changed


def _may_move(root: Schema) -> bool:
    named, newer = root.get("definitions"), root.get("$defs", {})
    return is_object(named) and is_object(newer) and named.keys().isdisjoint(newer)


def _follow_definitions(schema: Schema) -> Schema:
    ref = schema.get("$ref")
    if not isinstance(ref, str) or not ref.startswith("#/definitions/"):
        return schema
    return {**schema, "$ref": ref.replace("#/definitions/", "#/$defs/", 1)}


def _drop_beside(schema: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    kept = ANNOTATIONS | {"$ref", "$defs", "definitions"}
    return {keyword: value for keyword, value in schema.items() if keyword in kept}


def _rename_id(schema: Schema) -> Schema:
    name = schema.get("id")
    named = isinstance(name, str) and "#" not in name and "$id" not in schema
    return {"$id" if keyword == "id" else keyword: value for keyword, value in schema.items()} if named else schema


def _write_bounds(schema: Schema) -> Schema:
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.get(exclusive) is True and bound in schema:
            schema = {**without(schema, bound), exclusive: schema[bound]}
        elif isinstance(schema.get(exclusive), bool):
            schema = without(schema, exclusive)
    return schema


def _name_rows(schema: Schema) -> Schema:
    row = schema.get("items")
    if not is_array(row) or "prefixItems" in schema:
        return schema
    rest = {"items": schema["additionalItems"]} if "additionalItems" in schema else {}
    named = {"prefixItems": row} if row else {}  # `prefixItems` may not be empty
    return {**without(schema, "items", "additionalItems"), **named, **rest}


def _split_dependencies(schema: Schema) -> Schema:
    found = schema.get("dependencies")
    if not is_object(found) or not {"dependentRequired", "dependentSchemas"}.isdisjoint(schema):
        return schema
    lists = {name: each for name, each in found.items() if is_array(each)}
    schemas = {name: each for name, each in found.items() if not is_array(each)}
    rest = without(schema, "dependencies")
    return rest | ({"dependentRequired": lists} if lists else {}) | ({"dependentSchemas": schemas} if schemas else {})


# -- references

MAX_INLINED: Final = 2_000
"""Nodes of an inlined schema. Definitions that refer to each other twice double the size at each level."""

MAX_FOLLOWED: Final = 100_000
"""References that are followed to find recursive definitions: 316 definitions in one ring."""

_PLACES: Final = ("$defs", "definitions")
_NAMING: Final = frozenset(("$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"))
"""Keywords that name a subschema or refer to a name. A copy of it would be a second one of the same name."""


def inlined(schema: Any) -> Any:
    """Each `$ref` to a definition replaced by it, unless it is recursive; the schema itself if it got too large."""
    if not is_object(schema):
        return schema
    definitions = {ref: schema[place][name] for place in _PLACES for ref, name in _names(schema, place).items()}
    if any(_leads_elsewhere(each, schema, definitions) for each in walk_objects(schema)):
        return schema
    try:
        return _Inliner(definitions, old=is_old(schema)).inline(schema)
    except SchemaTooLarge:
        return schema


def definition_of(schema: Any, root: Schema) -> Any:
    """The definition that a mere reference refers to; any other schema as it is."""
    if not is_object(schema) or not isinstance(ref := schema.get("$ref"), str):
        return schema
    mere = ref.startswith(("#/$defs/", "#/definitions/")) and schema.keys() <= ANNOTATIONS | {"$ref"}
    found = resolve(root, ref) if mere else None
    return schema if found is None else found


def move_references(schema: Schema, where: str, *, definitions: bool = True) -> Schema:
    """The schema with references to its own parts changed to begin at `where`, for a place in another document.

    A subschema with an `$id` stays as it is: its references are relative to that. So do references to definitions, if
    the definitions themselves don't move.
    """

    def move(each: Any, _keyword: str = "", _key: Any = None) -> Any:
        if not is_object(each) or "$id" in each:
            return each
        ref = each.get("$ref")
        own = isinstance(ref, str) and (ref == "#" or ref.startswith("#/"))
        if own and (definitions or not str(ref).startswith(("#/$defs/", "#/definitions/"))):
            each = {**each, "$ref": where + str(ref)[1:]}
        return edit_subschemas(each, move)

    moved: Schema = move(schema)
    return moved


def _names(root: Schema, place: str) -> dict[str, str]:
    """Each reference to a definition in this place, and the definition's name."""
    named = root.get(place)
    if not is_object(named):
        return {}
    return {f"#/{place}/{str(name).replace('~', '~0').replace('/', '~1')}": name for name in named}


def _leads_elsewhere(schema: Schema, root: Schema, definitions: dict[str, Any]) -> bool:
    """Whether it names itself, or refers to something that inlining would move."""
    names = _NAMING.intersection(schema)
    if names and (schema is not root or names - {"$id", "id"}):
        return True
    ref = schema.get("$ref", "#")
    inside = ref == "#" or (isinstance(ref, str) and ref.startswith("#/") and ref.split("/")[1] not in _PLACES)
    return not inside and (not isinstance(ref, str) or ref not in definitions)


@final
class _Inliner:
    def __init__(self, definitions: dict[str, Any], *, old: bool) -> None:
        self._definitions = definitions
        self._old = old
        self._recursive = _find_recursive(definitions)
        self._rewriter = Rewriter(self._replace, MAX_INLINED)
        self._kept: set[str] = set()

    def inline(self, root: Schema) -> Schema:
        body: Schema = self._rewriter.rewrite(self._inline_root(root))
        written: dict[str, Any] = {}
        # A definition that is still referred to is inlined in its place, and may refer to more of them.
        while waiting := [ref for ref in sorted(self._kept) if ref in self._definitions and ref not in written]:
            for ref in waiting:
                written[ref] = self._rewriter.rewrite(self._definitions[ref])
        for place in _PLACES:
            if kept := {name: written[ref] for ref, name in _names(root, place).items() if ref in written}:
                body[place] = kept
        return body

    def _inline_root(self, root: Schema) -> Schema:
        """A root needs a type of its own, so a reference there is replaced even if it is recursive."""
        schema = without(root, *_PLACES)
        for _ in self._definitions:
            ref = schema.get("$ref")
            if isinstance(ref, str) and ref in self._definitions:
                schema = self._joined(self._definitions[ref], without(schema, "$ref"))
        return {"$schema": root["$schema"], **schema} if "$schema" in root else schema

    def _replace(self, schema: Schema) -> Schema:
        for step in range(len(self._definitions) + 1):
            if step > 1:
                self._rewriter.spend()  # a definition may be a reference to the next, and so on
            ref = schema.get("$ref")
            if not isinstance(ref, str):
                return schema
            if ref not in self._definitions or ref in self._recursive:
                self._kept.add(ref)
                return schema
            schema = self._joined(self._definitions[ref], without(schema, "$ref"))
        return schema

    def _joined(self, target: Any, beside: Schema) -> Schema:
        """A definition together with the keywords beside the reference, which older dialects ignore."""
        if not is_object(target):
            target = {"not": {}} if target is False else {}
        if self._old:
            beside = {keyword: value for keyword, value in beside.items() if keyword in ANNOTATIONS}
        if beside.keys() <= ANNOTATIONS:
            return {**target, **beside}
        others = beside.get("allOf")
        return {**beside, "allOf": [target, *(others if is_array(others) else ())]}


def _find_recursive(definitions: dict[str, Any]) -> set[str]:
    leads = {
        ref: {found for each in walk_objects(inner) if isinstance(found := each.get("$ref"), str)}
        for ref, inner in definitions.items()
    }
    left = MAX_FOLLOWED
    recursive: set[str] = set()
    for start in leads:
        reached: set[str] = set()
        waiting = [*leads[start]]
        while waiting:
            ref = waiting.pop()
            if ref not in reached:
                reached.add(ref)
                waiting.extend(leads.get(ref, ()))
        left -= len(reached)
        if left < 0:
            raise SchemaTooLarge
        if start in reached:
            recursive.add(start)
    return recursive
