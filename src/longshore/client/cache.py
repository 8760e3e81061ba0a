"""Answers that a modern server lets its clients keep for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, final

MOST = 256
"""Answers that are kept. The one that was unused for longest makes room."""
MOST_CHARS = 16 << 20
"""Of text in all of them. One that is longer by itself is not kept."""

Key = tuple[str, str | None]


@final
class Cache:
    """By method and what it is about (a URI, a cursor). A result without `ttlMs`, or with a bad one, is not kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, tuple[float, int, dict[str, Any]]] = OrderedDict()
        self._chars = 0

    def get(self, key: Key, now: float) -> dict[str, Any] | None:
        found = self._kept.get(key)
        if found is None:
            return None
        if found[0] <= now:
            self._remove(key)
            return None
        self._kept.move_to_end(key)
        return found[2]

    def put(self, key: Key, result: Mapping[str, Any], now: float) -> None:
        self._remove(key)
        ttl = result.get("ttlMs")
        if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or ttl <= 0:
            return
        chars = weigh(result)
        if chars > MOST_CHARS:
            return
        self._kept[key] = now + ttl / 1000, chars, dict(result)
        self._chars += chars
        while len(self._kept) > MOST or self._chars > MOST_CHARS:
            self._remove(next(iter(self._kept)))

    def _remove(self, key: Key) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._chars -= found[1]

    def drop(self, method: str, about: str | None = None) -> None:
        """Something has changed: all answers to a method, or the one about a URI, do not hold any more."""
        for key in [key for key in self._kept if key[0] == method and (about is None or key[1] == about)]:
            self._remove(key)

    def clear(self) -> None:
        self._kept.clear()
        self._chars = 0


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
