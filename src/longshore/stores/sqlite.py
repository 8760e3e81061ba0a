"""The store of one host: a SQLite file that any number of processes use at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import final

from longshore.stores.committer import Committer
from longshore.stores.listeners import Listeners
from longshore.stores.mailbox import Mailbox
from longshore.stores.names import family_of_prefix
from longshore.stores.store import Hear, Stop
from longshore.stores.tables import Tables

PATIENCE_SECONDS = 5.0
"""How long an operation waits while another process holds the file locked. A group commit takes milliseconds."""

BUS_SUFFIX = ".bus"
"""The folder of nudges beside the file."""

READS, WRITES = False, True


@final
class SqliteStore:
    """The face; `Tables` says what each operation does, `Committer` when. Opened by the first operation."""

    shared: bool = True

    def __init__(
        self, path: str, *, patience: float = PATIENCE_SECONDS, clock: Callable[[], float] = time.time
    ) -> None:
        self._listeners = Listeners()
        self._mailbox = Mailbox(path + BUS_SUFFIX, self._listeners)
        self._committer = Committer(path, self._mailbox, patience=patience, clock=clock)
        self._ask = self._committer.ask

    async def get(self, key: str) -> bytes | None:
        return await self._ask(READS, Tables.get, key)

    async def set(self, key: str, value: bytes, seconds: float) -> None:
        await self._ask(WRITES, Tables.set, key, value, seconds)

    async def add(self, key: str, value: bytes, seconds: float) -> bool:
        return await self._ask(WRITES, Tables.add, key, value, seconds)

    async def swap(self, key: str, old: bytes, new: bytes, seconds: float) -> bool:
        return await self._ask(WRITES, Tables.swap, key, old, new, seconds)

    async def touch(self, key: str, seconds: float) -> bool:
        return await self._ask(WRITES, Tables.touch, key, seconds)

    async def delete(self, *keys: str) -> None:
        await self._ask(WRITES, Tables.delete, *keys)

    async def find(self, prefix: str) -> dict[str, bytes]:
        family_of_prefix(prefix)
        return await self._ask(READS, Tables.find, prefix)

    async def count(self, family: str) -> int:
        family_of_prefix(family)
        return await self._ask(READS, Tables.count, family)

    async def append(self, key: str, value: bytes, seconds: float, most: int) -> int:
        return await self._ask(WRITES, Tables.append, key, value, seconds, most)

    async def read(self, key: str, after: int, most: int = 100) -> list[tuple[int, bytes]]:
        return await self._ask(READS, Tables.read, key, after, most)

    async def post(self, topic: str, message: bytes) -> None:
        await self._ask(WRITES, Tables.post, topic, message)

    async def listen(self, topic: str, hear: Hear) -> Stop:
        newest = await self._ask(READS, Tables.newest)
        stop = self._listeners.add(topic, hear)
        self._mailbox.start(newest)
        self._committer.ring()
        return stop

    async def check(self) -> None:
        await self._ask(WRITES, Tables.check)

    async def close(self) -> None:
        await self._committer.close()
        self._listeners.clear()
