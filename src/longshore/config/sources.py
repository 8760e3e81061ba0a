"""Sources: files, environment and flags, each checked on its own, then merged, later ones over earlier ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from longshore.config.flags import OPTION_OF_KEY
from longshore.config.keys import Key, Section, sections, unknown_section
from longshore.config.sections import ENV_MARK, MOVED, PATH_VARIABLE, PREFIX, Config, Origin, dotted, env_form
from longshore.errors import ConfigError
from longshore.limits import FOREVER
from longshore.nearest import nearest

PROBLEMS = 20
"""Problems that one error lists."""

KEY_CHARACTERS = 120
"""How much an error shows of a key."""

Path: TypeAlias = tuple[str, ...]


class Setting(Struct, frozen=True):
    """One value that one source gave to one key."""

    path: Path
    value: Any
    origin: Origin


def combine(
    cwd: str,
    user: str | None,
    project: str | None,
    variables: Mapping[str, str],
    flags: Mapping[str, Any],
    watch: tuple[str, ...],
) -> Config:
    """Lay the user's file, the project's file, environment and flags over the defaults. Raises ConfigError."""
    problems: list[str] = []
    in_files = [*_from_file("user", user, cwd, problems), *_from_file("project", project, cwd, problems)]
    in_environ = list(_from_environ(variables, problems))
    in_flags = list(_from_flags(flags, problems))
    if problems:
        rest = len(problems) - PROBLEMS
        raise ConfigError("\n".join(problems[:PROBLEMS]) + (f"\n… and {rest} more" if rest > 0 else ""))
    names = {setting.path[:2] for setting in (*in_files, *in_flags)}
    settings = {s.path: s for s in (*in_files, *_for_names(in_environ, names), *in_flags)}
    return _build(settings, tuple(path for path in (user, project) if path), watch)


# Files


def _from_file(kind: Literal["user", "project"], path: str | None, cwd: str, problems: list[str]) -> list[Setting]:
    """The settings of a file. Adds mistakes to `problems`, in the order of their lines."""
    if path is None:
        return []
    from longshore.config.toml_file import read  # with the TOML parser

    try:
        document = read(path, cwd)
    except ConfigError as error:
        problems.append(str(error))
        return []
    settings: list[Setting] = []
    wrong: list[tuple[int, str]] = []
    for key, value, problem in _walk(document.tables):
        line = document.line(key)
        where = f"{document.shown}:{line}"
        if problem:
            wrong.append((line, f"{where}: {_shorten(dotted(key))}: {problem}"))
        else:
            settings.append(Setting(key, value, Origin(kind, where)))
    problems.extend(text for _, text in sorted(wrong))
    return settings


Checked: TypeAlias = tuple[Path, Any, str]
"""A path with its value, or with the text of its problem."""


def _walk(tables: dict[str, Any]) -> Iterator[Checked]:
    for name, table in tables.items():
        section = sections().get(name)
        if section is None:
            yield (name,), None, unknown_section(name)
        elif not isinstance(table, dict):
            yield (name,), None, f"expected a table, got {section.show(table)}"
        elif section.named:
            yield from _walk_named(section, cast("dict[str, Any]", table))
        else:
            yield from _walk_keys(section, (name,), cast("dict[str, Any]", table))


def _walk_named(section: Section, tables: dict[str, Any]) -> Iterator[Checked]:
    """The tables under a section whose names the user chose."""
    for name, table in tables.items():
        path = (section.name, name)
        if not name or name.startswith(ENV_MARK):
            yield path, None, f"a name can't be empty or begin with {ENV_MARK}"
        elif not isinstance(table, dict):
            yield path, None, f"expected a table, [{section.name}.NAME], got {section.show(table)}"
        else:
            yield from _walk_keys(section, path, cast("dict[str, Any]", table))


def _walk_keys(section: Section, table: Path, values: dict[str, Any]) -> Iterator[Checked]:
    for name, value in values.items():
        path, key = (*table, name), section.keys.get(name)
        if key is None:
            yield path, None, section.unknown(name)
            continue
        try:
            checked = key.check(value)
        except ValueError as error:
            yield path, None, str(error)
            continue
        if key.kind == "table":
            # Each option has its own origin, and a nearer file changes only the options that it names.
            yield from (((*path, option), inner, "") for option, inner in checked.items())
        else:
            yield path, checked, ""


def _shorten(key: str) -> str:
    return key if len(key) <= KEY_CHARACTERS else key[: KEY_CHARACTERS - 1] + "…"


# Environment


def _from_environ(variables: Mapping[str, str], problems: list[str]) -> Iterator[Setting]:
    """The settings of `LONGSHORE_*` variables. Adds mistakes to `problems`."""
    seen: dict[str, str] = {}
    for name, text in sorted(variables.items()):
        if seen.setdefault(name.upper(), name) != name:
            problems.append(f"{name}: set twice; {seen[name.upper()]} says it too")
            continue
        match = _match_variable(name.upper().removeprefix(PREFIX))
        if match is None:
            problems.append(f"{name}: {_unknown_variable(name.upper())}")
            continue
        path, key = match
        try:
            yield Setting(path, key.read(text), Origin("env", name))
        except ValueError as error:
            problems.append(f"{name}: {error}")


def _match_variable(rest: str) -> tuple[Path, Key] | None:
    """The key of a variable. A tool's name stands in the middle, so the key is read from the right."""
    section = next((s for s in sections().values() if rest.startswith(s.name.upper() + "_")), None)
    if section is None:
        return None
    rest = rest[len(section.name) + 1 :]
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


def _unknown_variable(name: str) -> str:
    moved = {_fixed_variable(old): _fixed_variable(new) for old, new in MOVED.items()}
    if name in moved:
        return f"no such variable; use {moved[name]}"
    tables = [(s.name, key.name) for s in sections().values() for key in s.keys.values() if key.kind == "table"]
    if any(name.startswith(_fixed_variable(s)) and f"_{key.upper()}_" in name for s, key in tables):
        return "no such variable; options can only be set in a file"
    # Without the prefix, which makes any two names similar.
    near = nearest(name.removeprefix(PREFIX), [found.removeprefix(PREFIX) for found in _candidates(name)])
    return "no such variable" + (f"; did you mean {PREFIX}{near}?" if near else "; docs/configuration.md lists them")


def _fixed_variable(dotted_key: str) -> str:
    return PREFIX + dotted_key.replace(".", "_").upper()


def _candidates(name: str) -> list[str]:
    """Every variable that a wrong one may have been meant to be; a user-chosen name stays as it is."""
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


# Flags


def _from_flags(flags: Mapping[str, Any], problems: list[str]) -> Iterator[Setting]:
    for dotted_key, value in flags.items():
        option = OPTION_OF_KEY.get(dotted_key, dotted_key)
        try:
            path, key = _split(dotted_key)
            checked = key.read(value) if isinstance(value, str) else key.check(value)
        except ValueError as error:
            problems.append(f"{option}: {error}")
        else:
            yield Setting(path, checked, Origin("flag", option))


def _split(dotted_key: str) -> tuple[Path, Key]:
    """`tools.a.b.timeout` → tools, a.b, timeout: the name is all between section and key."""
    head, _, rest = dotted_key.partition(".")
    section = sections().get(head)
    if section is None:
        raise ValueError(unknown_section(head))
    name, _, last = rest.rpartition(".") if section.named else ("", "", rest)
    if section.named and not name:
        raise ValueError(f"expected {head}.NAME.KEY")
    if last not in section.keys:
        raise ValueError(section.unknown(last))
    key = section.keys[last]
    if key.kind == "table":
        raise ValueError("a table can only be set in a file")
    return ((head, name, last) if section.named else (head, last)), key


# The record


def _for_names(settings: list[Setting], names: set[Path]) -> Iterator[Setting]:
    """Variables also reach the names that files and flags spell out: `$GET_WEATHER` reaches `get-weather`."""
    for setting in settings:
        yield setting
        section, name = setting.path[:2]
        for known in sorted(names) if name.startswith(ENV_MARK) else ():  # hash order would shuffle `config show`
            if known[0] == section and ENV_MARK + env_form(known[1]) == name:
                yield replace(setting, path=(*known, setting.path[2]))


def _build(settings: dict[Path, Setting], files: tuple[str, ...], watch: tuple[str, ...]) -> Config:
    """Make the record. The values were checked key by key before."""
    tree: dict[str, Any] = {}
    for path, setting in settings.items():
        node = tree
        for part in path[:-1]:
            node = node.setdefault(part, {})
        node[path[-1]] = setting.value
    made: dict[str, Any] = {}
    for name, values in tree.items():
        record = sections()[name].record
        named = sections()[name].named
        made[name] = {each: record(**fields) for each, fields in values.items()} if named else record(**values)
    config = Config(**made, origins={dotted(path): s.origin for path, s in settings.items()}, files=files, watch=watch)
    # The engine reads its limits from one record: those that `[server]` sets go there too.
    seconds, grace = config.server.timeout or FOREVER, config.server.eof_grace
    return replace(config, limits=replace(config.limits, timeout_seconds=seconds, eof_grace_seconds=grace))
