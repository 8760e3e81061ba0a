"""The store of one process: dicts. Bounded by its callers, freed as it is used; no locks and no timers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import final

from msgspec import Struct, field

from longshore.stores.listeners import Listeners
from longshore.stores.names import family_of, family_of_prefix
from longshore.stores.shelf import Shelf
from longshore.stores.store import Hear, Stop

SWEEP_SECONDS = 1.0
"""Any use of the store, this long after the last sweep, frees all that has expired."""


class _Log(Struct):
    last: int = 0
    kept: deque[bytes] = field(default_factory=lambda: deque[bytes]())


@final
class MemoryStore:
    """One shelf for each family, so that a family's size is known at once, and one for all logs."""

    shared: bool = False

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shelves: dict[str, Shelf[bytes]] = {}
        self._logs: Shelf[_Log] = Shelf()
        self._listeners = Listeners()
        self._sweep_at = 0.0

    async def get(self, key: str) -> bytes | None:
        now = self._now()
        shelf = self._shelves.get(family_of(key))
        return None if shelf is None else shelf.get(key, now)

    async def set(self, key: str, value: bytes, seconds: float) -> None:
        now = self._now()
        self._shelf(key).put(key, value, now + seconds, now)

    async def add(self, key: str, value: bytes, seconds: float) -> bool:
        now = self._now()
        shelf = self._shelf(key)
        if shelf.get(key, now) is not None:
            return False
        shelf.put(key, value, now + seconds, now)
        return True

    async def swap(self, key: str, old: bytes, new: bytes, seconds: float) -> bool:
        now = self._now()
        shelf = self._shelf(key)
        if shelf.get(key, now) != old:
            return False
        shelf.put(key, new, now + seconds, now)
        return True

    async def touch(self, key: str, seconds: float) -> bool:
        now = self._now()
        shelf = self._shelves.get(family_of(key))
        return shelf is not None and shelf.touch(key, now + seconds, now)

    async def delete(self, *keys: str) -> None:
        self._now()
        for key in keys:
            self._logs.drop(key)
            shelf = self._shelves.get(family_of(key))
            if shelf is not None:
                shelf.drop(key)

    async def find(self, prefix: str) -> dict[str, bytes]:
        now = self._now()
        shelf = self._shelves.get(family_of_prefix(prefix))
        return {} if shelf is None else shelf.items(prefix, now)

    async def count(self, family: str) -> int:
        self._now()
        shelf = self._shelves.get(family_of_prefix(family))
        return 0 if shelf is None else len(shelf)

    async def append(self, key: str, value: bytes, seconds: float, most: int) -> int:
        now = self._now()
        log = self._logs.get(key, now)
        if log is None:
            log = _Log()
            self._logs.put(key, log, now + seconds, now)
        else:
            self._logs.touch(key, now + seconds, now)
        log.kept.append(value)
        log.last += 1
        while len(log.kept) > max(most, 1):
            log.kept.popleft()
        return log.last

    async def read(self, key: str, after: int, most: int = 100) -> list[tuple[int, bytes]]:
        log = self._logs.get(key, self._now())
        if log is None:
            return []
        first = log.last - len(log.kept) + 1
        skipped = min(max(0, after + 1 - first), len(log.kept))
        return list(enumerate(islice(log.kept, skipped, skipped + max(most, 0)), first + skipped))

    async def post(self, topic: str, message: bytes) -> None:
        # Not at once: who posts may hold things that a listener changes.
        asyncio.get_running_loop().call_soon(self._listeners.hand_out, ((topic, message),))

    async def listen(self, topic: str, hear: Hear) -> Stop:
        await asyncio.sleep(0)  # what was posted before goes out first
        return self._listeners.add(topic, hear)

    async def check(self) -> None:
        self._now()

    async def close(self) -> None:
        self._shelves.clear()
        self._logs = Shelf()
        self._listeners.clear()

    def _shelf(self, key: str) -> Shelf[bytes]:
        family = family_of(key)
        shelf = self._shelves.get(family)
        if shelf is None:
            shelf = self._shelves[family] = Shelf()
        return shelf

    def _now(self) -> float:
        now = self._clock()
        if now >= self._sweep_at:
            self._sweep(now)
        return now

    def _sweep(self, now: float) -> None:
        self._sweep_at = now + SWEEP_SECONDS
        self._logs.sweep(now)
        for family, shelf in list(self._shelves.items()):
            shelf.sweep(now)
            if not shelf:
                del self._shelves[family]
