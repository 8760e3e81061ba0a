"""A clock that stops while a person answers a question or logs in, so that deadlines do not count that time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, final


@final
class Timer:
    """Calls back when the clock reaches `due`, unless it is cancelled before."""

    __slots__ = ("_callback", "_clock", "_handle", "due")

    def __init__(self, clock: PausableClock, due: float, callback: Callable[[], object]) -> None:
        self.due = due
        self._clock, self._callback = clock, callback
        self._handle: asyncio.TimerHandle | None = None

    def schedule(self, seconds: float) -> None:
        self._handle = self._clock.loop.call_later(max(seconds, 0.0), self._fire)

    def suspend(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def cancel(self) -> None:
        self.suspend()
        self._clock.timers.discard(self)

    def _fire(self) -> None:
        self._clock.timers.discard(self)
        self._callback()


@final
class PausableClock:
    """The loop's time without the time between `stop` and `resume`. The two may be nested."""

    __slots__ = ("_stopped_at", "_stopped_for", "_stops", "loop", "timers")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.timers: set[Timer] = set()
        self._stops = 0
        self._stopped_at = self._stopped_for = 0.0

    def now(self) -> float:
        return (self._stopped_at if self._stops else self.loop.time()) - self._stopped_for

    def stop(self) -> None:
        if not self._stops:
            self._stopped_at = self.loop.time()
            for timer in self.timers:
                timer.suspend()
        self._stops += 1

    def resume(self) -> None:
        self._stops -= 1
        if not self._stops:
            self._stopped_for += self.loop.time() - self._stopped_at
            now = self.now()
            for timer in self.timers:
                timer.schedule(timer.due - now)

    def call_at(self, due: float, callback: Callable[[], object]) -> Timer:
        timer = Timer(self, due, callback)
        self.timers.add(timer)
        if not self._stops:
            timer.schedule(due - self.now())
        return timer

    async def wait_excluding_login(self, work: asyncio.Future[Any], seconds: float | None) -> None:
        """Wait until the work is done. Raises TimeoutError if that takes more than `seconds`; the work goes on then."""
        expired: asyncio.Future[None] = self.loop.create_future()
        timer = None if seconds is None else self.call_at(self.now() + seconds, lambda: expired.set_result(None))
        try:
            await asyncio.wait((work, expired), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if timer is not None:
                timer.cancel()
        if not work.done():
            raise TimeoutError
