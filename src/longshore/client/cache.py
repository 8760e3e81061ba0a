"""Answers that a modern server lets its clients keep for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, final

from msgspec import to_builtins

MOST = 256
"""Answers that are kept. The one that was unused for longest makes room."""
MOST_CHARS = 16 << 20
"""Of text in all of them. One that is longer by itself is not kept."""

MOST_SECONDS = 24 * 3600
"""A day, also where the server says longer: who never asks again never sees what it has forgotten to tell."""
Key = tuple[str, str | None]


@final
class Cache:
    """By method and what it is about (a URI, a cursor). A result without `ttlMs`, or with a bad one, is not kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, tuple[float, int, dict[str, Any]]] = OrderedDict()
        self._chars = 0
        self.changes = 0
        """How often something was dropped."""
        self._dropped: dict[str, int] = {}
        self._cleared = 0

    def get(self, key: Key, now: float) -> dict[str, Any] | None:
        found = self._kept.get(key)
        if found is None:
            return None
        if found[0] <= now:
            self._remove(key)
            return None
        self._kept.move_to_end(key)
        return _copy(found[2])  # who gets it may change it

    def put(self, key: Key, result: Mapping[str, Any], now: float, since: int | None = None) -> None:
        """Keep an answer. `since` is what `changes` was when it was asked for: a notice may have overtaken it."""
        self._remove(key)
        if since is not None and since != self.changes:
            return
        seconds = lifetime(result)
        if not seconds:
            return
        chars = weigh(result)
        if chars > MOST_CHARS:
            return
        self._kept[key] = now + seconds, chars, _copy(result)
        self._chars += chars
        while len(self._kept) > MOST or self._chars > MOST_CHARS:
            self._remove(next(iter(self._kept)))

    def _remove(self, key: Key) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._chars -= found[1]

    def drop(self, method: str, about: str | None = None) -> None:
        """Something has changed: all answers to a method, or those about a URI or what it is part of, do not hold."""
        self.changes += 1
        self._dropped[method] = self._dropped.get(method, 0) + 1
        for key in [key for key in self._kept if key[0] == method and (about is None or covers(key[1], about))]:
            self._remove(key)

    def changes_of(self, method: str) -> int:
        """How often answers to a method, kept or not, have ceased to hold."""
        return self._cleared + self._dropped.get(method, 0)

    def clear(self) -> None:
        """It may be another server now: nothing holds."""
        self.changes += 1
        self._cleared += 1
        self._kept.clear()
        self._chars = 0


def covers(whole: str | None, part: str) -> bool:
    """Whether a resource is another one, or a part of it: servers may tell of a part of what was asked for."""
    return whole is not None and (part == whole or part.startswith(whole.rstrip("/") + "/"))


def _copy(result: Mapping[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = to_builtins(result)
    return copied


def lifetime(result: Mapping[str, Any]) -> float:
    """For how many seconds an answer may be kept, by the server's word. 0.0: not at all, or it does not say."""
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
