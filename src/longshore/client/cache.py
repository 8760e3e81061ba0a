"""Answers that a modern server lets its clients keep for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, final

MOST = 256
"""Answers that are kept. The one that was unused for longest makes room."""

Key = tuple[str, str | None]


@final
class Cache:
    """By method and what it is about (a URI, a cursor). A result without `ttlMs`, or with a bad one, is not kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, tuple[float, dict[str, Any]]] = OrderedDict()

    def get(self, key: Key, now: float) -> dict[str, Any] | None:
        found = self._kept.get(key)
        if found is None:
            return None
        if found[0] <= now:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return found[1]

    def put(self, key: Key, result: Mapping[str, Any], now: float) -> None:
        ttl = result.get("ttlMs")
        if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or ttl <= 0:
            self._kept.pop(key, None)
            return
        self._kept[key] = now + ttl / 1000, dict(result)
        self._kept.move_to_end(key)
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)

    def drop(self, method: str, about: str | None = None) -> None:
        """Something has changed: all answers to a method, or the one about a URI, do not hold any more."""
        for key in [key for key in self._kept if key[0] == method and (about is None or key[1] == about)]:
            del self._kept[key]

    def clear(self) -> None:
        self._kept.clear()
