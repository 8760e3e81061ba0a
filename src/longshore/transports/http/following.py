"""How a connection follows a stream: it reads the log from where the client left off, and then takes what comes."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, final

from longshore.stores import Store
from longshore.transports.http.waiting import Bell

if TYPE_CHECKING:
    from longshore.transports.http.streams import Stream

LAST = b"\n"
"""Ends the last entry of a log, which is an answer or nothing else. No frame holds a newline.

The two are one entry: a process that is killed has either answered or not, and who follows can tell.
"""
BLANK = b" "
"""An entry that says nothing. It keeps the log of a silent stream from expiring, and so its positions from 1 on."""
_PAGE = 100
_LOOK_SECONDS = 1.0
"""How often a follower looks whether the process that writes its stream is still there."""
_ENDED = -2
"""In place of a position: the log has its end."""


@final
class Follower:
    """One connection's place at the end of a stream."""

    __slots__ = ("_bell", "behind", "bytes", "closed", "items", "retry")

    def __init__(self) -> None:
        self.items: deque[tuple[int, bytes]] = deque()
        self.bytes = 0
        self.behind = False
        """The log may have more than it was given: another process has written to it."""
        self.closed = False
        self.retry: float | None = None
        self._bell = Bell()

    def put(self, position: int, frame: bytes) -> None:
        if self.closed:
            return
        self.items.append((position, frame))
        self.bytes += len(frame)
        self._bell.ring()

    def take(self) -> tuple[int, bytes]:
        position, frame = self.items.popleft()
        self.bytes -= len(frame)
        return position, frame

    def close(self, retry: float | None = None) -> None:
        """Have the connection end; the stream goes on without it."""
        self.closed, self.retry = True, retry
        self.items.clear()
        self.bytes = 0
        self._bell.ring()

    def look(self) -> None:
        """Have it read the log."""
        self.behind = True
        self._bell.ring()

    async def wait(self, seconds: float) -> bool:
        """Until something came. False: nothing did for so long."""
        if not self.behind:
            await self._bell.wait(seconds)
        return bool(self.items) or self.closed or self.behind


Write = Callable[[int, bytes], Awaitable[None]]
"""Writes an event: its position in the stream, and the frame. A position of -1 is a sign of life."""


async def follow(store: Store, stream: Stream, follower: Follower, after: int, write: Write, pause: float) -> None:
    """Send a stream of this process from a position on, until it ends or the follower does."""
    if after >= 0:
        after = await _replay(store, stream.key, after, write)
    while after != _ENDED:
        while follower.items and not follower.closed:
            position, frame = follower.take()
            if 0 <= after < position - 1:  # between the two another process has written
                after = await _replay(store, stream.key, after, write)
            if after == _ENDED:
                return
            if (position == 0 or position > after) and (text := frame.strip()):
                await write(position, text)
            if frame.endswith(LAST):
                return
            after = max(position, after)
        if follower.closed:
            return
        if follower.behind:
            follower.behind = False
            after = await _replay(store, stream.key, after, write) if after >= 0 else after
        elif not await follower.wait(pause):
            await write(-1, b"")


async def follow_elsewhere(
    store: Store,
    key: str,
    follower: Follower,
    after: int,
    write: Write,
    pause: float,
    lost: Callable[[], Awaitable[bool]],
    mourn: Callable[[], Awaitable[None]],
) -> None:
    """Send a stream that another process writes. `lost` says whether it ends without an end; then `mourn` says so."""
    silent = 0.0
    while True:
        follower.behind = False  # what comes from here on has us read again
        before, after = after, await _replay(store, key, after, write)
        if after == _ENDED or follower.closed:
            return
        if after == before and await lost():
            if await _replay(store, key, after, write) != _ENDED:  # its last words may have come meanwhile
                await mourn()
            return
        silent = silent + _LOOK_SECONDS if after == before else 0.0
        if silent >= pause:
            silent = 0.0
            await write(-1, b"")
        await follower.wait(_LOOK_SECONDS)


async def _replay(store: Store, key: str, after: int, write: Write) -> int:
    """Send what the log has; the position of the last event sent, or that the log has its end."""
    while entries := await store.read(key, after, _PAGE):
        for position, frame in entries:
            if text := frame.strip():
                await write(position, text)
            if frame.endswith(LAST):
                return _ENDED
            after = position
    return after
