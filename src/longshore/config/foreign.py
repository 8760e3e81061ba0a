"""The configuration of another program, in terms of ours: so its values are checked and shown like any other.

Its file holds a JSON object with the keys that `ForeignConfig` names, and under `tools` an object for each toolset with
keys of that toolset's table.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, cast, final

from msgspec import Struct

from longshore.config.json_file import read
from longshore.config.keys import Key, hint_name
from longshore.config.load import ForeignConfig
from longshore.config.sections import Origin, dotted
from longshore.config.toml_file import Document, Path
from longshore.errors import ConfigError

_SWITCH = Key("", "switch")


class ForeignSetting(Struct, frozen=True):
    """One value for one key of ours, or a problem. `where` is the place and name that an error shows."""

    where: str
    path: Path = ()
    value: Any = None
    origin: Origin = Origin("user")
    base: str | None = None
    """The folder of the file; None: the value is the text of a variable."""
    problem: str = ""


def _as_object(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


@final
class ForeignSettings:
    """The settings of another program. Its file is read at once; `path` is None if there is none."""

    def __init__(self, foreign: ForeignConfig, path: str | None, cwd: str, texts: Mapping[str, str]) -> None:
        self._foreign = foreign
        self._document = Document("", {}, {})
        self._problem = ""
        self._base = os.path.dirname(path or "")
        if path is not None:
            try:
                self._document = read(path, cwd, texts.get(path))
            except ConfigError as problem:
                self._problem = str(problem)
        tools = self._document.tables.get("tools")
        self._tables = _as_object(tools) or {}

    def of_file(self) -> Iterator[ForeignSetting]:
        """The settings of its file."""
        if self._problem:
            where, _, problem = self._problem.partition(": ")
            yield ForeignSetting(where, problem=problem)
        for name, value in self._document.tables.items():
            if name != "tools":
                yield from self._translate(name, value, self._place((name,)), self._base)
            elif not isinstance(value, dict):
                yield ForeignSetting(f"{self._place(('tools',)).where}: tools", problem="expected an object")
        for tool, table in self._tables.items():
            values = _as_object(table)
            if values is None or tool not in self._foreign.toolsets:
                known = hint_name(tool, self._foreign.toolsets, "there are")
                problem = "expected an object" if tool in self._foreign.toolsets else f"no such tool{known}"
                yield ForeignSetting(
                    f"{self._place(('tools', tool)).where}: {dotted(('tools', tool))}", problem=problem
                )
                continue
            for key, value in values.items():
                origin, path = self._place(("tools", tool, key)), ("toolsets", tool, key)
                yield ForeignSetting(f"{origin.where}: {dotted(('tools', tool, key))}", path, value, origin, self._base)

    def of_variables(self, environ: Mapping[str, str]) -> Iterator[ForeignSetting]:
        """The settings of its variables. An empty one counts as unset."""
        for variable, name in self._foreign.variables.items():
            if environ.get(variable):
                yield from self._translate(name, environ[variable], Origin("env", variable), None)

    def _translate(self, name: str, value: Any, origin: Origin, base: str | None) -> Iterator[ForeignSetting]:
        """Our settings for one of the other program's: some hold for each toolset that has no own."""
        foreign = self._foreign
        where = origin.where if base is None else f"{origin.where}: {dotted((name,))}"
        key = foreign.keys.get(name)
        if key is None:
            known = hint_name(name, (*foreign.keys, "tools"), "there are")
            yield ForeignSetting(where, problem=f"no such key{known}")
            return
        if name in foreign.switches:
            try:
                is_on: bool = _SWITCH.read(value) if base is None else _SWITCH.check(value)
                value = foreign.switches[name][is_on]
            except ValueError as problem:
                yield ForeignSetting(where, problem=str(problem))
                return
        yield ForeignSetting(where, tuple(key.split(".")), value, origin, base)
        for toolset in foreign.toolsets if name in foreign.shared else ():
            if name not in (_as_object(self._tables.get(toolset)) or ()):
                yield ForeignSetting(where, ("toolsets", toolset, name), value, origin, base)

    def _place(self, path: Path) -> Origin:
        return Origin("user", f"{self._document.shown}:{self._document.line(path)}")
