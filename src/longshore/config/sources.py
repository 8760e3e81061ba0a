"""Sources: defaults, files, environment and flags, each checked on its own, then merged, later over earlier ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, final

from msgspec.structs import replace

from longshore.config.keys import Key, Section, hint_name, sections, toolset_section
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
    variable_of,
)
from longshore.errors import ConfigError
from longshore.limits import FOREVER
from longshore.nearest import nearest

if TYPE_CHECKING:
    from longshore.config.foreign import ForeignSetting
    from longshore.config.load import ConfiguredToolset

PROBLEMS = 20
"""Problems that one error lists."""

KEY_CHARACTERS = 120
"""How much an error shows of a key."""

Path: TypeAlias = tuple[str, ...]


Setting: TypeAlias = tuple[Path, Any, Origin]
"""One value that one source gave to one key."""


@final
class Sources:
    """Takes one source after the other, the weakest first, and makes the record of them.

    `toolsets` are those of the server; None: unknown. `texts` count in place of the content of files.
    """

    def __init__(
        self,
        cwd: str,
        toolsets: Mapping[str, ConfiguredToolset] | None,
        texts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._cwd, self._toolsets, self._texts = cwd, toolsets or {}, texts
        self._settings: list[Setting] = []
        self._problems: list[str] = []
        self._files: list[str] = []
        self._sections = dict(sections())
        if toolsets is not None:
            server = self._sections["server"]
            named = replace(server.keys["toolsets"], words=tuple(toolsets))
            self._sections["server"] = replace(server, keys={**server.keys, "toolsets": named})
        self._tables: dict[str, Section] = {}

    def add_file(self, kind: Literal["user", "project"], path: str | None) -> None:
        """Take the settings of a file. Its problems are in the order of their lines."""
        if path is None:
            return
        from longshore.config.toml_file import read  # with the TOML parser

        self._files.append(path)
        try:
            document = read(path, self._cwd, self._texts.get(path))
        except ConfigError as error:
            self._problems.append(str(error))
            return
        found = [(document.line(key), key, value) for key, value in self._list_keys(document.tables)]
        for line, key, value in sorted(found, key=lambda each: each[0]):
            where, shown = f"{document.shown}:{line}", dotted(key)
            shown = shown if len(shown) <= KEY_CHARACTERS else shown[: KEY_CHARACTERS - 1] + "…"
            self._add(key, value, Origin(kind, where), f"{where}: {shown}", os.path.dirname(path))

    def add_variables(self, variables: Mapping[str, str]) -> None:
        """Take the settings of `LONGSHORE_*` variables, over those of second variables that toolsets name."""
        seen: dict[str, str] = {}
        for name, text in sorted(variables.items(), key=lambda each: (each[0].startswith(PREFIX), each)):
            if seen.setdefault(name.upper(), name) != name:
                self._problems.append(f"{name}: set twice; {seen[name.upper()]} says it too")
                continue
            try:
                paths = self._match_second(name) or self._match(name.upper())
            except ValueError as error:
                self._problems.append(f"{name}: {error}")
                continue
            for path in paths:
                self._add(path, text, Origin("env", name), name)

    def add_foreign(self, settings: Iterable[ForeignSetting]) -> None:
        """Take the settings of another program."""
        for each in settings:
            if each.problem:
                self._problems.append(f"{each.where}: {each.problem}")
            else:
                self._add(each.path, each.value, each.origin, each.where, each.base)

    def note_file(self, path: str) -> None:
        """Record that a file was read."""
        self._files.append(path)

    def add_flags(self, flags: Mapping[str, Any], defaults_of: str = "") -> None:
        """Take the settings of options, or the defaults of a profile."""
        options = {key: option for option, key in (FLAGS | HTTP_FLAGS).items()}
        for key, value in flags.items():
            option = options.get(key, key) if not defaults_of else f"{defaults_of}: {key}"
            head, _, rest = key.partition(".")
            section = self._sections.get(head)
            # `tools.a.b.timeout` is tools, a.b, timeout: the name is all between section and key.
            name, _, last = rest.rpartition(".") if section and section.named else ("", "", rest)
            path = (head, *(part for part in (name, last) if part))
            self._add(path, value, Origin("default", defaults_of) if defaults_of else Origin("flag", option), option)

    def build(self, watch: tuple[str, ...]) -> Config:
        """The record. Raises ConfigError for the problems of all sources."""
        problems = list(dict.fromkeys(self._problems))  # one value may be for several keys
        rest = len(problems) - PROBLEMS
        if problems:
            raise ConfigError("\n".join(problems[:PROBLEMS]) + (f"\n… and {rest} more" if rest > 0 else ""))
        settings = {path: (value, origin) for path, value, origin in self._for_names()}
        made = nest((path, value) for path, (value, _) in settings.items())
        common = sections()["toolsets"].keys
        for table in made.get("toolsets", {}).values():
            table["options"] = {name: table.pop(name) for name in [*table] if name not in common}
        for name, values in made.items():
            record, named = sections()[name].record, sections()[name].named
            made[name] = {each: record(**table) for each, table in values.items()} if named else record(**values)
        origins = {dotted(path): origin for path, (_, origin) in settings.items()}
        config = Config(**made, origins=origins, files=tuple(self._files), watch=watch)
        # The engine reads its limits from one record: those that `[server]` sets go there too.
        seconds, grace = config.server.timeout or FOREVER, config.server.eof_grace
        return replace(config, limits=replace(config.limits, timeout_seconds=seconds, eof_grace_seconds=grace))

    def _for_names(self) -> Iterator[Setting]:
        """Variables also reach the names that files and flags spell out: `$GET_WEATHER` reaches `get-weather`."""
        names = sorted({path[:2] for path, _, _ in self._settings})  # hash order would shuffle `config show`
        for path, value, origin in self._settings:
            yield path, value, origin
            for known in names if path[1].startswith(ENV_MARK) else ():
                if known[0] == path[0] and ENV_MARK + env_form(known[1]) == path[1]:
                    yield (*known, path[2]), value, origin

    def _add(self, path: Path, value: Any, origin: Origin, where: str, base: str | None = None) -> None:
        """Check and take a value; one that is not of a file, which has a `base`, may be a text still."""
        try:
            key = self._find(path, value, origin)
            if key and base is None and isinstance(value, str):
                value = key.read(value, self._cwd)
            elif key:
                value = key.check(value, self._cwd if base is None else base)
        except ValueError as error:
            self._problems.append(f"{where}: {error}")
        else:
            self._settings.append((path, value, origin))

    def _find(self, path: Path, value: Any, origin: Origin) -> Key | None:
        """The key at a path; None where anything may stand. Raises ValueError."""
        section = self._sections.get(path[0])
        if section is None:
            raise ValueError("no such section" + hint_name(path[0], sections(), "there are"))
        if len(path) < section.key_length:
            form = f", [{path[0]}.NAME]" if len(path) == 2 else ""
            raise ValueError(f"expected a table{form}, got {section.show(value)}")
        if section.named and origin.kind != "env" and (not path[1] or path[1].startswith(ENV_MARK)):
            raise ValueError(f"a name can't be empty or begin with {ENV_MARK}")
        if len(path) > section.key_length:
            return None
        table = self._table(section, path[1])
        key = table.keys.get(path[-1])
        if key is None and not table.open:
            raise ValueError(table.unknown(path[-1]))
        return key

    def _table(self, section: Section, name: str) -> Section:
        """The table of this name. That of a toolset takes its options, or anything if the server does not have it."""
        if section.name != "toolsets":
            return section
        if name not in self._tables:
            toolset = self._toolsets.get(name)
            unknown = replace(section, open=True)
            self._tables[name] = unknown if toolset is None else toolset_section(name, toolset.options_type)
        return self._tables[name]

    def _list_keys(self, tables: dict[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
        """Every key of a file with its value."""
        for name, value in tables.items():
            path = (*above, name)
            if isinstance(value, dict) and self._holds_keys(path):
                yield from self._list_keys(cast("dict[str, Any]", value), path)
            else:
                yield path, value

    def _holds_keys(self, path: Path) -> bool:
        """Whether a table at this path is no value. The entries of a free-form one are merged each for itself."""
        section = self._sections.get(path[0])
        if section is None or len(path) < section.key_length:
            return section is not None
        key = self._table(section, path[1]).keys.get(path[-1])
        return len(path) == section.key_length and key is not None and key.kind == "table"

    def _match_second(self, name: str) -> list[Path]:
        """The options that name a variable beside ours."""
        toolsets = self._toolsets.items()
        return [("toolsets", each, toolset.variables[name]) for each, toolset in toolsets if name in toolset.variables]

    def _match(self, name: str) -> list[Path]:
        """The paths of a variable. Raises ValueError if there is none.

        A name that the user gave to a table stands in the middle, and may end like a key. Any variable of a toolset
        that the server does not have is taken: a warning names it, as it does a table.
        """
        prefix, toolsets = variable_of(("toolsets", "")), self._sections["toolsets"]
        mine = [self._table(toolsets, each) for each in self._toolsets if name.startswith(f"{prefix}{env_form(each)}_")]
        fixed = [section for section in (*self._sections.values(), *mine) if not section.named]
        fixed_paths = [(*section.path, key) for section in fixed for key in section.keys]
        named_paths = [path for section in self._sections.values() if section.named for path in _marked(section, name)]
        for paths in (fixed_paths, named_paths):
            found = [path for path in paths if variable_of(path) == name]
            if found:
                return found
        middle, _, option = name.removeprefix(prefix).partition("_")
        if name.startswith(prefix) and not mine and middle and option:
            return [("toolsets", ENV_MARK + middle, option.lower())]
        moved = {variable_of(old.split(".")): variable_of(new.split(".")) for old, new in MOVED.items()}
        if name in moved:
            raise ValueError(f"no such variable; use {moved[name]}")
        # Without the prefix, which makes any two names similar.
        known = [PATH_VARIABLE, *map(variable_of, (*fixed_paths, *named_paths))]
        near = nearest(name.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in known])
        hint = f"did you mean {PREFIX}{near}?" if near else "docs/configuration.md lists them"
        raise ValueError(f"no such variable; {hint}")


def _marked(section: Section, variable: str) -> Iterator[Path]:
    """The paths that a variable may be meant for, in the tables that users name."""
    for key in section.keys:
        middle, *rest = variable.removeprefix(variable_of((section.name, ""))).rsplit("_", key.count("_") + 1)
        if middle and rest:
            yield section.name, ENV_MARK + middle, key


def nest(values: Iterable[tuple[Path, Any]]) -> dict[str, Any]:
    """The values as `longshore.toml` nests them."""
    root: dict[str, Any] = {}
    for path, value in values:
        node = root
        for part in path[:-1]:
            node = node.setdefault(part, {})
        node[path[-1]] = value
    return root
