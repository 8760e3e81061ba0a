"""Requests that wait for their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import Any, final

from msgspec import Raw, Struct

from longshore.errors import ClientError
from longshore.wire.messages import Id

Progress = Callable[[float, float | None, str | None], Any]

CAP = 10
"""Progress begins a request's time anew, up to so many times its time in all."""


@final
class Pending:
    """A request that waits for its answer."""

    __slots__ = ("deadline", "done", "due", "method", "progress", "timeout")

    def __init__(self, method: str, done: asyncio.Future[Raw], progress: Progress | None) -> None:
        self.method = method
        self.done = done
        self.progress = progress
        self.timeout = 0.0
        self.due = inf
        """When its time is up. Progress puts that off, but not past the deadline."""
        self.deadline = inf


class Sent(Struct):
    """One request as it was sent: its id, and the answer to come."""

    id: Id
    answer: asyncio.Future[Raw]


def raise_in(done: asyncio.Future[Raw], problem: ClientError) -> None:
    """Have whoever waits get an exception. Where nobody does any more, asyncio has no complaint."""
    if not done.done():
        done.set_exception(problem)
        done.exception()
