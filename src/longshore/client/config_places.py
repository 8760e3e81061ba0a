"""The places where MCP clients keep their servers: the files of each client, and the key of the servers in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

FILE_BYTES: Final = 1 << 20
"""A larger file is no configuration file."""
CLAUDE_BYTES: Final = 64 << 20
"""For .claude.json, which holds histories beside the servers, and for a file that the user named."""


class UserFolders(Struct, frozen=True):
    """The folders of a user in which programs keep their settings."""

    home: str
    config: str
    """XDG_CONFIG_HOME, by default ~/.config."""
    support: str
    """~/Library/Application Support, where macOS keeps them."""
    is_mac: bool
    environ: Mapping[str, str]

    def named(self, variable: str, usual: str) -> str:
        """A folder that a variable may name. A relative path is ignored: it would lead into the project."""
        folder = self.environ.get(variable, "")
        return folder if os.path.isabs(folder) else usual

    def settings(self, *names: str) -> tuple[str, ...]:
        """The place of a desktop program: this system's first, then the other's."""
        folders = (self.support, self.config) if self.is_mac else (self.config, self.support)
        return tuple(os.path.join(folder, *names) for folder in folders)


class ConfigPlace(Struct, frozen=True, kw_only=True):
    """The files of one client. Of `user`, the first one is written; `project` is relative to the project's folder."""

    client: str
    key: str = "mcpServers"
    user: Callable[[UserFolders], tuple[str, ...]]
    project: str = ""
    expands: bool = True
    """Whether the client expands variables."""
    most: int = FILE_BYTES


def _claude(folders: UserFolders) -> tuple[str, ...]:
    return (os.path.join(folders.named("CLAUDE_CONFIG_DIR", folders.home), ".claude.json"),)


def _codex(folders: UserFolders) -> tuple[str, ...]:
    return (os.path.join(folders.named("CODEX_HOME", os.path.join(folders.home, ".codex")), "config.toml"),)


def _windsurf(folders: UserFolders) -> tuple[str, ...]:
    """The present file of Windsurf.

    Newer versions are reported to have it one folder higher; an existing file is the one that is read.
    """
    places = (os.path.join(folders.home, ".codeium", *more, "mcp_config.json") for more in (("windsurf",), ()))
    return tuple(sorted(places, key=lambda path: not os.path.exists(path)))


def _at_home(*names: str) -> Callable[[UserFolders], tuple[str, ...]]:
    return lambda folders: (os.path.join(folders.home, *names),)


PLACES: Final = (
    ConfigPlace(client="claude-code", user=_claude, project=".mcp.json", most=CLAUDE_BYTES),
    ConfigPlace(client="cursor", user=_at_home(".cursor", "mcp.json"), project=".cursor/mcp.json"),
    ConfigPlace(
        client="vscode",
        key="servers",
        user=lambda folders: folders.settings("Code", "User", "mcp.json"),
        project=".vscode/mcp.json",
    ),
    ConfigPlace(
        client="claude-desktop",
        user=lambda folders: folders.settings("Claude", "claude_desktop_config.json"),
        expands=False,
    ),
    ConfigPlace(client="codex", key="mcp_servers", user=_codex, project=".codex/config.toml", expands=False),
    ConfigPlace(client="gemini", user=_at_home(".gemini", "settings.json"), project=".gemini/settings.json"),
    ConfigPlace(client="windsurf", user=_windsurf),
    ConfigPlace(
        client="zed",
        key="context_servers",
        user=lambda folders: (os.path.join(folders.config, "zed", "settings.json"),),
        project=".zed/settings.json",
        expands=False,
    ),
    ConfigPlace(
        client="goose",
        key="extensions",
        user=lambda folders: (os.path.join(folders.config, "goose", "config.yaml"),),
        expands=False,
    ),
)
"""In the order in which a name is looked up."""


def user_folders(environ: Mapping[str, str], system: str) -> UserFolders | None:
    """The folders of the user; None if there is no home. `system` is `sys.platform`."""
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        return None
    config = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(config):
        config = os.path.join(home, ".config")
    support = os.path.join(home, "Library", "Application Support")
    return UserFolders(home, config, support, system == "darwin", environ)


def project_folder(folder: str) -> str:
    """The project's folder: the nearest upward with a `.git`, else this one."""
    place = folder
    while not os.path.exists(os.path.join(place, ".git")):
        parent = os.path.dirname(place)
        if parent == place:
            return folder
        place = parent
    return place
