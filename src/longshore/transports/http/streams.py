"""Streams that can be resumed: a log in the store, written by one process at a time and followed by any.

A stream belongs to a handshake-era session. Each event is put into the log before it is sent, so a client that
reconnects with the id of the last event that it received gets the rest: in this process, in another, or after a
restart. A connection is only a follower. It reads the log from its position and then takes new events, until the stream
ends, the client hangs up, or it is asked to reconnect later.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from secrets import token_hex
from time import monotonic
from typing import TYPE_CHECKING, Final, final

import msgspec
from msgspec import Struct

from longshore.errors import StoreError
from longshore.limits import Limits
from longshore.stores import Store
from longshore.transports.http.responses import KEEP_ALIVE, Send, event, write
from longshore.wire.messages import Id

if TYPE_CHECKING:
    from longshore.transports.http.cluster import Cluster

LAST: Final = b"\n"
"""Ends the last entry of a log, which is an answer or nothing else. No frame holds a newline.

The two are one entry: a process that is killed has either answered or not, and followers can tell.
"""
BLANK: Final = b" "
"""An entry without content. It keeps the log of a silent stream from expiring, and so its positions from 1 on."""
_OVERRUN: Final = 4
"""Calls are held back when a reader falls behind, notifications can't be: at so many times the output that may wait, a
stream that is not read is closed, or loses its notifications."""
_REFRESHES: Final = 3
"""How often an open stream is refreshed in the time for which events are stored."""
_PAGE: Final = 100
_LOOK_SECONDS: Final = 1.0
"""Between two checks of a follower whether the process that writes its stream lives."""
_ENDED: Final = -2
"""In place of a position: the log has its end."""


class StreamOrigin(Struct):
    """The process that writes a stream, and the requests that the stream answers."""

    worker: str
    requests: list[Id] = []
    standalone: bool = False


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(StreamOrigin).decode


def log_key(session: str, stream: str) -> str:
    return f"events:{session}:{stream}"


def origin_key(session: str, stream: str) -> str:
    return f"stream:{session}:{stream}"


def notifications_key(session: str) -> str:
    """The key of the name of a session's notification stream."""
    return f"home:{session}"


async def find_origin(store: Store, session: str, stream: str) -> StreamOrigin | None:
    raw = await store.get(origin_key(session, stream))
    return None if raw is None else _decode(raw)


@final
class Stream:
    """A stream that this process writes."""

    __slots__ = (
        "_bytes",
        "_cluster",
        "_last",
        "_limits",
        "_on_end",
        "_queue",
        "_refreshed",
        "_session",
        "_sizes",
        "_store",
        "_task",
        "ended",
        "followed_elsewhere",
        "followers",
        "id",
        "origin",
        "sent",
    )

    def __init__(
        self,
        store: Store,
        cluster: Cluster,
        limits: Limits,
        session: str,
        origin: StreamOrigin,
        id: str = "",
        on_end: Callable[[Stream], None] = lambda _: None,
    ) -> None:
        self.id = id or token_hex(8)
        self.origin = origin
        self.followers: set[Follower] = set()
        self.followed_elsewhere = False
        """Whether a connection of another process follows it, which must be notified of each event."""
        self.ended = False
        self.sent = 0
        """The position up to which it was sent: a client that opens it without naming a position gets the rest."""
        self._store, self._cluster, self._session, self._limits = store, cluster, session, limits
        self._on_end = on_end
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
        """The number of its stored bytes."""
        return sum(self._sizes)

    @property
    def congested(self) -> bool:
        """Whether too much waits to be stored, or for the slowest connection."""
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
        """Put the last event."""
        if not self.ended:
            self.put(frame + LAST)
            self.ended = True

    async def flush(self) -> None:
        """Wait until everything is in the store."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def announce(self) -> None:
        """Store the stream's origin, so that its client can resume it in another process."""
        if self._store.shared:
            key = origin_key(self._session, self.id)
            await self._store.set(key, _encode(self.origin), self._limits.event_seconds)
            if self.origin.standalone:
                await self._store.set(notifications_key(self._session), self.id.encode(), self._limits.event_seconds)

    async def refresh(self) -> None:
        """Keep a silent stream longer than its events are stored."""
        now = monotonic()
        if not self.ended and now - self._refreshed > self._limits.event_seconds / _REFRESHES:
            self._refreshed = now
            if self._last:
                self.put(BLANK)
            await self.announce()

    async def forget(self) -> None:
        """Keep other processes from taking it over."""
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
                    if self.origin.standalone and follower.overrun(self._limits):
                        follower.close()
                if self.followed_elsewhere:
                    await self._cluster.tell("more", self.id)
        finally:
            self._task = None
            if self.ended:
                self._on_end(self)

    async def _append(self, frame: bytes) -> int:
        """Append an event and return its position.

        The position is 0 if the event could not be stored: it is sent, but the stream can't be resumed after it.
        """
        try:
            position = await self._store.append(self.key, frame, self._limits.event_seconds, self._limits.events)
        except StoreError as problem:
            self._cluster.report("an event could not be stored, so it can't be sent again", problem)
            return 0
        if position <= self._last:
            return 0  # the store has lost the log and counts from 1 again: the client would take it for an old event
        self._last = position
        self._sizes.append(len(frame))
        return position


@final
class Wakeup:
    """Wakes one waiting coroutine. Without one `wake` has no effect: check the condition before you wait."""

    __slots__ = ("_waiter",)

    def __init__(self) -> None:
        self._waiter: asyncio.Future[bool] | None = None

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(True)

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait to be woken. False: the time has passed."""
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, self._time_out)
        try:
            woken: bool = await waiter
            return woken
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _time_out(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(False)


@final
class Follower:
    """One connection that follows a stream: the events that wait to be sent on it."""

    __slots__ = ("_wakeup", "behind", "bytes", "closed", "items", "retry")

    def __init__(self) -> None:
        self.items: deque[tuple[int, bytes]] = deque()
        self.bytes = 0
        self.behind = False
        """The log may have more: another process has written to it."""
        self.closed = False
        self.retry: float | None = None
        self._wakeup = Wakeup()

    def overrun(self, limits: Limits) -> bool:
        """Whether so much waits that the client seems not to read."""
        return self.bytes > _OVERRUN * limits.output_bytes

    def put(self, position: int, frame: bytes) -> None:
        if not self.closed:
            self.items.append((position, frame))
            self.bytes += len(frame)
            self._wakeup.wake()

    def take(self) -> tuple[int, bytes]:
        position, frame = self.items.popleft()
        self.bytes -= len(frame)
        return position, frame

    def close(self, retry: float | None = None) -> None:
        """Close the connection; the stream continues without it."""
        self.closed, self.retry = True, retry
        self.items.clear()
        self.bytes = 0
        self._wakeup.wake()

    def look(self) -> None:
        """Have it read the log."""
        self.behind = True
        self._wakeup.wake()

    async def wait(self, seconds: float) -> bool:
        """Wait for a change. False: the time has passed."""
        if not (self.items or self.behind or self.closed):
            await self._wakeup.wait(seconds)
        return bool(self.items) or self.closed or self.behind


Write = Callable[[int, bytes], Awaitable[None]]
"""Writes an event: its position in the stream, and the frame. A position of -1 is a sign of life."""


def event_writer(send: Send, stream: str = "") -> Write:
    """Writes the events of one stream, with ids to resume it by if it has a name."""

    async def write_event(position: int, frame: bytes) -> None:
        if position < 0:
            await write(send, KEEP_ALIVE)
        else:
            await write(send, event(frame, f"{stream}-{position}" if position else ""))

    return write_event


async def follow(
    store: Store | None,
    key: str,
    follower: Follower,
    after: int,
    write: Write,
    pause: float,
    is_lost: Callable[[], Awaitable[bool]] | None = None,
) -> bool:
    """Send a stream from a position on, until it ends or the follower is closed.

    At -1 it is only what the follower gets; if the stream has no log, no event has a position either, and no store.
    `is_lost` is given for a stream that another process writes. False: that process has ended without ending it.
    """
    follower.behind = after >= 0
    step = pause if is_lost is None else _LOOK_SECONDS
    silent = 0.0
    while not follower.closed:
        if follower.behind:
            follower.behind = False  # a message from here on means another read
            before, after = after, await _replay(store, key, after, write)
            if after == _ENDED:
                return True
            if after == before and is_lost is not None and await is_lost():
                return await _replay(store, key, after, write) == _ENDED  # its last event may have come meanwhile
        while follower.items and not follower.closed:
            position, frame = follower.take()
            if 0 <= after < position - 1:  # another process has written between the two
                after = await _replay(store, key, after, write)
            if after == _ENDED:
                return True
            if (position == 0 or position > after) and (text := frame.strip()):
                await write(position, text)
            if frame.endswith(LAST):
                return True
            after = max(position, after)
        if await follower.wait(step):
            silent = 0.0
        else:
            silent += step
            follower.behind = is_lost is not None
            if silent >= pause:
                silent = 0.0
                await write(-1, b"")
    return True


async def _replay(store: Store | None, key: str, after: int, write: Write) -> int:
    """Send the events of the log. Returns the position of the last event sent, or that the log has its end."""
    while store is not None and after >= 0 and (entries := await store.read(key, after, _PAGE)):
        for position, frame in entries:
            if text := frame.strip():
                await write(position, text)
            if frame.endswith(LAST):
                return _ENDED
            after = position
    return after


@final
class FinishedStreams:
    """The logs that this process wrote to their end, for clients that lost their connection; bounded in bytes."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.bytes = 0
        self._logs: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """When each expires in the store, and its size; the oldest first."""

    def add(self, log: str, size: int) -> list[str]:
        """Count a log that has its end. Gives the oldest ones, which must be deleted to make room."""
        now = monotonic()
        _, before = self._logs.pop(log, (0.0, 0))  # it may have been resumed after its end
        self._logs[log] = now + self._limits.event_seconds, before + size
        self.bytes += size
        surplus: list[str] = []
        while self._logs:
            oldest, (expires, size) = next(iter(self._logs.items()))
            if expires > now and self.bytes <= self._limits.kept_bytes:
                break
            del self._logs[oldest]
            self.bytes -= size
            if expires > now:
                surplus.append(oldest)
        return surplus

    def take(self, session: str) -> list[str]:
        """The logs of a session, to be deleted with it."""
        logs = [log for log in self._logs if log.startswith(log_key(session, ""))]
        for log in logs:
            self.bytes -= self._logs.pop(log)[1]
        return logs
