"""Calling a function of the caller's, plain or async."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from longshore.client.threads import on_thread


async def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's result. A plain one may wait for a person, so it has a thread that the process does not await."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(*arguments)
    return await on_thread(function)(*arguments)
