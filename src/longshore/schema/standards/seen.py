"""A server's tools as a client hands them to its model: under which names, cut where, without what."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from longshore.protocol.subschemas import ALONE, BY_NAME, IN_LISTS
from longshore.schema.kinds import is_array, is_object
from longshore.schema.output import count_tokens
from longshore.schema.standards.clients import CLIENTS
from longshore.schema.standards.edits import HASH
from longshore.schema.standards.habit import ClientName, Cost, Fact, Habits
from longshore.schema.standards.subject import MOST_NODES, Json, Subject, Surface

MOST_DEPTH: Final = 100
"""Levels of a schema that are looked into; what is deeper is shown as it came. No client takes as many."""
CUT: Final = "… [truncated]"


class Mark(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened to a tool, or to the list, on its way to the model."""

    what: str
    known: str
    """How we know: measured with a version, or reported somewhere."""
    rule: str = ""
    path: str = ""
    costs: Cost = ""


class Seen(Struct, frozen=True, kw_only=True):
    """One tool. `sent` is the name that the model calls."""

    name: str
    sent: str
    handed: Json
    """As it stands in the request; empty where the tool is lost."""
    marks: tuple[Mark, ...] = ()
    tokens: int = 0

    @property
    def is_lost(self) -> bool:
        return not self.handed


class Sight(Struct, frozen=True, kw_only=True):
    """All tools. Where the list fails, all are lost."""

    client: ClientName
    title: str
    tools: tuple[Seen, ...]
    instructions: str | None
    marks: tuple[Mark, ...] = ()
    """What is about the server as a whole."""
    handed: tuple[Json, ...] = ()
    tokens: int = 0

    @property
    def fails(self) -> bool:
        """Whether the client can't read the list, so that no tool of it is there."""
        return any(mark.costs == "list" for mark in self.every_mark())

    @property
    def is_refused(self) -> bool:
        """Whether no request gets through while these tools are in it. What is lost is in none."""
        handed = (mark for tool in self.tools if not tool.is_lost for mark in tool.marks)
        return any(mark.costs == "request" for mark in (*self.marks, *handed))

    def every_mark(self) -> Iterator[Mark]:
        yield from self.marks
        for tool in self.tools:
            yield from tool.marks


def see(surface: Surface, client: ClientName) -> Sight:
    """What this client makes of these tools. They may be anything: nothing of them is trusted to be a tool."""
    habits = CLIENTS[client]
    marks: list[Mark] = []
    instructions = _cut(surface.instructions, "instructions", habits, marks)
    tools = _see_tools(surface, habits, marks)
    if any(mark.costs == "list" for tool in tools for mark in tool.marks):
        tools = [_lost(tool) for tool in tools]
    handed = _pack(tools, surface, habits, instructions)
    return Sight(
        client=client,
        title=habits.title,
        tools=tuple(tools),
        instructions=instructions,
        marks=tuple(marks),
        handed=handed,
        tokens=count_tokens(handed),
    )


def _see_tools(surface: Surface, habits: Habits, about: list[Mark]) -> list[Seen]:
    taken: dict[str, str] = {}
    seen = [_see_tool(Subject(tool, surface), habits, taken) for tool in surface.tools]
    fact, most = habits.tools_fact, habits.most_tools
    if fact is not None and most is not None and len(seen) > most:
        if fact.costs == "tool":
            seen[most:] = [_lost(tool, _mark(fact)) for tool in seen[most:]]
        else:
            about.append(_mark(fact))
    return seen


def _see_tool(subject: Subject, habits: Habits, taken: dict[str, str]) -> Seen:
    marks = [_mark(fact, path) for fact in habits.facts if fact.find for path in fact.find(subject)]
    sent = _rename(subject, habits, taken, marks)
    description = _cut(subject.description, "description", habits, marks)
    schema = _rewrite(subject.tool.get("inputSchema", {}), habits, marks)
    name = sent.removeprefix(_prefix(subject.surface, habits)) if habits.naming.space else sent
    handed = {**habits.more, "name": name, "description": description, habits.schema_key: schema}
    tool = Seen(name=subject.name, sent=sent, handed=handed, marks=tuple(marks), tokens=count_tokens(handed))
    return _lost(tool) if any(mark.costs == "tool" for mark in marks) else tool


def _lost(tool: Seen, *marks: Mark) -> Seen:
    return Seen(name=tool.name, sent="", handed={}, marks=(*tool.marks, *marks))


def _mark(fact: Fact, path: str = "", **words: str) -> Mark:
    return Mark(what=fact.what.format(**words), known=fact.known, rule=fact.rule, path=path, costs=fact.costs)


# -- names and texts


def _prefix(surface: Surface, habits: Habits) -> str:
    naming = habits.naming
    return re.sub(naming.odd, "_", naming.prefix.format(naming.server(surface.name)))


def _rename(subject: Subject, habits: Habits, taken: dict[str, str], marks: list[Mark]) -> str:
    naming = habits.naming
    plain = re.sub(naming.odd, "_", subject.name)
    sent = _prefix(subject.surface, habits) + plain

    def mark(what: str, rule: str) -> None:
        marks.append(Mark(what=what, known=naming.known, rule=rule, path="name"))

    if plain != subject.name:
        mark(f"called `{plain}`", "E06")
    if naming.most is not None and len(sent) > naming.most:
        sent = naming.cut(sent, naming.most, subject.name)
        mark(f"the name is cut to {naming.most} characters", naming.cut_rule)
    return _tell_apart(sent, subject, habits, taken, marks)


def _tell_apart(sent: str, subject: Subject, habits: Habits, taken: dict[str, str], marks: list[Mark]) -> str:
    """Of two tools with one name the first counts. Codex keeps those apart that only it has given the same name."""
    known, naming = habits.first_wins, habits.naming
    if naming.hashes and taken.get(sent, subject.name) != subject.name:
        marks.append(Mark(what="a hash is added: another is called so", known=known, rule="E07", path="name"))
        sent = naming.cut(sent, min(len(sent) + HASH, naming.most or sys.maxsize), subject.name)
    if known and subject.name and sent in taken:
        marks.append(Mark(what="lost: another is called so", known=known, rule="E07", path="name", costs="tool"))
    taken.setdefault(sent, subject.name)
    return sent


def _cut(text: str | None, what: str, habits: Habits, marks: list[Mark]) -> str | None:
    most = habits.most_text
    if text is None or most is None or len(text) <= most:
        return text
    words = f"cut to {most:,} of {len(text):,} characters"
    marks.append(Mark(what=words, known=habits.text_known, rule="W21", path=what))
    return text[:most] + CUT


def _pack(tools: list[Seen], surface: Surface, habits: Habits, instructions: str | None) -> tuple[Json, ...]:
    """The list as it stands in the request."""
    handed = tuple(tool.handed for tool in tools if not tool.is_lost)
    if not habits.naming.space or not handed:
        return handed
    space = _prefix(surface, habits).removesuffix("__")
    return ({"type": "namespace", "name": space, "description": instructions or "", "tools": list(handed)},)


# -- schemas


class _Rewriting:
    """A schema as a client changes it, and what that was."""

    def __init__(self, facts: list[tuple[Fact, Callable[[Any], Any | None]]], marks: list[Mark]) -> None:
        self._facts, self._marks = facts, marks
        self._left = MOST_NODES

    def visit(self, schema: Any, path: str, depth: int = 0) -> Any:
        self._left -= 1
        if depth > MOST_DEPTH or self._left < 0:
            return schema
        for fact, edit in self._facts:
            if (after := edit(schema)) is not None:
                self._marks.append(_mark(fact, path, gone=_gone(schema, after)))
                schema = after
        if not is_object(schema):
            return schema
        return {key: self._below(key, value, f"{path}.{key}", depth + 1) for key, value in schema.items()}

    def _below(self, keyword: str, value: Any, path: str, depth: int) -> Any:
        if keyword in BY_NAME and is_object(value):
            return {name: self.visit(each, f"{path}.{name}", depth) for name, each in value.items()}
        if keyword in IN_LISTS and is_array(value):
            return [self.visit(each, f"{path}[{i}]", depth) for i, each in enumerate(value)]
        if keyword == "items" or (keyword in ALONE and is_object(value)):
            return self.visit(value, path, depth)
        return value


def _rewrite(schema: Any, habits: Habits, marks: list[Mark]) -> Any:
    facts = [(fact, fact.edit) for fact in habits.facts if fact.edit is not None]
    return _Rewriting(facts, marks).visit(schema, "inputSchema") if facts else schema


def _gone(before: Any, after: Any) -> str:
    if not is_object(before) or not is_object(after):
        return ""
    return ", ".join(f"`{key}`" for key in before if key not in after)
