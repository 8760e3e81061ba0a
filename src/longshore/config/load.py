"""Reading the configuration: find the files, and merge all sources if anything is configured.

Runs at every cold start: `os` only, two questions to the kernel for each folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from longshore.config.sections import PATH_VARIABLE, PREFIX, Config
from longshore.errors import ConfigError
from longshore.files import user_directory

FILE = "longshore.toml"


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: str | None = None,
    path: str | None = None,
) -> Config:
    """Read the configuration: flag > environment > project file > user file > default.

    - `flags` maps dotted keys (`server.timeout`) to texts or values; None means not given.
    - `path` replaces the project file and must exist.
    - Raises ConfigError with a line for each problem, all found at once.
    """
    environ = os.environ if environ is None else environ
    given = {key: value for key, value in flags.items() if value is not None} if flags else {}
    here = _folder(cwd)
    user, project, watch = _find_files(environ, here, path)
    # An empty variable counts as unset, as XDG has it: launchers pass on empty ones.
    names = [name for name in environ if name.startswith(PREFIX) and name != PATH_VARIABLE]
    variables = {name: environ[name] for name in names if environ[name]}
    if not (given or variables or user or project):
        return Config(watch=watch)
    from longshore.config.sources import combine

    return combine(here, user, project, variables, given, watch)


def fingerprint(config: Config) -> tuple[tuple[int, int, int] | None, ...]:
    """The state of the watched paths; load again when it differs. Takes a few µs."""
    return tuple(_state(path) for path in config.watch)


def _state(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _folder(cwd: str | None) -> str:
    """The folder to start in; empty if it was deleted."""
    try:
        return os.path.abspath(cwd) if cwd else os.getcwd()
    except FileNotFoundError:
        return ""


def _find_files(
    environ: Mapping[str, str], here: str, path: str | None
) -> tuple[str | None, str | None, tuple[str, ...]]:
    """The user's file and the project's (None: there is none), and the paths to watch. Raises ConfigError."""
    folder = user_directory("config", environ)
    user = os.path.join(folder, FILE) if folder else None
    chosen = path or environ.get(PATH_VARIABLE)
    if chosen:
        candidates = [os.path.join(here, os.path.expanduser(chosen))]
        project: str | None = candidates[0]
        if not os.access(candidates[0], os.F_OK):
            raise ConfigError(f"{'--config' if path else PATH_VARIABLE}: no such file: {chosen}")
    else:
        candidates, project = _search(here) if here else ([], None)
    watch = (user, *candidates) if user and user not in candidates else tuple(candidates)
    # Started in ~/.config/longshore, the user's file is also the nearest one; it counts once.
    return (user if user and user != project and os.access(user, os.F_OK) else None), project, watch


def _search(folder: str) -> tuple[list[str], str | None]:
    """Look in each folder upward until a file, a `.git` or the root. All candidates are watched: a nearer file wins."""
    candidates: list[str] = []
    while True:
        candidates.append(os.path.join(folder, FILE))
        if os.access(candidates[-1], os.F_OK):
            if len(candidates) > 1:
                _check_owner(candidates[-1])
            return candidates, candidates[-1]
        parent = os.path.dirname(folder)
        if parent == folder or os.access(os.path.join(folder, ".git"), os.F_OK):
            return candidates, None
        folder = parent


def _check_owner(path: str) -> None:
    """Refuse a file of another user above the folder that this one chose: anyone can put one into /tmp."""
    try:
        owners = {os.lstat(path).st_uid, os.stat(path).st_uid}  # of a link, and of its target
    except OSError:
        return  # it was deleted meanwhile; reading it says so
    others = owners - {os.geteuid(), 0}
    if others:
        fix = "--config PATH takes it if you trust it, or another file, or /dev/null for none"
        raise ConfigError(f"{path}: it belongs to another user (uid {min(others)}), so it is not read; {fix}")
