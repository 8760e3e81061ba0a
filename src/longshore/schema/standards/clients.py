"""What each client does to a list of tools before its model sees it: tables, each line with how it is known.

Measured is what a real client sent to a stand-in for its model's API. The rest was reported by others, and may be old.
"""

from __future__ import annotations

from typing import Final

from longshore.schema.standards import edits, stumbles
from longshore.schema.standards.edits import PLAIN
from longshore.schema.standards.habit import ClientName, Fact, Find, Habits, Naming
from longshore.schema.standards.stumbles import CLAUDE_NAME, CURSOR_NAME, broken

_CLAUDE, _CODEX = "measured with Claude Code 2.1.197", "measured with Codex 0.166"
_GEMINI = "measured with Gemini CLI 0.61"
_SDK = "measured with the official TypeScript SDK 1.32.2, on which it is built"
_OPENAI = "reported in mcphost #35 and github-mcp-server #1548"
_SENT = "measured that it is sent; that the API refuses it is reported in"


def _refuses(rule: str, what: str, find: Find, known: str) -> Fact:
    """With this tool in it, no request gets through."""
    return Fact(what=f"the request is refused: {what}", known=known, rule=rule, costs="request", find=find)


def _fails(rule: str, what: str, find: Find, known: str) -> Fact:
    return Fact(what=f"the whole list fails: {what}", known=known, rule=rule, costs="list", find=find)


def _read_by_the_sdk(known: str) -> tuple[Fact, ...]:
    """What the official TypeScript SDK refuses to read, and with it whoever is built on it."""
    return (
        _fails("E16", "a tool without a name, or with a text or hint that is none", broken("E16", ""), known),
        _fails("E01", "the input schema does not say type: object", stumbles.rootless, known),
        _fails("E02", "a property's schema is no object", stumbles.odd_properties, known),
        _fails("E03", "the output schema does not say type: object", stumbles.output_is_odd, known),
        _fails("E09", "a reference in the output schema leads nowhere", broken("E09", "outputSchema"), _SDK),
        _fails("E10", "an unknown type in the output schema", broken("E10", "outputSchema"), _SDK),
        _fails("E13", "the output schema is none", broken("E13", "outputSchema"), _SDK),
        _fails("E15", "a pattern in the output schema is none in JavaScript", broken("E15", "outputSchema"), _SDK),
    )


def _says_nothing(known: str) -> Fact:
    return Fact(what="the description is empty", known=known, rule="W22", find=stumbles.wordless)


CLIENTS: Final[dict[ClientName, Habits]] = {
    "claude": Habits(
        title="Claude Code",
        profile="claude",
        naming=Naming(prefix="mcp__{}__", odd=PLAIN, known=_CLAUDE),
        schema_key="input_schema",
        most_text=2048,
        text_known=_CLAUDE,
        first_wins=_CLAUDE,
        facts=(
            *_read_by_the_sdk(_CLAUDE),
            Fact(
                what="the tool is skipped: a combinator at the root of its schema",
                known=_CLAUDE,
                rule="E04",
                costs="tool",
                find=stumbles.at_root("anyOf", "oneOf", "allOf"),
            ),
            _says_nothing(_CLAUDE),
            _refuses("E05", "a parameter's name", stumbles.odd_keys, f"{_SENT} claude-code #79418"),
            _refuses("E10", "an unknown type", stumbles.odd_types, f"{_SENT} apify-mcp-server #738"),
            _refuses("E13", "a schema that is none", broken("E13", "inputSchema"), "reported in Dokploy/mcp #74"),
            _refuses(
                "E06",
                f"the name has more than {CLAUDE_NAME} characters",
                stumbles.long_in_claude,
                f"{_SENT} home-assistant #147760",
            ),
        ),
    ),
    "codex": Habits(
        title="Codex",
        profile="openai",
        naming=Naming(
            prefix="mcp__{}__",
            odd=PLAIN,
            most=128,
            cut=edits.cut_with_hash,
            cut_rule="E06",
            space=True,
            hashes=True,
            known=_CODEX,
        ),
        schema_key="parameters",
        more={"type": "function", "strict": False},
        first_wins=_CODEX,
        facts=(
            _says_nothing(_CODEX),
            Fact(what="`true` or `false` becomes a string", known=_CODEX, rule="E02", edit=edits.true_to_string),
            Fact(what="an unknown type becomes anything", known=_CODEX, rule="E10", edit=edits.type_to_nothing),
            Fact(what="`const` becomes `enum`", known=_CODEX, edit=edits.const_to_enum),
            Fact(what="{gone} dropped", known=_CODEX, edit=edits.drop_title),
            Fact(what="{gone} dropped, and `items` invented", known=_CODEX, rule="W26", edit=edits.drop_tuple),
            Fact(
                what="{gone} dropped",
                known=f"{_CODEX} for minimum, pattern, format, default; its source keeps no other constraint",
                rule="W25",
                edit=edits.drop_unknown,
            ),
            Fact(what='`items: {{"type": "string"}}` invented', known=_CODEX, rule="E08", edit=edits.invent_items),
            Fact(what="empty `properties` added", known=_CODEX, edit=edits.add_properties),
        ),
    ),
    "gemini": Habits(
        title="Gemini CLI",
        profile="gemini",
        naming=Naming(
            prefix="mcp_{}_", odd=r"[^A-Za-z0-9_.-]", most=63, cut=edits.cut_middle, cut_rule="W20", known=_GEMINI
        ),
        schema_key="parametersJsonSchema",
        facts=(
            *_read_by_the_sdk(_GEMINI),
            _says_nothing(_GEMINI),
            _refuses(
                "E09", "a reference that leads nowhere", broken("E09", "inputSchema"), f"{_SENT} gemini-cli #13326"
            ),
            _refuses(
                "E11",
                "what is required is no property",
                broken("E11", "inputSchema.required"),
                "reported in mcp-obsidian #105",
            ),
            _refuses("E08", "an array without `items`", stumbles.itemless, f"{_SENT} cesium-mcp #37"),
            Fact(what="null among types becomes `nullable`", known=_GEMINI, rule="W24", edit=edits.null_to_nullable),
        ),
    ),
    "vscode": Habits(
        title="VS Code",
        profile="vscode",
        naming=Naming(
            prefix="mcp_{}_",
            odd=PLAIN,
            most=64,
            cut_rule="W20",
            server=edits.shorten,
            known="read in its source, mcpServer.ts; not measured",
        ),
        schema_key="parameters",
        more={"type": "function"},
        most_tools=128,
        tools_fact=Fact(
            what="requests are refused until tools are switched off: more than 128",
            known="reported in vscode-copilot-release #11653",
            rule="W28",
            costs="request",
        ),
        facts=(_refuses("E08", "an array without `items`", stumbles.itemless, "reported in vscode #246119"),),
    ),
    "cursor": Habits(
        title="Cursor",
        profile="cursor",
        naming=Naming(known="reported; how it prefixes is not known"),
        schema_key="parameters",
        more={"type": "function"},
        most_tools=80,
        tools_fact=Fact(
            what="left out: only the first 80 are handed on, by older versions the first 40",
            known="reported in Snowflake-Labs/mcp #77",
            rule="W28",
            costs="tool",
        ),
        facts=(
            Fact(
                what=f"filtered out: server and tool have more than {CURSOR_NAME} characters together",
                known="reported in mcp-playwright #145 and composio #2788",
                rule="W20",
                costs="tool",
                find=stumbles.too_long_for_cursor,
            ),
        ),
    ),
    "openai": Habits(
        title="OpenAI's API",
        profile="openai",
        naming=Naming(known="the tools as they are, without a client in between"),
        schema_key="parameters",
        more={"type": "function"},
        facts=(
            _refuses(
                "E06",
                "a name with other characters than A-Z a-z 0-9 _ -, or more than 64",
                stumbles.refused_name,
                "OpenAI's reference of function names",
            ),
            _refuses("E01", "the root does not say type: object", stumbles.rootless, _OPENAI),
            _refuses(
                "E04",
                "a combinator at the root",
                stumbles.at_root("anyOf", "oneOf", "allOf", "enum", "not"),
                "reported in notion-mcp-server #340",
            ),
            _refuses("E08", "an array without `items`", stumbles.itemless, _OPENAI),
            _refuses("E14", "an object without `properties`", stumbles.without_properties, _OPENAI),
        ),
    ),
}
