"""The bus on Redis, as one process sees it: a connection of its own that is subscribed to what is listened to."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, final

from msgspec import Struct

from longshore.stores.faults import Faults
from longshore.stores.listeners import Listeners
from longshore.stores.names import to_bytes, to_text
from longshore.stores.store import MISSED, Hear, Stop

QUIET_SECONDS = 15.0
"""After this long without a message the server is asked whether it is still there."""

PAUSE_SECONDS, MOST_PAUSE_SECONDS = 0.05, 1.0
"""Before a lost connection is made again: the first time, and at most."""


class _Join(Struct, eq=False):
    """One topic of the present connection: done when the server has confirmed it."""

    done: asyncio.Future[None]
    sent: bool = False


@final
class Channels:
    """One task reads. It makes the connection anew whenever it is lost, with the topics that are wanted then."""

    def __init__(self, new_pubsub: Callable[[], Any], prefix: bytes, faults: Faults, seconds: float) -> None:
        self._new_pubsub, self._prefix, self._faults, self._seconds = new_pubsub, prefix, faults, seconds
        self._listeners = Listeners()
        self._pubsub: Any = None
        self._joins: dict[str, _Join] = {}
        self._owed: Counter[str] = Counter()  # confirmations to come: an old one must not be taken for a newer
        self._order = asyncio.Lock()
        self._reader: asyncio.Task[None] | None = None
        self._errands: set[asyncio.Task[None]] = set()
        self._cut: set[str] = set()
        """Topics that a lost connection was subscribed to."""
        self._closed = False

    def channel(self, topic: str) -> bytes:
        return self._prefix + to_bytes(topic)

    async def listen(self, topic: str, hear: Hear) -> Stop:
        if self._closed:
            raise self._faults.closed()
        stop_hearing = self._listeners.add(topic, hear)

        def stop() -> None:
            stop_hearing()
            if topic not in self._listeners:
                self._leave(topic)

        try:
            await self._join(topic)
        except BaseException:
            stop()
            raise
        return stop

    async def close(self) -> None:
        self._closed = True
        self._listeners.clear()
        tasks = [task for task in (self._reader, *self._errands) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _join(self, topic: str) -> None:
        """Return when the server has confirmed that messages of this topic will come."""
        loop = asyncio.get_running_loop()
        join = self._joins.get(topic)
        if join is None:
            join = self._joins[topic] = _Join(loop.create_future())
            if self._pubsub is not None:
                self._run(self._subscribe(topic))
        if self._reader is None:
            self._reader = loop.create_task(self._read())
        try:
            await asyncio.wait_for(asyncio.shield(join.done), self._seconds)
        except TimeoutError as error:
            raise self._faults.explain(error) from None

    def _leave(self, topic: str) -> None:
        self._joins.pop(topic, None)
        if self._pubsub is not None and not self._closed:
            self._run(self._unsubscribe(topic))

    def _run(self, errand: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(errand)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def _subscribe(self, topic: str) -> None:
        async with self._order:
            if self._pubsub is not None and topic in self._listeners:
                await self._quietly(self._send_subscribe([topic]))

    async def _unsubscribe(self, topic: str) -> None:
        async with self._order:
            if self._pubsub is not None and topic not in self._listeners:
                await self._quietly(self._pubsub.unsubscribe(self.channel(topic)))

    async def _quietly(self, sending: Awaitable[Any]) -> None:
        try:
            await sending
        except Exception:  # noqa: S110
            pass  # the reader finds the connection broken too, and begins anew

    async def _send_subscribe(self, topics: list[str]) -> None:
        for topic in topics:
            self._owed[topic] += 1
            self._joins.setdefault(topic, _Join(asyncio.get_running_loop().create_future())).sent = True
        await self._pubsub.subscribe(*map(self.channel, topics))

    async def _read(self) -> None:
        pause = PAUSE_SECONDS
        try:
            while self._listeners.topics():
                try:
                    await self._connect()
                    pause = PAUSE_SECONDS
                    while True:
                        self._take(await self._next())
                except Exception as error:
                    await self._disconnect(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, MOST_PAUSE_SECONDS)
        finally:
            self._reader = None
            await self._disconnect(ConnectionError())

    async def _connect(self) -> None:
        async with asyncio.timeout(self._seconds), self._order:
            # From here on, who joins sends its own subscription, after this one.
            self._pubsub = self._new_pubsub()
            topics = self._listeners.topics()
            if not topics:
                raise ConnectionError  # nobody is left to connect for
            await self._send_subscribe(topics)

    async def _next(self) -> dict[str, Any]:
        """The next message; a server that is silent for long must answer a ping."""
        message: dict[str, Any] | None = await self._pubsub.get_message(timeout=QUIET_SECONDS)
        if message is None:
            await self._pubsub.ping()
            message = await self._pubsub.get_message(timeout=self._seconds)
        if message is None:
            raise TimeoutError
        return message

    def _take(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "message":
            self._listeners.hand_out([(self._topic(message), message["data"])])
        elif kind == "subscribe":
            self._confirm(self._topic(message))

    def _topic(self, message: dict[str, Any]) -> str:
        return to_text(message["channel"][len(self._prefix) :])

    def _confirm(self, topic: str) -> None:
        self._owed[topic] -= 1
        if self._owed[topic] > 0:
            return
        del self._owed[topic]
        join = self._joins.get(topic)
        if join is not None and join.sent and not join.done.done():
            join.done.set_result(None)
        if topic in self._cut:
            self._cut.discard(topic)
            self._listeners.hand_out([(topic, MISSED)])

    async def _disconnect(self, error: Exception) -> None:
        pubsub, self._pubsub = self._pubsub, None
        joins, self._joins = self._joins, {}
        self._cut.update(topic for topic, join in joins.items() if join.done.done())
        self._cut.intersection_update(self._listeners.topics())
        self._owed.clear()
        for join in joins.values():
            if not join.done.done():
                join.done.set_exception(self._faults.explain(error))
                join.done.exception()  # whoever waited may be gone
        if pubsub is not None:
            await self._quietly(pubsub.aclose())
