"""Rules about keywords in a tool's schemas: references, types, defaults, patterns, and whether the schema compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.cost import FIX, UNBOUNDED, compile_bounded, is_unbounded
from longshore.schema.kinds import is_array, is_object
from longshore.schema.lint.parameters import TYPES, types_of
from longshore.schema.lint.rule import Level, Profile, Rule, RuleFault, fault
from longshore.schema.lint.tool_list import Json, LintedTool, SchemaNode, change_schemas, example, show
from longshore.schema.patterns import find_flaw, has_nested_loop, translate
from longshore.schema.phrase import cut, quote
from longshore.schema.walk import resolve, rewrite, without

_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_BRANCHES: Final = frozenset(("$ref", "anyOf", "oneOf", "allOf", "if", "then", "else", "dependentSchemas"))
_BRANCH: Final = re.compile(r"\.(?:anyOf|oneOf|allOf)\[|(?<!properties)\.(?:not|if|then|else|dependentSchemas)(?=\.|$)")
"""Paths inside of which a schema is only a part of the description of an object."""
_ADDED: Final = "\0"
"""The beginning of the property names that are added here. No author's name begins so."""

# -- references


def _dangling(tool: LintedTool) -> Iterator[RuleFault]:
    for key, root in tool.schemas():
        nodes = tool.objects(key)
        if any("$id" in node.schema or "id" in node.schema for node in nodes if node.level):
            continue  # references are relative to that $id; the compiler resolves them
        named = {f"#{each}" for node in nodes for word in _ANCHORS if isinstance(each := node.schema.get(word), str)}
        for node in nodes:
            ref = node.schema.get("$ref")
            if isinstance(ref, str) and ref not in named and not _leads(ref, root):
                outside = "points outside of the schema" if not ref.startswith("#") else "leads nowhere"
                yield fault(f"{show(node.path)}: the $ref {quote(ref)} {outside}", f"{node.path}.$ref")


def _leads(ref: str, root: Json) -> bool:
    if ref.startswith("#"):
        return resolve(root, ref) is not None
    return not root.keys().isdisjoint(("$id", "id"))  # then the compiler decides


# -- types


def _types(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.nodes():
        for each in types_of(node.schema):
            if each not in TYPES:
                yield fault(f"{show(node.path)} has the unknown type {quote(each)}", f"{node.path}.type")


# -- contradictions


def _contradictions(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.objects("inputSchema"):
        yield from _missing(node)
    for key, root in tool.schemas():
        yield from _defaults(tool.objects(key), root)


def _missing(node: SchemaNode) -> Iterator[RuleFault]:
    """Names in `required` that `properties` beside it lacks, unless another keyword may describe them."""
    required, properties = node.schema.get("required"), node.schema.get("properties", {})
    if not is_array(required) or not is_object(properties) or not _BRANCHES.isdisjoint(node.schema):
        return
    branch = _BRANCH.search(node.path)
    closed = node.schema.get("additionalProperties") is False and not branch
    for name in required:
        if isinstance(name, str) and name not in properties:
            said = f"{show(node.path)} requires {quote(name)}, which is not one of its properties"
            other = "check it in the tool" if branch else 'take it out of "required"'
            fix = f'Add {quote(name)} to the "properties" beside "required", or {other}.'
            whom: tuple[Profile, ...] = () if closed else ("gemini",)
            yield fault(said, f"{node.path}.required", fix=fix, level="warning" if branch else None, profiles=whom)


def _defaults(nodes: list[SchemaNode], root: Json) -> Iterator[RuleFault]:
    found = [node for node in nodes if "default" in node.schema and node.level]
    context: Json = {key: root[key] for key in ("$schema", "$id", "$defs", "definitions") if key in root}
    named = root.get("properties")  # references may lead there
    added = {f"{_ADDED}{place}": node.schema for place, node in enumerate(found)}
    whole: Json = {**context, "type": "object", "properties": {**(named if is_object(named) else {}), **added}}
    validator = compile_bounded(whole) if found else None
    if validator is None:  # reported by other rules, or it refers to a part of the root that is not in `context`
        return
    for place, node in enumerate(found):
        value = node.schema["default"]
        if not validator.is_valid({f"{_ADDED}{place}": value}):
            said = f"{show(node.path)} has the default {quote(value)}, which breaks its own schema"
            fix = "Leave the default out." if value is None else "Correct the default, or the schema."
            yield fault(said, f"{node.path}.default", fix=fix, level="warning" if value is None else None)


# -- the schema as a whole


def _unsound(tool: LintedTool) -> Iterator[RuleFault]:
    from longshore.schema.validate import SchemaProblem, compile, measure, read_dialect

    for key, schema in tool.schemas():
        yield from _refused(tool.objects(key), key)
        ours = _is_ours(tool, key)
        try:
            measure(schema)
            read_dialect(schema, {})
        except SchemaProblem as problem:
            yield _problem(key, problem, "error" if ours else "warning")
            continue
        try:
            compile(schema if ours else rewrite(schema, _without_patterns))
        except SchemaProblem as problem:
            if not _is_reported(tool, key):
                yield _problem(key, problem, "error")
            continue
        if ours and not _is_typed(tool) and is_unbounded(schema, if_unknown=False):
            yield fault(f"{key}: {UNBOUNDED}", key, fix=f"{FIX[:1].upper()}{FIX[1:]}.")


def _is_ours(tool: LintedTool, key: str) -> bool:
    """Whether a server of ours validates against this schema."""
    return tool.ours is not None and (key == "outputSchema" or tool.ours.checks)


def _is_typed(tool: LintedTool) -> bool:
    """Whether msgspec decodes the arguments, which follows no reference."""
    return tool.ours is not None and tool.ours.typed


def _refused(nodes: list[SchemaNode], key: str) -> Iterator[RuleFault]:
    """Keywords that the metaschema accepts and the official TypeScript SDK refuses."""
    for node in nodes:
        if node.schema.get("enum") == []:
            yield fault(f"{show(node.path)} has an empty enum, which takes nothing", f"{node.path}.enum")
        if key == "outputSchema" and node.schema.get("nullable") is True and "type" not in node.schema:
            fix = 'Write {"type": "null"} as one of the alternatives.'
            yield fault(f"{show(node.path)} has nullable without type", f"{node.path}.nullable", fix=fix)


def _without_patterns(schema: Json) -> Json:
    """The schema without patterns, which the other server's validator reads, not ours."""
    rest = without(schema, "pattern") if isinstance(schema.get("pattern"), str) else schema
    named = rest.get("patternProperties")
    if not is_object(named):
        return rest
    return {**rest, "patternProperties": {str(number): each for number, each in enumerate(named.values())}}


def _problem(key: str, problem: Any, level: Level) -> RuleFault:
    return fault(f"{key}: {problem.what}", key, fix=f"{problem.fix[:1].upper()}{problem.fix[1:]}.", level=level)


def _is_reported(tool: LintedTool, key: str) -> bool:
    """Whether another rule reports what is wrong with this schema."""
    paths = [each.path for check in (_types, _dangling) for each in check(tool)]
    paths += [node.path for node in tool.nodes() if not isinstance(node.schema, (dict, bool))]
    return any(path.startswith(key) for path in paths)


def _patterns(tool: LintedTool) -> Iterator[RuleFault]:
    for key, _ in tool.schemas():
        for node in tool.objects(key):
            for place, pattern in _written(node):
                if flaw := find_flaw(pattern):
                    said = f"{show(node.path)}: {quote(pattern)[:50]} is no pattern in JavaScript: {cut(flaw)}"
                    yield fault(said, f"{node.path}.{place}", level=None if key == "outputSchema" else "warning")


def _ambiguous(tool: LintedTool) -> Iterator[RuleFault]:
    for key, _ in tool.schemas():
        for node in tool.objects(key):
            for place, pattern in _written(node):
                if has_nested_loop(pattern):
                    said = f"{show(node.path)}: a loop in {quote(pattern)[:50]} can match one text in many ways"
                    yield fault(said, f"{node.path}.{place}")


def _written(node: SchemaNode) -> Iterator[tuple[str, str]]:
    if isinstance(pattern := node.schema.get("pattern"), str):
        yield "pattern", pattern
    named = node.schema.get("patternProperties")
    yield from (("patternProperties", str(key)) for key in (named if is_object(named) else ()))


def _translated(schema: Json) -> Json:
    pattern = schema.get("pattern")
    written = translate(pattern) if isinstance(pattern, str) else None
    return schema if written is None else {**schema, "pattern": written}


def _taking(name: str, schema: Any, **root: Any) -> Json:
    return {"inputSchema": {"type": "object", "properties": {name: schema}, **root}}


def _giving(schema: Any) -> Json:
    return {"outputSchema": {"type": "object", "properties": {"code": schema}}}


_POINT: Final[Json] = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="E09",
        title="Every $ref leads to a place inside of the same schema",
        level="error",
        profiles=("mcp", "claude", "gemini"),
        why="No client fetches other schemas. The Gemini API refuses the request, and the official TypeScript SDK "
        "the whole list where it is an outputSchema.",
        evidence="MCP 2026-07-28; gemini-cli #13326; measured with @modelcontextprotocol/sdk 1.32.2",
        fix="Copy what it refers to into $defs, or write it where it is used.",
        good=example(_taking("at", {"$ref": "#/$defs/Point"}, **{"$defs": {"Point": _POINT}})),
        bad=example(_taking("at", {"$ref": "#/$defs/Point"})),
        check=_dangling,
    ),
    Rule(
        id="E10",
        title="A type is one of JSON Schema's seven",
        level="error",
        profiles=("mcp", "claude", "openai", "gemini"),
        why="The APIs refuse the whole request; Codex passes no type of the parameter to its model; the official "
        "TypeScript SDK refuses the whole list where it is an outputSchema.",
        evidence="JSON Schema 2020-12; apify-mcp-server #738; measured with Codex 0.166 and "
        "@modelcontextprotocol/sdk 1.32.2",
        fix="Write string, number, integer, boolean, object, array or null; leave the type out where anything goes.",
        good=example(_taking("value", {"description": "Anything"})),
        bad=example(_taking("value", {"type": "any", "description": "Anything"})),
        check=_types,
    ),
    Rule(
        id="E11",
        title="A default is valid by its own schema, and required names are properties",
        level="error",
        profiles=("claude", "openai", "gemini", "vscode", "cursor"),
        why="The server refuses a model that sends the default. The Gemini API refuses the whole "
        "request for a required name that is no property.",
        evidence="JSON Schema 2020-12; mcp-obsidian #105, probe #569, hermes-agent #64054",
        fix="Correct the default, or name the property.",
        good=example(_taking("days", {"type": "integer", "minimum": 1, "default": 3}, required=["days"])),
        bad=example(_taking("days", {"type": "integer", "minimum": 1, "default": "three"}, required=["day"])),
        check=_contradictions,
    ),
    Rule(
        id="E13",
        title="A schema is a JSON Schema of a known dialect, of bounded size and depth, and its checks end",
        level="error",
        profiles=("mcp", "claude", "gemini", "brooklyn"),
        why="Arguments can't be checked by it, or one value could keep the check busy for ever. The Anthropic API "
        "refuses the whole request, and the official TypeScript SDK the whole list.",
        evidence="MCP 2025-11-25 (JSON Schema 2020-12); Dokploy/mcp #74; measured with "
        "@modelcontextprotocol/sdk 1.32.2",
        fix="Correct the schema.",
        good=example(_taking("name", {"type": "string", "minLength": 1})),
        bad=example(_taking("name", {"type": "string", "minLength": "1"})),
        check=_unsound,
    ),
    Rule(
        id="E15",
        title="Patterns are regular expressions of ECMAScript with the u flag",
        level="error",
        profiles=("claude", "gemini"),
        why="The official TypeScript SDK compiles every outputSchema when it lists tools, and refuses the whole list "
        "for one pattern that JavaScript does not know. In an inputSchema other clients fail at each call.",
        evidence="measured with @modelcontextprotocol/sdk 1.32.2 on Node 20; opencode #35624, langchainjs #11351",
        fix="Write (?<n>…) for (?P<n>…), ^ and $ for \\A and \\Z, [Aa] for (?i), and no \\ before - or @ outside [].",
        good=example(_giving({"type": "string", "pattern": "^[A-Z]{3}-\\d+$"})),
        bad=example(_giving({"type": "string", "pattern": "\\A[A-Z]{3}\\-\\d+\\Z"})),
        check=_patterns,
        mend=change_schemas(lambda schema: rewrite(schema, _translated)),
    ),
    Rule(
        id="W33",
        title="No loop in a pattern can match one text in many ways",
        level="warning",
        profiles=("claude", "gemini"),
        why="A backtracking engine tries all of them before it decides that a text does not match, and their number "
        "doubles with every character. The official TypeScript SDK checks each result against its outputSchema with "
        "such an engine: one text blocks the whole client. A server of ours matches in linear time.",
        evidence='measured with Node 20: "^(a+)+$" took 34 seconds on 28 letters a and a !',
        fix="Give the loop one way to match: ^a+$ for ^(a+)+$, ^\\w+(\\s\\w+)*$ for ^(\\w+\\s?)*$.",
        good=example(_giving({"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"})),
        bad=example(_giving({"type": "string", "pattern": "^([a-z]+-?)*$"})),
        check=_ambiguous,
    ),
)
