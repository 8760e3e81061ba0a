"""Flights: what several wait for at once is done once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar, final

T = TypeVar("T")


@final
class Flights(Generic[T]):
    """Work in progress by a key. Who stops waiting does not stop it for the others."""

    def __init__(self) -> None:
        self._tasks: dict[bytes, asyncio.Task[T]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, key: bytes) -> bool:
        return key in self._tasks

    async def join(self, key: bytes, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the work under this key, which is begun if nobody has."""
        return await asyncio.shield(self.begin(key, work))

    def begin(self, key: bytes, work: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        """The work under this key, for whoever does not wait for it."""
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.get_running_loop().create_task(work())
            task.add_done_callback(lambda done: self._landed(key, done))
        return task

    async def landed(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def _landed(self, key: bytes, task: asyncio.Task[T]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            task.exception()  # looked at, though everyone who waited may have left
