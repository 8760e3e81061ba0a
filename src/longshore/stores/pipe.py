"""One connection to Redis, on which whatever waits is sent together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, final

from msgspec import Struct

from longshore.errors import StoreError
from longshore.stores.faults import Faults

GROUP = 256
"""Commands sent together."""

GROUP_BYTES = 1 << 20
"""Their size, unless a single one is larger: a group must be through within the timeout."""


class _Command(Struct, eq=False):
    args: tuple[Any, ...]
    size: int
    reply: asyncio.Future[Any]


@final
class Pipe:
    """Commands leave in the order they were asked. While some are under way, the next gather.

    When the server does not answer, all that wait are told at once instead of finding out one after the other.
    """

    def __init__(
        self, send: Callable[[list[tuple[Any, ...]]], Awaitable[list[Any]]], faults: Faults, seconds: float
    ) -> None:
        self._send, self._faults, self._seconds = send, faults, seconds
        self._waiting: deque[_Command] = deque()
        self._flow: asyncio.Task[None] | None = None
        self._closed = False

    async def ask(self, *args: Any) -> Any:
        if self._closed:
            raise self._faults.closed()
        loop = asyncio.get_running_loop()
        size = sum(len(part) for part in args if isinstance(part, bytes))
        command = _Command(args, size, loop.create_future())
        self._waiting.append(command)
        if self._flow is None:
            self._flow = loop.create_task(self._run())
        return await command.reply

    async def close(self) -> None:
        self._closed = True
        if self._flow is not None:
            await asyncio.wait([self._flow])

    async def _run(self) -> None:
        taken: list[_Command] = []
        try:
            while self._waiting:
                taken = self._take()
                await self._exchange(taken)
        finally:
            self._flow = None
            self._fail([*taken, *self._waiting], self._faults.closed)  # only if the loop is being shut down
            self._waiting.clear()

    def _take(self) -> list[_Command]:
        taken = [self._waiting.popleft()]
        room = GROUP_BYTES - taken[0].size
        while self._waiting and len(taken) < GROUP and self._waiting[0].size <= room:
            taken.append(self._waiting.popleft())
            room -= taken[-1].size
        return taken

    async def _exchange(self, commands: list[_Command]) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                replies = await self._send([command.args for command in commands])
        except Exception as error:
            self._fail([*commands, *self._waiting], partial(self._faults.explain, error))
            self._waiting.clear()
            return
        for command, reply in zip(commands, replies, strict=True):
            if isinstance(reply, Exception):
                self._fail([command], partial(self._faults.explain, reply))
            elif not command.reply.done():
                command.reply.set_result(reply)

    def _fail(self, commands: list[_Command], explain: Callable[[], StoreError]) -> None:
        for command in commands:
            if not command.reply.done():
                command.reply.set_exception(explain())
