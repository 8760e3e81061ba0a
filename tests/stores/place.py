"""One kind of store for a test, with a clock to move and bounded waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import redis.asyncio
import uvloop

import longshore.stores.redis
from longshore.stores import Store, open_store
from longshore.stores.memory import MemoryStore
from longshore.stores.sqlite import SqliteStore

PATIENCE = 60.0
"""Seconds that anything may take here before the test fails. Never a promise of the product's."""


def run(body: Awaitable[Any], fast: bool = False) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(PATIENCE):
            return await body

    with asyncio.Runner(loop_factory=uvloop.new_event_loop if fast else None) as runner:
        return runner.run(bounded())


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


class Place:
    """Opens stores that see the same things."""

    shared = True

    def __init__(self, fast: bool = False) -> None:
        self._fast = fast
        self._opened: list[Store] = []

    def run(self, body: Callable[[Store], Awaitable[None]]) -> None:
        run(self._run(body), self._fast)

    async def _run(self, body: Callable[[Store], Awaitable[None]]) -> None:
        try:
            await body(self.open())
        finally:
            for store in self._opened:
                await store.close()
            self._opened.clear()

    def open(self) -> Store:
        store = self._open()
        self._opened.append(store)
        return store

    def _open(self) -> Store:
        raise NotImplementedError

    async def pass_time(self, seconds: float) -> None:
        raise NotImplementedError


class MemoryPlace(Place):
    shared = False

    def __init__(self, fast: bool = False) -> None:
        super().__init__(fast)
        self.now = 1000.0

    def _open(self) -> Store:
        return MemoryStore(clock=lambda: self.now)

    async def pass_time(self, seconds: float) -> None:
        self.now += seconds


class SqlitePlace(MemoryPlace):
    shared = True

    def __init__(self, folder: Path, fast: bool = False) -> None:
        super().__init__(fast)
        self.path = folder / "store.db"

    def _open(self) -> Store:
        return SqliteStore(str(self.path), clock=lambda: self.now)


class RedisPlace(Place):
    """Time is the server's, so instead of it passing, everything there is made older."""

    def __init__(self, url: str, fast: bool = False) -> None:
        super().__init__(fast)
        self.url = url

    def _open(self) -> Store:
        with patch.object(longshore.stores.redis, "SECONDS", PATIENCE):  # a busy machine may be late with any answer
            return open_store(self.url)

    async def pass_time(self, seconds: float) -> None:
        async with redis.asyncio.Redis.from_url(self.url) as client:
            for key in await client.keys("longshore:*"):
                if key.startswith(b"longshore:index:"):
                    for name, _ in await client.zrange(key, 0, -1, withscores=True):
                        await client.zincrby(key, -1_000_000 * seconds, name)
                left = await client.pttl(key) - int(1000 * seconds)
                await (client.pexpire(key, left) if left > 0 else client.delete(key))

    async def empty(self) -> None:
        async with redis.asyncio.Redis.from_url(self.url) as client:
            await client.flushall()

    async def names(self) -> set[bytes]:
        async with redis.asyncio.Redis.from_url(self.url) as client:
            return set(await client.keys("*"))
