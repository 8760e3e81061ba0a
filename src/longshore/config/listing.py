"""The configuration as a list of keys, for people: what `longshore config show` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from longshore.config.keys import Section, sections
from longshore.config.kinds import Free
from longshore.config.names import dotted
from longshore.config.record import Config, Origin, origin


class Entry(Struct, frozen=True):
    """One key. A value of None means unset."""

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
            yield from (((*path, key.name, name), option) for name, option in value.items())
        else:
            yield (*path, key.name), value


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
