"""Rules about what a tool is called, and about the record that a tool is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.kinds import is_array, is_object
from longshore.schema.phrase import cut, kind, quote
from longshore.schema.standards.rule import Fault, Profile, Rule, fault
from longshore.schema.standards.subject import Json, Subject, Surface, example

MOST_CHARS: Final = 64
"""Of a name. MCP says 128; the APIs of OpenAI and Google refuse more than 64."""
MCP_CHARS: Final = 128
"""Of a name in MCP; and of the whole name for the API of Anthropic."""
JOINED_CHARS: Final = 60
"""Of the server's and the tool's name together. Cursor leaves out what is longer."""
VSCODE_SERVER: Final = 13
"""Characters of the server's name that VS Code keeps, of a whole name of 64."""
GEMINI_CHARS: Final = 63
"""Of the whole name. Gemini CLI cuts what is longer in its middle."""

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_.-]")


def sanitise(name: str, *, dots: bool = False) -> str:
    """The name as clients write it for their model: other characters become `_`. Gemini CLI keeps dots."""
    return re.sub(r"[^A-Za-z0-9_.-]" if dots else r"[^A-Za-z0-9_-]", "_", name)


def final_names(server: str, tool: str) -> dict[str, str]:
    """What the models of three clients read."""
    joined = f"mcp__{sanitise(server)}__{sanitise(tool)}"
    gemini = sanitise(f"mcp_{server}_{tool}", dots=True)
    if len(gemini) > GEMINI_CHARS:
        gemini = f"{gemini[:30]}...{gemini[-30:]}"
    return {"Claude Code": joined, "Codex": joined, "Gemini CLI": gemini}


def _spelling(subject: Subject) -> Iterator[Fault]:
    name = subject.name
    if illegal := _ILLEGAL.search(name):
        yield fault(f"the name {quote(name)} holds {quote(illegal[0])}", "name", fix=_suggest(name))
    elif "." in name:
        said = f"the name {cut(name)} has a dot: {sanitise(name)[:40]} in Claude Code and Codex, kept by Gemini CLI"
        yield fault(said, "name", fix=_suggest(name), level="warning", profiles=("claude", "openai", "vscode"))
    if len(name) > MCP_CHARS:
        yield fault(f"the name has {len(name)} characters, more than {MCP_CHARS}", "name")
    elif len(name) > MOST_CHARS:
        said = f"the name {quote(name)} has {len(name)} characters, more than {MOST_CHARS}"
        yield fault(said, "name", profiles=("openai", "gemini", "vscode", "cursor"))
    if (whole := len(f"mcp__{subject.surface.name}__{name}")) > MCP_CHARS >= len(name):
        said = f"the name has {whole} characters in Claude Code, with the server's before it, more than {MCP_CHARS}"
        yield fault(said, "name", profiles=("claude",))


def _suggest(name: str) -> str:
    """How it may be called instead; nothing for a name of which nothing would be left."""
    legal = sanitise(name.strip().lstrip("-."))[:MOST_CHARS]
    if legal[:1].isdigit():
        legal = f"_{legal}"[:MOST_CHARS]
    return f"Call it {legal!r}." if legal.strip("_-") else ""


def _beginning(subject: Subject) -> Iterator[Fault]:
    if subject.name and not re.match(r"[A-Za-z_]", subject.name):
        said = f"the name {quote(subject.name)} begins with {quote(subject.name[0])}"
        yield fault(said, "name", fix=_suggest(subject.name))


def _length(subject: Subject) -> Iterator[Fault]:
    server, tool = subject.surface.name[:MCP_CHARS], subject.name[:MCP_CHARS]
    joined = len(subject.surface.name) + len(subject.name)
    seen = final_names(server, tool)
    too_long: dict[Profile, bool] = {
        "cursor": joined > JOINED_CHARS,
        "gemini": joined + len("mcp__") > GEMINI_CHARS,
        "vscode": min(len(server), VSCODE_SERVER) + len(tool) + len("mcp__") > MOST_CHARS,
    }
    whom: tuple[Profile, ...] = tuple(client for client, is_too_long in too_long.items() if is_too_long)
    if tool and whom:
        read = f"Claude Code and Codex read {_shown(seen['Claude Code'])}, Gemini CLI {_shown(seen['Gemini CLI'])}"
        yield fault(f"server and tool have {joined} characters: {read}", "name", profiles=whom)


def _shown(name: str) -> str:
    return name if len(name) <= 34 else f"{name[:15]}…{name[-15:]} ({len(name)})"


def _repeats(surface: Surface) -> Iterator[Fault]:
    exact: set[str] = set()
    clean: dict[str, str] = {}
    for tool in surface.tools:
        name = Subject(tool, surface).name
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


def _record(subject: Subject) -> Iterator[Fault]:
    tool = subject.tool
    if tool.get("name", "") == "":
        yield fault("the tool has no name", "name")
    yield from _find_odd(tool, _OF_TOOL)
    for key, kinds in _INSIDE.items():
        yield from _find_odd(tool.get(key), kinds, f"{key}.")
    icons: Any = tool.get("icons")
    for number, icon in enumerate(icons if is_array(icons) else ()):
        yield from _find_odd({"src": None, **icon} if is_object(icon) else {"src": None}, _OF_ICON, f"icons[{number}].")


def _find_odd(record: Any, kinds: dict[str, _Kind], before: str = "") -> Iterator[Fault]:
    for key, (wanted, words) in kinds.items() if is_object(record) else ():
        if key in record and not isinstance(record[key], wanted):
            yield fault(f"{before}{key} is {kind(record[key])}, not {words}", f"{before}{key}")


def _without_nulls(tool: Json) -> Json:
    kept = {key: value for key, value in tool.items() if value is not None or key in ("name", "inputSchema")}
    for key in _INSIDE:
        if is_object(inner := kept.get(key)):
            kept[key] = {name: value for name, value in inner.items() if value is not None}
    return kept


def _two(first: str, second: str) -> Surface:
    tools = (*example({"name": first}).tools, *example({"name": second, "description": "Get the forecast"}).tools)
    return Surface(tools=tools)


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
