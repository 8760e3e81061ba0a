"""Daemon threads for blocking handlers. Results come back to the loop with one wake-up for many."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, final

from longshore.limits import Limits
from longshore.server.call import Call

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


@final
class Threads:
    """A pool that grows to what runs at once, and never waits for a thread that will not end."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        limits: Limits,
        run: Callable[[Call], tuple[bytes, Any]],
        done: Callable[[Call, bytes, Any], None],
    ) -> None:
        self._loop = loop
        self._most = limits.running + limits.abandoned
        self._most_abandoned = limits.abandoned
        self._run = run
        self._done = done
        self._jobs: SimpleQueue[Call | None] = SimpleQueue()
        self._results: deque[tuple[Call, bytes, Any]] = deque()
        self._woken = False
        self._count = 0
        self._busy = 0  # touched by the main thread alone: a call is busy from put to reap
        self._given_up: set[Call] = set()

    @property
    def abandoned(self) -> int:
        return len(self._given_up)

    @property
    def exhausted(self) -> bool:
        return self.abandoned >= self._most_abandoned

    def put(self, call: Call) -> None:
        self._busy += 1
        if self._busy > self._count and self._count < self._most:
            self._count += 1
            Thread(target=self._work, name=f"longshore-{self._count}", daemon=True).start()
        self._jobs.put(call)

    def abandon(self, call: Call) -> None:
        """The call has ended but its thread is still in it."""
        self._given_up.add(call)

    def dismiss(self) -> None:
        """Let every thread go when it has done what it has to do. Nothing is put here any more."""
        for _ in range(self._count):
            self._jobs.put(None)

    def _work(self) -> None:
        while True:
            call = self._jobs.get()
            if call is None:
                return
            frame, outcome = (b"", "cancelled") if call.ended else self._run(call)
            self._results.append((call, frame, outcome))
            if not self._woken:
                self._woken = True
                self._wake()
            del call, frame

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._reap)
        except RuntimeError:
            pass  # the loop is closed: the process is ending

    def _reap(self) -> None:
        # The flag falls before we look: who adds a result after our look finds it down, and wakes us again.
        self._woken = False
        results = self._results
        try:
            while results:
                call, frame, outcome = results.popleft()
                self._busy -= 1
                self._given_up.discard(call)
                self._done(call, frame, outcome)
        finally:
            if results and not self._woken:  # one could not be ended; the others can
                self._woken = True
                self._wake()
