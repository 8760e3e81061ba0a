"""Sources: defaults, files, environment and flags, each checked on its own, then merged, later over earlier ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, final

from msgspec import Struct
from msgspec.structs import replace

from longshore.config.keys import Key, Section, sections, toolset_section, unknown_section
from longshore.config.sections import (
    ENV_MARK,
    FLAGS,
    HTTP_FLAGS,
    MOVED,
    PATH_VARIABLE,
    PREFIX,
    Config,
    Origin,
    ToolsetConfig,
    dotted,
    env_form,
)
from longshore.errors import ConfigError
from longshore.limits import FOREVER
from longshore.nearest import nearest

if TYPE_CHECKING:
    from longshore.config.load import ConfiguredToolset

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


Checked: TypeAlias = tuple[Path, Any, str]
"""A path with its value, or with the text of its problem."""


@final
class Sources:
    """Takes one source after the other, the weakest first, and makes the record of them.

    `toolsets` are those of the server; None: unknown.
    """

    def __init__(self, cwd: str, toolsets: Mapping[str, ConfiguredToolset] | None) -> None:
        self._cwd, self._toolsets = cwd, toolsets or {}
        self._settings: list[Setting] = []
        self._problems: list[str] = []
        self._files: list[str] = []
        self._sections = dict(sections())
        if toolsets is not None:
            server = self._sections["server"]
            named = replace(server.keys["toolsets"], words=tuple(toolsets))
            self._sections["server"] = replace(server, keys={**server.keys, "toolsets": named})
        self._tables: dict[str, Section] = {}

    def _table(self, section: Section, name: str) -> Section:
        """The table of this name. That of a toolset takes its options, or anything if the server does not have it."""
        if section.name != "toolsets":
            return section
        if name not in self._tables:
            toolset = self._toolsets.get(name)
            unknown = replace(section, open=True)
            self._tables[name] = unknown if toolset is None else toolset_section(name, toolset.options_type)
        return self._tables[name]

    def build(self, watch: tuple[str, ...]) -> Config:
        """The record. Raises ConfigError for the problems of all sources."""
        rest = len(self._problems) - PROBLEMS
        if self._problems:
            raise ConfigError("\n".join(self._problems[:PROBLEMS]) + (f"\n… and {rest} more" if rest > 0 else ""))
        return _build({setting.path: setting for setting in self._for_names()}, tuple(self._files), watch)

    def _for_names(self) -> Iterator[Setting]:
        """Variables also reach the names that files and flags spell out: `$GET_WEATHER` reaches `get-weather`."""
        names = sorted({s.path[:2] for s in self._settings})  # hash order would shuffle `config show`
        for setting in self._settings:
            yield setting
            section, name = setting.path[:2]
            for known in names if name.startswith(ENV_MARK) else ():
                if known[0] == section and ENV_MARK + env_form(known[1]) == name:
                    yield replace(setting, path=(*known, setting.path[2]))

    # -- files

    def add_file(self, kind: Literal["user", "project"], path: str | None) -> None:
        """Take the settings of a file. Its problems are in the order of their lines."""
        if path is None:
            return
        from longshore.config.toml_file import read  # with the TOML parser

        self._files.append(path)
        try:
            document = read(path, self._cwd)
        except ConfigError as error:
            self._problems.append(str(error))
            return
        wrong: list[tuple[int, str]] = []
        for key, value, problem in self._walk(document.tables, os.path.dirname(path)):
            line = document.line(key)
            where = f"{document.shown}:{line}"
            if problem:
                shown = dotted(key)
                shown = shown if len(shown) <= KEY_CHARACTERS else shown[: KEY_CHARACTERS - 1] + "…"
                wrong.append((line, f"{where}: {shown}: {problem}"))
            else:
                self._settings.append(Setting(key, value, Origin(kind, where)))
        self._problems.extend(text for _, text in sorted(wrong))

    def _walk(self, tables: dict[str, Any], base: str) -> Iterator[Checked]:
        for name, table in tables.items():
            section = self._sections.get(name)
            if section is None:
                yield (name,), None, unknown_section(name)
            elif not isinstance(table, dict):
                yield (name,), None, f"expected a table, got {section.show(table)}"
            elif not section.named:
                yield from _walk_keys(section, (name,), cast("dict[str, Any]", table), base)
            else:
                for user_name, inner in cast("dict[str, Any]", table).items():
                    path = (name, user_name)
                    if not user_name or user_name.startswith(ENV_MARK):
                        yield path, None, f"a name can't be empty or begin with {ENV_MARK}"
                    elif not isinstance(inner, dict):
                        yield path, None, f"expected a table, [{name}.NAME], got {section.show(inner)}"
                    else:
                        found = self._table(section, user_name)
                        yield from _walk_keys(found, path, cast("dict[str, Any]", inner), base)

    # -- environment

    def add_variables(self, variables: Mapping[str, str]) -> None:
        """Take the settings of `LONGSHORE_*` variables."""
        seen: dict[str, str] = {}
        for name, text in sorted(variables.items()):
            if seen.setdefault(name.upper(), name) != name:
                self._problems.append(f"{name}: set twice; {seen[name.upper()]} says it too")
                continue
            try:
                for path, key in self._match(name.upper()):
                    self._add(path, key, text, Origin("env", name))
            except ValueError as error:
                self._problems.append(f"{name}: {error}")

    def add_second(self, toolset: str, option: str, variable: str, text: str) -> None:
        """Take a toolset's option from the second variable that it names."""
        key = self._table(self._sections["toolsets"], toolset).keys[option]
        try:
            self._add(("toolsets", toolset, option), key, text, Origin("env", variable))
        except ValueError as error:
            self._problems.append(f"{variable}: {error}")

    def _add(self, path: Path, key: Key | None, value: Any, origin: Origin) -> None:
        """Take a value that may be a text still. Raises ValueError."""
        if key is not None:
            value = key.read(value, self._cwd) if isinstance(value, str) else key.check(value, self._cwd)
        self._settings.append(Setting(path, value, origin))

    def _match(self, name: str) -> list[tuple[Path, Key | None]]:
        """The keys of a variable. A name that the user gave to a table stands in the middle, and may end like a key.

        A variable of a toolset that the server does not have gets no key: a warning names it, as it does a table.
        """
        prefix = f"{PREFIX}TOOLSETS_"
        mine = [t for t in self._toolsets if name.startswith(f"{prefix}{env_form(t)}_")]
        tables = [self._table(self._sections["toolsets"], each) for each in mine]
        fixed = [*(section for section in self._sections.values() if not section.named), *tables]
        keys = [(section, key) for section in fixed for key in section.keys.values()]
        found = [((*section.path, key.name), key) for section, key in keys if section.variable(key.name) == name]
        near = [PATH_VARIABLE, *(section.variable(key.name) for section, key in keys)]
        if not found:
            marked, more = _match_marked(name)
            near += more
            found = [max(marked, key=lambda match: len(match[1].name))] if marked else []
        if found:
            return cast("list[tuple[Path, Key | None]]", found)
        if name.startswith(prefix) and not mine:
            middle, _, option = name.removeprefix(prefix).partition("_")
            if middle and option:
                return [(("toolsets", ENV_MARK + middle, option.lower()), None)]
        raise ValueError(_no_variable(name, near))

    # -- flags and defaults

    def add_flags(self, flags: Mapping[str, Any], defaults_of: str = "") -> None:
        """Take the settings of options, or the defaults of a profile."""
        options = {key: option for option, key in (FLAGS | HTTP_FLAGS).items()}
        for dotted_key, value in flags.items():
            option = options.get(dotted_key, dotted_key) if not defaults_of else f"{defaults_of}: {dotted_key}"
            try:
                path, key = self._split(dotted_key)
                self._add(path, key, value, Origin("default", defaults_of) if defaults_of else Origin("flag", option))
            except ValueError as error:
                self._problems.append(f"{option}: {error}")

    def _split(self, dotted_key: str) -> tuple[Path, Key | None]:
        """`tools.a.b.timeout` → tools, a.b, timeout: the name is all between section and key."""
        head, _, rest = dotted_key.partition(".")
        section = self._sections.get(head)
        if section is None:
            raise ValueError(unknown_section(head))
        name, _, last = rest.rpartition(".") if section.named else ("", "", rest)
        if section.named and not name:
            raise ValueError(f"expected {head}.NAME.KEY")
        table = self._table(section, name) if section.named else section
        key = table.keys.get(last)
        if key is None and not table.open:
            raise ValueError(table.unknown(last))
        if key is not None and key.kind == "table":
            raise ValueError("a table can only be set in a file")
        return ((head, name, last) if section.named else (head, last)), key


def _walk_keys(section: Section, table: Path, values: dict[str, Any], base: str) -> Iterator[Checked]:
    for name, value in values.items():
        path, key = (*table, name), section.keys.get(name)
        if key is None:
            yield (path, value, "") if section.open else (path, None, section.unknown(name))
            continue
        try:
            checked = key.check(value, base)
        except ValueError as error:
            yield path, None, str(error)
            continue
        if key.kind == "table":
            # Each entry has its own origin, and a nearer file changes only the entries that it names.
            yield from (((*path, option), inner, "") for option, inner in checked.items())
        else:
            yield path, checked, ""


def _match_marked(name: str) -> tuple[list[tuple[Path, Key]], list[str]]:
    """The keys that a variable may set in tables that users name, and variables that it may be meant for."""
    found: list[tuple[Path, Key]] = []
    near: list[str] = []
    for section in sections().values():
        rest = name.removeprefix(f"{PREFIX}{section.name}_".upper())
        for key in section.keys.values() if section.named else ():
            words = key.name.count("_") + 1
            middle, *tail = rest.rsplit("_", words)
            if middle and len(tail) == words:
                near.append(section.variable(key.name, middle))
                if near[-1] == name:
                    found.append(((section.name, ENV_MARK + middle, key.name), key))
    return found, near


def _no_variable(name: str, near: list[str]) -> str:
    """The error text for a variable that sets no key."""
    moved = {_fixed_variable(old): _fixed_variable(new) for old, new in MOVED.items()}
    if name in moved:
        return f"no such variable; use {moved[name]}"
    # Without the prefix, which makes any two names similar.
    meant = nearest(name.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in near])
    return "no such variable; " + (f"did you mean {PREFIX}{meant}?" if meant else "docs/configuration.md lists them")


def _fixed_variable(dotted_key: str) -> str:
    return PREFIX + dotted_key.replace(".", "_").upper()


# The record


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
        if not section.named:
            made[name] = section.record(**values)
        elif name == "toolsets":
            made[name] = {each: _make_toolset(fields, section) for each, fields in values.items()}
        else:
            made[name] = {each: section.record(**fields) for each, fields in values.items()}
    config = Config(**made, origins={dotted(path): s.origin for path, s in settings.items()}, files=files, watch=watch)
    # The engine reads its limits from one record: those that `[server]` sets go there too.
    seconds, grace = config.server.timeout or FOREVER, config.server.eof_grace
    return replace(config, limits=replace(config.limits, timeout_seconds=seconds, eof_grace_seconds=grace))


def _make_toolset(values: dict[str, Any], section: Section) -> ToolsetConfig:
    """One toolset's table: the keys that every toolset has, and the others as its options."""
    common = {name: value for name, value in values.items() if name in section.keys}
    return ToolsetConfig(**common, options={name: value for name, value in values.items() if name not in common})
