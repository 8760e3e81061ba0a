"""Rules about keywords that some clients drop, change or refuse: references, nulls, tuples, old drafts, strict mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.combinators import with_all_joined
from longshore.schema.kinds import is_array, is_object
from longshore.schema.lint.parameters import type_names
from longshore.schema.lint.rule import Level, Rule, RuleFault, fault
from longshore.schema.lint.tool_list import Json, LintedTool, SchemaNode, change_schemas, example, show
from longshore.schema.phrase import quote
from longshore.schema.rewrite import inlined, is_old, modernised
from longshore.schema.walk import walk_objects

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

_UNKNOWN: Final = (
    *("not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"),
    "patternProperties",
)
_OF_VALUES: Final = frozenset(("properties", "items", "prefixItems", "anyOf", "oneOf", "$defs", "definitions"))
"""Keywords whose subschemas describe a whole value."""
_SAYS_KIND: Final = frozenset(("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"))
"""Keywords that say what kind of value is meant."""
_RECURSIVE: Final = "It is recursive, or can't be written out, so the reference stays; say in words what goes in there."


def _references(tool: LintedTool) -> Iterator[RuleFault]:
    found = [node for node in tool.objects("inputSchema") if isinstance(node.schema.get("$ref"), str)]
    if not found:
        return
    needed = {each.get("$ref") for each in walk_objects(inlined(tool.input))}
    needless = [node for node in found if node.schema["$ref"] not in needed]
    shown = needless or found
    more = f" and {len(shown) - 1} more" if len(shown) > 1 else ""
    said = f"{show(shown[0].path)} refers to {quote(shown[0].schema['$ref'])}{more}"
    level: Level = "warning" if needless else "info"  # a recursive schema can't be written out
    yield fault(said, f"{shown[0].path}.$ref", level=level, fix="" if needless else _RECURSIVE)


def _nulls(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.objects("inputSchema"):
        types = node.schema.get("type")
        if is_array(types) and len(types) > 1:
            fix = "" if "null" in types else "Choose one of the types, or write them as alternatives under anyOf."
            yield fault(f"{show(node.path)} has the types {quote(types)}", f"{node.path}.type", fix=fix)
        for word in ("anyOf", "oneOf"):
            options = node.schema.get(word)
            if is_array(options) and {"type": "null"} in options:
                yield fault(f"{show(node.path)} may be null", f"{node.path}.{word}")


def _tuples(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.objects("inputSchema"):
        if "prefixItems" in node.schema or is_array(node.schema.get("items")):
            yield fault(f"{show(node.path)} gives each place of an array a schema of its own", node.path)


def _old_keywords(tool: LintedTool) -> Iterator[RuleFault]:
    for key, root in tool.schemas():
        for node in tool.objects(key):
            for word in ("exclusiveMinimum", "exclusiveMaximum"):
                if isinstance(node.schema.get(word), bool):
                    said = f"{show(node.path)} has {word}: {quote(node.schema[word])}, which is a number today"
                    yield fault(said, f"{node.path}.{word}", level="error")
            if "id" in node.schema and (key == "outputSchema" or isinstance(node.schema["id"], str)):
                level: Level = "error" if key == "outputSchema" else "warning"
                yield fault(f"{show(node.path)} has id, which is $id today", f"{node.path}.id", level=level)
            yield from () if is_old(root) else _renamed(node)


def _renamed(node: SchemaNode) -> Iterator[RuleFault]:
    today = {"definitions": "$defs", "dependencies": "dependentRequired or dependentSchemas"}
    for word, now in today.items():
        if is_object(node.schema.get(word)):
            yield fault(f"{show(node.path)} has {word}, which is {now} today", f"{node.path}.{word}")
    if is_array(node.schema.get("items")):
        yield fault(f"{show(node.path)} has a list of items, which is prefixItems today", f"{node.path}.items")


_AFTER_04: Final = frozenset(("const", "contains", "propertyNames", "if", "then", "else"))
_AFTER_07: Final = frozenset(
    (
        *("prefixItems", "dependentRequired", "dependentSchemas", "minContains", "maxContains"),
        *("unevaluatedProperties", "unevaluatedItems"),
    )
)
"""Keywords that have a meaning only in later drafts than 4 and 7."""


def _renew(schema: Any) -> Any:
    unknown = _AFTER_07 if "draft-07" in str(schema.get("$schema")) else _AFTER_07 | _AFTER_04
    if is_old(schema) and any(not unknown.isdisjoint(each) for each in walk_objects(schema)):
        return schema
    return modernised(schema)


def _depth(tool: LintedTool) -> Iterator[RuleFault]:
    deepest = max(tool.objects("inputSchema"), key=lambda node: node.depth, default=None)
    if deepest is not None and deepest.depth > MOST_DEPTH:
        yield fault(f"{show(deepest.path)} is {deepest.depth} levels deep", deepest.path)


def _taking(name: str, schema: Any, **root: Any) -> Json:
    return {"inputSchema": {"type": "object", "properties": {name: schema}, **root}}


def _nested(levels: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"part": schema}}
    return schema


# -- strict mode


def _check_strict(tool: LintedTool) -> Iterator[RuleFault]:
    for key in ("anyOf", "oneOf"):
        if key in tool.input:
            yield fault(f"{key} stands at the root, where strict mode takes an object only", "inputSchema")
    nodes = tool.objects("inputSchema")
    for node in nodes:
        for reason in _find_reasons(node):
            yield fault(f"strict mode has no {reason}", node.path)
    yield from _check_totals(nodes)


def _find_reasons(node: SchemaNode) -> Iterator[str]:
    for keyword in _UNKNOWN:
        if keyword in node.schema:
            yield keyword
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
    if "object" not in type_names(schema) or "$ref" in schema:
        return False
    rest = schema.get("additionalProperties")
    return is_object(rest) or (bool(node.inside) and "properties" not in schema and rest is not False)


def _check_totals(nodes: list[SchemaNode]) -> Iterator[RuleFault]:
    counts = (
        (sum(len(_names(node.schema)) for node in nodes), STRICT_PROPERTIES, "properties"),
        (1 + max((node.depth for node in nodes if _holds(node.schema)), default=0), STRICT_DEPTH, "levels"),
        (sum(len(_values(node.schema)) for node in nodes), STRICT_ENUM_VALUES, "enum values"),
        (sum(_measure(node.schema) for node in nodes), STRICT_CHARACTERS, "characters of names and values"),
    )
    for count, most, what in counts:
        if count > most:
            yield fault(f"{count:,} {what}; strict mode takes {most:,}", "inputSchema")


def _holds(schema: Json) -> bool:
    return not {"object", "array"}.isdisjoint(type_names(schema))


def _names(schema: Json) -> list[str]:
    return [str(name) for key in ("properties", "$defs", "definitions") for name in _keys(schema.get(key))]


def _keys(value: Any) -> list[str]:
    return list(value) if is_object(value) else []


def _values(schema: Json) -> list[Any]:
    found = schema.get("enum")
    return found if is_array(found) else []


def _measure(schema: Json) -> int:
    said = [each for each in (*_names(schema), *_values(schema), schema.get("const")) if isinstance(each, str)]
    return sum(len(text) for text in said)


_LABELS: Final[Json] = {"type": "object", "description": "label → text"}
_POINT: Final[Json] = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="W23",
        title="An inputSchema is written without $ref",
        level="warning",
        profiles=("gemini", "vscode"),
        why="VS Code and the older field of the Gemini API handle references badly: the model gets no description "
        "of the parameter, or the request is refused.",
        evidence="opencode #12295, gemini-cli #13326, ToolsForMCPServer #9",
        fix="Write the definition where it is used. Only a recursive schema needs a reference.",
        good=example(_taking("at", _POINT)),
        bad=example(_taking("at", {"$ref": "#/$defs/Point"}, **{"$defs": {"Point": _POINT}})),
        check=_references,
        mend=change_schemas(inlined, "inputSchema"),
    ),
    Rule(
        id="W24",
        title="A parameter has one type, and is left out rather than null",
        level="warning",
        profiles=("gemini",),
        why="Google's API knows one type each. Gemini CLI rewrites a list with null; other clients are refused.",
        evidence="gemini-cli #21094, copilot-cli #4623, mcp-server-excel #674; measured with Gemini CLI 0.61",
        fix="Make the parameter optional instead of null.",
        good=example(_taking("unit", {"type": "string", "description": "Unit (optional)"})),
        bad=example(_taking("unit", {"type": ["string", "null"], "description": "Unit"}, required=["unit"])),
        check=_nulls,
    ),
    Rule(
        id="W26",
        title="The items of an array are all of one kind",
        level="warning",
        profiles=("openai", "gemini"),
        why="Codex tells its model that the items are strings, and Google's API refuses prefixItems.",
        evidence="measured with Codex 0.166; LibreChat #13850, adk-rust #330",
        fix="Write an object with a named property for each place.",
        good=example(_taking("at", _POINT)),
        bad=example(
            _taking("at", {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}], "items": {}})
        ),
        check=_tuples,
    ),
    Rule(
        id="W27",
        title="Schemas are written in today's words, not in those of older drafts",
        level="warning",
        profiles=("claude", "gemini"),
        why="The Anthropic API checks schemas by 2020-12 and refuses the whole request for exclusiveMinimum: true; the "
        "official TypeScript SDK refuses id and exclusiveMinimum: true in an outputSchema. The rest is merely old.",
        evidence="Dokploy/mcp #74, LibreChat #13850; measured with @modelcontextprotocol/sdk 1.32.2",
        fix='Write "exclusiveMinimum": 0, $defs, $id and prefixItems.',
        good=example(_taking("ratio", {"type": "number", "exclusiveMinimum": 0})),
        bad=example(
            _taking(
                "ratio",
                {"$ref": "#/definitions/Ratio"},
                **{
                    "$schema": "http://json-schema.org/draft-04/schema#",
                    "definitions": {"Ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True}},
                },
            )
        ),
        check=_old_keywords,
        mend=change_schemas(_renew),
    ),
    Rule(
        id="W30",
        title="Objects and arrays are nested at most 5 deep",
        level="warning",
        profiles=("gemini",),
        why="Google's API refuses the whole request beyond an undocumented depth, and models err more often.",
        evidence="gemini-cli #5923, gitlab-mcp #223, directus #25896",
        fix="Flatten the parameters, or take the inner part as an id of something that another tool made.",
        good=example(_taking("plan", _nested(MOST_DEPTH - 1))),
        bad=example(_taking("plan", _nested(MOST_DEPTH))),
        check=_depth,
    ),
    Rule(
        id="W29",
        title="A tool's input can be said in OpenAI's strict mode",
        level="warning",
        profiles=("openai-strict",),
        why="A tool that strict mode can't say is sent without it, so the model's arguments may break the schema. "
        "Optional parameters are no hindrance: they become required and may be null.",
        evidence="OpenAI's Structured Outputs as of February 2026 (jsonschemaprofiles.unitvectorylabs.com): no allOf, "
        "not, if or dependent*, no open objects, 5,000 properties, 10 levels, 1,000 enum values, 120,000 characters",
        fix="Say it with listed properties, anyOf inside a property and enums, and check the rest in the tool.",
        good=example(
            {
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "labels": {
                            "type": "array",
                            "description": "labels and their texts",
                            "items": {
                                "type": "object",
                                "properties": {"label": {"type": "string"}, "text": {"type": "string"}},
                                "required": ["label", "text"],
                            },
                        }
                    },
                }
            }
        ),
        bad=example(
            {
                "inputSchema": {
                    "type": "object",
                    "properties": {"labels": {**_LABELS, "additionalProperties": {"type": "string"}}},
                }
            }
        ),
        check=_check_strict,
    ),
)
