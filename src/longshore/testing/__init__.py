"""Testing servers and clients: a pytest plugin, and its parts.

`assert_surface` compares what a server offers with a file, `record` and `replay` write and replay a connection, `check`
compares a server with a recording. The fixtures are in `plugin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# Loaded lazily: pytest imports this package in every project that has Longshore installed.
_HOMES = {
    "Answers": "longshore.testing.answers",
    "acheck": "longshore.testing.playback",
    "assert_surface": "longshore.testing.snapshot",
    "check": "longshore.testing.playback",
    "load_server": "longshore.loader",
    "read_surface": "longshore.testing.snapshot",
    "record": "longshore.testing.recording",
    "replay": "longshore.testing.playback",
}

if TYPE_CHECKING:
    from longshore.loader import load_server as load_server
    from longshore.testing.answers import Answers as Answers
    from longshore.testing.playback import acheck as acheck
    from longshore.testing.playback import check as check
    from longshore.testing.playback import replay as replay
    from longshore.testing.recording import record as record
    from longshore.testing.snapshot import assert_surface as assert_surface
    from longshore.testing.snapshot import read_surface as read_surface

__all__ = [*_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'longshore.testing' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
