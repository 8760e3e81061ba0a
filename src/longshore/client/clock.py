"""The time that counts. What somebody is owed is not late while they let others wait themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, final

LOOK_SECONDS = 0.25
"""How often it is looked whether a person still logs in: nobody tells when that begins and ends."""


@final
class Clock:
    """It stands while somebody is waited for who may take long. Whoever stops it has it go on again."""

    __slots__ = ("_lost", "_since", "_stops", "_time")

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._stops = 0
        self._since = 0.0
        self._lost = 0.0
        """The time in all for which it has stood."""

    def now(self) -> float:
        return (self._since if self._stops else self._time()) - self._lost

    @property
    def stands(self) -> bool:
        return self._stops > 0

    def stop(self) -> None:
        if not self._stops:
            self._since = self._time()
        self._stops += 1

    def go_on(self) -> None:
        self._stops -= 1
        if not self._stops:
            self._lost += self._time() - self._since


async def patiently(work: asyncio.Future[Any], seconds: float | None, waits: Callable[[], bool]) -> float:
    """Wait until it is done; gives the time that it took, without that in which a person was waited for.

    Raises TimeoutError if that is more than `seconds`. The work goes on then.
    """
    time = asyncio.get_running_loop().time
    took, before = 0.0, time()
    while not work.done():
        left = None if seconds is None else min(LOOK_SECONDS, max(seconds - took, 0.0))
        await asyncio.wait((work,), timeout=left)
        now = time()
        if not waits():
            took += now - before
            if seconds is not None and took >= seconds and not work.done():
                raise TimeoutError
        before = now
    return took
