"""The bus on Redis: one connection of this process, subscribed to the topics that have listeners."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, final

from msgspec import Struct

from longshore.retry import Backoff
from longshore.stores.redis_errors import RedisErrors
from longshore.stores.store import MISSED, Listeners, OnMessage, Stop, to_bytes, to_text

QUIET_SECONDS = 15.0
"""After this long without a message the server must answer a ping."""

BACKOFF = Backoff(0.05, 1.0)
"""Pauses before a lost connection is made again."""


class _Subscription(Struct, eq=False):
    """One topic of the present connection: `done` when the server has confirmed it."""

    done: asyncio.Future[None]
    sent: bool = False


@final
class Subscriber:
    """One task reads. It reconnects after a loss, with the topics that have listeners then."""

    def __init__(self, new_pubsub: Callable[[], Any], prefix: bytes, errors: RedisErrors, seconds: float) -> None:
        self._new_pubsub, self._prefix, self._errors, self._seconds = new_pubsub, prefix, errors, seconds
        self._listeners = Listeners()
        self._pubsub: Any = None
        self._subscriptions: dict[str, _Subscription] = {}
        self._owed: Counter[str] = Counter()  # confirmations to come: an old one must not be taken for a newer
        self._order = asyncio.Lock()
        self._reader: asyncio.Task[None] | None = None
        self._sends: set[asyncio.Task[None]] = set()
        self._interrupted: set[str] = set()
        """Topics that a lost connection was subscribed to."""
        self._closed = False

    def channel(self, topic: str) -> bytes:
        return self._prefix + to_bytes(topic)

    async def listen(self, topic: str, on_message: OnMessage) -> Stop:
        if self._closed:
            raise self._errors.closed()
        remove = self._listeners.add(topic, on_message)

        def stop() -> None:
            remove()
            if topic not in self._listeners:
                self._leave(topic)

        try:
            await self._subscribe(topic)
        except BaseException:
            stop()
            raise
        return stop

    async def close(self) -> None:
        self._closed = True
        self._listeners.clear()
        tasks = [task for task in (self._reader, *self._sends) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _subscribe(self, topic: str) -> None:
        """Return when the server has confirmed that messages of this topic will come."""
        loop = asyncio.get_running_loop()
        found = self._subscriptions.get(topic)
        if found is None:
            found = self._subscriptions[topic] = _Subscription(loop.create_future())
            if self._pubsub is not None:
                self._start(self._send_subscribe(topic))
        if self._reader is None:
            self._reader = loop.create_task(self._read())
        try:
            await asyncio.wait_for(asyncio.shield(found.done), self._seconds)
        except TimeoutError as error:
            raise self._errors.explain(error) from None

    def _leave(self, topic: str) -> None:
        self._subscriptions.pop(topic, None)
        if self._pubsub is not None and not self._closed:
            self._start(self._send_unsubscribe(topic))

    def _start(self, send: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(send)
        self._sends.add(task)
        task.add_done_callback(self._sends.discard)

    async def _send_subscribe(self, topic: str) -> None:
        async with self._order:
            if self._pubsub is not None and topic in self._listeners:
                await self._quietly(self._subscribe_all([topic]))

    async def _send_unsubscribe(self, topic: str) -> None:
        async with self._order:
            if self._pubsub is not None and topic not in self._listeners:
                await self._quietly(self._pubsub.unsubscribe(self.channel(topic)))

    async def _quietly(self, sending: Awaitable[Any]) -> None:
        try:
            await sending
        except Exception:  # noqa: S110
            pass  # the reader finds the connection broken too, and reconnects

    async def _subscribe_all(self, topics: list[str]) -> None:
        for topic in topics:
            self._owed[topic] += 1
            self._subscriptions.setdefault(topic, _Subscription(asyncio.get_running_loop().create_future())).sent = True
        await self._pubsub.subscribe(*map(self.channel, topics))

    async def _read(self) -> None:
        failures = 0
        try:
            while self._listeners.topics():
                try:
                    await self._connect()
                    failures = 0
                    while True:
                        self._handle(await self._next())
                except Exception as error:
                    await self._disconnect(error)
                failures += 1
                await asyncio.sleep(BACKOFF.pause(failures))
        finally:
            self._reader = None
            await self._disconnect(ConnectionError())

    async def _connect(self) -> None:
        async with asyncio.timeout(self._seconds), self._order:
            # A topic that is added from here on is subscribed by its own command, after this one.
            self._pubsub = self._new_pubsub()
            topics = self._listeners.topics()
            if not topics:
                raise ConnectionError  # no topic is left to connect for
            await self._subscribe_all(topics)

    async def _next(self) -> dict[str, Any]:
        """The next message; a server that was silent for QUIET_SECONDS must answer a ping."""
        message: dict[str, Any] | None = await self._pubsub.get_message(timeout=QUIET_SECONDS)
        if message is None:
            await self._pubsub.ping()
            message = await self._pubsub.get_message(timeout=self._seconds)
        if message is None:
            raise TimeoutError
        return message

    def _handle(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "message":
            self._listeners.deliver([(self._topic(message), message["data"])])
        elif kind == "subscribe":
            self._confirm(self._topic(message))

    def _topic(self, message: dict[str, Any]) -> str:
        return to_text(message["channel"][len(self._prefix) :])

    def _confirm(self, topic: str) -> None:
        self._owed[topic] -= 1
        if self._owed[topic] > 0:
            return
        del self._owed[topic]
        found = self._subscriptions.get(topic)
        if found is not None and found.sent and not found.done.done():
            found.done.set_result(None)
        if topic in self._interrupted:
            self._interrupted.discard(topic)
            self._listeners.deliver([(topic, MISSED)])

    async def _disconnect(self, error: Exception) -> None:
        pubsub, self._pubsub = self._pubsub, None
        before, self._subscriptions = self._subscriptions, {}
        self._interrupted.update(topic for topic, found in before.items() if found.done.done())
        self._interrupted.intersection_update(self._listeners.topics())
        self._owed.clear()
        for found in before.values():
            if not found.done.done():
                found.done.set_exception(self._errors.explain(error))
                found.done.exception()  # marks it as retrieved: the caller may have been cancelled
        if pubsub is not None:
            await self._quietly(pubsub.aclose())
