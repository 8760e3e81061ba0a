"""Rules about keywords that some clients drop, change or refuse: references, nulls, tuples, old drafts, strict mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.combinators import with_all_joined
from longshore.schema.kinds import as_array, as_object, is_array, is_object
from longshore.schema.lint.rule import Check, Level, Mend, RuleFault
from longshore.schema.lint.rules.schemas import check_inputs
from longshore.schema.lint.tool_list import Json, LintedTool, SchemaNode, as_text, change_schemas, show
from longshore.schema.phrase import quote
from longshore.schema.rewrite import inlined, is_old, modernised
from longshore.schema.walk import has_type, walk_objects

MOST_DEPTH: Final = 5
"""The most levels of objects and arrays. Google's API has refused deeper ones."""

STRICT_PROPERTIES: Final = 5_000
"""Properties of all objects of a schema together, in OpenAI's strict mode."""
STRICT_DEPTH: Final = 10
"""Levels of objects and arrays, with the root."""
STRICT_ENUM_VALUES: Final = 1_000
"""Values of all enums together."""
STRICT_CHARACTERS: Final = 120_000
"""Characters of all names and values together."""
MOST_JOINED: Final = 50
"""Parts of one allOf that are joined to see whether they can be one schema."""

_RECURSIVE: Final = "It is recursive, or can't be written out, so the reference stays; say in words what goes in there."


def _check_references(tool: LintedTool) -> Iterator[RuleFault]:
    found = [node for node in tool.objects("inputSchema") if isinstance(node.schema.get("$ref"), str)]
    written_out: Json = inlined(tool.input) if found else {}
    needed = {as_text(each.get("$ref")) for each in walk_objects(written_out)}
    needless = [node for node in found if node.schema["$ref"] not in needed]
    if shown := needless or found:
        more = f" and {len(shown) - 1} more" if len(shown) > 1 else ""
        message = f"{show(shown[0].path)} refers to {quote(shown[0].schema['$ref'])}{more}"
        level: Level = "warning" if needless else "info"  # a recursive schema can't be written out
        yield RuleFault(message, f"{shown[0].path}.$ref", "" if needless else _RECURSIVE, level)


def _check_nulls(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.objects("inputSchema"):
        types = as_array(node.schema.get("type"))
        if len(types) > 1:
            fix = "" if "null" in types else "Choose one of the types, or write them as alternatives under anyOf."
            yield RuleFault(f"{show(node.path)} has the types {quote(types)}", f"{node.path}.type", fix)
        for word in ("anyOf", "oneOf"):
            if {"type": "null"} in as_array(node.schema.get(word)):
                yield RuleFault(f"{show(node.path)} may be null", f"{node.path}.{word}")


def _check_depth(tool: LintedTool) -> Iterator[RuleFault]:
    deepest = max(tool.objects("inputSchema"), key=lambda node: node.depth, default=None)
    if deepest is not None and deepest.depth > MOST_DEPTH:
        yield RuleFault(f"{show(deepest.path)} is {deepest.depth} levels deep", deepest.path)


# -- old drafts

_RENAMED: Final = (
    ("definitions", dict, "definitions", "$defs"),
    ("dependencies", dict, "dependencies", "dependentRequired or dependentSchemas"),
    ("items", list, "a list of items", "prefixItems"),
)
"""A keyword, the type of its value if it is an old one, what to call it, and today's keyword."""
_AFTER_04: Final = frozenset(("const", "contains", "propertyNames", "if", "then", "else"))
_AFTER_07: Final = frozenset(
    (
        *("prefixItems", "dependentRequired", "dependentSchemas", "minContains", "maxContains"),
        *("unevaluatedProperties", "unevaluatedItems"),
    )
)
"""Keywords that have a meaning only in later drafts than 4 and 7."""


def _check_drafts(tool: LintedTool) -> Iterator[RuleFault]:
    for key, root in tool.schemas():
        renamed = () if is_old(root) else _RENAMED
        for node in tool.objects(key):
            for word in ("exclusiveMinimum", "exclusiveMaximum"):
                if isinstance(node.schema.get(word), bool):
                    message = f"{show(node.path)} has {word}: {quote(node.schema[word])}, which is a number today"
                    yield RuleFault(message, f"{node.path}.{word}", level="error")
            if "id" in node.schema and (key == "outputSchema" or isinstance(node.schema["id"], str)):
                level: Level = "error" if key == "outputSchema" else "warning"
                yield RuleFault(f"{show(node.path)} has id, which is $id today", f"{node.path}.id", level=level)
            for word, old, said, now in renamed:
                if isinstance(node.schema.get(word), old):
                    yield RuleFault(f"{show(node.path)} has {said}, which is {now} today", f"{node.path}.{word}")


def _modernise(schema: Any) -> Any:
    unknown = _AFTER_07 if "draft-07" in str(schema.get("$schema")) else _AFTER_07 | _AFTER_04
    if is_old(schema) and any(not unknown.isdisjoint(each) for each in walk_objects(schema)):
        return schema
    return modernised(schema)


# -- strict mode

_UNKNOWN: Final = (
    *("not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"),
    "patternProperties",
)
_OF_VALUES: Final = frozenset(("properties", "items", "prefixItems", "anyOf", "oneOf", "$defs", "definitions"))
"""Keywords whose subschemas describe a whole value."""
_SAYS_KIND: Final = frozenset(("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"))
"""Keywords that say what kind of value is meant."""


def _check_strict(tool: LintedTool) -> Iterator[RuleFault]:
    for key in ("anyOf", "oneOf"):
        if key in tool.input:
            yield RuleFault(f"{key} stands at the root, where strict mode takes an object only", "inputSchema")
    nodes = tool.objects("inputSchema")
    for node in nodes:
        for reason in _find_reasons(node):
            yield RuleFault(f"strict mode has no {reason}", node.path)
    yield from _check_totals(nodes)


def _find_reasons(node: SchemaNode) -> Iterator[str]:
    yield from (keyword for keyword in _UNKNOWN if keyword in node.schema)
    if "allOf" in node.schema and not _can_join(node.schema):
        yield "allOf, and what stands in this one can't be written beside it"
    if _is_open(node):
        yield "objects with names of their own: it takes the properties that are listed, and no others"
    if node.inside in _OF_VALUES and _SAYS_KIND.isdisjoint(node.schema):
        yield "values of any kind: each schema has a type"


def _can_join(schema: Json) -> bool:
    parts = schema["allOf"]
    if not is_array(parts) or len(parts) > MOST_JOINED:
        return False
    joined = with_all_joined(schema)
    return all(is_object(part) and part.keys() <= joined.keys() for part in parts)


def _is_open(node: SchemaNode) -> bool:
    """Whether it accepts any property. If nothing is said about others, closing it changes nothing."""
    schema = node.schema
    if not has_type(schema, "object") or "$ref" in schema:
        return False
    rest = schema.get("additionalProperties")
    return is_object(rest) or (bool(node.inside) and "properties" not in schema and rest is not False)


def _check_totals(nodes: list[SchemaNode]) -> Iterator[RuleFault]:
    properties, levels, enum_values, characters = 0, 1, 0, 0
    for node in nodes:
        names = [name for key in ("properties", "$defs", "definitions") for name in as_object(node.schema.get(key))]
        values = as_array(node.schema.get("enum"))
        properties += len(names)
        enum_values += len(values)
        said: list[Any] = [*names, *values, node.schema.get("const")]
        characters += sum(len(text) for text in said if isinstance(text, str))
        if has_type(node.schema, "object") or has_type(node.schema, "array"):
            levels = max(levels, 1 + node.depth)
    for count, most, what in (
        (properties, STRICT_PROPERTIES, "properties"),
        (levels, STRICT_DEPTH, "levels"),
        (enum_values, STRICT_ENUM_VALUES, "enum values"),
        (characters, STRICT_CHARACTERS, "characters of names and values"),
    ):
        if count > most:
            yield RuleFault(f"{count:,} {what}; strict mode takes {most:,}", "inputSchema")


CHECKS: Final[dict[str, Check]] = {
    "W23": _check_references,
    "W24": _check_nulls,
    "W26": check_inputs(
        lambda node: "prefixItems" in node.schema or is_array(node.schema.get("items")),
        "{} gives each place of an array a schema of its own",
    ),
    "W27": _check_drafts,
    "W29": _check_strict,
    "W30": _check_depth,
}
MENDS: Final[dict[str, Mend]] = {
    "W23": change_schemas(inlined, "inputSchema"),
    "W27": change_schemas(_modernise),
}
