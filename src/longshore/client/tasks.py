"""Background tasks with an end that can be awaited, and a user's blocking functions on threads."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, final


@final
class Tasks:
    """A set of running tasks. A task leaves it when it is done."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait(self, seconds: float) -> None:
        """Wait until all are done, at most for so long."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)

    async def end(self) -> None:
        await end(self._tasks)


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, except the current one, and wait until they are done."""
    others = [task for task in tasks if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def on_thread(function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The async form of a blocking function. Each call runs on a thread of its own, which a cancelled caller leaves."""

    async def run(*arguments: Any) -> Any:
        outcome: Future[Any] = Future()
        outcome.set_running_or_notify_cancel()

        def work() -> None:
            try:
                outcome.set_result(function(*arguments))
            except BaseException as problem:
                held = isinstance(problem, Exception) and not isinstance(problem, StopIteration)
                outcome.set_exception(problem if held else _Ended(problem))

        threading.Thread(target=work, name="longshore-handler", daemon=True).start()
        found = await asyncio.wrap_future(outcome)
        return await found if inspect.isawaitable(found) else found

    return run


class _Ended(RuntimeError):
    """Replaces an exception that a future can't hold, and prints like it: SystemExit ends only the thread's work."""

    def __init__(self, problem: BaseException) -> None:
        super().__init__(repr(problem))
        self.__cause__ = problem

    def __repr__(self) -> str:
        return repr(self.__cause__)


def name_of(problem: BaseException) -> str:
    """The class name of a raised object."""
    return type(problem.__cause__ if isinstance(problem, _Ended) else problem).__name__
