"""Streams that can be resumed: a log in the store, written by one process at a time and followed by any.

A stream belongs to a handshake-era session. Each event is put into the log before it is sent, so whoever comes back
with the id of the last event that it saw gets the rest: in this process, in another, or after a restart. A connection
is only a follower. It reads the log from where it left off and then takes what comes, until the stream ends, it hangs
up, or it is asked to come back later.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from secrets import token_hex
from time import monotonic
from typing import final

import msgspec
from msgspec import Struct

from longshore.errors import StoreError
from longshore.limits import Limits
from longshore.stores import Store
from longshore.transports.http.following import BLANK, LAST, Follower
from longshore.transports.http.waiting import OVERRUN
from longshore.wire.messages import Id

_REFRESHES = 3
"""How many times in the time that events are kept a stream that goes on is refreshed."""


class Origin(Struct):
    """Who writes a stream, and which requests it will answer."""

    worker: str
    requests: list[Id] = []
    standalone: bool = False


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Origin).decode


def log_key(session: str, stream: str) -> str:
    return f"events:{session}:{stream}"


def origin_key(session: str, stream: str) -> str:
    return f"stream:{session}:{stream}"


def home_key(session: str) -> str:
    """Names the stream that a session has open of its own, wherever."""
    return f"home:{session}"


@final
class Stream:
    """A stream that this process writes."""

    __slots__ = (
        "_bytes",
        "_last",
        "_limits",
        "_problem",
        "_queue",
        "_refreshed",
        "_session",
        "_sizes",
        "_store",
        "_task",
        "ended",
        "followers",
        "id",
        "nudge",
        "origin",
        "sent",
        "when_ended",
    )

    def __init__(
        self,
        store: Store,
        session: str,
        limits: Limits,
        origin: Origin,
        problem: Callable[[str, Exception], None],
        id: str = "",
    ) -> None:
        self.id = id or token_hex(8)
        self.origin = origin
        self.followers: set[Follower] = set()
        self.ended = False
        self.sent = 0
        """The position up to which it was sent to anybody: who opens it without saying from where gets the rest."""
        self.nudge: Callable[[str], Awaitable[None]] | None = None
        """Tells followers in other processes that there is more; set when the first of them says that it is there."""
        self.when_ended: Callable[[Stream], None] = lambda _: None
        self._store, self._session, self._limits = store, session, limits
        self._problem = problem
        self._queue: deque[bytes] = deque()
        self._bytes = 0
        self._sizes: deque[int] = deque(maxlen=max(limits.events, 1))
        self._last = 0
        self._refreshed = monotonic()
        self._task: asyncio.Task[None] | None = None

    @property
    def key(self) -> str:
        return log_key(self._session, self.id)

    @property
    def size(self) -> int:
        """How much of it is kept, in bytes."""
        return sum(self._sizes)

    @property
    def congested(self) -> bool:
        """Whether more waits to be stored, or for the slowest connection, than should."""
        waiting = max((follower.bytes for follower in self.followers), default=0)
        return waiting + self._bytes > self._limits.output_bytes

    def put(self, frame: bytes) -> None:
        if self.ended:
            return
        self._queue.append(frame)
        self._bytes += len(frame)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._store_all())

    def end(self, frame: bytes = b"") -> None:
        """Nothing more will come, after this."""
        if not self.ended:
            self.put(frame + LAST)
            self.ended = True

    async def settled(self) -> None:
        """Until everything that was put is in the store."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def announce(self) -> None:
        """Let other processes know whose stream this is, before anybody can come back to it there."""
        if self._store.shared:
            key = origin_key(self._session, self.id)
            await self._store.set(key, _encode(self.origin), self._limits.event_seconds)
            if self.origin.standalone:
                await self._store.set(home_key(self._session), self.id.encode(), self._limits.event_seconds)

    async def refresh(self) -> None:
        """Have a stream that goes on outlive a silence that is longer than its events are kept."""
        now = monotonic()
        if not self.ended and now - self._refreshed > self._limits.event_seconds / _REFRESHES:
            self._refreshed = now
            if self._last:
                self.put(BLANK)
            await self.announce()

    async def forget(self) -> None:
        """Nobody may take it over any more."""
        if self._store.shared:
            await self._store.delete(origin_key(self._session, self.id))

    async def _store_all(self) -> None:
        try:
            while self._queue:
                frame = self._queue.popleft()
                position = await self._append(frame)
                self._bytes -= len(frame)
                for follower in self.followers:
                    follower.put(position, frame)
                    if self.origin.standalone and follower.bytes > OVERRUN * self._limits.output_bytes:
                        follower.close()
                if self.nudge is not None:
                    await self.nudge(self.id)
        finally:
            self._task = None
            if self.ended:
                self.when_ended(self)

    async def _append(self, frame: bytes) -> int:
        """The event's position; 0 if it could not be kept, so that it is sent but can't be resumed after."""
        try:
            position = await self._store.append(self.key, frame, self._limits.event_seconds, self._limits.events)
            if position <= self._last:
                return 0  # the store has lost the log and counts from 1 again: that would be taken for an old event
            self._last = position
            self._sizes.append(len(frame))
            return position
        except StoreError as problem:
            self._problem("an event could not be kept, so it can't be sent again", problem)
            return 0


async def find_origin(store: Store, session: str, stream: str) -> Origin | None:
    raw = await store.get(origin_key(session, stream))
    return None if raw is None else _decode(raw)
