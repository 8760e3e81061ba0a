"""Dotted keys and the names of environment variables."""

from __future__ import annotations

from collections.abc import Iterable

PREFIX = "LONGSHORE_"

ENV_MARK = "$"
"""A variable can't say `get-weather` or `getWeather`: its settings are held under `$GET_WEATHER`, for any such name."""


def dotted(path: Iterable[str]) -> str:
    """A key as TOML writes it: `tools."a.b".timeout`."""
    return ".".join(part if _is_bare(part) else quote(part) for part in path)


def quote(text: str) -> str:
    """A string in double quotes, with everything unprintable escaped: a key can hold what a terminal obeys."""
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _is_bare(part: str) -> bool:
    return part.isascii() and part.removeprefix(ENV_MARK).replace("_", "a").replace("-", "a").isalnum()


def env_form(name: str) -> str:
    """A tool's or toolset's name as a variable holds it: upper case, anything but letters and digits as `_`."""
    return "".join(c if c.isalnum() else "_" for c in name.upper())
