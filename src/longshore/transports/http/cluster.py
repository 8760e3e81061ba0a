"""What the processes that serve together tell each other, over the store's bus."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from secrets import token_bytes, token_hex
from time import monotonic, time
from typing import Any, Literal, final

import msgspec
from msgspec import Struct

from longshore.errors import StoreError, Unavailable
from longshore.server.engine import Engine
from longshore.server.request_state import KEY_BYTES, StateSigner
from longshore.stores import MISSED, Store
from longshore.telemetry.recorder import Recorder
from longshore.transports.http.streams import Follower
from longshore.transports.process import next_tick

TOPIC = "workers"
BEAT_SECONDS = 3.0
"""How often a process says that it is there, while anybody may wait for it. Else it does with the next tick."""
DEAD_SECONDS = 10.0
"""A process that has not said so for this long is not. One that was idle may take a tick longer."""

STOP_SECONDS = 1.0
"""How long a process that ends waits for what it still has to tell the others."""

Kind = Literal["frame", "stale", "gone", "home", "follow", "more", "list", "resource", "old"]
_ECHOED = ("home", "list", "resource")
"""What a process hears of itself too, so that all hear it in the same order."""


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
    """This process among the others. With a store of its own it is alone, and nothing is said."""

    def __init__(
        self, store: Store, hear: Callable[[ClusterMessage], Any], problem: Callable[[str, Exception], None]
    ) -> None:
        self.id = token_hex(4)
        self._store = store
        self._hear = hear
        self._problem = problem
        self._tasks: set[asyncio.Task[Any]] = set()
        self._beat: asyncio.Task[None] | None = None
        self._stop: Callable[[], None] | None = None
        self._doubted = 0.0
        """Until then who has not been heard of may still come back."""
        self._missing: asyncio.Task[Any] | None = None
        self.when_missed: Callable[[], Awaitable[None]] | None = None
        """Called when messages were missed, because the connection to the store was lost for a while."""
        self.followers: dict[str, set[Follower]] = {}
        self.in_use: Callable[[], bool] = lambda: True
        """Whether a call, a stream or a session of this process is waited for."""
        self._due_changed = asyncio.Event()
        self._due = 0.0
        """When the next heartbeat is sent, on the loop's clock."""
        self.numbers: Callable[[], bytes] = bytes
        """What each heartbeat carries: what this process has counted."""

    async def start(self) -> None:
        if self._store.shared:
            self._hush()  # it may have started before, on another loop
            self._due_changed = asyncio.Event()
            self._stop = await self._store.listen(TOPIC, self._heard)
            await self.heartbeat()
            self._beat = asyncio.get_running_loop().create_task(self._go_on())

    def _hush(self) -> None:
        stop, self._stop = self._stop, None
        if stop is not None:
            stop()

    async def stop(self) -> None:
        self._hush()
        if self._beat is not None:
            self._beat.cancel()
            try:
                await self._store.delete(f"worker:{self.id}")
            except StoreError as problem:
                self._problem("the store can't be told that this process ends", problem)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
        for task in list(self._tasks):
            task.cancel()

    async def post(self, kind: Kind, name: str, data: bytes = b"") -> None:
        """Tell every other process. Raises StoreError if that can't be done."""
        if self._store.shared:
            await self._store.post(TOPIC, _encode(ClusterMessage(self.id, kind, name, data)))

    async def tell(self, kind: Kind, name: str, data: bytes = b"") -> None:
        """Tell every other process. One that is not reached finds out by itself, later."""
        try:
            await self.post(kind, name, data)
        except StoreError as problem:
            self._problem("the other processes could not be told", problem)

    def run(self, work: Any) -> asyncio.Task[Any]:
        """Let something go on beside us."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def is_there(self, worker: str) -> bool:
        """Whether a process lives. After trouble with the store nobody is taken for dead before it could say so."""
        there = worker == self.id or await self._store.get(f"worker:{worker}") is not None
        return there or monotonic() < self._doubted

    def follow(self, stream: str, follower: Follower) -> None:
        self.followers.setdefault(stream, set()).add(follower)

    def unfollow(self, stream: str, follower: Follower) -> None:
        followers = self.followers.get(stream, set())
        followers.discard(follower)
        if not followers:
            self.followers.pop(stream, None)

    def _heard(self, message: bytes) -> None:
        if message == MISSED:
            self._miss()
            return
        try:
            notice = _decode(message)
        except msgspec.DecodeError as problem:
            self._problem("a message from another process can't be read; is it another version?", problem)
            return
        if notice.sender == self.id and notice.kind not in _ECHOED:
            return
        if notice.kind == "more":
            for follower in self.followers.get(notice.name, ()):
                follower.look()
        else:
            result = self._hear(notice)
            if result is not None:
                self.run(result)

    def _miss(self) -> None:
        if self.when_missed is not None and (self._missing is None or self._missing.done()):
            self._missing = self.run(self.when_missed())

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        problem = None if task.cancelled() else task.exception()
        if isinstance(problem, Exception):
            self._problem("a message between processes could not be dealt with", problem)

    async def _go_on(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._due_changed.clear()
            try:
                await asyncio.wait_for(self._due_changed.wait(), self._due - loop.time())
            except TimeoutError:
                await self._beat_once()

    async def _beat_once(self) -> None:
        try:
            await self.heartbeat()
        except StoreError as problem:
            self.store_failed()
            self._problem("the store does not answer", problem)

    def store_failed(self) -> None:
        """Take no process for dead until it had time to send a heartbeat again, and send ours soon."""
        self._doubted = monotonic() + DEAD_SECONDS
        if self._beat is not None:
            self._due = min(self._due, self._beat.get_loop().time() + BEAT_SECONDS)
            self._due_changed.set()

    async def heartbeat(self) -> None:
        """Tell the others that this process is there, and what it has counted."""
        now = asyncio.get_running_loop().time()
        if now >= self._due:
            self._due = now + BEAT_SECONDS if self.in_use() else next_tick(now)
        seconds = self._due - now + DEAD_SECONDS - BEAT_SECONDS
        await self._store.set(f"worker:{self.id}", self.numbers(), seconds)


_KEY = "key:state"
_FOR_EVER = 10 * 365 * 86_400.0


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


async def share_state(engine: Engine, store: Store, configured: str | None) -> None:
    """Sign with the configured key, or with one that lies in the store beside the sessions that it is for."""
    if configured is None and not store.shared:
        return
    key = sha256(configured.encode()).digest() if configured else await _stored_key(store)
    engine.questions.share(StateSigner(engine.limits, key), StoredNonces(store, engine.recorder))


async def _stored_key(store: Store) -> bytes:
    await store.add(_KEY, token_bytes(KEY_BYTES), _FOR_EVER)
    key = await store.get(_KEY)
    assert key is not None
    return key
