"""Single flight: concurrent callers that need the same result await one task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar, final

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@final
class SingleFlight(Generic[K, T]):
    """Running tasks by key. A caller that is cancelled does not cancel the task for the others."""

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[T]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, key: K) -> bool:
        return key in self._tasks

    def running(self, key: K) -> asyncio.Task[T] | None:
        """The task of a key, unless it is done or belongs to another event loop, with which it ended."""
        task = self._tasks.get(key)
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            return None
        return task

    def start(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        """The running task of a key, started if there is none."""
        task = self.running(key)
        if task is None:
            task = self._tasks[key] = asyncio.get_running_loop().create_task(work())
            task.add_done_callback(lambda done: self._remove(key, done))
        return task

    async def run(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await the task of a key, started if there is none."""
        return await asyncio.shield(self.start(key, work))

    async def wait_all(self) -> None:
        """Return when no task is running."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    async def cancel_all(self) -> None:
        """Cancel the running tasks, and return when they are done."""
        for task in self._tasks.values():
            task.cancel()
        await self.wait_all()

    def _remove(self, key: K, task: asyncio.Task[T]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
        if not task.cancelled():
            task.exception()  # marks it as retrieved: every caller may have been cancelled
