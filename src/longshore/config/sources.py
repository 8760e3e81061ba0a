"""Sources: files, environment and flags, each checked on its own, then merged, later ones over earlier ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from longshore.config.keys import Key, Section, sections, unknown_section
from longshore.config.sections import (
    ENV_MARK,
    FLAGS,
    HTTP_FLAGS,
    MOVED,
    PATH_VARIABLE,
    PREFIX,
    Config,
    Origin,
    dotted,
    env_form,
)
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
            shown = dotted(key)
            shown = shown if len(shown) <= KEY_CHARACTERS else shown[: KEY_CHARACTERS - 1] + "…"
            wrong.append((line, f"{where}: {shown}: {problem}"))
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
        elif not section.named:
            yield from _walk_keys(section, (name,), cast("dict[str, Any]", table))
        else:
            for user_name, inner in cast("dict[str, Any]", table).items():
                path = (name, user_name)
                if not user_name or user_name.startswith(ENV_MARK):
                    yield path, None, f"a name can't be empty or begin with {ENV_MARK}"
                elif not isinstance(inner, dict):
                    yield path, None, f"expected a table, [{name}.NAME], got {section.show(inner)}"
                else:
                    yield from _walk_keys(section, path, cast("dict[str, Any]", inner))


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


# Environment


def _from_environ(variables: Mapping[str, str], problems: list[str]) -> Iterator[Setting]:
    """The settings of `LONGSHORE_*` variables. Adds mistakes to `problems`."""
    seen: dict[str, str] = {}
    for name, text in sorted(variables.items()):
        if seen.setdefault(name.upper(), name) != name:
            problems.append(f"{name}: set twice; {seen[name.upper()]} says it too")
            continue
        try:
            path, key = _match_variable(name.upper())
            yield Setting(path, key.read(text), Origin("env", name))
        except ValueError as error:
            problems.append(f"{name}: {error}")


def _match_variable(name: str) -> tuple[Path, Key]:
    """The key of a variable. The user's name of a table stands in the middle, and may end like a key."""
    found: list[tuple[Path, Key]] = []
    near = [PATH_VARIABLE]
    for section in sections().values():
        rest = name.removeprefix(f"{PREFIX}{section.name}_".upper())
        for key in section.keys.values():
            if not section.named:
                near.append(section.variable(key.name))
                if near[-1] == name:
                    return (section.name, key.name), key
                continue
            words = key.name.count("_") + 1
            middle, *tail = rest.rsplit("_", words)
            if middle and len(tail) == words:
                near.append(section.variable(key.name, middle))
                if near[-1] == name:
                    found.append(((section.name, ENV_MARK + middle, key.name), key))
    if found:
        return max(found, key=lambda match: len(match[1].name))
    moved = {_fixed_variable(old): _fixed_variable(new) for old, new in MOVED.items()}
    if name in moved:
        raise ValueError(f"no such variable; use {moved[name]}")
    tables = [(s.name, key.name) for s in sections().values() for key in s.keys.values() if key.kind == "table"]
    if any(name.startswith(_fixed_variable(s)) and f"_{key.upper()}_" in name for s, key in tables):
        raise ValueError("no such variable; options can only be set in a file")
    # Without the prefix, which makes any two names similar.
    meant = nearest(name.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in near])
    fix = f"did you mean {PREFIX}{meant}?" if meant else "docs/configuration.md lists them"
    raise ValueError(f"no such variable; {fix}")


def _fixed_variable(dotted_key: str) -> str:
    return PREFIX + dotted_key.replace(".", "_").upper()


# Flags


def _from_flags(flags: Mapping[str, Any], problems: list[str]) -> Iterator[Setting]:
    options = {key: option for option, key in (FLAGS | HTTP_FLAGS).items()}
    for dotted_key, value in flags.items():
        option = options.get(dotted_key, dotted_key)
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
        section = sections()[name]
        tables = {each: section.record(**fields) for each, fields in values.items()} if section.named else None
        made[name] = section.record(**values) if tables is None else tables
    config = Config(**made, origins={dotted(path): s.origin for path, s in settings.items()}, files=files, watch=watch)
    # The engine reads its limits from one record: those that `[server]` sets go there too.
    seconds, grace = config.server.timeout or FOREVER, config.server.eof_grace
    return replace(config, limits=replace(config.limits, timeout_seconds=seconds, eof_grace_seconds=grace))
