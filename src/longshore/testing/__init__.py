"""For the tests of people who write servers and clients: a pytest plugin, and what it is made of.

`connect` talks to a server in memory, `assert_surface` compares what it offers with a file, `record` and `replay` keep
what a connection said and say it again, `check` holds a server to what was recorded. The fixtures are in `plugin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# Loaded when they are used: pytest imports this package for everybody who has Longshore installed.
_HOMES = {
    "Answers": "longshore.testing.answers",
    "acheck": "longshore.testing.checking",
    "assert_surface": "longshore.testing.snapshot",
    "check": "longshore.testing.checking",
    "connect": "longshore.testing.connecting",
    "load_server": "longshore.picking",
    "read_surface": "longshore.testing.surface",
    "record": "longshore.testing.recorder",
    "replay": "longshore.testing.replayer",
}

if TYPE_CHECKING:
    from longshore.picking import load_server as load_server
    from longshore.testing.answers import Answers as Answers
    from longshore.testing.checking import acheck as acheck
    from longshore.testing.checking import check as check
    from longshore.testing.connecting import connect as connect
    from longshore.testing.recorder import record as record
    from longshore.testing.replayer import replay as replay
    from longshore.testing.snapshot import assert_surface as assert_surface
    from longshore.testing.surface import read_surface as read_surface

__all__ = [*_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'longshore.testing' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
