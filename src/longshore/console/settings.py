"""The settings of a server: every key with its value, where that comes from, and whether it can be changed here."""

from __future__ import annotations

import asyncio
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final, final

from msgspec import Struct

from longshore import config as configuration
from longshore.config import Config, ForeignConfig, Origin
from longshore.config.keys import HIDDEN, Key, Section, sections, toolset_section
from longshore.config.reference import docs, list_values
from longshore.config.sections import ENV_MARK, dotted, env_form
from longshore.config.toml_file import Path
from longshore.console.setting_files import Draft, FileChanged, SettingFile, edit_json, edit_toml
from longshore.errors import ConfigError
from longshore.registry.toolset import ToolsetHandle
from longshore.runtime import Runtime
from longshore.server.engine import Engine
from longshore.transports.http.gate import Denied

KEY_CHARACTERS: Final = 300
MOST_CHANGES: Final = 500
"""Of one request; there are some 250 keys."""
TYPES: Final = {"switch": "bool", "count": "int", "folder": "text"}
"""What the page calls the kinds of keys, of those whose names differ."""
MAIN: Final = (
    "http.lines",
    "server.transport",
    "server.log_level",
    "server.debug",
    "server.timeout",
    "server.roots",
    "server.toolsets",
)
"""The keys that a person wants first: those of BrowserOS's settings page."""
_SECRET: Final = "a secret is not shown or set here; a file (token_file) or a variable is the place for it"  # noqa: S105


class Problem(Struct, frozen=True):
    """What is wrong with one change."""

    key: str
    text: str


class BadSettings(Exception):
    """Changes that can't be made. Nothing was written."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems)
        self.problems = problems


class _Setting(Struct, frozen=True):
    """One key of the configuration."""

    path: Path
    key: Key
    docs: str


@final
class Settings:
    """The settings of one server."""

    def __init__(self, runtime: Runtime, engine: Engine) -> None:
        self._runtime, self._engine = runtime, engine
        self._writing = asyncio.Lock()

    @property
    def _config(self) -> Config:
        return self._engine.policy.config

    # -- reading

    async def describe(self) -> dict[str, Any]:
        """All settings. Reading the options of toolsets imports some, which is done on a thread."""
        return await asyncio.to_thread(self._describe)

    def _describe(self) -> dict[str, Any]:
        values = self._values()
        project, foreign = self._files()
        why_not = self._why_not(project)
        return {
            "file": project.path,
            "other_file": None if foreign is None else foreign.path,
            "writable": not why_not,
            "why_not": why_not,
            "version": self._version(project, foreign),
            "main": list(MAIN),
            "sections": [
                self._describe_section(section, values) for section in sections().values() if not section.named
            ],
            "toolsets": [self._describe_toolset(handle, values) for handle in self._engine.catalog.toolsets.values()],
            "tools": [self._describe_tool(name, values) for name in self._tools_of(None)],
        }

    def _version(self, *files: SettingFile | None) -> str:
        return "-".join(file.tag for file in files if file is not None)

    def _why_not(self, file: SettingFile) -> str:
        """Why a file can't be written; empty if it can. None is, while there is one that does not count."""
        return file.why_not() or next(iter(self._config.untrusted.values()), "")

    def _values(self) -> dict[Path, Any]:
        return {each.path: each.value for each in list_values(self._config, self._engine.catalog.toolsets)}

    def _describe_section(self, section: Section, values: Mapping[Path, Any]) -> dict[str, Any]:
        words = docs(section.record)
        summary = (section.record.__doc__ or "").split("\n")[0]
        keys = [_Setting((*section.path, key.name), key, words.get(key.name, "")) for key in section.keys.values()]
        listed = [self._describe_key(each, values) for each in keys if each.key.kind != "table"]
        return {"name": section.name, "title": section.name.capitalize(), "docs": summary, "keys": listed}

    def _describe_key(self, setting: _Setting, values: Mapping[Path, Any]) -> dict[str, Any]:
        key, path = setting.key, setting.path
        default = self._default(setting)
        value, origin = values.get(path), self._origin(path)
        return {
            "key": dotted(path),
            "type": TYPES.get(key.kind, key.kind),
            "choices": list(key.words),
            "minimum": key.range[0] if key.range else None,
            "maximum": key.range[1] if key.range else None,
            "docs": setting.docs,
            "value": default if value is None and origin.kind == "default" else value,
            "default": default,
            "origin": str(origin),
            "locked": self._why_locked(setting),
            "waits": configuration.is_fixed(path),
        }

    def _default(self, setting: _Setting) -> Any:
        """The value where no file, variable or flag says anything."""
        given = self._runtime.config_files().defaults.get(dotted(setting.path), setting.key.default)
        return HIDDEN if setting.key.secret and given else given

    def _origin(self, path: Path) -> Origin:
        """Where a value comes from. A variable may stand for the tables of several names."""
        own = configuration.origin(self._config, dotted(path))
        if own.kind != "default" or len(path) < 3:
            return own
        marked = (path[0], ENV_MARK + env_form(path[1]), path[2])
        found = configuration.origin(self._config, dotted(marked))
        return own if found.kind == "default" else found

    def _why_locked(self, setting: _Setting) -> str | None:
        origin = self._origin(setting.path)
        if origin.kind == "flag":
            return f"set on the command line ({origin.where})"
        if origin.kind == "env":
            return f"set by the variable {origin.where}"
        return _SECRET if setting.key.secret else None

    # -- toolsets and tools

    def _describe_toolset(self, handle: ToolsetHandle, values: Mapping[Path, Any]) -> dict[str, Any]:
        enabled = configuration.toolset_enabled(self._config, handle.name, handle.toolset.enabled)
        return {
            "name": handle.name,
            "enabled": enabled,
            "unavailable": handle.unavailable,
            "keys": [self._describe_key(each, values) for each in self._toolset_keys(handle)],
            "tools": [self._describe_tool(name, values) for name in self._tools_of(handle)],
        }

    def _toolset_keys(self, handle: ToolsetHandle) -> Iterator[_Setting]:
        section = toolset_section(handle.name, handle.options_type)
        words = {**docs(sections()["toolsets"].record), **docs(section.record)}
        for key in section.keys.values():
            if key.kind != "table":
                yield _Setting(("toolsets", handle.name, key.name), key, words.get(key.name, ""))

    def _tools_of(self, handle: ToolsetHandle | None) -> list[str]:
        tools = self._engine.catalog.tools
        return [name for name, entry in tuple(tools.items()) if entry.toolset is handle]

    def _describe_tool(self, name: str, values: Mapping[Path, Any]) -> dict[str, Any]:
        entry = self._engine.catalog.tools[name]
        words = docs(sections()["tools"].record)
        keys = [_Setting(("tools", name, key.name), key, words.get(key.name, "")) for key in _tool_keys()]
        return {
            "name": name,
            "enabled": self._engine.policy.is_enabled(entry),
            "timeout": None if entry.limit == float("inf") else entry.limit,
            "listed": entry.listed,
            "group": entry.group,
            "keys": [self._describe_key(each, values) for each in keys],
        }

    # -- changing

    async def change(self, changes: Mapping[str, Any], version: str | None) -> dict[str, list[str]]:
        """Write changes and apply them. `version` is that of the settings that the caller has seen.

        Raises BadSettings, and Denied where the files can't be written or were changed meanwhile.
        """
        async with self._writing:
            made = await asyncio.to_thread(self._write, changes, version)
        self._runtime.reload_config()
        return made

    def _write(self, changes: Mapping[str, Any], version: str | None) -> dict[str, list[str]]:
        settings = self._check(changes)
        project, foreign = self._files()
        if version is not None and version != self._version(project, foreign):
            raise Denied(409, "the configuration was changed since you looked at it; look again")
        of_project, of_foreign = self._divide(settings, foreign)
        for file, mine in ((project, of_project), (foreign, of_foreign)):
            if file is not None and mine and (why_not := self._why_not(file)):
                raise Denied(403, f"settings can't be written: {why_not}")
        try:
            with ExitStack() as drafts:
                self._save(
                    drafts.enter_context(project.draft(of_project)) if of_project else None,
                    drafts.enter_context(foreign.draft(of_foreign)) if foreign is not None and of_foreign else None,
                )
        except FileChanged as problem:
            raise Denied(409, str(problem)) from None
        except OSError as problem:
            raise Denied(403, f"settings can't be written: {problem.strerror}") from None
        keys = {dotted(setting.path): configuration.is_fixed(setting.path) for setting, _ in settings}
        return {
            "applied": [key for key, waits in keys.items() if not waits],
            "waiting": [key for key, waits in keys.items() if waits],
            "files": [file.path for file, mine in ((project, of_project), (foreign, of_foreign)) if file and mine],
        }

    def _save(self, project: Draft | None, foreign: Draft | None) -> None:
        """Check the drafts as the configuration that they would make, and put them in place."""
        files = self._runtime.config_files()
        drafts = [each for each in (project, foreign) if each is not None]
        try:
            self._runtime.try_config(
                project.path if project is not None else (files.project if os.path.exists(files.project) else None),
                None if foreign is None else foreign.path,
            )
        except ConfigError as problem:
            raise BadSettings([Problem("", _named(line, drafts)) for line in str(problem).splitlines()]) from None
        edits = self._runtime.trusted_edits()
        for draft in drafts:
            if edits is not None and not edits.allow(draft.file.path, draft.before.decode("utf-8-sig")):
                raise FileChanged(f"{draft.file.path} was changed, and you have not trusted it")
        for draft in drafts:
            draft.save()
            if edits is not None:
                edits.trust(draft.file.path, draft.after.decode())

    def _check(self, changes: Mapping[str, Any]) -> list[tuple[_Setting, Any]]:
        """The settings that are to be changed, each with its new value. Raises BadSettings."""
        problems: list[Problem] = []
        found: list[tuple[_Setting, Any]] = []
        for name, value in changes.items():
            try:
                setting = self._find(name)
                locked = self._why_locked(setting)
                if locked is not None:
                    raise ValueError(f"locked: {locked}")
                if value is not None:
                    setting.key.check(value, "/")
            except (ValueError, ConfigError) as problem:
                problems.append(Problem(name[:KEY_CHARACTERS], str(problem)))
            else:
                found.append((setting, value))
        if not changes or len(changes) > MOST_CHANGES:
            problems.append(Problem("", f"send 1 to {MOST_CHANGES} changes"))
        if problems:
            raise BadSettings(problems)
        return found

    def _find(self, name: str) -> _Setting:
        """The setting of a dotted key. Raises ValueError."""
        path = _read_path(name)
        section = sections().get(path[0])
        if section is None or path[0] == "tokens" or len(path) != section.key_length:
            raise ValueError("no such key")
        handle = self._engine.catalog.toolsets.get(path[1]) if path[0] == "toolsets" else None
        if path[0] == "toolsets":
            if handle is None:
                raise ValueError("no such toolset")
            section = toolset_section(handle.name, handle.options_type)
        elif path[0] == "tools" and path[1] not in self._engine.catalog.tools:
            raise ValueError("no such tool")
        key = section.keys.get(path[-1])
        if key is None or key.kind == "table":
            raise ValueError(section.unknown(path[-1]) if key is None else "edit this one in the file")
        return _Setting(path, key, "")

    # -- which file

    def _files(self) -> tuple[SettingFile, SettingFile | None]:
        files = self._runtime.config_files()
        foreign = files.foreign
        other = None if foreign is None or not foreign.path else SettingFile(_home(foreign.path), edit_json)
        return SettingFile(files.project, edit_toml), other

    def _divide(
        self, settings: list[tuple[_Setting, Any]], foreign: SettingFile | None
    ) -> tuple[dict[Path, Any], dict[Path, Any]]:
        """The changes of the project's file, and of the other program's, which gets those that it has keys for.

        A key that our own files set stays there: they win over the other program's.
        """
        known = self._runtime.config_files().foreign
        mine: dict[Path, Any] = {}
        theirs: dict[Path, Any] = {}
        for setting, value in settings:
            place = None if known is None or foreign is None else _foreign_place(known, setting.path, value)
            origin = self._origin(setting.path)
            is_ours = origin.kind in ("project", "user") and not self._is_of(origin, foreign)
            if place is None or is_ours:
                mine[setting.path] = value
            else:
                theirs[place[0]] = place[1]
        return mine, theirs

    def _is_of(self, origin: Origin, file: SettingFile | None) -> bool:
        return file is not None and file.path.endswith(origin.where.rpartition(":")[0])


def _foreign_place(foreign: ForeignConfig, path: Path, value: Any) -> tuple[Path, Any] | None:
    """The place of a key in the other program's file, and its value there. None: it has no such key or value."""
    if path[0] == "toolsets" and path[1] in foreign.toolsets:
        return ("tools", *path[1:]), value
    for theirs, ours in foreign.keys.items():
        if tuple(ours.split(".")) == path:
            pair = foreign.switches.get(theirs)
            if pair is None or value is None:
                return (theirs,), value
            return ((theirs,), value == pair[1]) if value in pair else None
    return None


def _tool_keys() -> list[Key]:
    return [*sections()["tools"].keys.values()]


def _read_path(name: str) -> Path:
    """The parts of a dotted key, which are quoted as in TOML. Raises ValueError."""
    if len(name) > KEY_CHARACTERS or "\n" in name or "=" in name:
        raise ValueError("no such key")
    try:
        node: Any = tomllib.loads(f"{name} = 0")
    except tomllib.TOMLDecodeError:
        raise ValueError("no such key") from None
    path: list[str] = []
    while isinstance(node, dict):
        part, node = next(iter(node.items()))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        path.append(str(part))  # pyright: ignore[reportUnknownArgumentType]
    return tuple(path)


def _named(line: str, drafts: list[Draft]) -> str:
    """A line of an error, with the names of the files in place of those of their drafts."""
    for draft in drafts:
        for path in (draft.path, os.path.relpath(draft.path)):
            line = line.replace(path, draft.file.path)
    return line


def _home(path: str) -> str:
    return os.path.expanduser(path)
