"""What a connection waits for: that there is something to send, or that its client hangs up."""

from __future__ import annotations

import asyncio
from typing import final

from longshore.transports.http.answers import Receive

OVERRUN = 4
"""Calls hold back when a reader falls behind, notices can't: at so many times the output that may wait, a stream that
nobody reads is let go, or loses its notices."""


@final
class Bell:
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
