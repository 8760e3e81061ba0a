"""The client table: how each client changes a list of tools. Lint rules and `longshore lint --as` read it.

"Measured" means that a real client was connected to a stub of its model's API and its request was read. The rest was
reported by others, and may be outdated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct

from longshore.schema.kinds import NAME_CHARACTERS, as_object
from longshore.schema.lint.rule import Profile
from longshore.schema.lint.tool_list import TYPES, Json, types_of

ClientName = Literal["claude", "codex", "gemini", "vscode", "cursor", "openai"]
Cost = Literal["", "tool", "list", "request"]
"""The loss: nothing, the tool, all tools of the server, or every request while the server is connected."""

MCP_NAME_CHARS: Final = 128
"""The longest name of a tool in MCP, and of the whole name for Anthropic's API."""
PROPERTY_NAME: Final = re.compile(rf"[A-Za-z0-9_.-]{{1,{NAME_CHARACTERS}}}")
"""The names of parameters that Anthropic's API accepts."""
PLAIN: Final = r"[^A-Za-z0-9_-]"
CODEX_KEYWORDS: Final = frozenset(
    (
        *("type", "description", "enum", "items", "properties", "required", "additionalProperties"),
        *("anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions"),
    )
)
"""The keywords that Codex passes on."""


class ClientEffect(Struct, frozen=True):
    """An effect of a client on a tool: it changes a schema (`change`), or can't use tools that break `rule`."""

    rule: str
    """The rule that warns of it, if there is one."""
    what: str
    """For people. `{dropped}` are the keywords that `change` removed."""
    known: str = ""
    """The evidence, if it is another than the client's."""
    costs: Cost = ""
    where: str = ".*"
    """A pattern for the paths of the rule's faults that count."""
    change: Callable[[Any], Any | None] | None = None
    """Returns the changed schema, or None for no change."""


class ClientProfile(Struct, frozen=True, kw_only=True):
    """The known behaviour of a client."""

    title: str
    profile: Profile
    known: str
    """The evidence."""
    prefix: str = ""
    """The text before the tool's name as the model sees it; `{}` stands for the server's name."""
    replaced: str = r"[^\s\S]"
    """Characters of names that become `_`."""
    server_chars: int | None = None
    """Characters of the server's name that are used."""
    name_chars: int | None = None
    """The longest name; a longer one is cut."""
    cut: Literal["end", "middle", "hash"] = "end"
    name_rule: str = ""
    """The rule that warns of a name that is cut or left out."""
    namespace: bool = False
    """Whether the prefix goes to the model separately, as a namespace."""
    joined_chars: int | None = None
    """The most characters of the server's and the tool's name together."""
    accepts: str = r"[\s\S]*"
    """A pattern for the whole name."""
    refused_name: ClientEffect | None = None
    """The treatment of a name that `accepts` or `joined_chars` excludes."""
    first_wins: bool = False
    """Whether the first of two tools with one name wins. False: it is not known."""
    schema_key: str = "parameters"
    extra: Json = {}
    """More members of each tool in the request."""
    text_chars: int | None = None
    """UTF-16 units of a description, or of the instructions, that reach the model. JavaScript counts so."""
    tool_limits: tuple[tuple[int, str], ...] = ()
    """How many tools the client, or an older version, accepts, in words; the last one holds today."""
    too_many_tools: ClientEffect | None = None
    effects: tuple[ClientEffect, ...] = ()

    def prefix_of(self, server: str) -> str:
        if self.server_chars is not None:
            server = re.sub(r"[^a-z0-9_.-]+", "_", server.lower())[: self.server_chars]
        return re.sub(self.replaced, "_", self.prefix.format(server))

    def join(self, server: str, tool: str) -> str:
        """The whole name, before it is cut."""
        return self.prefix_of(server) + re.sub(self.replaced, "_", tool)

    def cuts(self, server: str, tool: str) -> bool:
        return self.name_chars is not None and len(self.join(server, tool)) > self.name_chars

    def accepts_name(self, server: str, tool: str) -> bool:
        if self.joined_chars is not None and len(server) + len(tool) > self.joined_chars:
            return False
        return re.fullmatch(self.accepts, self.join(server, tool)) is not None


# -- changes to schemas. A schema may be any JSON value.


def _boolean_to_string(schema: Any) -> Any | None:
    return {"type": "string"} if isinstance(schema, bool) else None


def _const_to_enum(schema: Any) -> Any | None:
    found = as_object(schema)
    renamed = {("enum" if key == "const" else key): value for key, value in found.items()}
    return {**renamed, "enum": [found["const"]]} if "const" in found else None


def _unknown_type_to_any(schema: Any) -> Any | None:
    return {} if any(each not in TYPES for each in types_of(schema)) else None


def _add_items(schema: Any) -> Any | None:
    return {**schema, "items": {"type": "string"}} if "array" in types_of(schema) and "items" not in schema else None


def _drop(is_dropped: Callable[[str], bool]) -> Callable[[Any], Any | None]:
    def change(schema: Any) -> Any | None:
        kept = {key: value for key, value in as_object(schema).items() if not is_dropped(key)}
        return kept if len(kept) < len(as_object(schema)) else None

    return change


def _drop_prefix_items(schema: Any) -> Any | None:
    kept = _drop("prefixItems".__eq__)(schema)
    return None if kept is None else {"items": {"type": "string"}, **kept}


def _add_properties(schema: Any) -> Any | None:
    missing = "properties" not in as_object(schema) and (
        "object" in types_of(schema) or "required" in as_object(schema)
    )
    return {**schema, "properties": {}} if missing else None


def _null_to_nullable(schema: Any) -> Any | None:
    types = types_of(schema)
    if len(types) < 2 or "null" not in types:
        return None
    rest = [each for each in types if each != "null"]
    return {**schema, "type": rest[0] if len(rest) == 1 else rest, "nullable": True}


# -- the table

_SDK = "measured with the official TypeScript SDK 1.32.2, on which it is built"
_OPENAI = "reported in mcphost #35 and github-mcp-server #1548"
_SENT = "measured that it is sent; that the API refuses it is reported in"


def _refuses(rule: str, what: str, known: str, where: str = "inputSchema.*") -> ClientEffect:
    """With this tool in it, no request gets through."""
    return ClientEffect(rule, f"the request is refused: {what}", known, "request", where)


def _fails(rule: str, what: str, known: str = "", where: str = ".*") -> ClientEffect:
    return ClientEffect(rule, f"the whole list fails: {what}", known, "list", where)


def _changes(rule: str, what: str, change: Callable[[Any], Any | None], known: str = "") -> ClientEffect:
    return ClientEffect(rule, what, known, change=change)


_NO_DESCRIPTION = ClientEffect("W22", "the description is empty", where="")
_SDK_REFUSALS = (
    _fails("E16", "a tool without a name, or with a text or hint of another type"),
    _fails("E01", "the input schema does not say type: object"),
    _fails("E02", "a property's schema is no object", where=r"\w+\.properties\.[^.]*"),
    _fails("E03", "the output schema does not say type: object", where="outputSchema.*"),
    _fails("E09", "a reference in the output schema leads nowhere", _SDK, "outputSchema.*"),
    _fails("E10", "an unknown type in the output schema", _SDK, "outputSchema.*"),
    _fails("E13", "the output schema is invalid", _SDK, "outputSchema.*"),
    _fails("E15", "a pattern in the output schema is invalid in JavaScript", _SDK, "outputSchema.*"),
)
"""Lists that the official TypeScript SDK, and each client built on it, refuses to read."""

CLIENTS: Final[dict[ClientName, ClientProfile]] = {
    "claude": ClientProfile(
        title="Claude Code",
        profile="claude",
        known="measured with Claude Code 2.1.197",
        prefix="mcp__{}__",
        replaced=PLAIN,
        accepts=rf"[\s\S]{{0,{MCP_NAME_CHARS}}}",
        refused_name=_refuses(
            "E06", f"the name has more than {MCP_NAME_CHARS} characters", f"{_SENT} home-assistant #147760"
        ),
        first_wins=True,
        schema_key="input_schema",
        text_chars=2048,
        effects=(
            *_SDK_REFUSALS,
            ClientEffect("E04", "the tool is skipped: a combinator at the root of its schema", costs="tool"),
            _NO_DESCRIPTION,
            _refuses("E05", "a parameter's name", f"{_SENT} claude-code #79418"),
            _refuses("E10", "an unknown type", f"{_SENT} apify-mcp-server #738"),
            _refuses("E13", "an invalid schema", "reported in Dokploy/mcp #74"),
        ),
    ),
    "codex": ClientProfile(
        title="Codex",
        profile="openai",
        known="measured with Codex 0.166",
        prefix="mcp__{}__",
        replaced=PLAIN,
        name_chars=128,
        cut="hash",
        name_rule="E06",
        namespace=True,
        first_wins=True,
        extra={"type": "function", "strict": False},
        effects=(
            _NO_DESCRIPTION,
            _changes("E02", "`true` or `false` becomes a string", _boolean_to_string),
            _changes("E10", "an unknown type becomes anything", _unknown_type_to_any),
            _changes("", "`const` becomes `enum`", _const_to_enum),
            _changes("", "{dropped} dropped", _drop(("title", "$schema").__contains__)),
            _changes("W26", "{dropped} dropped, and `items` invented", _drop_prefix_items),
            _changes(
                "W25",
                "{dropped} dropped",
                _drop(lambda key: key not in CODEX_KEYWORDS),
                "measured with Codex 0.166 for minimum, pattern, format, default; its source keeps no other constraint",
            ),
            _changes("E08", '`items: {{"type": "string"}}` invented', _add_items),
            _changes("", "empty `properties` added", _add_properties),
        ),
    ),
    "gemini": ClientProfile(
        title="Gemini CLI",
        profile="gemini",
        known="measured with Gemini CLI 0.61",
        prefix="mcp_{}_",
        replaced=r"[^A-Za-z0-9_.-]",
        name_chars=63,
        cut="middle",
        name_rule="W20",
        schema_key="parametersJsonSchema",
        effects=(
            *_SDK_REFUSALS,
            _NO_DESCRIPTION,
            _refuses("E09", "a reference that leads nowhere", f"{_SENT} gemini-cli #13326"),
            _refuses(
                "E11", "what is required is no property", "reported in mcp-obsidian #105", r"inputSchema\.required"
            ),
            _refuses("E08", "an array without `items`", f"{_SENT} cesium-mcp #37"),
            _changes("W24", "null among types becomes `nullable`", _null_to_nullable),
        ),
    ),
    "vscode": ClientProfile(
        title="VS Code",
        profile="vscode",
        known="read in its source, mcpServer.ts; not measured",
        prefix="mcp_{}_",
        replaced=PLAIN,
        server_chars=13,
        name_chars=64,
        name_rule="W20",
        extra={"type": "function"},
        tool_limits=((128, "VS Code takes 128 in a request, of all servers together"),),
        too_many_tools=ClientEffect(
            "W28",
            "requests are refused until tools are switched off: more than 128",
            "reported in vscode-copilot-release #11653",
            "request",
        ),
        effects=(_refuses("E08", "an array without `items`", "reported in vscode #246119"),),
    ),
    "cursor": ClientProfile(
        title="Cursor",
        profile="cursor",
        known="reported; how it prefixes is not known",
        joined_chars=60,
        name_rule="W20",
        refused_name=ClientEffect(
            "W20",
            "filtered out: server and tool have more than 60 characters together",
            "reported in mcp-playwright #145 and composio #2788",
            "tool",
        ),
        extra={"type": "function"},
        tool_limits=((40, "older Cursor takes 40"), (50, "Windsurf takes 50"), (80, "Cursor takes 80")),
        too_many_tools=ClientEffect(
            "W28",
            "left out: only the first 80 are handed on, by older versions the first 40",
            "reported in Snowflake-Labs/mcp #77",
            "tool",
        ),
    ),
    "openai": ClientProfile(
        title="OpenAI's API",
        profile="openai",
        known="the tools as they are, without a client in between",
        accepts=rf"[A-Za-z0-9_-]{{1,{NAME_CHARACTERS}}}",
        refused_name=_refuses(
            "E06",
            f"a name with other characters than A-Z a-z 0-9 _ -, or more than {NAME_CHARACTERS}",
            "OpenAI's reference of function names",
        ),
        extra={"type": "function"},
        effects=(
            _refuses("E01", "the root does not say type: object", _OPENAI, ".*"),
            _refuses("E04", "a combinator at the root", "reported in notion-mcp-server #340"),
            _refuses("E08", "an array without `items`", _OPENAI),
            _refuses("E14", "an object without `properties`", _OPENAI),
        ),
    ),
}
