"""The clients that servers are installed into: one record each, with the form of its entries and the next steps."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from longshore.client.config_places import PLACES, ConfigPlace, UserFolders
from longshore.client.configs import ConfigFile, project_file, user_file
from longshore.errors import ConfigError
from longshore.install.formats import Format
from longshore.install.server_entry import Address, Program, ServerEntry

Json = dict[str, Any]


class Deadline(Struct, frozen=True):
    """The time that a client waits for a server to start, and the effect of a timeout."""

    seconds: float
    otherwise: str
    known: str


class ClientRecord(Struct, frozen=True, kw_only=True):
    """The known properties of a client's configuration."""

    name: str
    title: str
    form: Format = "jsonc"
    programs: tuple[str, ...] = ()
    """Its programs on the PATH."""
    stdio: Callable[[str, Program], Json]
    """The entry of a program, from the server's name and the program."""
    http: Callable[[str, Address], Json] | None
    """The entry of a URL; None if the client's file has none."""
    variable: str = ""
    """How a header names an environment variable, `{}` being its name; empty if it can't."""
    after: str
    """The steps that remain for the user."""
    after_project: str = ""
    """The same for an entry of a project, if it differs."""
    deadlines: tuple[Deadline, ...] = ()

    @property
    def place(self) -> ConfigPlace:
        return next(place for place in PLACES if place.client == self.name)

    def user_file(self, folders: UserFolders) -> ConfigFile:
        return user_file(self.place, self.place.user(folders)[0])

    def project_file(self, folder: str) -> ConfigFile:
        """Raises ConfigError if the client has no files in projects."""
        if not self.place.project:
            raise ConfigError(f"{self.title} has no configuration in projects; leave --project out")
        return project_file(self.place, folder)

    def entry(self, name: str, server: ServerEntry) -> Json:
        """The entry of a server. Raises ConfigError if the client can't have it."""
        if isinstance(server, Program):
            return self.stdio(name, server)
        if self.http is None:
            what = f"the file of {self.title} takes programs only"
            raise ConfigError(f"{what}; add a URL in its Settings > Connectors, or mount it: docs/mounting.md")
        if server.token_variable and not self.variable:
            what = f"{self.title} reads no variables in headers"
            raise ConfigError(f"{what}; give the token itself, which the file will hold then: --auth @FILE")
        return self.http(name, server)

    def is_here(self, folders: UserFolders) -> bool:
        """Whether the client is installed: its program, or a folder of its settings."""
        if any(shutil.which(each, path=folders.environ.get("PATH")) for each in self.programs):
            return True
        file = self.user_file(folders).path
        folder = os.path.dirname(file)
        return os.path.exists(file) or (folder != folders.home and os.path.isdir(folder))


def _texts(values: Mapping[str, str]) -> Json:
    return dict(values)


def _filled(entry: Json) -> Json:
    """The entry without empty lists and objects."""
    return {key: value for key, value in entry.items() if value not in ({}, [])}


def _program(_: str, server: Program) -> Json:
    return _filled({"command": server.command, "args": [*server.args], "env": _texts(server.env)})


def _typed_program(name: str, server: Program) -> Json:
    return {"type": "stdio", **_program(name, server)}


def _claude_program(_: str, server: Program) -> Json:
    return {"type": "stdio", "command": server.command, "args": [*server.args], "env": _texts(server.env)}


def _zed_program(_: str, server: Program) -> Json:
    entry = {"source": "custom", "enabled": True, "command": server.command}
    return {**entry, "args": [*server.args], "env": _texts(server.env)}


def _goose(name: str, kind: str) -> Json:
    return {"enabled": True, "type": kind, "name": name, "description": name}


def _goose_program(name: str, server: Program) -> Json:
    call: Json = {"cmd": server.command, "args": [*server.args], "envs": _texts(server.env), "env_keys": []}
    return {**_goose(name, "stdio"), **call, "timeout": 300, "bundled": None}


def _goose_address(name: str, server: Address) -> Json:
    call: Json = {"uri": server.url, "headers": _texts(server.headers), "envs": {}, "env_keys": []}
    return {**_goose(name, "streamable_http"), **call, "timeout": 300, "bundled": None}


def _address(key: str, variable: str = "", kind: str = "") -> Callable[[str, Address], Json]:
    """The entry of a URL under this key, with its type before or after it."""

    def make(_: str, server: Address) -> Json:
        headers = _texts(server.headers)
        if server.token_variable:
            headers["Authorization"] = f"Bearer {variable.format(server.token_variable)}"
        typed = {"type": kind} if kind else {}
        return _filled({**typed, key: server.url, "headers": headers})

    return make


def _gemini_address(name: str, server: Address) -> Json:
    made = _address("url", _BRACES)(name, server)
    return {"url": made.pop("url"), "type": "http", **made}


def _codex_address(_: str, server: Address) -> Json:
    token = {"bearer_token_env_var": server.token_variable} if server.token_variable else {}
    return _filled({"url": server.url, **token, "http_headers": _texts(server.headers)})


_BRACES: Final = "${{{}}}"
_ENV: Final = "${{env:{}}}"

CLIENTS: Final = (
    ClientRecord(
        name="claude-code",
        title="Claude Code",
        programs=("claude",),
        stdio=_claude_program,
        http=_address("url", _BRACES, "http"),
        variable=_BRACES,
        after="its next session has the server; /mcp shows it",
        after_project="it asks for your approval when it is started in the project the next time",
        deadlines=(
            Deadline(2.0, "the first turn of `claude -p` has none of its tools", "measured with 2.1.197"),
            Deadline(30.0, "the connection fails, unless MCP_TIMEOUT is longer", "measured with 2.1.197"),
        ),
    ),
    ClientRecord(
        name="claude-desktop",
        title="Claude Desktop",
        stdio=_program,
        http=None,
        after="quit it and start it again",
    ),
    ClientRecord(
        name="cursor",
        title="Cursor",
        programs=("cursor", "cursor-agent"),
        stdio=_program,
        http=_address("url", _ENV),
        variable=_ENV,
        after="Settings > MCP shows it; switch it on there",
    ),
    ClientRecord(
        name="vscode",
        title="VS Code",
        programs=("code",),
        stdio=_typed_program,
        http=_address("url", _ENV, "http"),
        variable=_ENV,
        after="it asks whether you trust the server before it starts it first",
    ),
    ClientRecord(
        name="windsurf",
        title="Windsurf",
        programs=("windsurf",),
        stdio=_program,
        http=_address("serverUrl", _ENV),
        variable=_ENV,
        after="press Refresh in its MCP settings, or restart it",
    ),
    ClientRecord(
        name="gemini",
        title="Gemini CLI",
        programs=("gemini",),
        stdio=_program,
        http=_gemini_address,
        variable=_BRACES,
        after="its next session has the server, in folders that it trusts",
    ),
    ClientRecord(
        name="codex",
        title="Codex",
        form="toml",
        programs=("codex",),
        stdio=_program,
        http=_codex_address,
        variable="{}",
        after="its next session has the server",
        after_project="its next session in the project has the server, if it trusts the project",
        deadlines=(Deadline(10.0, "the server is given up, unless startup_timeout_sec is longer", "reported"),),
    ),
    ClientRecord(
        name="zed",
        title="Zed",
        programs=("zed", "zeditor"),
        stdio=_zed_program,
        http=_address("url"),
        after="the agent panel's settings show it; nothing has to be restarted",
        after_project="it asks whether you trust the project before it starts the server",
    ),
    ClientRecord(
        name="goose",
        title="Goose",
        form="yaml",
        programs=("goose",),
        stdio=_goose_program,
        http=_goose_address,
        after="its next session has the server",
    ),
)
BY_NAME: Final = {client.name: client for client in CLIENTS}
