"""Rules about what is old in a schema, or is lost on its way to a model: nothing that is refused everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.kinds import is_array, is_object
from longshore.schema.phrase import quote
from longshore.schema.rewrite import inlined, is_old, modernised
from longshore.schema.standards.place import changed, nodes_of, schemas_of, show
from longshore.schema.standards.rule import Fault, Level, Rule, fault
from longshore.schema.standards.subject import Json, Node, Subject, example
from longshore.schema.walk import walk_objects

MOST_DEPTH: Final = 5
"""Objects and arrays inside each other. Google's API has refused what is nested deeper than a few."""

_HOLDS_ITSELF: Final = (
    "It holds itself, or can't be written out, so the reference stays; say in the description what goes in there."
)


def _references(subject: Subject) -> Iterator[Fault]:
    found = [node for node in nodes_of(subject, "inputSchema") if isinstance(node.schema.get("$ref"), str)]
    if not found:
        return
    kept = {each.get("$ref") for each in walk_objects(inlined(subject.input))}
    needless = [node for node in found if node.schema["$ref"] not in kept]
    told = needless or found
    more = f" and {len(told) - 1} more" if len(told) > 1 else ""
    said = f"{show(told[0].path)} refers to {quote(told[0].schema['$ref'])}{more}"
    level: Level = "warning" if needless else "info"  # nobody can write out what holds itself
    yield fault(said, f"{told[0].path}.$ref", level=level, fix="" if needless else _HOLDS_ITSELF)


def _nulls(subject: Subject) -> Iterator[Fault]:
    for node in nodes_of(subject, "inputSchema"):
        types = node.schema.get("type")
        if is_array(types) and len(types) > 1:
            fix = "" if "null" in types else "Choose one of the types, or write them as alternatives under anyOf."
            yield fault(f"{show(node.path)} has the types {quote(types)}", f"{node.path}.type", fix=fix)
        for word in ("anyOf", "oneOf"):
            options = node.schema.get(word)
            if is_array(options) and {"type": "null"} in options:
                yield fault(f"{show(node.path)} may be null", f"{node.path}.{word}")


def _tuples(subject: Subject) -> Iterator[Fault]:
    for node in nodes_of(subject, "inputSchema"):
        if "prefixItems" in node.schema or is_array(node.schema.get("items")):
            yield fault(f"{show(node.path)} gives each place of an array a schema of its own", node.path)


def _leftovers(subject: Subject) -> Iterator[Fault]:
    for key, root in schemas_of(subject):
        for node in nodes_of(subject, key):
            for word in ("exclusiveMinimum", "exclusiveMaximum"):
                if isinstance(node.schema.get(word), bool):
                    said = f"{show(node.path)} has {word}: {quote(node.schema[word])}, which is a number today"
                    yield fault(said, f"{node.path}.{word}", level="error")
            if "id" in node.schema and (key == "outputSchema" or isinstance(node.schema["id"], str)):
                level: Level = "error" if key == "outputSchema" else "warning"
                yield fault(f"{show(node.path)} has id, which is $id today", f"{node.path}.id", level=level)
            yield from () if is_old(root) else _renamed(node)


def _renamed(node: Node) -> Iterator[Fault]:
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
"""Words that mean nothing in an old dialect, and something in today's."""


def _renew(schema: Any) -> Any:
    unknown = _AFTER_07 if "draft-07" in str(schema.get("$schema")) else _AFTER_07 | _AFTER_04
    if is_old(schema) and any(not unknown.isdisjoint(each) for each in walk_objects(schema)):
        return schema
    return modernised(schema)


def _depth(subject: Subject) -> Iterator[Fault]:
    deepest = max(nodes_of(subject, "inputSchema"), key=lambda node: node.depth, default=None)
    if deepest is not None and deepest.depth > MOST_DEPTH:
        yield fault(f"{show(deepest.path)} is {deepest.depth} levels deep", deepest.path)


def _taking(name: str, schema: Any, **root: Any) -> Json:
    return {"inputSchema": {"type": "object", "properties": {name: schema}, **root}}


def _nested(levels: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"part": schema}}
    return schema


_POINT: Final[Json] = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="W23",
        title="An inputSchema is written without $ref",
        level="warning",
        profiles=("gemini", "vscode"),
        why="VS Code and the older field of the Gemini API handle references badly: the model is told nothing of what "
        "they stand for, or the request is refused.",
        evidence="opencode #12295, gemini-cli #13326, ToolsForMCPServer #9",
        fix="Write the definition where it is used. Only what holds itself needs a reference.",
        good=example(_taking("at", _POINT)),
        bad=example(_taking("at", {"$ref": "#/$defs/Point"}, **{"$defs": {"Point": _POINT}})),
        check=_references,
        mend=changed(inlined, "inputSchema"),
    ),
    Rule(
        id="W24",
        title="A parameter has one type, and is left out rather than null",
        level="warning",
        profiles=("gemini",),
        why="Google's API knows one type each. Gemini CLI rewrites a list with null; who sends it on is refused.",
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
        check=_leftovers,
        mend=changed(_renew),
    ),
    Rule(
        id="W30",
        title="Objects and arrays are nested at most 5 deep",
        level="warning",
        profiles=("gemini",),
        why="Google's API refuses the whole request beyond a depth that it does not tell, and models err more often.",
        evidence="gemini-cli #5923, gitlab-mcp #223, directus #25896",
        fix="Flatten the parameters, or take the inner part as an id of something that another tool made.",
        good=example(_taking("plan", _nested(MOST_DEPTH - 1))),
        bad=example(_taking("plan", _nested(MOST_DEPTH))),
        check=_depth,
    ),
)
