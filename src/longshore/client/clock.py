"""A clock that stops while a person answers a question or logs in, so that deadlines do not count that time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, final


@final
class Timer:
    """Calls back when the clock reaches `due`, unless it is cancelled before."""

    __slots__ = ("callback", "due", "handle")

    def __init__(self, due: float, callback: Callable[[], object]) -> None:
        self.due, self.callback = due, callback
        self.handle: asyncio.TimerHandle | None = None


@final
class PausableClock:
    """The loop's time without the time between `stop` and `resume`. The two may be nested."""

    __slots__ = ("_stopped_at", "_stopped_for", "_stops", "_timers", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._timers: set[Timer] = set()
        self._stops = 0
        self._stopped_at = self._stopped_for = 0.0

    def now(self) -> float:
        return (self._stopped_at if self._stops else self.loop.time()) - self._stopped_for

    def stop(self) -> None:
        if not self._stops:
            self._stopped_at = self.loop.time()
            for timer in self._timers:
                if timer.handle is not None:
                    timer.handle.cancel()
        self._stops += 1

    def resume(self) -> None:
        self._stops -= 1
        if not self._stops:
            self._stopped_for += self.loop.time() - self._stopped_at
            for timer in self._timers:
                self._schedule(timer)

    def call_at(self, due: float, callback: Callable[[], object]) -> Timer:
        timer = Timer(due, callback)
        self._timers.add(timer)
        if not self._stops:
            self._schedule(timer)
        return timer

    def cancel(self, timer: Timer) -> None:
        self._timers.discard(timer)
        if timer.handle is not None:
            timer.handle.cancel()

    def _schedule(self, timer: Timer) -> None:
        timer.handle = self.loop.call_later(max(timer.due - self.now(), 0.0), self._fire, timer)

    def _fire(self, timer: Timer) -> None:
        self._timers.discard(timer)
        timer.callback()

    async def wait_excluding_login(self, work: asyncio.Future[Any], seconds: float | None) -> None:
        """Wait until the work is done.

        Raises TimeoutError if that takes more than `seconds`; the work then continues.
        """
        expired: asyncio.Future[None] = self.loop.create_future()
        timer = None if seconds is None else self.call_at(self.now() + seconds, lambda: expired.set_result(None))
        try:
            await asyncio.wait((work, expired), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if timer is not None:
                self.cancel(timer)
        if not work.done():
            raise TimeoutError
