"""The store of one process: dicts, swept as they are used; no locks and no timers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import final

from msgspec import Struct, field

from longshore.stores.backend import Listeners, family_of, family_of_prefix
from longshore.stores.store import OnMessage, Stop

SWEEP_SECONDS = 1.0
"""Between two sweeps, for each started SWEPT entries: so a sweep's share of the time is bounded."""

SWEPT = 10_000


class _Value(Struct, gc=False):
    data: bytes
    expires: float


class _Log(Struct):
    expires: float
    last: int = 0
    entries: deque[bytes] = field(default_factory=lambda: deque[bytes]())


@final
class MemoryStore:
    """One dict for each family, so that a family's size is known at once, and one for all logs."""

    shared: bool = False

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._families: dict[str, dict[str, _Value]] = {}
        self._logs: dict[str, _Log] = {}
        self._listeners = Listeners()
        self._sweep_at = 0.0

    async def get(self, key: str) -> bytes | None:
        found = self._find(key, self._now())
        return None if found is None else found.data

    async def set(self, key: str, value: bytes, seconds: float) -> None:
        self._families.setdefault(family_of(key), {})[key] = _Value(value, self._now() + seconds)

    async def add(self, key: str, value: bytes, seconds: float) -> bool:
        if self._find(key, self._now()) is not None:
            return False
        await self.set(key, value, seconds)
        return True

    async def swap(self, key: str, old: bytes, new: bytes, seconds: float) -> bool:
        found = self._find(key, self._now())
        if found is None or found.data != old:
            return False
        await self.set(key, new, seconds)
        return True

    async def touch(self, key: str, seconds: float) -> bool:
        now = self._now()
        found = self._find(key, now)
        if found is None:
            return False
        found.expires = now + seconds
        return True

    async def delete(self, *keys: str) -> None:
        self._now()
        for key in keys:
            self._logs.pop(key, None)
            self._families.get(family_of(key), {}).pop(key, None)

    async def find(self, prefix: str) -> dict[str, bytes]:
        now = self._now()
        family = self._families.get(family_of_prefix(prefix), {})
        found = [item for item in family.items() if item[1].expires > now and item[0].startswith(prefix)]
        found.sort(key=lambda item: item[1].expires)
        return {key: value.data for key, value in found}

    async def count(self, family: str) -> int:
        self._now()
        return len(self._families.get(family_of_prefix(family), {}))

    async def append(self, key: str, value: bytes, seconds: float, most: int) -> int:
        now = self._now()
        log = self._find_log(key, now)
        if log is None:
            log = self._logs[key] = _Log(now + seconds)
        log.expires = now + seconds
        log.entries.append(value)
        log.last += 1
        while len(log.entries) > max(most, 1):
            log.entries.popleft()
        return log.last

    async def read(self, key: str, after: int, most: int = 100) -> list[tuple[int, bytes]]:
        log = self._find_log(key, self._now())
        if log is None:
            return []
        first = log.last - len(log.entries) + 1
        skipped = min(max(0, after + 1 - first), len(log.entries))
        return list(enumerate(islice(log.entries, skipped, skipped + max(most, 0)), first + skipped))

    async def post(self, topic: str, message: bytes) -> None:
        # Not at once: the caller may be in the middle of a change that a listener would see half done.
        asyncio.get_running_loop().call_soon(self._listeners.deliver, ((topic, message),))

    async def listen(self, topic: str, on_message: OnMessage) -> Stop:
        await asyncio.sleep(0)  # earlier messages go out first
        return self._listeners.add(topic, on_message)

    async def check(self) -> None:
        self._now()

    async def close(self) -> None:
        self._families.clear()
        self._logs.clear()
        self._listeners.clear()

    def _find(self, key: str, now: float) -> _Value | None:
        family = self._families.get(family_of(key))
        found = None if family is None else family.get(key)
        return found if found is not None and found.expires > now else None

    def _find_log(self, key: str, now: float) -> _Log | None:
        log = self._logs.get(key)
        return log if log is not None and log.expires > now else None

    def _now(self) -> float:
        now = self._clock()
        if now >= self._sweep_at:
            self._sweep(now)
        return now

    def _sweep(self, now: float) -> None:
        """Delete expired values and logs. New dicts free the memory of old ones that had many entries."""
        families = self._families.items()
        alive = {name: {key: value for key, value in each.items() if value.expires > now} for name, each in families}
        self._families = {name: each for name, each in alive.items() if each}
        self._logs = {key: log for key, log in self._logs.items() if log.expires > now}
        size = len(self._logs) + sum(map(len, self._families.values()))
        self._sweep_at = now + SWEEP_SECONDS * (1 + size // SWEPT)
