"""Rules about the names of tools, and about the members of a tool's record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.kinds import NAME_CHARACTERS, is_array, is_object
from longshore.schema.lint.clients import CLIENTS, MCP_NAME_CHARS, PLAIN
from longshore.schema.lint.rule import Profile, Rule, RuleFault, fault
from longshore.schema.lint.tool_list import Json, LintedTool, ToolList, example
from longshore.schema.phrase import cut, kind, quote

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_.-]")


def sanitise(name: str) -> str:
    """The name as Claude Code and Codex write it for their model."""
    return re.sub(PLAIN, "_", name)


def _spelling(tool: LintedTool) -> Iterator[RuleFault]:
    name = tool.name
    if illegal := _ILLEGAL.search(name):
        yield fault(f"the name {quote(name)} holds {quote(illegal[0])}", "name", fix=_suggest(name))
    elif "." in name:
        said = f"the name {cut(name)} has a dot: {sanitise(name)[:40]} in Claude Code and Codex, kept by Gemini CLI"
        yield fault(said, "name", fix=_suggest(name), level="warning", profiles=("claude", "openai", "vscode"))
    if len(name) > MCP_NAME_CHARS:
        yield fault(f"the name has {len(name)} characters, more than {MCP_NAME_CHARS}", "name")
    elif len(name) > NAME_CHARACTERS:
        said = f"the name {quote(name)} has {len(name)} characters, more than {NAME_CHARACTERS}"
        yield fault(said, "name", profiles=("openai", "gemini", "vscode", "cursor"))
    whole = len(CLIENTS["claude"].naming.join(tool.server.name, name))
    if whole > MCP_NAME_CHARS >= len(name):
        said = (
            f"the name has {whole} characters in Claude Code, with the server's before it, more than {MCP_NAME_CHARS}"
        )
        yield fault(said, "name", profiles=("claude",))


def _suggest(name: str) -> str:
    """A legal name; empty if nothing of the name would be left."""
    legal = sanitise(name.strip().lstrip("-."))[:NAME_CHARACTERS]
    if legal[:1].isdigit():
        legal = f"_{legal}"[:NAME_CHARACTERS]
    return f"Call it {legal!r}." if legal.strip("_-") else ""


def _beginning(tool: LintedTool) -> Iterator[RuleFault]:
    if tool.name and not re.match(r"[A-Za-z_]", tool.name):
        said = f"the name {quote(tool.name)} begins with {quote(tool.name[0])}"
        yield fault(said, "name", fix=_suggest(tool.name))


def _length(tool: LintedTool) -> Iterator[RuleFault]:
    server, name = tool.server.name, tool.name
    whom: list[Profile] = []
    for client in CLIENTS.values():
        naming = client.naming
        cut_off = naming.most is not None and len(naming.join(server, name)) > naming.most
        if naming.rule == "W20" and (cut_off or not naming.accepts_name(server, name)):
            whom.append(client.profile)
    if name and whom:
        claude, gemini = (_shown(CLIENTS[each].naming.join(server, name)) for each in ("claude", "gemini"))
        said = f"server and tool have {len(server) + len(name)} characters: Claude Code and Codex read {claude}, "
        yield fault(f"{said}Gemini CLI cuts {gemini}", "name", profiles=tuple(sorted(whom)))


def _shown(name: str) -> str:
    return name if len(name) <= 34 else f"{name[:15]}…{name[-15:]} ({len(name)})"


def _repeats(server: ToolList) -> Iterator[RuleFault]:
    exact: set[str] = set()
    clean: dict[str, str] = {}
    for tool in server.tools:
        name = LintedTool(tool, server).name
        first = clean.setdefault(sanitise(name), name)
        if not name:
            continue
        if name in exact:
            yield fault(f"{quote(name)} is listed more than once", "name", tool=name)
        elif first != name:
            said = f"{quote(name)} and {quote(first)} are both {cut(sanitise(name))} in Claude Code and Codex"
            yield fault(said, "name", tool=name, profiles=("claude", "openai"))
        exact.add(name)


_Kind = tuple[type, str]
_TEXT: Final[_Kind] = (str, "a string")
_ARRAY: Final[_Kind] = (list, "an array")
_OF_TOOL: Final[dict[str, _Kind]] = {
    **dict.fromkeys(("name", "title", "description"), _TEXT),
    **dict.fromkeys(("annotations", "execution", "_meta"), (dict, "an object")),
    "icons": _ARRAY,
}
_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_INSIDE: Final[dict[str, dict[str, _Kind]]] = {
    "annotations": {"title": _TEXT, **dict.fromkeys(_HINTS, (bool, "a boolean"))},
    "execution": {"taskSupport": _TEXT},
}
_OF_ICON: Final[dict[str, _Kind]] = {"src": _TEXT, "mimeType": _TEXT, "sizes": _ARRAY, "theme": _TEXT}


def _record(tool: LintedTool) -> Iterator[RuleFault]:
    if tool.record.get("name", "") == "":
        yield fault("the tool has no name", "name")
    yield from _find_malformed(tool.record, _OF_TOOL)
    for key, kinds in _INSIDE.items():
        yield from _find_malformed(tool.record.get(key), kinds, f"{key}.")
    icons: Any = tool.record.get("icons")
    for number, icon in enumerate(icons if is_array(icons) else ()):
        record = {"src": None, **icon} if is_object(icon) else {"src": None}
        yield from _find_malformed(record, _OF_ICON, f"icons[{number}].")


def _find_malformed(record: Any, kinds: dict[str, _Kind], before: str = "") -> Iterator[RuleFault]:
    for key, (wanted, words) in kinds.items() if is_object(record) else ():
        if key in record and not isinstance(record[key], wanted):
            yield fault(f"{before}{key} is {kind(record[key])}, not {words}", f"{before}{key}")


def _without_nulls(tool: Json) -> Json:
    kept = {key: value for key, value in tool.items() if value is not None or key in ("name", "inputSchema")}
    for key in _INSIDE:
        if is_object(inner := kept.get(key)):
            kept[key] = {name: value for name, value in inner.items() if value is not None}
    return kept


def _two(first: str, second: str) -> ToolList:
    tools = (*example({"name": first}).tools, *example({"name": second, "description": "Get the forecast"}).tools)
    return ToolList(tools=tools)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="E06",
        title="A tool's name is 1 to 64 of A-Z a-z 0-9 _ -",
        level="error",
        profiles=("mcp", "claude", "openai", "gemini", "vscode", "cursor"),
        why="Clients write other characters as _, each in its own way, and the APIs refuse the whole request "
        "for one name that is longer or has others. With a dot it has three spellings in three clients.",
        evidence="MCP 2025-11-25 (128 characters, dots too); measured with Claude Code 2.1.197, Codex 0.166 and "
        "Gemini CLI 0.61; gradle-mcp-server #2, home-assistant #147760, DesktopCommanderMCP #79, mcp-access-point #10",
        fix="Write the name in letters, digits, _ and -, at most 64 of them.",
        good=example({"name": "get_weather"}),
        bad=example({"name": "get weather/now"}),
        check=_spelling,
    ),
    Rule(
        id="E07",
        title="No two tools have the same name, nor would have after clients have rewritten it",
        level="error",
        profiles=("mcp", "claude", "openai"),
        why="The first one wins and the other can't be called; or both are sent, and the API refuses the request.",
        evidence="MCP 2025-11-25 (unique within a server); measured with Claude Code 2.1.197 and Codex 0.166; "
        "claude-code #10687, onyx #9229",
        fix="Rename one of them.",
        good=_two("get_weather", "get_forecast"),
        bad=_two("get.weather", "get_weather"),
        whole=_repeats,
    ),
    Rule(
        id="E12",
        title="A tool's name begins with a letter or _",
        level="error",
        profiles=("gemini",),
        why="The Gemini API refuses the whole request where a client sends the name without a prefix of its own.",
        evidence="DesktopCommanderMCP #79, KiCAD-MCP-Server #7",
        fix="Begin the name with a letter.",
        good=example({"name": "find_3d_model"}),
        bad=example({"name": "3d_model"}),
        check=_beginning,
    ),
    Rule(
        id="E16",
        title="A tool is the record that MCP says: a name, and texts and objects where it asks for them",
        level="error",
        profiles=("mcp", "claude", "gemini"),
        why="The official TypeScript SDK refuses the whole list for one tool that has no name, a null description or a "
        "null hint.",
        evidence="MCP 2025-11-25; measured with @modelcontextprotocol/sdk 1.32.2",
        fix="Give the tool a name, and leave out what has no value instead of sending null.",
        good=example({"description": "Get the weather of a city"}),
        bad=example({"description": None}),
        check=_record,
        mend=_without_nulls,
    ),
    Rule(
        id="W20",
        title="The server's and the tool's name together have at most 60 characters",
        level="warning",
        profiles=("cursor", "gemini", "vscode"),
        why="Cursor leaves the tool out. Gemini CLI cuts the name in its middle, and VS Code at its end, so that the "
        "model reads another one.",
        evidence="mcp-playwright #145, composio #2788; measured with Gemini CLI 0.61; VS Code's mcpServer.ts",
        fix="Shorten the tool's name, and leave out of it what the server's name says already.",
        good=example({"name": "create_issue"}, name="project-tracker"),
        bad=example({"name": "create_a_new_issue_in_the_project_tracker_now"}, name="project-tracker-server"),
        check=_length,
    ),
)
