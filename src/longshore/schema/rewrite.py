"""Rewrites of a schema into keywords that more clients know.

Pure functions: nothing is changed in place, and nothing raises for any schema. The lint rules repair schemas with them,
and `client_forms` is composed of them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from longshore.schema.kinds import as_array, is_array, is_object
from longshore.schema.walk import (
    ANNOTATIONS,
    DEFINITIONS,
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
    """Add `type: object` at the root: arguments are always an object."""
    if not is_object(schema):
        return {"type": "object"}
    return schema if schema.get("type") == "object" else {"type": "object", **without(schema, "type")}


def without_booleans(schema: Any) -> Any:
    """Write `{}` for true and `{"not": {}}` for false, wherever a boolean is a subschema but under a switch."""

    def spell(each: Any, keyword: str, _: Any) -> Any:
        if not isinstance(each, bool) or keyword in SWITCHES:
            return each
        return {} if each else {"not": {}}

    return rewrite(schema, lambda each: edit_subschemas(each, spell))


def with_items(schema: Any) -> Any:
    """Add `items` to every array.

    A schema with `unevaluatedItems` stays unchanged: `items` would evaluate all of them.
    """
    if any("unevaluatedItems" in each for each in walk_objects(schema)):
        return schema
    return rewrite(schema, lambda each: _add(each, "array", "items"))


def with_properties(schema: Any) -> Any:
    """Add `properties` to every object."""
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
    old, named, newer = is_old(schema), schema.get("definitions"), schema.get("$defs", {})
    moves = is_object(named) and is_object(newer) and named.keys().isdisjoint(newer)
    if moves:
        schema = {**without(schema, *DEFINITIONS), "$defs": {**schema["definitions"], **newer}}

    def change(each: Schema) -> Schema:
        ref = each.get("$ref")
        if moves and isinstance(ref, str) and ref.startswith("#/definitions/"):
            each = {**each, "$ref": ref.replace("#/definitions/", "#/$defs/", 1)}
        return _modernise(_modernise_old(each) if old else each)

    changed = rewrite(_rename_id(schema), change)
    return without(changed, "$schema") if old else changed


def _modernise(schema: Schema) -> Schema:
    found = dict(schema)
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(found.get(exclusive), bool) and found.pop(exclusive) and bound in found:
            found[exclusive] = found.pop(bound)
    if is_array(row := found.get("items")) and "prefixItems" not in found:
        del found["items"]
        if row:  # `prefixItems` may not be empty
            found["prefixItems"] = row
        if "additionalItems" in found:
            found["items"] = found.pop("additionalItems")
    return found


def _modernise_old(schema: Schema) -> Schema:
    if "$ref" in schema:
        kept = ANNOTATIONS | {"$ref", *DEFINITIONS}
        schema = {keyword: value for keyword, value in schema.items() if keyword in kept}
    found = _rename_id(schema)
    dependencies = found.get("dependencies")
    if is_object(dependencies) and {"dependentRequired", "dependentSchemas"}.isdisjoint(found):
        found = without(found, "dependencies")
        for keyword, names in (("dependentRequired", True), ("dependentSchemas", False)):
            if part := {name: each for name, each in dependencies.items() if is_array(each) is names}:
                found[keyword] = part
    return found


def _rename_id(schema: Schema) -> Schema:
    name = schema.get("id")
    named = isinstance(name, str) and "#" not in name and "$id" not in schema
    return {"$id" if keyword == "id" else keyword: value for keyword, value in schema.items()} if named else schema


# -- references

MAX_INLINED: Final = 2_000
"""Nodes of an inlined schema. Definitions that refer to each other twice double the size at each level."""

MAX_DEFINITIONS: Final = 300
"""Definitions of a schema that is inlined. Finding the recursive ones takes the square of it."""

_NAMING: Final = frozenset(("$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"))
"""Keywords that name a subschema or refer to a name. A copy of it would be a second one of the same name."""


def inlined(schema: Any) -> Any:
    """Each `$ref` to a definition replaced by it, unless it is recursive; the schema itself if it got too large."""
    if not is_object(schema):
        return schema
    definitions = {
        f"#/{place}/{name.replace('~', '~0').replace('/', '~1')}": each
        for place in DEFINITIONS
        if is_object(named := schema.get(place))
        for name, each in named.items()
    }
    elsewhere = any(_leads_elsewhere(each, schema, definitions) for each in walk_objects(schema))
    if elsewhere or len(definitions) > MAX_DEFINITIONS:
        return schema
    try:
        return _inline(schema, definitions)
    except SchemaTooLarge:
        return schema


def _inline(root: Schema, definitions: dict[str, Any]) -> Schema:
    recursive, old = _find_recursive(definitions), is_old(root)

    def follow(schema: Schema, stop: Collection[str]) -> Schema:
        for step in range(len(definitions) + 1):
            ref = schema.get("$ref")
            if not isinstance(ref, str) or ref not in definitions or ref in stop:
                break
            if step:
                rewriter.spend()  # a definition may be a reference to the next, and so on
            schema = _join(definitions[ref], without(schema, "$ref"), old=old)
        return schema

    rewriter = Rewriter(lambda each: follow(each, recursive), MAX_INLINED)
    # A root needs a type of its own, so a reference there is replaced even if it is recursive.
    body: Schema = rewriter.rewrite(follow(without(root, "$schema", *DEFINITIONS), ()))
    written: dict[str, Any] = {}
    waiting: list[Any] = [body]
    for each in waiting:  # a definition that is still referred to is inlined in its place, and may refer to more
        for ref in sorted(_references(each).intersection(definitions).difference(written)):
            written[ref] = rewriter.rewrite(definitions[ref])
            waiting.append(written[ref])
    for ref, each in written.items():
        _, place, name = ref.split("/")
        body.setdefault(place, {})[name.replace("~1", "/").replace("~0", "~")] = each
    return {"$schema": root["$schema"], **body} if "$schema" in root else body


def _join(target: Any, beside: Schema, *, old: bool) -> Schema:
    """A definition together with the keywords beside the reference, which older dialects ignore."""
    if not is_object(target):
        target = {"not": {}} if target is False else {}
    if old:
        beside = {keyword: value for keyword, value in beside.items() if keyword in ANNOTATIONS}
    if beside.keys() <= ANNOTATIONS:
        return {**target, **beside}
    return {**beside, "allOf": [target, *as_array(beside.get("allOf"))]}


def _references(schema: Any) -> set[str]:
    return {ref for each in walk_objects(schema) if isinstance(ref := each.get("$ref"), str)}


def _find_recursive(definitions: dict[str, Any]) -> set[str]:
    leads = {ref: _references(each).intersection(definitions) for ref, each in definitions.items()}
    recursive: set[str] = set()
    for start in leads:
        reached: set[str] = set()
        waiting = [start]
        while waiting:
            more = leads[waiting.pop()] - reached
            reached |= more
            waiting.extend(more)
        if start in reached:
            recursive.add(start)
    return recursive


def _leads_elsewhere(schema: Schema, root: Schema, definitions: dict[str, Any]) -> bool:
    """Whether it names itself, or refers to something that inlining would move."""
    names = _NAMING.intersection(schema)
    if names and (schema is not root or names - {"$id", "id"}):
        return True
    ref = schema.get("$ref", "#")
    inside = ref == "#" or (isinstance(ref, str) and ref.startswith("#/") and ref.split("/")[1] not in DEFINITIONS)
    return not inside and (not isinstance(ref, str) or ref not in definitions)


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
