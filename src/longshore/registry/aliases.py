"""Names that a tool had before: they can be called, and are in no list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from longshore.errors import RegistrationError
from longshore.registry.names import check_name
from longshore.registry.tool import Entry
from longshore.registry.where import refuse


def read_aliases(fn: Callable[..., Any], name: str, aliases: Sequence[str]) -> tuple[str, ...]:
    """The earlier names of a tool, each one that a tool may have and none twice."""
    for alias in aliases:
        check_name(alias, "tool", fn)
    if len({name, *aliases}) <= len(aliases):
        refuse(fn, f"aliases={list(aliases)!r} names {name!r} itself, or one name twice", "name each earlier name once")
    return tuple(aliases)


def check_aliases(added: Iterable[Entry], staying: Mapping[str, Entry]) -> None:
    """Refuse a name that two tools would answer to, as their name or as an earlier one."""
    owners = {alias: entry for entry in staying.values() for alias in entry.aliases} | dict(staying)
    for entry in added:
        for name in (entry.name, *entry.aliases):
            owner = owners.setdefault(name, entry)
            if owner is not entry:
                _refuse(entry, name, owner)


def find_alias(tools: Mapping[str, Entry], name: str) -> Entry | None:
    """The tool that had this name. Looked for only when no tool has it."""
    return next((entry for entry in tuple(tools.values()) if name in entry.aliases), None)


def _refuse(entry: Entry, name: str, owner: Entry) -> None:
    mine = "the name" if name == entry.name else "an alias"
    theirs = "the name" if name == owner.name else "an alias"
    what = f"{name!r} is {mine} of {entry.name!r} and {theirs} of {owner.name!r}, from {owner.where}"
    raise RegistrationError(str(entry.where), what, f"take {name!r} out of one of them")
