"""Layers: each source's settings are checked on their own, then laid over each other, later ones on top."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec.structs import replace

from longshore.config import environ
from longshore.config.flags import OPTION_OF_KEY
from longshore.config.keys import Key, Section, sections, unknown_key, unknown_section
from longshore.config.kinds import Free
from longshore.config.names import ENV_MARK, dotted, env_form
from longshore.config.places import Places
from longshore.config.record import Config, Origin
from longshore.config.setting import Path, Setting
from longshore.errors import ConfigError
from longshore.limits import FOREVER, Limits

PROBLEMS = 20
"""What one error lists. Who made more mistakes than that begins with the first ones."""


def combine(places: Places, variables: Mapping[str, str], flags: Mapping[str, Any]) -> Config:
    """Lay user file, project file, environment and flags over the defaults."""
    problems: list[str] = []
    files = tuple(path for path in (places.user, places.project) if path)
    user = _from_file("user", places.user, places.cwd, problems)
    project = _from_file("project", places.project, places.cwd, problems)
    env = [Setting(path, value, Origin("env", name)) for path, value, name in environ.settings(variables, problems)]
    flag = _from_flags(flags, problems)
    if problems:
        raise ConfigError(_listed(problems))
    names = {setting.path[:2] for setting in (*user, *project, *flag)}
    settings = {s.path: s for s in (*user, *project, *_for_names(env, names), *flag)}
    return _build(settings, files, places.watch)


def _listed(problems: list[str]) -> str:
    rest = len(problems) - PROBLEMS
    return "\n".join(problems[:PROBLEMS]) + (f"\n… and {rest} more" if rest > 0 else "")


# Files and flags


def _from_file(kind: Literal["user", "project"], path: str | None, cwd: str, problems: list[str]) -> list[Setting]:
    if path is None:
        return []
    from longshore.config.walk import settings  # the TOML parser comes in only with a file

    return settings(kind, path, cwd, problems)


def _from_flags(flags: Mapping[str, Any], problems: list[str]) -> list[Setting]:
    settings: list[Setting] = []
    for dotted_key, value in flags.items():
        option = OPTION_OF_KEY.get(dotted_key, dotted_key)
        try:
            path, key = _split(dotted_key)
            checked = key.kind.read(value) if isinstance(value, str) else key.kind.check(value)
        except ValueError as error:
            problems.append(f"{option}: {error}")
        else:
            settings.append(Setting(path, checked, Origin("flag", option)))
    return settings


def _split(dotted_key: str) -> tuple[Path, Key]:
    """`tools.a.b.timeout` → tools, a.b, timeout: what lies between section and key is the name."""
    head, _, rest = dotted_key.partition(".")
    section = sections().get(head)
    if section is None:
        raise ValueError(unknown_section(head))
    name, _, last = rest.rpartition(".") if section.named else ("", "", rest)
    if section.named and not name:
        raise ValueError(f"expected {head}.NAME.KEY")
    if last not in section.keys:
        raise ValueError(unknown_key(section, last))
    key = section.keys[last]
    if isinstance(key.kind, Free):
        raise ValueError("a table can only be set in a file")
    return ((head, name, last) if section.named else (head, last)), key


# The record


def _for_names(env: list[Setting], names: set[Path]) -> list[Setting]:
    """Variables also reach the names that files and flags spell out: `$GET_WEATHER` reaches `get-weather`."""
    spread: list[Setting] = []
    for setting in env:
        spread.append(setting)
        section, name = setting.path[:2]
        if name.startswith(ENV_MARK):
            spread.extend(
                replace(setting, path=(*known, setting.path[2]))
                for known in sorted(names)  # hash order would shuffle `config show`
                if known[0] == section and ENV_MARK + env_form(known[1]) == name
            )
    return spread


def _build(settings: dict[Path, Setting], files: tuple[str, ...], watch: tuple[str, ...]) -> Config:
    tree: dict[str, Any] = {}
    for path, setting in settings.items():
        node = tree
        for part in path[:-1]:
            node = node.setdefault(part, {})
        node[path[-1]] = setting.value
    # Everything was checked above, key by key: the records only need to be made.
    made = {name: _section(sections()[name], values) for name, values in tree.items()}
    origins = {dotted(path): setting.origin for path, setting in settings.items()}
    config = Config(**made, origins=origins, files=files, watch=watch)
    return replace(config, limits=_limits(config))


def _section(section: Section, values: dict[str, Any]) -> Any:
    if section.named:
        return {name: section.record(**fields) for name, fields in values.items()}
    return section.record(**values)


def _limits(config: Config) -> Limits:
    """The engine reads its limits from one record: those that `[server]` sets go there too."""
    return replace(
        config.limits,
        timeout_seconds=config.server.timeout or FOREVER,
        eof_grace_seconds=config.server.eof_grace,
    )
