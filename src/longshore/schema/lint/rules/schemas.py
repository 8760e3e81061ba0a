"""Rules about the shape of a tool's schemas, which clients and APIs check before they accept a list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.kinds import is_array, is_object
from longshore.schema.lint.clients import PROPERTY_NAME
from longshore.schema.lint.parameters import is_opaque
from longshore.schema.lint.rule import Level, Rule, RuleFault, fault
from longshore.schema.lint.tool_list import Json, LintedTool, SchemaNode, change_schemas, example, show
from longshore.schema.phrase import kind, quote
from longshore.schema.rewrite import SWITCHES, with_items, with_object_root, without_booleans
from longshore.schema.walk import has_type, subschemas

_OF_APIS: Final = ("input_schema", "parameters")
"""The names of inputSchema in the APIs of models."""


def _input_root(tool: LintedTool) -> Iterator[RuleFault]:
    if "inputSchema" in tool.record:
        yield from _root(tool, "inputSchema")
    elif other := next((key for key in _OF_APIS if key in tool.record), ""):
        yield fault(f"the tool has {other} instead of inputSchema", fix=f"Call {other} inputSchema.")
    else:
        yield fault("the tool has no inputSchema", fix='Give it "inputSchema": {"type": "object", "properties": {}}.')


def _output_root(tool: LintedTool) -> Iterator[RuleFault]:
    """A server of ours wraps other results in an object, so this rule does not apply to it."""
    if "outputSchema" in tool.record and tool.declared is None:
        yield from _root(tool, "outputSchema")


def _root(tool: LintedTool, key: str) -> Iterator[RuleFault]:
    schema = tool.record[key]
    if not is_object(schema):
        yield fault(f"{key} is {kind(schema)}, not an object", key)
    elif "type" not in schema:
        yield fault(f"the root of {key} has no type", key)
    elif schema["type"] != "object":
        yield fault(f"the root of {key} has the type {quote(schema['type'])}", key)


def _mend_input(tool: Json) -> Json:
    """Add `type: object`: arguments are always objects."""
    schema = tool.get("inputSchema", {} if tool.keys().isdisjoint(_OF_APIS) else None)
    sure = is_object(schema) and (has_type(schema, "object") or "type" not in schema)
    return {**tool, "inputSchema": with_object_root(schema)} if sure else tool


def _no_schemas(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.nodes():
        value = node.schema
        if node.level == 0 or is_object(value) or (node.inside == "dependencies" and is_array(value)):
            continue
        if not isinstance(value, bool):
            said = f"{show(node.path)} is {kind(value)}, not a schema"
            yield fault(said, node.path, fix='Write {} where anything goes, or {"type": …}.')
        elif node.inside not in SWITCHES:
            said = f"{show(node.path)} is the boolean {quote(value)}"
            if node.level == 1 and node.inside == "properties":
                yield fault(said, node.path, profiles=("claude", "openai", "gemini"))
            else:
                yield fault(said, node.path, level="warning", profiles=("openai", "gemini"))


_COMBINATORS: Final = ("anyOf", "oneOf", "allOf")
_ROOT_ONLY: Final = (*_COMBINATORS, "not", "enum", "if", "const")


def _root_combinators(tool: LintedTool) -> Iterator[RuleFault]:
    for keyword in _ROOT_ONLY:
        if keyword in tool.input:
            said = f"inputSchema has {keyword} at its root"
            if keyword in _COMBINATORS:
                yield fault(said, f"inputSchema.{keyword}")
            else:
                level: Level = "error" if keyword in ("not", "enum") else "warning"
                yield fault(said, f"inputSchema.{keyword}", level=level, profiles=("openai",))


def _keys(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.nodes("inputSchema"):
        for key in _properties(node):
            if not PROPERTY_NAME.fullmatch(str(key)):
                said = f"{show(node.path)} has the property {quote(str(key))}"
                yield fault(said, f"{node.path}.properties", level="warning" if node.level else "error")


def _properties(node: SchemaNode) -> dict[str, Any]:
    found = node.schema.get("properties") if is_object(node.schema) else None
    return found if is_object(found) else {}


def _arrays(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.nodes("inputSchema"):
        if is_object(node.schema) and has_type(node.schema, "array") and "items" not in node.schema:
            yield fault(f"{show(node.path)} is an array without items", node.path)


def _objects(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.nodes("inputSchema"):
        if not is_object(node.schema) or not has_type(node.schema, "object") or "properties" in node.schema:
            continue
        if node.level == 0:
            misplaced = _find_misplaced(node.schema)
            fix = f'Put {quote(misplaced[0])} and its like under "properties".' if misplaced else ""
            yield fault(f"{node.path} is an object without properties", node.path, fix=fix)
        elif is_opaque(node.schema):
            said = f"{show(node.path)} is an object that doesn't say what is in it"
            fix = "Name the properties that it has, or describe those that it may have in additionalProperties."
            yield fault(said, node.path, fix=fix, level="warning")


def _find_misplaced(schema: Json) -> list[str]:
    """Parameters that stand beside "type" instead of inside of "properties"."""
    return [
        key
        for key, value in schema.items()
        if is_object(value)
        and "type" in value
        and not list(subschemas({key: value}))
        and key not in ("default", "const")
    ]


def _mend_objects(tool: Json) -> Json:
    """Add empty properties at the root only: below it, Google's API has refused them."""
    schema = tool.get("inputSchema")
    if not is_object(schema) or "properties" in schema or _find_misplaced(schema):
        return tool
    return {**tool, "inputSchema": {**schema, "properties": {}}}


_CITY: Final[Json] = {"type": "string", "description": "Name of the city"}


def _taking(schema: Any, name: str = "city") -> Json:
    return {"inputSchema": {"type": "object", "properties": {name: schema}}}


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="E01",
        title="The root of inputSchema has the type object",
        level="error",
        profiles=("mcp", "claude", "openai", "gemini"),
        why="Claude Code and Gemini CLI refuse the whole list of the server's tools for one schema without it, and "
        "OpenAI's API the whole request.",
        evidence="MCP, all revisions; measured with Claude Code 2.1.197 and Gemini CLI 0.61; mcphost #35",
        fix='Write "type": "object" at the root of inputSchema.',
        good=example(_taking(_CITY)),
        bad=example({"inputSchema": {"properties": {"city": _CITY}}}),
        check=_input_root,
        mend=_mend_input,
    ),
    Rule(
        id="E02",
        title="Where a schema is expected stands an object, not a boolean or another value",
        level="error",
        profiles=("mcp", "claude", "openai", "gemini"),
        why="Claude Code and Gemini CLI refuse the whole list for a parameter whose schema is true; Codex turns "
        "it into a string. Deeper inside, Codex and Google's API change or refuse it. Other values are no schemas.",
        evidence="measured with Claude Code 2.1.197, Gemini CLI 0.61 and Codex 0.166; copilot-cli #4623",
        fix='Write {} instead of true, and leave out what is false. "additionalProperties": false is fine.',
        good=example(_taking({})),
        bad=example(_taking(True)),
        check=_no_schemas,
        mend=change_schemas(without_booleans),
    ),
    Rule(
        id="E03",
        title="The root of outputSchema has the type object",
        level="error",
        profiles=("mcp", "claude", "gemini"),
        why="Claude Code and Gemini CLI refuse the whole list. Only from 2026-07-28 on may results be anything else.",
        evidence="MCP 2025-06-18 and 2025-11-25; measured with Claude Code 2.1.197 and Gemini CLI 0.61; mcpx #28",
        fix='Wrap the result: {"type": "object", "properties": {"result": …}, "required": ["result"]}.',
        good=example({"outputSchema": {"type": "object", "properties": {"result": {"type": "array", "items": {}}}}}),
        bad=example({"outputSchema": {"type": "array", "items": {"type": "string"}}}),
        check=_output_root,
    ),
    Rule(
        id="E04",
        title="No anyOf, oneOf, allOf, not, if, enum or const at the root of inputSchema",
        level="error",
        profiles=("claude", "openai", "brooklyn"),
        why="Claude Code leaves the tool out. The APIs of Anthropic and OpenAI refuse the whole request, "
        "so a client that passes it on can't be used at all.",
        evidence="measured with Claude Code 2.1.197; python-sdk #494, claude-code #5973, notion-mcp-server #340, "
        "langchainjs #9804, flywheel_connectors #49. Legal in MCP since 2026-07-28",
        fix="Make the parameters optional, say in the description which belong together (“Either 'path' or 'url' must "
        "be given”), and check it in the handler. Inside of a parameter anyOf is fine.",
        good=example(
            {
                "description": "Read a page. Either 'path' or 'url' must be given.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "description": "Path of a file (optional if url is given)"},
                        "url": {"type": "string", "description": "Address of a page (optional if path is given)"},
                    },
                },
            }
        ),
        bad=example(
            {
                "description": "Read a page",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "description": "Path of a file"},
                        "url": {"type": "string", "description": "Address of a page"},
                    },
                    "anyOf": [{"required": ["path"]}, {"required": ["url"]}],
                },
            }
        ),
        check=_root_combinators,
    ),
    Rule(
        id="E05",
        title="Names of properties are 1 to 64 of A-Z a-z 0-9 _ . -",
        level="error",
        profiles=("claude",),
        why="The Anthropic API refuses the whole request, with all tools of all servers, for one other key at the top "
        "level. Deeper ones pass today.",
        evidence="claude-code #79418, composio #3500; Claude Code 2.1.197 sends such keys on (measured)",
        fix="Rename the property; write what it is for in its description.",
        good=example(_taking(_CITY, "city_name")),
        bad=example(_taking(_CITY, "city name")),
        check=_keys,
    ),
    Rule(
        id="E08",
        title="Every array says what its items are",
        level="error",
        profiles=("openai", "gemini", "vscode"),
        why="OpenAI, Google and VS Code refuse the tool, or the whole request; Codex tells its model that the items "
        "are strings.",
        evidence="vscode #246119, rootly #82, cesium-mcp #37, opencode #48073; measured with Codex 0.166",
        fix='Write "items": {"type": …}, or "items": {} where anything goes; beside prefixItems too.',
        good=example(_taking({"type": "array", "items": {"type": "string"}, "description": "Names"}, "cities")),
        bad=example(_taking({"type": "array", "description": "Names"}, "cities")),
        check=_arrays,
        mend=change_schemas(with_items, "inputSchema"),
    ),
    Rule(
        id="E14",
        title="The root of inputSchema lists its properties, even if there are none",
        level="error",
        profiles=("openai",),
        why="OpenAI refuses the whole request: object schema missing properties. Below the root nothing is refused, "
        "but a model is left to guess what an object holds.",
        evidence="mcphost #35, github-mcp-server #1548, kubernetes-mcp-server #340",
        fix='Write "properties": {} for a tool without parameters.',
        good=example({"inputSchema": {"type": "object", "properties": {}, "additionalProperties": False}}),
        bad=example({"inputSchema": {"type": "object"}}),
        check=_objects,
        mend=_mend_objects,
    ),
)
