"""The processes that serve together: they find each other through the store, and send messages over its bus."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from secrets import token_bytes, token_hex
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final, Literal, final

import msgspec
from msgspec import Struct

from longshore.errors import StoreError, Unavailable
from longshore.server.engine import Engine
from longshore.server.questions import KEY_BYTES
from longshore.stores import MISSED, Store
from longshore.telemetry.recorder import Recorder
from longshore.transports.http.streams import Follower
from longshore.transports.process import next_tick

if TYPE_CHECKING:
    from longshore.transports.http.app import HttpApp

TOPIC: Final = "workers"
BEAT_SECONDS = 3.0
"""Between two heartbeats of a process while another one may wait for it. An idle process sends one with each tick."""
DEAD_SECONDS = 10.0
"""A process without a heartbeat for this long has ended. One that was idle may take a tick longer."""
STOP_SECONDS: Final = 1.0
"""How long a process that ends waits for messages that it still has to send."""
_REPORT_SECONDS: Final = 1.0
"""Between two log entries that say that the store fails."""
_PREFIX: Final = "worker:"

Kind = Literal["frame", "stale", "gone", "home", "follow", "more", "list", "resource", "old"]
_ECHOED: Final = ("home", "list", "resource")
"""Messages that their sender handles too, so that all processes see them in the same order."""


class ClusterMessage(Struct, array_like=True):
    """One message between processes.

    - frame: a response or a cancel for a call of session `name`, wherever that call runs
    - stale, gone, home: session `name` has changed, has ended, has its stream with the sender now
    - follow, more: the sender follows the stream `name`; the stream `name` has grown
    - list, resource: the list `name`, the resource `name` has changed
    - old: a message for the 2024-11-05 stream `name`
    """

    sender: str
    kind: Kind
    name: str
    data: bytes = b""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ClusterMessage).decode


@final
class Cluster:
    """This process among the others. With a store of its own it is the only one, and sends nothing."""

    def __init__(self, store: Store, recorder: Recorder) -> None:
        self.id = token_hex(4)
        self._store = store
        self._recorder = recorder
        self._handler: HttpApp | None = None
        self._followers: dict[str, set[Follower]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._heart: asyncio.Task[None] | None = None
        self._unlisten: Any = None
        self._catching_up: asyncio.Task[Any] | None = None
        self._reported = 0.0
        self._trusted_until = 0.0
        """Until then a process without a heartbeat counts as alive: the store has failed."""
        self._due = 0.0
        """When the next heartbeat is sent, on the loop's clock."""

    async def start(self, handler: HttpApp) -> None:
        """Join the others. An app may start again, on another loop."""
        self._handler = handler
        if self._store.shared:
            self._stop_listening()
            self._unlisten = await self._store.listen(TOPIC, self._receive)
            await self.heartbeat()
            self._heart = asyncio.get_running_loop().create_task(self._beat())

    def _stop_listening(self) -> None:
        unlisten, self._unlisten = self._unlisten, None
        if unlisten is not None:
            unlisten()

    async def stop(self) -> None:
        self._stop_listening()
        if self._heart is not None:
            self._heart.cancel()
            try:
                await self._store.delete(_PREFIX + self.id)
            except StoreError as problem:
                self.report("the store can't be told that this process ends", problem)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
        for task in list(self._tasks):
            task.cancel()

    def report(self, text: str, problem: Exception) -> None:
        """Log a failure. A failing store fails for every request: that is logged once a second."""
        if isinstance(problem, StoreError):
            now = monotonic()  # count no process as ended until it had time to send a heartbeat again
            self._trusted_until = next_tick(now) + DEAD_SECONDS
            if monotonic() - self._reported < _REPORT_SECONDS:
                return
            self._reported = monotonic()
        self._recorder.problem("error", text, problem)

    # -- messages

    async def post(self, kind: Kind, name: str, data: bytes = b"") -> None:
        """Send a message to every other process. Raises StoreError if that can't be done."""
        if self._store.shared:
            await self._store.post(TOPIC, _encode(ClusterMessage(self.id, kind, name, data)))

    async def tell(self, kind: Kind, name: str, data: bytes = b"") -> None:
        """Send a message to every other process. A process that misses it catches up later."""
        try:
            await self.post(kind, name, data)
        except StoreError as problem:
            self.report("a message to the other processes could not be sent", problem)

    def run(self, work: Any) -> asyncio.Task[Any]:
        """Run a coroutine in a task that `stop` waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        problem = None if task.cancelled() else task.exception()
        if isinstance(problem, Exception):
            self.report("a message between processes could not be handled", problem)

    def follow(self, stream: str, follower: Follower) -> None:
        """Have the follower read the log when another process has written to the stream."""
        self._followers.setdefault(stream, set()).add(follower)

    def unfollow(self, stream: str, follower: Follower) -> None:
        followers = self._followers.get(stream, set())
        followers.discard(follower)
        if not followers:
            self._followers.pop(stream, None)

    def _receive(self, raw: bytes) -> None:
        assert self._handler is not None
        if raw == MISSED:
            if self._catching_up is None or self._catching_up.done():
                self._catching_up = self.run(self._handler.catch_up())
            return
        try:
            message = _decode(raw)
        except msgspec.DecodeError as problem:
            self.report("a message from another process can't be read; is it another version?", problem)
            return
        if message.sender == self.id and message.kind not in _ECHOED:
            return
        if message.kind == "more":
            for follower in self._followers.get(message.name, ()):
                follower.look()
        elif (work := self._handler.handle(message)) is not None:
            self.run(work)

    # -- heartbeats

    async def is_alive(self, process: str) -> bool:
        """Whether a process is alive. After a failure of the store each one has time to send a heartbeat again."""
        alive = process == self.id or await self._store.get(_PREFIX + process) is not None
        return alive or monotonic() < self._trusted_until

    async def heartbeat(self) -> None:
        """Store a heartbeat of this process, with its metrics."""
        assert self._handler is not None
        now = asyncio.get_running_loop().time()
        if now >= self._due:
            self._due = now + BEAT_SECONDS if self._handler.in_use() else next_tick(now)
        seconds = self._due - now + DEAD_SECONDS - BEAT_SECONDS
        await self._store.set(_PREFIX + self.id, self._handler.metrics(), seconds)

    async def all_metrics(self) -> list[bytes]:
        """The metrics of every process. Raises StoreError."""
        await self.heartbeat()
        return list((await self._store.find(_PREFIX)).values())

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._due - loop.time())
            try:
                await self.heartbeat()
            except StoreError as problem:
                self.report("the store does not answer", problem)


# -- secrets that all processes share, so that a question asked by one can be answered to another

_STATE_KEY: Final = "key:state"
_FOR_EVER: Final = 10 * 365 * 86_400.0


class StoredNonces:
    """Nonces that every process sees."""

    def __init__(self, store: Store, recorder: Recorder) -> None:
        self._store, self._recorder = store, recorder

    async def consume(self, nonce: str, expires: float) -> bool:
        try:
            return await self._store.add(f"nonce:{nonce}", b"", max(expires - time(), 1.0))
        except StoreError as problem:
            self._recorder.problem("error", "an answer could not be taken because the store failed", problem)
            raise Unavailable("answers can't be taken") from None


async def share_secrets(engine: Engine, store: Store, configured: str | None) -> None:
    """Sign with the configured key, or with one that is stored beside the sessions that it is for."""
    if configured is None and not store.shared:
        return
    key = sha256(configured.encode()).digest() if configured else await _stored_key(store)
    engine.questions.share(key, StoredNonces(store, engine.recorder))


async def _stored_key(store: Store) -> bytes:
    await store.add(_STATE_KEY, token_bytes(KEY_BYTES), _FOR_EVER)
    key = await store.get(_STATE_KEY)
    assert key is not None
    return key
