"""A user's plain functions on threads of their own, where they may wait as long as they like."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from typing import Any


def on_thread(function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The same as an async function. Whoever stops waiting does not stop it: its end is of no interest then."""

    async def run(*arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Any] = loop.create_future()

        def work() -> None:
            try:
                settle = outcome.set_result, function(*arguments)
            except BaseException as problem:
                settle = outcome.set_exception, _fit(problem)
            try:
                loop.call_soon_threadsafe(_settle, outcome, *settle)
            except RuntimeError:
                pass  # the loop has ended

        threading.Thread(target=work, name="longshore-handler", daemon=True).start()
        found = await outcome
        return await found if inspect.isawaitable(found) else found

    return run


def _fit(problem: BaseException) -> Exception:
    """As a future can hold it: what would end the thread's program ends only the work."""
    return problem if isinstance(problem, Exception) and not isinstance(problem, StopIteration) else _Ended(problem)


class _Ended(RuntimeError):
    """Stands for what a function raised, and reads like it."""

    def __init__(self, problem: BaseException) -> None:
        super().__init__(repr(problem))
        self.__cause__ = problem

    def __repr__(self) -> str:
        return repr(self.__cause__)


def name_of(problem: BaseException) -> str:
    """What was raised, in one word."""
    return type(problem.__cause__ if isinstance(problem, _Ended) else problem).__name__


def _settle(outcome: asyncio.Future[Any], set: Callable[[Any], None], value: Any) -> None:
    if not outcome.done():
        set(value)
