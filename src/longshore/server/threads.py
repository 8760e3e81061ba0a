"""Daemon threads for blocking handlers. One wake-up brings many results back to the serving thread."""

from __future__ import annotations

from _queue import SimpleQueue
from collections import deque
from threading import Thread
from typing import TYPE_CHECKING, final

from longshore.server.call import Call
from longshore.server.executor import invoke

if TYPE_CHECKING:
    from longshore.server.executor import Executor
    from longshore.telemetry.records import Outcome


@final
class Threads:
    """A pool that grows with the calls running at once, and never waits for a stuck thread."""

    def __init__(self, executor: Executor) -> None:
        limits = executor.limits
        self._executor, self._replies = executor, executor.replies
        self._most = limits.running + limits.abandoned
        self._most_abandoned = limits.abandoned
        self._jobs: SimpleQueue[Call | None] = SimpleQueue()
        self._results: deque[tuple[Call, bytes, Outcome]] = deque()
        self._woken = False
        self.count = 0
        self._busy = 0  # only the serving thread uses it: calls between `run` and `_reap`
        self.abandoned: set[Call] = set()
        """Calls that have ended while their handler still runs. A thread can't be stopped, only counted."""

    def run(self, call: Call) -> None:
        """Run a call's handler on a thread, and end the call on the serving thread."""
        if len(self.abandoned) >= self._most_abandoned:
            why = f"{len(self.abandoned)} earlier calls have ended but do not stop, and hold every thread"
            self._executor.fail(call, "busy", f"{call.entry.name} can't run: {why}", "refused")
            return
        call.thread = True
        self._busy += 1
        if self._busy > self.count and self.count < self._most:
            self.count += 1
            Thread(target=self._work, name=f"longshore-{self.count}", daemon=True).start()
        self._jobs.put(call)

    def dismiss(self) -> None:
        """Stop every thread after its current call. Nothing may be run after that."""
        for _ in range(self.count):
            self._jobs.put(None)

    def _work(self) -> None:
        while True:
            call = self._jobs.get()
            if call is None:
                return
            frame, outcome = self._invoke(call)
            self._results.append((call, frame, outcome))
            if not self._woken:
                self._woken = True
                self._wake()
            del call, frame

    def _invoke(self, call: Call) -> tuple[bytes, Outcome]:
        if call.ended:
            return b"", "cancelled"
        try:
            value = invoke(call)
            if call.entry.kind == "tool":
                call.arguments = None  # many calls may end before the loop sends their answers
            return self._replies.success(call, value), "ok"
        except BaseException as problem:
            return self._replies.exception(call, problem)

    def _wake(self) -> None:
        try:
            self._executor.call_threadsafe(self._reap)
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
                self.abandoned.discard(call)
                call.thread = False
                self._executor.end(call, frame, outcome)
        finally:
            if results and not self._woken:  # ending one call failed; the others follow
                self._woken = True
                self._wake()
