"""The configuration as a list of keys, for people: what `longshore config show` prints. Secrets are not in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct

from longshore.config.keys import Section, sections
from longshore.config.kinds import HIDDEN, Free, Secret
from longshore.config.names import dotted
from longshore.config.record import Config, Origin, origin

_SECRET_NAME = re.compile(r"password|secret|token|key", re.IGNORECASE)
"""An option's name that says not to show it. Nobody told us which ones are secrets, so some are hidden for nothing."""

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
            yield from (((*path, key.name, name), found) for name, found in _shown(value).items())
        elif isinstance(key.kind, Secret) and value is not None:
            yield (*path, key.name), HIDDEN
        else:
            yield (*path, key.name), _shown(value)


def _shown(value: Any) -> Any:
    """The value, without the passwords of the URLs in it and without what a table names as a secret."""
    match value:
        case str():
            return _PASSWORD.sub(lambda found: (found[1] or found[2]) + HIDDEN, value)
        case list():
            items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
            return [_shown(item) for item in items]
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            return {name: HIDDEN if _SECRET_NAME.search(name) else _shown(item) for name, item in pairs}
        case _:
            return value


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
