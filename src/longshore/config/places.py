"""Where the files are. Runs at every cold start: `os` only, two questions to the kernel for each folder."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from longshore.errors import ConfigError
from longshore.files import user_directory

FILE = "longshore.toml"
PATH_VARIABLE = "LONGSHORE_CONFIG"


class Places(Struct, frozen=True):
    """The files to read (None: there is none) and the paths to watch."""

    cwd: str
    user: str | None
    project: str | None
    watch: tuple[str, ...]


def find(environ: Mapping[str, str], cwd: str | None, path: str | None) -> Places:
    """Find both files. `path`, else `LONGSHORE_CONFIG`, stands in for the project file and must exist."""
    start = _folder(cwd)
    user = _user_file(environ)
    chosen = path or environ.get(PATH_VARIABLE)
    if chosen:
        candidates = [os.path.join(start, os.path.expanduser(chosen))]
        project: str | None = candidates[0]
        if not os.access(candidates[0], os.F_OK):
            raise ConfigError(f"{'--config' if path else PATH_VARIABLE}: no such file: {chosen}")
    else:
        candidates, project = _search(start) if start else ([], None)
    watch = (user, *candidates) if user and user not in candidates else tuple(candidates)
    # Started in ~/.config/longshore, the user's file is also the nearest one; it counts once.
    found = user if user and user != project and os.access(user, os.F_OK) else None
    return Places(start, found, project, watch)


def _folder(cwd: str | None) -> str:
    """The folder to start in; empty if it was deleted under us."""
    try:
        return os.path.abspath(cwd) if cwd else os.getcwd()
    except FileNotFoundError:
        return ""


def _user_file(environ: Mapping[str, str]) -> str | None:
    """The user's file; None without a HOME."""
    folder = user_directory("config", environ)
    return os.path.join(folder, FILE) if folder else None


def _search(folder: str) -> tuple[list[str], str | None]:
    """Look in each folder upward until a file, a `.git` or the root. All candidates are watched: a nearer file wins."""
    candidates: list[str] = []
    while True:
        candidates.append(os.path.join(folder, FILE))
        if os.access(candidates[-1], os.F_OK):
            if len(candidates) > 1:
                _refuse_strangers(candidates[-1])
            return candidates, candidates[-1]
        parent = os.path.dirname(folder)
        if parent == folder or os.access(os.path.join(folder, ".git"), os.F_OK):
            return candidates, None
        folder = parent


def _refuse_strangers(path: str) -> None:
    """Above the folder that the user chose, others may write: whoever puts a file into /tmp must not configure us."""
    try:
        owners = {os.lstat(path).st_uid, os.stat(path).st_uid}  # of a link, and of what it leads to
    except OSError:
        return  # it went away; reading it says so
    strangers = owners - {os.geteuid(), 0}
    if strangers:
        fix = "--config PATH takes it if you trust it, or another file, or /dev/null for none"
        raise ConfigError(f"{path}: it belongs to another user (uid {min(strangers)}), so it is not read; {fix}")
