"""A server's tools as a client presents them to its model: their names, and what is cut, changed or lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha1
from typing import Any, Final

from msgspec import Struct

from longshore.schema.kinds import as_object, is_object
from longshore.schema.lint.clients import CLIENTS, ClientEffect, ClientName, ClientProfile, Cost
from longshore.schema.lint.rules import RULES
from longshore.schema.lint.tool_list import Json, LintedTool, ToolList
from longshore.schema.output import count_tokens
from longshore.schema.walk import MAX_DEPTH, MAX_NODES, edit_subschemas

CUT: Final = "… [truncated]"
HASH_CHARS: Final = 13
"""Characters that Codex appends to a name: `_` and twelve digits of a hash."""
_RULES: Final = {rule.id: rule for rule in RULES}


class ObservedEffect(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One effect of the client on the tool, or on the list."""

    what: str
    known: str
    """The evidence: measured with a version, or reported somewhere."""
    rule: str = ""
    path: str = ""
    costs: Cost = ""


class ToolView(Struct, frozen=True, kw_only=True):
    """One tool in a client. `sent` is the name that the model calls."""

    name: str
    sent: str
    handed: Json
    """The tool in the client's request; empty: the tool is lost."""
    marks: tuple[ObservedEffect, ...] = ()
    tokens: int = 0

    @property
    def is_lost(self) -> bool:
        return not self.handed


class ClientView(Struct, frozen=True, kw_only=True):
    """All tools in a client. If the list fails, all are lost."""

    client: ClientName
    title: str
    tools: tuple[ToolView, ...]
    instructions: str | None
    marks: tuple[ObservedEffect, ...] = ()
    """Effects on the server as a whole."""
    handed: tuple[Json, ...] = ()
    tokens: int = 0

    @property
    def fails(self) -> bool:
        """Whether the client can't read the list, so that all its tools are lost."""
        return any(mark.costs == "list" for mark in self.all_marks())

    @property
    def is_refused(self) -> bool:
        """Whether the API refuses every request with these tools. Lost tools are in no request."""
        handed = (mark for tool in self.tools if not tool.is_lost for mark in tool.marks)
        return any(mark.costs == "request" for mark in (*self.marks, *handed))

    def all_marks(self) -> list[ObservedEffect]:
        return [*self.marks, *(mark for tool in self.tools for mark in tool.marks)]


def view_as(server: ToolList, client: ClientName) -> ClientView:
    """The tools as this client passes them on. Each tool may be any JSON value."""
    profile, marks, taken = CLIENTS[client], list[ObservedEffect](), dict[str, str]()
    instructions = _cut_text(server.instructions, "instructions", profile, marks)
    tools = [_view_tool(LintedTool(tool, server), profile, taken) for tool in server.tools]
    effect, most = profile.too_many_tools, profile.tool_limits[-1][0] if profile.tool_limits else len(tools)
    if effect is not None and len(tools) > most:
        if effect.costs == "tool":
            tools[most:] = [_lose(tool, _observe(effect, profile)) for tool in tools[most:]]
        else:
            marks.append(_observe(effect, profile))
    if any(mark.costs == "list" for tool in tools for mark in tool.marks):
        tools = [_lose(tool) for tool in tools]
    handed = tuple(tool.handed for tool in tools if not tool.is_lost)
    if handed and profile.namespace:
        name = profile.prefix_of(server.name).removesuffix("__")
        handed = ({"type": "namespace", "name": name, "description": instructions or "", "tools": list(handed)},)
    return ClientView(
        client=client,
        title=profile.title,
        tools=tuple(tools),
        instructions=instructions,
        marks=tuple(marks),
        handed=handed,
        tokens=count_tokens(handed),
    )


def _view_tool(tool: LintedTool, profile: ClientProfile, taken: dict[str, str]) -> ToolView:
    marks = [
        _observe(effect, profile, path) for effect in profile.effects for path in _find_faults(tool, effect, profile)
    ]
    sent = _rename(tool, profile, taken, marks)
    description = _cut_text(tool.description, "description", profile, marks)
    schema = _Rewriting(profile, marks).apply(tool.record.get("inputSchema", {}), "inputSchema")
    name = sent.removeprefix(profile.prefix_of(tool.server.name)) if profile.namespace else sent
    handed = {**profile.extra, "name": name, "description": description, profile.schema_key: schema}
    view = ToolView(name=tool.name, sent=sent, handed=handed, marks=tuple(marks), tokens=count_tokens(handed))
    return _lose(view) if any(mark.costs == "tool" for mark in marks) else view


def _find_faults(tool: LintedTool, effect: ClientEffect, profile: ClientProfile) -> Iterator[str]:
    """The paths at which the tool breaks the effect's rule for this client, as errors if the effect costs something."""
    rule = _RULES.get(effect.rule)
    if rule is None or rule.check is None or effect.change is not None:
        return
    for fault in rule.check(tool):
        counts = not effect.costs or (fault.level or rule.level) == "error"
        counts = counts and profile.profile in (fault.profiles or rule.profiles)
        if counts and re.fullmatch(effect.where, fault.path, re.DOTALL):
            yield fault.path


def _lose(tool: ToolView, *marks: ObservedEffect) -> ToolView:
    return ToolView(name=tool.name, sent="", handed={}, marks=(*tool.marks, *marks))


def _observe(effect: ClientEffect, client: ClientProfile, path: str = "", **words: str) -> ObservedEffect:
    what = effect.what.format(**words) if effect.change is not None else effect.what
    known = effect.known or client.known
    return ObservedEffect(what=what, known=known, rule=effect.rule, path=path, costs=effect.costs)


# -- names and texts


def _rename(tool: LintedTool, client: ClientProfile, taken: dict[str, str], marks: list[ObservedEffect]) -> str:
    """The name that the model calls. The first tool wins; Codex adds a hash to names that it made equal."""

    def note(what: str, rule: str, costs: Cost = "") -> None:
        marks.append(ObservedEffect(what=what, known=client.known, rule=rule, path="name", costs=costs))

    server, plain = tool.server.name, re.sub(client.replaced, "_", tool.name)
    sent = client.join(server, tool.name)
    if client.refused_name is not None and not client.accepts_name(server, tool.name):
        marks.append(_observe(client.refused_name, client, "name"))
    if plain != tool.name:
        note(f"called `{plain}`", "E06")
    if client.cuts(server, tool.name):
        sent = _cut_name(sent, client, tool.name)
        note(f"the name is cut to {client.name_chars} characters", client.name_rule)
    if client.cut == "hash" and taken.get(sent, tool.name) != tool.name:
        note("a hash is added: another is called so", "E07")
        sent = _cut_name(sent + " " * HASH_CHARS, client, tool.name)
    if client.first_wins and tool.name and sent in taken:
        note("lost: another is called so", "E07", "tool")
    taken.setdefault(sent, tool.name)
    return sent


def _cut_name(name: str, client: ClientProfile, raw: str) -> str:
    most = min(len(name), client.name_chars or len(name))
    match client.cut:
        case "end":
            return name[:most]
        case "middle":
            half = (most - 3) // 2
            return f"{name[:half]}...{name[-half:]}"
        case "hash":  # of the same length as Codex's, but what exactly it hashes is unknown
            digest = sha1(raw.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
            return f"{name[: most - HASH_CHARS]}_{digest[: HASH_CHARS - 1]}"


def _cut_text(text: str | None, path: str, profile: ClientProfile, marks: list[ObservedEffect]) -> str | None:
    most, units = profile.text_chars, (text or "").encode("utf-16-le", "surrogatepass")
    if most is None or len(units) // 2 <= most:
        return text
    what = f"cut to {most:,} of {len(units) // 2:,} characters"
    marks.append(ObservedEffect(what=what, known=profile.known, rule="W21", path=path))
    return units[: 2 * most].decode("utf-16-le", "replace") + CUT


# -- schemas


class _Rewriting:
    """Changes a schema as the client does. Beyond MAX_NODES and MAX_DEPTH it stays unchanged."""

    def __init__(self, profile: ClientProfile, marks: list[ObservedEffect]) -> None:
        self._effects = [(effect, effect.change) for effect in profile.effects if effect.change is not None]
        self._client, self._marks = profile, marks
        self._left = MAX_NODES if self._effects else 0

    def apply(self, schema: Any, path: str, level: int = 0) -> Any:
        self._left -= 1
        if level > MAX_DEPTH or self._left < 0:
            return schema
        for effect, change in self._effects:
            if (after := change(schema)) is not None:
                dropped = ", ".join(f"`{key}`" for key in as_object(schema) if key not in after)
                self._marks.append(_observe(effect, self._client, path, dropped=dropped))
                schema = after

        def edit(inner: Any, keyword: str, key: str | int | None) -> Any:
            if key is None and keyword != "items" and not is_object(inner):
                return inner  # `additionalProperties: false` is no parameter
            step = "" if key is None else f"[{key}]" if isinstance(key, int) else f".{key}"
            return self.apply(inner, f"{path}.{keyword}{step}", level + 1)

        return edit_subschemas(schema, edit) if is_object(schema) else schema
