"""The answer to one POST, as the engine sees it: a link that waits until it is known how to answer.

Most calls are answered at once, as JSON, and never wait. One that does is looked at again a moment later; only then is
it worth a task that watches for the client hanging up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Protocol, final

from longshore.limits import Limits
from longshore.protocol.dialect import FailureKind
from longshore.protocol.peer import Principal
from longshore.protocol.session import Session
from longshore.server.engine import Engine
from longshore.server.link import Link
from longshore.transports.http.responses import Receive

WATCH_AFTER_SECONDS = 0.025
"""A call that takes longer is watched for its client's hanging up. With the sweep that is noticed within 50 ms."""


class Outlet(Protocol):
    """Where an answer can be written although nobody waits for it."""

    def respond(self, frame: bytes) -> None: ...

    def resume(self) -> None:
        """Have somebody wait after all: there is more to do than to write one answer."""
        ...


class PendingResponse(Link):
    """A link whose coroutine waits for what the engine does with it, or that has an outlet in its place."""

    __slots__ = ("_bell", "accepts_stream", "done", "frame", "gone", "kind", "old", "outlet")
    has_status = True

    def __init__(self, session: Session[Any] | None, principal: Principal) -> None:
        super().__init__(session, principal)
        self.accepts_stream = True
        self.done = False
        self.frame: bytes | None = None
        self.gone = False
        """The client has hung up."""
        self.old = False
        """It has waited long enough to be watched."""
        self.kind: FailureKind | None = None
        self.outlet: Outlet | None = None
        self._bell: Wakeup | None = None
        """Only who waits has one: most never do."""

    def answer(self, frame: bytes | None) -> None:
        self.frame = frame
        self.done = True
        if self.outlet is not None and frame is not None and frame.__class__ is bytes:
            outlet, self.outlet = self.outlet, None
            outlet.respond(frame)
        else:
            self.wake()

    def failed(self, kind: FailureKind) -> None:
        self.kind = kind

    def wake(self) -> None:
        if self.outlet is not None:
            outlet, self.outlet = self.outlet, None
            outlet.resume()
        elif self._bell is not None:
            self._bell.ring()

    async def wait(self, seconds: float | None = None) -> None:
        """Until something has happened, or for so long."""
        self._bell = self._bell or Wakeup()
        await self._bell.wait(seconds)


class Post(PendingResponse):
    """A modern POST. What is sent before the answer makes it a stream; who hangs up takes the request back."""

    __slots__ = ("_high", "_queued", "frames")

    def __init__(self, principal: Principal, limits: Limits) -> None:
        super().__init__(None, principal)
        self._high = limits.output_bytes
        self._queued = 0
        self.frames: deque[bytes] = deque()

    @property
    def owner(self) -> object:
        return self.principal.name

    def send(self, frame: bytes) -> None:
        if self.done or self.gone or not self.accepts_stream or self._queued > OVERRUN * self._high:
            return
        self.frames.append(frame)
        self._queued += len(frame)
        self.congested = self._queued > self._high
        self.wake()

    def take(self) -> list[bytes]:
        frames = list(self.frames)
        self.frames.clear()
        self._queued = 0
        self.congested = False
        return frames


class Waiting:
    """The POSTs that wait. One timer makes those old that are not answered at once."""

    __slots__ = ("_armed", "_young")

    def __init__(self) -> None:
        self._young: list[PendingResponse] = []
        self._armed = False

    def add(self, post: PendingResponse) -> None:
        self._young.append(post)
        if not self._armed:
            self._armed = True
            asyncio.get_running_loop().call_later(WATCH_AFTER_SECONDS, self._sweep)

    def _sweep(self) -> None:
        young, self._young = self._young, []
        self._armed = False
        for post in young:
            if not (post.done or post.old):  # one from the fast lane comes here twice
                post.old = True
                post.wake()


async def watch(engine: Engine, post: PendingResponse, receive: Receive) -> None:
    """Who hangs up takes the request back, and nobody should work for it any longer."""
    await hung_up(receive)
    post.gone = True
    if not post.done:
        engine.hang_up(post)
    post.wake()


OVERRUN = 4
"""Calls hold back when a reader falls behind, notices can't: at so many times the output that may wait, a stream that
nobody reads is let go, or loses its notices."""


@final
class Wakeup:
    """Wakes the one coroutine that waits. Rung while nobody does, it does nothing: look before you wait."""

    __slots__ = ("_waiter",)

    def __init__(self) -> None:
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self, seconds: float | None = None) -> None:
        """Until it rings, or for so long."""
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, self.ring)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()


async def hung_up(receive: Receive) -> None:
    """Until the client does."""
    while (await receive())["type"] != "http.disconnect":
        pass
