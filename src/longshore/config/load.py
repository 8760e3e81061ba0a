"""load: files, environment and flags → one Config. The cold start ends here when nobody configured anything."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from longshore.config.names import PREFIX
from longshore.config.places import PATH_VARIABLE, find
from longshore.config.record import Config


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: str | None = None,
    path: str | None = None,
) -> Config:
    """Read the configuration: flag > environment > project file > user file > default.

    - `flags` maps dotted keys (`server.timeout`) to texts or values; None means not given.
    - `path` stands in for the project file and must exist.
    - Raises ConfigError with a line for each problem, all found at once.
    """
    environ = os.environ if environ is None else environ
    given = {key: value for key, value in flags.items() if value is not None} if flags else {}
    places = find(environ, cwd, path)
    # An empty variable counts as unset, as XDG has it: launchers pass on empty ones.
    names = [name for name in environ if name.startswith(PREFIX) and name != PATH_VARIABLE]
    variables = {name: environ[name] for name in names if environ[name]}
    if not (given or variables or places.user or places.project):
        return Config(watch=places.watch)
    from longshore.config.layers import combine

    return combine(places, variables, given)


def fingerprint(config: Config) -> tuple[tuple[int, int, int] | None, ...]:
    """The state of the watched paths; load again when it differs. A few µs, so that a server may ask for each list."""
    return tuple(_state(path) for path in config.watch)


def _state(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
