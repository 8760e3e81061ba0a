"""Daemon threads for blocking handlers. One wake-up brings many results back to the serving thread."""

from __future__ import annotations

from _queue import SimpleQueue
from collections import deque
from collections.abc import Callable
from threading import Thread
from typing import Any, final

from longshore.limits import Limits
from longshore.server.call import Call


@final
class Threads:
    """A pool that grows with the calls running at once, and never waits for a stuck thread."""

    def __init__(
        self,
        call_threadsafe: Callable[[Callable[[], None]], None],
        limits: Limits,
        run: Callable[[Call], tuple[bytes, Any]],
        done: Callable[[Call, bytes, Any], None],
    ) -> None:
        """`run` is called on a thread, and `done` with its result on the serving thread, by `call_threadsafe`."""
        self._call_threadsafe = call_threadsafe
        self._most = limits.running + limits.abandoned
        self._most_abandoned = limits.abandoned
        self._run = run
        self._done = done
        self._jobs: SimpleQueue[Call | None] = SimpleQueue()
        self._results: deque[tuple[Call, bytes, Any]] = deque()
        self._woken = False
        self.count = 0
        self._busy = 0  # only the serving thread uses it: calls between `put` and `_reap`
        self._abandoned: set[Call] = set()

    @property
    def abandoned(self) -> int:
        return len(self._abandoned)

    @property
    def exhausted(self) -> bool:
        return self.abandoned >= self._most_abandoned

    def put(self, call: Call) -> None:
        self._busy += 1
        if self._busy > self.count and self.count < self._most:
            self.count += 1
            Thread(target=self._work, name=f"longshore-{self.count}", daemon=True).start()
        self._jobs.put(call)

    def abandon(self, call: Call) -> None:
        """Count the thread of a call that has ended while its handler still runs."""
        self._abandoned.add(call)

    def dismiss(self) -> None:
        """Stop every thread after its current call. Nothing may be put after that."""
        for _ in range(self.count):
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
            self._call_threadsafe(self._reap)
        except RuntimeError:
            pass  # the loop is closed: the process is ending

    def _reap(self) -> None:
        # The flag is cleared before the look: a thread that adds a result afterwards sets it and wakes us again.
        self._woken = False
        results = self._results
        try:
            while results:
                call, frame, outcome = results.popleft()
                self._busy -= 1
                self._abandoned.discard(call)
                self._done(call, frame, outcome)
        finally:
            if results and not self._woken:  # ending one call failed; the others follow
                self._woken = True
                self._wake()
