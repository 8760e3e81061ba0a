"""The common part of the SQLite and Redis backends: listeners by topic, operations in groups, the encoding of keys."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, final

from msgspec import Struct

from longshore.errors import StoreError
from longshore.stores.store import MISSED, OnMessage, Stop


@final
class Listeners:
    """The listeners of each topic in this process. Used on the event loop only."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[object, OnMessage]] = {}

    def add(self, topic: str, on_message: OnMessage) -> Stop:
        ticket = object()  # the same callable may listen twice
        self._topics.setdefault(topic, {})[ticket] = on_message

        def stop() -> None:
            tickets = self._topics.get(topic, {})
            tickets.pop(ticket, None)
            if not tickets:
                self._topics.pop(topic, None)

        return stop

    def topics(self) -> list[str]:
        return list(self._topics)

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    def deliver(self, messages: Iterable[tuple[str, bytes]]) -> None:
        """Call the listeners of each message's topic. An exception of a listener is reported to the loop."""
        for topic, message in messages:
            tickets = self._topics.get(topic, {})
            for ticket in tuple(tickets):
                on_message = tickets.get(ticket)  # an earlier one may have stopped it
                if on_message is None:
                    continue
                try:
                    on_message(message)
                except Exception as error:
                    context = {"message": f"a listener of {topic!r} failed", "exception": error}
                    asyncio.get_running_loop().call_exception_handler(context)

    def report_missed(self) -> None:
        """Send MISSED to every listener."""
        self.deliver([(topic, MISSED) for topic in self.topics()])

    def clear(self) -> None:
        self._topics.clear()


GROUP = 256
"""Operations that are run together. On SQLite other processes wait for them, some ten milliseconds at most."""

GROUP_BYTES = 1 << 20
"""Their size, unless a single one is larger: a group must be done within the time that an operation may take."""

CLOSE_SECONDS = 3.0
"""How long `close` waits for operations in flight, which a server that hangs or a locked file may delay."""


class _Operation(Struct, eq=False):
    args: Any
    size: int
    future: asyncio.Future[Any]


@final
class Groups:
    """Runs operations in their order, many at once: while one group runs, the next one gathers.

    `run` gets a group and returns a result for each operation, or a StoreError. If it raises a StoreError, the backend
    can't be reached, and the operations that wait fail too.
    """

    def __init__(self, where: str, run: Callable[[list[Any]], Awaitable[list[Any]]]) -> None:
        self._where, self._run = where, run
        self._waiting: deque[_Operation] = deque()
        self._task: asyncio.Task[None] | None = None
        self._process = os.getpid()
        self.closed = False

    async def ask(self, args: Any, size: int = 0) -> Any:
        """The result of an operation. Raises StoreError."""
        if self.closed:
            raise self.error("the store is closed")
        if os.getpid() != self._process:  # its thread and connections are in the other process
            raise self.error("the store was opened before a fork, by another process")
        loop = asyncio.get_running_loop()
        operation = _Operation(args, size, loop.create_future())
        self._waiting.append(operation)
        if self._task is None or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._run_all())
        return await operation.future

    async def close(self) -> None:
        """Accept nothing more. Operations in flight complete, or fail if they take too long."""
        self.closed = True
        if self._task is not None:
            await asyncio.wait([self._task], timeout=CLOSE_SECONDS)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def error(self, what: str) -> StoreError:
        return StoreError(self._where, what, "open a new one")

    async def _run_all(self) -> None:
        group: list[_Operation] = []
        error = self.error("the store was closed meanwhile")
        try:
            while self._waiting:
                group = self._take()
                results = await self._run([operation.args for operation in group])
                for operation, result in zip(group, results, strict=True):
                    if operation.future.done():
                        continue  # the caller was cancelled
                    if isinstance(result, StoreError):
                        operation.future.set_exception(result)
                    else:
                        operation.future.set_result(result)
        except StoreError as problem:
            error = problem
        finally:
            self._task = None
            for operation in (*group, *self._waiting):
                if not operation.future.done():  # one exception for each: raising an exception changes it
                    operation.future.set_exception(StoreError(error.where, error.what, error.fix))
            self._waiting.clear()

    def _take(self) -> list[_Operation]:
        group = [self._waiting.popleft()]
        size = group[0].size
        while self._waiting and len(group) < GROUP and size + self._waiting[0].size <= GROUP_BYTES:
            group.append(self._waiting.popleft())
            size += group[-1].size
        return group


def family_of(key: str) -> str:
    """The part of a key up to its first colon, `session:` of `session:42`; empty for a key without a colon."""
    return key[: key.find(":") + 1]


def family_of_prefix(prefix: str) -> str:
    """The one family that all keys with this prefix belong to."""
    family = family_of(prefix)
    if not family:
        raise ValueError(f"a prefix must name a family, like 'session:'; {prefix!r} has no colon")
    return family


def to_bytes(name: str) -> bytes:
    """A name as databases store it. A lone surrogate from a header must not break a lookup."""
    return name.encode("utf-8", "surrogatepass")


def to_text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")
