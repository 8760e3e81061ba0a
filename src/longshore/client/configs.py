"""The servers in the configuration files of MCP clients, by their names.

`Client(find_server("github"))` connects as Claude, Cursor, VS Code, Codex, Gemini, Windsurf, Zed or Goose would. The
first file that has the name wins: a project's before the user's own.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from longshore.client.config_places import (
    CLAUDE_BYTES,
    FILE_BYTES,
    PLACES,
    ConfigPlace,
    project_folder,
    user_folders,
)
from longshore.client.targets import url_of as url_of
from longshore.errors import ConfigError
from longshore.files import read_bounded, read_regular
from longshore.schema.kinds import as_object, is_array, is_object

DEPTH = 32
"""Levels of an entry. Real ones have three."""


class NoSuchServer(ConfigError):
    """No file has a server of this name. `near` is the most similar existing name."""

    def __init__(self, text: str, name: str, near: str | None) -> None:
        super().__init__(text)
        self.name, self.near = name, near


class ConfigFile(Struct, frozen=True):
    """A configuration file that may exist."""

    path: str
    keys: tuple[str, ...] = ("mcpServers",)
    folder: str = ""
    """The working directory of its programs. The user's own files have none."""
    expands: bool = True
    """Whether its client expands variables."""
    project: bool = False
    """Whether it was found in a project: its author chose what is in it, not the user."""
    most: int = FILE_BYTES


class ConfiguredServer(Struct, frozen=True):
    """An entry of a file, in the file's own form."""

    name: str
    file: ConfigFile
    raw: dict[str, Any]

    def entry(self, environ: Mapping[str, str] | None = None, folder: str | None = None) -> dict[str, Any]:
        """The entry as `Client` takes it, with its variables expanded. Raises ConfigError."""
        known = os.environ if environ is None else environ
        where = f"{self.file.path}: {self.name}"
        variables = known if self.file.expands else None
        made: dict[str, Any] = _expand(_with_usual_keys(self.raw), variables, self.file.folder or _here(folder), where)
        if self.file.folder and "command" in made:
            made["cwd"] = os.path.join(self.file.folder, str(made.get("cwd") or ""))
        return _with_headers(made, known, where)


def find_server(
    name: str, config: str | None = None, *, folder: str | None = None, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The entry of this name, ready for `Client(entry)`. `config` is the one file to look in. Raises ConfigError."""
    return look_up(name, config, folder=folder, environ=environ).entry(environ, folder)


def read_servers(
    config: str | None = None, *, folder: str | None = None, environ: Mapping[str, str] | None = None
) -> dict[str, ConfiguredServer]:
    """All servers by name, of `config` or of all files. A file that can't be read is an error only if it was named."""
    found: dict[str, ConfiguredServer] = {}
    for file in _files(config, folder, environ):
        try:
            listed = _read(file, _here(folder), named=config is not None)
        except ConfigError:
            if config is not None:
                raise
            continue
        for each in listed:
            found.setdefault(each.name, each)
    return found


def look_up(
    name: str, config: str | None = None, *, folder: str | None = None, environ: Mapping[str, str] | None = None
) -> ConfiguredServer:
    """The entry of this name.

    Raises NoSuchServer, and ConfigError for an unreadable file, which might contain it, too.
    """
    others: list[str] = []
    for file in _files(config, folder, environ):
        for each in _read(file, _here(folder), named=config is not None):
            if each.name == name:
                return each
            others.append(each.name)
    from longshore.nearest import nearest

    where = config or ".mcp.json and the files of Claude, Cursor, VS Code, Codex, Gemini, Windsurf, Zed and Goose"
    near = nearest(name, others)
    shown = ", ".join(dict.fromkeys(others[:20]))
    hint = f"there are {shown}" if shown else "they name none"
    if near is not None:
        hint = f"did you mean {near!r}?"
    raise NoSuchServer(f"no server {name!r} in {where}; {hint}", name, near)


# -- which files


def _files(config: str | None, folder: str | None, environ: Mapping[str, str] | None) -> list[ConfigFile]:
    if config is None:
        return list(_usual(_here(folder), os.environ if environ is None else environ))
    path = os.path.expanduser(config)
    if not os.path.exists(path):
        raise ConfigError(f"{config}: no such file")
    is_goose = path.endswith(".yaml")
    keys = tuple(dict.fromkeys(each.key for each in PLACES if (each.client == "goose") is is_goose))
    expands = not path.endswith((".toml", ".yaml"))
    return [ConfigFile(path, keys, _project_of(path), expands=expands, most=CLAUDE_BYTES)]


def _usual(here: str, environ: Mapping[str, str]) -> Iterator[ConfigFile]:
    for folder in dict.fromkeys((here, project_folder(here))):
        for each in PLACES:
            if each.project:
                yield project_file(each, folder)
    folders = user_folders(environ, sys.platform)
    if folders is None:
        return
    for each in PLACES:
        for path in each.user(folders):
            yield user_file(each, path)


def project_file(place: ConfigPlace, folder: str) -> ConfigFile:
    """A client's file in a project."""
    path = os.path.join(folder, *place.project.split("/"))
    return ConfigFile(path, (place.key,), folder, expands=place.expands, project=True)


def user_file(place: ConfigPlace, path: str) -> ConfigFile:
    """A client's file of the user."""
    return ConfigFile(path, (place.key,), expands=place.expands, most=place.most)


def _here(folder: str | None) -> str:
    try:
        return os.path.abspath(folder or os.getcwd())
    except FileNotFoundError:
        return os.sep  # the working directory was deleted


def _project_of(path: str) -> str:
    """The project of a file that the user named, as far as its path shows that."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.basename(folder) in (".cursor", ".vscode", ".gemini", ".codex", ".zed"):
        return os.path.dirname(folder)
    return folder if os.path.basename(path) == ".mcp.json" else ""


# -- what is in them


def _read(file: ConfigFile, here: str, *, named: bool) -> list[ConfiguredServer]:
    """The servers of a file; none if it does not exist. Raises ConfigError."""
    data = _read_bytes(file, named)
    if len(data) > file.most:
        raise ConfigError(f"{file.path}: it has more than {file.most:,} bytes")
    record = _decode(file.path, data)
    return [*_local(file, record, here), *_entries(file, record, file.keys)]


def _read_bytes(file: ConfigFile, named: bool) -> bytes:
    """The content of a file that the user named, which may be a pipe, or that was found.

    A found file counts as empty if it is no file, unreadable, or another user's: another user must not choose
    what we start by putting a file into a shared folder.
    """
    try:
        if named:
            return read_bounded(file.path, file.most)
        data, found = read_regular(file.path, file.most)
        return data if stat.S_ISREG(found.st_mode) and found.st_uid in (os.geteuid(), 0) else b""
    except OSError as problem:
        if named:
            raise ConfigError(f"{file.path}: it can't be read: {problem.strerror}") from None
        return b""


def _local(file: ConfigFile, record: dict[str, Any], here: str) -> list[ConfiguredServer]:
    """The servers of one project in the user's file of Claude."""
    projects: Any = record.get("projects")
    if not is_object(projects) or not file.path.endswith(".claude.json"):
        return []
    for folder in dict.fromkeys((here, project_folder(here))):
        found: Any = projects.get(folder)
        if is_object(found):
            return _entries(replace(file, folder=folder), found, file.keys)
    return []


def _entries(file: ConfigFile, record: dict[str, Any], keys: tuple[str, ...]) -> list[ConfiguredServer]:
    found: list[ConfiguredServer] = []
    for key in keys:
        servers: Any = record.get(key)
        if servers is not None and not is_object(servers):
            raise ConfigError(f'{file.path}: "{key}" is an object of servers by name')
        found += [
            ConfiguredServer(str(name), file, entry) for name, entry in (servers or {}).items() if is_object(entry)
        ]
    return found


def _decode(path: str, data: bytes) -> dict[str, Any]:
    try:
        if path.endswith(".toml"):
            import tomllib

            record: Any = tomllib.loads(data.decode())
        elif path.endswith(".yaml"):
            record = _decode_yaml(data)
        else:
            record = _decode_json(data.removeprefix(b"\xef\xbb\xbf")) if data.strip() else {}
    except (ValueError, RecursionError) as problem:
        raise ConfigError(f"{path}: it can't be read: {problem}") from None
    if not is_object(record):
        raise ConfigError(f"{path}: it holds no object")
    return record


def _decode_yaml(data: bytes) -> Any:
    """Raises ValueError."""
    from yaml import YAMLError, safe_load

    try:
        return safe_load(data) or {}
    except YAMLError as problem:
        raise ValueError(" ".join(str(problem).split())) from None


def _decode_json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        import json

        text = _without_comments(data.decode())
        return json.loads(text) if text.strip() else {}  # json reads halves of surrogate pairs, too


# An unclosed text or comment extends to the end: it is malformed in any case, and this takes linear time.
_TEXT = r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))'
_COMMENT = re.compile(_TEXT + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(_TEXT + r"|,(?=\s*[}\]])", re.DOTALL)


def _without_comments(text: str) -> str:
    """JSON without comments and trailing commas, which editors allow."""
    keep: Callable[[re.Match[str]], str] = lambda found: found[1] or ""  # noqa: E731 - used twice
    return _LAST_COMMA.sub(keep, _COMMENT.sub(lambda found: found[1] or " ", text))


_GOOSE_KEYS = {"cmd": "command", "envs": "env", "uri": "url"}


def _with_usual_keys(raw: dict[str, Any]) -> dict[str, Any]:
    """The entry with Goose's keys renamed to the common ones."""
    if "command" in raw or not ("cmd" in raw or "uri" in raw):
        return raw
    return {_GOOSE_KEYS.get(key, key): value for key, value in raw.items()}


def _with_headers(entry: dict[str, Any], environ: Mapping[str, str], where: str) -> dict[str, Any]:
    """The entry with Codex's keys for headers as `headers`."""
    if "url" not in entry:
        return entry
    headers: dict[str, Any] = {**as_object(entry.get("headers")), **as_object(entry.get("http_headers"))}
    wanted = {name: str(variable) for name, variable in as_object(entry.get("env_http_headers")).items()}
    token = entry.get("bearer_token_env_var")
    for name, variable in {**wanted, **({"Authorization": token} if isinstance(token, str) else {})}.items():
        value = environ.get(variable)
        if value is None:
            raise ConfigError(f"{where}: the variable {variable} is not set; it holds the header {name}")
        headers[name] = f"Bearer {value}" if variable == token and name == "Authorization" else value
    return {**entry, "headers": headers} if headers else entry


# -- variables: `${NAME}`, `${NAME:-default}`, `${env:NAME}` …

_VARIABLE = re.compile(r"\$\{([^{}\n]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _expand(value: Any, environ: Mapping[str, str] | None, folder: str, where: str, levels: int = DEPTH) -> Any:
    """A copy of a value with its variables expanded, unless `environ` is None.

    Raises ConfigError for a variable that is not set, and for more than `levels` levels.
    """
    if isinstance(value, str) and environ is not None:
        return _VARIABLE.sub(lambda found: _variable(found[1], found[0], environ, folder, where), value)
    if not levels and (is_object(value) or is_array(value)):
        raise ConfigError(f"{where[:200]}: it is nested too deep; entries have at most {DEPTH} levels")
    if is_object(value):
        return {key: _expand(each, environ, folder, f"{where}.{key}", levels - 1) for key, each in value.items()}
    if is_array(value):
        return [_expand(each, environ, folder, f"{where}[{n}]", levels - 1) for n, each in enumerate(value)]
    return value


def _variable(inner: str, whole: str, environ: Mapping[str, str], folder: str, where: str) -> str:
    places = {
        "workspaceFolder": folder,
        "workspaceFolderBasename": os.path.basename(folder),
        "userHome": environ.get("HOME", ""),
        "pathSeparator": os.sep,
        "/": os.sep,
    }
    if inner in places:
        return places[inner]
    if inner.startswith("input:"):
        fix = "only VS Code asks for it: write the value, or ${env:NAME}, into a file for --config"
        raise ConfigError(f"{where}: {whole} is a question to a person; {fix}")
    name, has_default, default = inner.removeprefix("env:").partition(":-")
    if not _NAME.fullmatch(name):
        return whole  # the server itself may expand it
    found = environ.get(name)
    if has_default:
        return found or default  # as a shell does: an empty one counts as unset
    if found is None:
        raise ConfigError(f"{where}: the variable {name} is not set; set it, or write ${{{name}:-default}}")
    return found
