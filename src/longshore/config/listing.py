"""The configuration as a list of keys, for people: what `longshore config show` prints. Secrets are not in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from longshore.config.keys import Section, sections
from longshore.config.kinds import HIDDEN, Free, Secret
from longshore.config.names import dotted
from longshore.config.record import Config, Origin, origin

_PASSWORD = re.compile(r"(://[^/?#@:\s]*:)\S*(?=@)|([?&](?:password|secret|token|key)=)[^&#\s]*", re.IGNORECASE)
"""In a URL: between user and host, to the last @ since a password may hold one unescaped; or in the query."""


class Entry(Struct, frozen=True):
    """One key. A value of None means unset, HIDDEN that there is one."""

    path: tuple[str, ...]
    value: Any
    origin: Origin

    @property
    def key(self) -> str:
        return dotted(self.path)


def entries(config: Config) -> list[Entry]:
    """Every key of the fixed sections, and those of the named tables that somebody set."""
    return [
        Entry(path, value, origin(config, dotted(path)))
        for section in sections().values()
        for path, value in _values(section, getattr(config, section.name))
    ]


def _values(section: Section, value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not section.named:
        yield from _fields(section, (section.name,), value)
        return
    for name, record in value.items():
        yield from (
            (path, found) for path, found in _fields(section, (section.name, name), record) if found is not None
        )


def _fields(section: Section, path: tuple[str, ...], record: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key in section.keys.values():
        value = getattr(record, key.name)
        if isinstance(key.kind, Free):
            yield from (((*path, key.name, name), _shown(option)) for name, option in value.items())
        elif isinstance(key.kind, Secret) and value is not None:
            yield (*path, key.name), HIDDEN
        else:
            yield (*path, key.name), _shown(value)


def _shown(value: Any) -> Any:
    """The value, without the password that a URL in it holds."""
    return _PASSWORD.sub(lambda found: (found[1] or found[2]) + HIDDEN, value) if isinstance(value, str) else value


def tree(listed: list[Entry]) -> dict[str, Any]:
    """The entries as `longshore.toml` nests them; what is unset is left out."""
    root: dict[str, Any] = {}
    for entry in listed:
        if entry.value is None:
            continue
        node = root
        for part in entry.path[:-1]:
            node = node.setdefault(part, {})
        node[entry.path[-1]] = entry.value
    return root
