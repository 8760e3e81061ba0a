"""The cache of answers that a modern server allows to be cached."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, final

from msgspec import to_builtins

MOST = 256
"""Cached answers. The least recently used one makes room."""
MOST_CHARS = 16 << 20
"""Characters in all of them. An answer that is longer by itself is not cached."""

MOST_SECONDS = 24 * 3600
"""A day, also where the server says longer: it may have forgotten to report a change."""
Key = tuple[str, str | None]


@final
class Cache:
    """Answers by method and subject (a URI, a cursor). A result without a valid `ttlMs` is not cached."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Key, tuple[float, int, dict[str, Any]]] = OrderedDict()
        self._chars = 0
        self.changes = 0
        """How often something was dropped."""
        self._dropped: dict[str, int] = {}
        self._cleared = 0

    def get(self, key: Key, now: float) -> dict[str, Any] | None:
        found = self._entries.get(key)
        if found is None:
            return None
        if found[0] <= now:
            self._remove(key)
            return None
        self._entries.move_to_end(key)
        return _copy(found[2])  # the caller may change it

    def put(self, key: Key, result: Mapping[str, Any], now: float, since: int | None = None) -> None:
        """Cache an answer. `since` is `changes` at the time of the request: a notification may have overtaken it."""
        self._remove(key)
        if since is not None and since != self.changes:
            return
        seconds = lifetime(result)
        if not seconds:
            return
        chars = weigh(result)
        if chars > MOST_CHARS:
            return
        self._entries[key] = now + seconds, chars, _copy(result)
        self._chars += chars
        while len(self._entries) > MOST or self._chars > MOST_CHARS:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: Key) -> None:
        found = self._entries.pop(key, None)
        if found is not None:
            self._chars -= found[1]

    def drop(self, method: str, about: str | None = None) -> None:
        """Drop all answers to a method, or those about a URI or what it is part of: they have changed."""
        self.changes += 1
        self._dropped[method] = self._dropped.get(method, 0) + 1
        for key in [key for key in self._entries if key[0] == method and (about is None or covers(key[1], about))]:
            self._remove(key)

    def changes_of(self, method: str) -> int:
        """How often answers to a method, cached or not, were dropped."""
        return self._cleared + self._dropped.get(method, 0)

    def clear(self) -> None:
        """Drop everything: it may be another server now."""
        self.changes += 1
        self._cleared += 1
        self._entries.clear()
        self._chars = 0


def covers(whole: str | None, part: str) -> bool:
    """Whether a resource is `whole` or a part of it: servers may report changes of parts."""
    return whole is not None and (part == whole or part.startswith(whole.rstrip("/") + "/"))


def _copy(result: Mapping[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = to_builtins(result)
    return copied


def lifetime(result: Mapping[str, Any]) -> float:
    """Seconds for which the server allows an answer to be cached. 0.0: not at all."""
    ttl = result.get("ttlMs")
    if not isinstance(ttl, (int, float)) or isinstance(ttl, bool) or ttl <= 0:
        return 0.0
    return min(ttl, 1000 * MOST_SECONDS) / 1000


def weigh(value: Any) -> int:
    """About how many characters a result holds."""
    chars = 0
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, str):
            chars += len(each)
        elif isinstance(each, dict):
            chars += 8 * len(each)  # pyright: ignore[reportUnknownArgumentType]
            rest.extend(each.values())  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(each, list):
            chars += 8 * len(each)  # pyright: ignore[reportUnknownArgumentType]
            rest.extend(each)  # pyright: ignore[reportUnknownArgumentType]
    return chars
