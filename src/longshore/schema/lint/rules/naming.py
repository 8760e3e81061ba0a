"""Rules about the names of tools, and about the members of a tool's record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.kinds import NAME_CHARACTERS, as_array, is_object
from longshore.schema.lint.clients import CLIENTS, MCP_NAME_CHARS, PLAIN
from longshore.schema.lint.rule import Check, Mend, Profile, RuleFault, ServerCheck
from longshore.schema.lint.tool_list import Json, LintedTool, ToolList
from longshore.schema.phrase import cut, kind, quote

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_.-]")


def _sanitise(name: str) -> str:
    """The name as Claude Code and Codex write it for their model."""
    return re.sub(PLAIN, "_", name)


def _check_spelling(tool: LintedTool) -> Iterator[RuleFault]:
    name, long = tool.name, len(tool.name)
    whole = len(CLIENTS["claude"].join(tool.server.name, name))
    if illegal := _ILLEGAL.search(name):
        yield RuleFault(f"the name {quote(name)} holds {quote(illegal[0])}", "name", _suggest(name))
    elif "." in name:
        message = f"the name {cut(name)} has a dot: {_sanitise(name)[:40]} in Claude Code and Codex, kept by Gemini CLI"
        yield RuleFault(message, "name", _suggest(name), "warning", ("claude", "openai", "vscode"))
    if long > MCP_NAME_CHARS:
        yield RuleFault(f"the name has {long} characters, more than {MCP_NAME_CHARS}", "name")
    elif long > NAME_CHARACTERS:
        message = f"the name {quote(name)} has {long} characters, more than {NAME_CHARACTERS}"
        yield RuleFault(message, "name", profiles=("openai", "gemini", "vscode", "cursor"))
    if whole > MCP_NAME_CHARS >= long:
        message = f"the name has {whole} characters in Claude Code, with the server's before it, more than "
        yield RuleFault(f"{message}{MCP_NAME_CHARS}", "name", profiles=("claude",))


def _suggest(name: str) -> str:
    """A legal name; empty if nothing of the name would be left."""
    legal = _sanitise(name.strip().lstrip("-."))
    legal = (f"_{legal}" if legal[:1].isdigit() else legal)[:NAME_CHARACTERS]
    return f"Call it {legal!r}." if legal.strip("_-") else ""


def _check_beginning(tool: LintedTool) -> Iterator[RuleFault]:
    if tool.name and not re.match(r"[A-Za-z_]", tool.name):
        message = f"the name {quote(tool.name)} begins with {quote(tool.name[0])}"
        yield RuleFault(message, "name", _suggest(tool.name))


def _check_length(tool: LintedTool) -> Iterator[RuleFault]:
    server, name = tool.server.name, tool.name
    whom: list[Profile] = []
    for client in CLIENTS.values():
        kept = not client.cuts(server, name) and client.accepts_name(server, name)
        if client.name_rule == "W20" and not kept:
            whom.append(client.profile)
    if name and whom:
        claude, gemini = (_shorten(CLIENTS[each].join(server, name)) for each in ("claude", "gemini"))
        message = f"server and tool have {len(server) + len(name)} characters: Claude Code and Codex read {claude}, "
        yield RuleFault(f"{message}Gemini CLI cuts {gemini}", "name", profiles=tuple(sorted(whom)))


def _shorten(name: str) -> str:
    return name if len(name) <= 34 else f"{name[:15]}…{name[-15:]} ({len(name)})"


def _check_duplicates(server: ToolList) -> Iterator[RuleFault]:
    exact: set[str] = set()
    clean: dict[str, str] = {}
    for name in filter(None, (LintedTool(tool, server).name for tool in server.tools)):
        first = clean.setdefault(_sanitise(name), name)
        if name in exact:
            yield RuleFault(f"{quote(name)} is listed more than once", "name", tool=name)
        elif first != name:
            message = f"{quote(name)} and {quote(first)} are both {cut(_sanitise(name))} in Claude Code and Codex"
            yield RuleFault(message, "name", tool=name, profiles=("claude", "openai"))
        exact.add(name)


_OF_TOOL: Final[dict[str, type]] = {
    **dict.fromkeys(("name", "title", "description"), str),
    **dict.fromkeys(("annotations", "execution", "_meta"), dict),
    "icons": list,
}
_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_INSIDE: Final[dict[str, dict[str, type]]] = {
    "annotations": {"title": str, **dict.fromkeys(_HINTS, bool)},
    "execution": {"taskSupport": str},
}
_OF_ICON: Final[dict[str, type]] = {"src": str, "mimeType": str, "sizes": list, "theme": str}


def _check_record(tool: LintedTool) -> Iterator[RuleFault]:
    if tool.record.get("name", "") == "":
        yield RuleFault("the tool has no name", "name")
    yield from _find_malformed(tool.record, _OF_TOOL)
    for key, types in _INSIDE.items():
        yield from _find_malformed(tool.record.get(key), types, f"{key}.")
    for number, icon in enumerate(as_array(tool.record.get("icons"))):
        record = {"src": None, **icon} if is_object(icon) else {"src": None}
        yield from _find_malformed(record, _OF_ICON, f"icons[{number}].")


def _find_malformed(record: Any, types: dict[str, type], before: str = "") -> Iterator[RuleFault]:
    for key, wanted in types.items() if is_object(record) else ():
        if key in record and not isinstance(record[key], wanted):
            yield RuleFault(f"{before}{key} is {kind(record[key])}, not {kind(wanted())}", f"{before}{key}")


def _without_nulls(tool: Json) -> Json:
    kept = {key: value for key, value in tool.items() if value is not None or key in ("name", "inputSchema")}
    for key in _INSIDE:
        if is_object(inner := kept.get(key)):
            kept[key] = {name: value for name, value in inner.items() if value is not None}
    return kept


CHECKS: Final[dict[str, Check]] = {
    "E06": _check_spelling,
    "E12": _check_beginning,
    "E16": _check_record,
    "W20": _check_length,
}
SERVER_CHECKS: Final[dict[str, ServerCheck]] = {"E07": _check_duplicates}
MENDS: Final[dict[str, Mend]] = {"E16": _without_nulls}
