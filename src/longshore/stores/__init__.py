"""Where sessions, streams and messages between processes live: in memory, in a SQLite file or in Redis."""

from __future__ import annotations

import os
from urllib.parse import unquote

from longshore.errors import ConfigError
from longshore.stores.store import MISSED, Store

__all__ = ["MISSED", "Store", "open_store"]

SCHEMES = ("memory", "sqlite", "redis", "rediss")
FORMS = "memory://, sqlite:///path or redis://host (rediss:// with TLS)"


def open_store(url: str) -> Store:
    """The store that a URL names. Connects when it is first used. Raises ConfigError for a URL that can't be right."""
    scheme, colon, rest = url.partition(":")
    match scheme.lower():
        case "memory" if colon and not rest.strip("/"):
            from longshore.stores.memory import MemoryStore

            return MemoryStore()
        case "sqlite" if colon:
            from longshore.stores.sqlite import SqliteStore

            return SqliteStore(_path(rest))
        case "redis" | "rediss" if rest.startswith("//"):
            return _open_redis(url)
        case known if known in SCHEMES:
            raise ConfigError(f"store: the URL begins with {known!r} but has not its form; write {FORMS}")
        case unknown:
            from longshore.nearest import nearest

            near = nearest(unknown, SCHEMES)
            hint = f"; did you mean {near}://?" if near else ""
            # Short, and printable: what stands before the first colon may be anything, but no password.
            shown = repr(unknown if len(unknown) <= 20 else unknown[:19] + "…")
            raise ConfigError(f"store: no store is called {shown}; write {FORMS}{hint}")


def _path(rest: str) -> str:
    """`///relative` or `////absolute`, as SQLAlchemy and others write it."""
    path = unquote(rest.removeprefix("///"))
    if not rest.startswith("///") or not path or path.endswith("/") or "\0" in path or "?" in rest:
        raise ConfigError("store: a SQLite URL names a file: sqlite:///relative/path or sqlite:////absolute/path")
    if path == ":memory:":
        raise ConfigError("store: an SQLite in memory is not shared; write memory://")
    return os.path.abspath(os.path.expanduser(path))


def _open_redis(url: str) -> Store:
    try:
        from longshore.stores.redis import RedisStore
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "redis":
            raise
        raise ConfigError("store: Redis needs the redis package:  pip install 'longshore[redis]'") from None
    return RedisStore(url)
