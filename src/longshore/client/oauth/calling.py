"""Calling a function of the caller's, plain or async."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from threading import Thread
from typing import Any


async def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's result. A plain one may wait for a person, so it has a thread that the process does not await."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(*arguments)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, problem: Exception | None) -> None:
        if not done.done():
            done.set_exception(problem) if problem else done.set_result(value)

    def run() -> None:
        try:
            outcome: tuple[Any, Exception | None] = function(*arguments), None
        except Exception as problem:
            outcome = None, problem
        try:
            loop.call_soon_threadsafe(settle, *outcome)
        except RuntimeError:
            pass  # the loop is closed: nobody waits

    Thread(target=run, name="longshore-call", daemon=True).start()
    found = await done
    return await found if inspect.isawaitable(found) else found
