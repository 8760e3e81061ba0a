"""Daemon threads for blocking handlers. One wake-up brings many results back to the serving thread."""

from __future__ import annotations

from _queue import SimpleQueue
from collections import deque
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Any, final

from msgspec import Struct

from longshore.errors import ToolError
from longshore.server.call import Call
from longshore.server.executor import invoke

if TYPE_CHECKING:
    from asyncio import Future

    from longshore.server.executor import Executor
    from longshore.telemetry.records import Outcome


class Part(Struct, eq=False):
    """Part of a call that runs on a thread, while the call's task waits for it on the loop."""

    call: Call
    work: Callable[[], Any]
    done: Future[Any]
    value: Any = None
    problem: BaseException | None = None

    def run(self) -> None:
        trace = self.call.trace
        try:
            if trace is None:
                self.value = self.work()
            else:
                from longshore.telemetry.trace import activate, deactivate

                token = activate(trace)
                try:
                    self.value = self.work()
                finally:
                    deactivate(token)
        except StopIteration as problem:  # a future does not take it, and coroutines raise this in its place
            self.problem = RuntimeError("the handler raised StopIteration")
            self.problem.__cause__ = problem
        except BaseException as problem:
            self.problem = problem

    def finish(self) -> None:
        """Give the result to the task, if it still waits."""
        if self.done.done():
            return
        if self.problem is None:
            self.done.set_result(self.value)
        else:
            self.done.set_exception(self.problem)


@final
class Threads:
    """A pool that grows with the calls running at once, and never waits for a stuck thread."""

    def __init__(self, executor: Executor) -> None:
        limits = executor.limits
        self._executor, self._replies = executor, executor.replies
        self._most = limits.running + limits.abandoned
        self._most_abandoned = limits.abandoned
        self._jobs: SimpleQueue[Call | Part | None] = SimpleQueue()
        self._results: deque[tuple[Call, bytes, Outcome] | Part] = deque()
        self._woken = False
        self.count = 0
        self._busy = 0  # only the serving thread uses it: calls between `run` and `_reap`
        self.abandoned: set[Call] = set()
        """Calls that have ended while their handler still runs. A thread can't be stopped, only counted."""

    def run(self, call: Call) -> None:
        """Run a call's handler on a thread, and end the call on the serving thread."""
        if len(self.abandoned) >= self._most_abandoned:
            self._executor.fail(call, "busy", self._why_busy(call), "refused")
        else:
            self._put(call, call)

    def run_part(self, call: Call, work: Callable[[], Any]) -> Future[Any]:
        """Run part of a call on a thread. Raises ToolError if every thread is held."""
        if len(self.abandoned) >= self._most_abandoned:
            raise ToolError(self._why_busy(call))
        assert self._executor.loop is not None
        part = Part(call, work, self._executor.loop.create_future())
        self._put(call, part)
        return part.done

    def _why_busy(self, call: Call) -> str:
        why = f"{len(self.abandoned)} earlier calls have ended but do not stop, and hold every thread"
        return f"{call.entry.name} can't run: {why}"

    def _put(self, call: Call, job: Call | Part) -> None:
        call.thread = True
        self._busy += 1
        if self._busy > self.count and self.count < self._most:
            self.count += 1
            Thread(target=self._work, name=f"longshore-{self.count}", daemon=True).start()
        self._jobs.put(job)

    def dismiss(self) -> None:
        """Stop every thread after its current call. Nothing may be run after that."""
        for _ in range(self.count):
            self._jobs.put(None)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            if isinstance(job, Part):
                job.run()
                self._results.append(job)
            else:
                self._results.append((job, *self._invoke(job)))
            if not self._woken:
                self._woken = True
                self._wake()
            del job

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
                result = results.popleft()
                call = result.call if isinstance(result, Part) else result[0]
                self._busy -= 1
                self.abandoned.discard(call)
                call.thread = False
                if isinstance(result, Part):
                    result.finish()
                else:
                    self._executor.end(*result)
        finally:
            if results and not self._woken:  # ending one call failed; the others follow
                self._woken = True
                self._wake()
