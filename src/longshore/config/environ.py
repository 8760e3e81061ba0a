"""`LONGSHORE_*` variables → settings. A tool's name stands in the middle, so the key is read from the right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from longshore.config.keys import Key, Section, sections
from longshore.config.kinds import Free
from longshore.config.names import ENV_MARK, PREFIX
from longshore.config.places import PATH_VARIABLE
from longshore.config.record import MOVED
from longshore.nearest import nearest

Found = tuple[tuple[str, ...], Any, str]
"""Path, value and the variable that holds it."""


def settings(variables: Mapping[str, str], problems: list[str]) -> Iterator[Found]:
    """What the variables set; what is wrong with them is added to `problems`."""
    seen: dict[str, str] = {}
    for name, text in sorted(variables.items()):
        if seen.setdefault(name.upper(), name) != name:
            problems.append(f"{name}: set twice; {seen[name.upper()]} says it too")
            continue
        match = _match(name.upper().removeprefix(PREFIX))
        if match is None:
            problems.append(f"{name}: {_unknown(name.upper())}")
            continue
        path, key = match
        try:
            yield path, key.kind.read(text), name
        except ValueError as error:
            problems.append(f"{name}: {error}")


def _match(rest: str) -> tuple[tuple[str, ...], Key] | None:
    for section in sections().values():
        head = section.name.upper() + "_"
        if rest.startswith(head):
            return _match_key(section, rest.removeprefix(head))
    return None


def _match_key(section: Section, rest: str) -> tuple[tuple[str, ...], Key] | None:
    # Longest key first, so that a key which ends in another key's name stays reachable.
    for key in sorted(section.keys.values(), key=lambda key: -len(key.name)):
        tail = key.name.upper()
        if not section.named and rest == tail:
            return (section.name, key.name), key
        if section.named and len(rest) > len(tail) + 1 and rest.endswith("_" + tail):
            return (section.name, ENV_MARK + rest[: -len(tail) - 1], key.name), key
    return None


def variable(section: Section, key: str, name: str = "") -> str:
    """The variable of a key."""
    middle = f"{name}_" if section.named else ""
    return f"{PREFIX}{section.name}_{middle}{key}".upper()


def _unknown(name: str) -> str:
    moved = {_fixed(old): _fixed(new) for old, new in MOVED.items()}
    if name in moved:
        return f"no such variable; use {moved[name]}"
    if _inside_a_table(name):
        return "no such variable; options can only be set in a file"
    # Without the prefix: sharing it makes no two names alike.
    near = nearest(name.removeprefix(PREFIX), [found.removeprefix(PREFIX) for found in _candidates(name)])
    return "no such variable" + (f"; did you mean {PREFIX}{near}?" if near else "; docs/configuration.md lists them")


def _fixed(dotted_key: str) -> str:
    return PREFIX + dotted_key.replace(".", "_").upper()


def _inside_a_table(name: str) -> bool:
    tables = [(s, key.name) for s in sections().values() for key in s.keys.values() if isinstance(key.kind, Free)]
    return any(name.startswith(_fixed(s.name)) and f"_{key.upper()}_" in name for s, key in tables)


def _candidates(name: str) -> list[str]:
    """Every variable that this one could have meant to be; a user-chosen name is kept as it stands."""
    found = [PATH_VARIABLE]
    for section in sections().values():
        for key in section.keys:
            if not section.named:
                found.append(variable(section, key))
                continue
            head, *parts = name.removeprefix(PREFIX + section.name.upper() + "_").rsplit("_", key.count("_") + 1)
            if head and len(parts) == key.count("_") + 1:
                found.append(variable(section, key, head))
    return found
