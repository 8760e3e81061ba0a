"""A watchdog that reports code blocking the event loop.

A blocking call in an `async def` holds up every other call, and code on the loop can't report it. So a thread runs
while async calls do, and ends with them: an idle server has none. Twice a second it looks whether the serving thread is
in an author's code; only then does it ask the loop to answer, and reports the code that kept it from answering.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, start_new_thread
from time import sleep
from types import CodeType, FrameType
from typing import TYPE_CHECKING, NamedTuple, final

from longshore.registry.source_location import locate_frame
from longshore.telemetry.recorder import is_own

if TYPE_CHECKING:
    from longshore.server.call import Call
    from longshore.server.executor import Executor

LOOK_SECONDS = 0.5
BLOCKED_SECONDS = 1.0
"""How long the loop may fail to answer before that is reported."""
FIX = "write `def`, which runs in a thread, or `await asyncio.to_thread(…)`"
_STANDARD = os.path.dirname(os.__file__) + os.sep
_LOOP = os.path.join("asyncio", "base_events.py")


class StackSample(NamedTuple):
    """The author's frame that the serving thread is in, and the call that runs it, if the stack shows one."""

    frame: FrameType
    call: Call | None
    outermost: FrameType
    """The outermost of those frames. Without a call it tells one iteration of the loop from the next."""

    def is_same(self, other: StackSample) -> bool:
        """Whether both were taken in one call, or without a call in one iteration of the loop."""
        return self.call is other.call and (self.call is not None or self.outermost is other.outermost)


@final
class Watchdog:
    """Watches the loop of one executor. `runners` are the functions that run handlers; each has a local `call`."""

    def __init__(self, executor: Executor, runners: frozenset[CodeType]) -> None:
        self._executor, self._runners = executor, runners
        self._reported: set[tuple[str, str]] = set()
        self._current: object = None
        """Identifies the current watchdog thread: an older one ends."""

    def start(self) -> None:
        self._executor.watched = True
        self._current = current = object()
        start_new_thread(self._run, (current,))

    def _run(self, current: object) -> None:
        try:
            self._watch(current)
        except BaseException:
            if self._current is current:
                self._executor.watched = False  # the next call starts another thread
            raise

    def _watch(self, current: object) -> None:
        executor = self._executor
        while executor.watched and self._current is current:
            sleep(LOOK_SECONDS)
            before = self._find()
            if before is not None and not self._loop_answers():
                after = self._find()
                if after is not None and after.is_same(before):
                    self._report(after)
            if not self._is_busy():
                executor.watched = False
                if self._is_busy() and self._current is current:  # a call began meanwhile, and started no other thread
                    executor.watched = True

    def _is_busy(self) -> bool:
        return self._executor.running > 0

    def _loop_answers(self) -> bool:
        loop, answered = self._executor.loop, allocate_lock()
        answered.acquire()
        try:
            if loop is not None:
                loop.call_soon_threadsafe(answered.release)
        except RuntimeError:
            return True  # it has closed
        return answered.acquire(timeout=BLOCKED_SECONDS)

    def _find(self) -> StackSample | None:
        frame = sys._current_frames().get(self._executor.serving_thread)  # pyright: ignore[reportPrivateUsage]
        frames: list[FrameType] = []
        call: Call | None = None
        while frame is not None and not frame.f_code.co_filename.endswith(_LOOP):
            if frame.f_code in self._runners:
                call = frame.f_locals.get("call")  # None: it has just returned
                break
            if not is_own(frame.f_code.co_filename):
                frames.append(frame)
            frame = frame.f_back
        if not frames:
            return None
        return StackSample(next((each for each in frames if _is_authors(each)), frames[-1]), call, frames[-1])

    def _report(self, found: StackSample) -> None:
        where = locate_frame(found.frame)
        if found.call is not None:
            who = f"{found.call.entry.name} has blocked the event loop for {BLOCKED_SECONDS:g} s at {where}"
        else:
            names = sorted({call.entry.name for call in tuple(self._executor.live) if call.running})
            who = f"{where} has blocked the event loop for {BLOCKED_SECONDS:g} s while {', '.join(names)} ran"
        key = ("" if found.call is None else found.call.entry.name, where)
        if key not in self._reported:
            self._reported.add(key)
            self._executor.recorder.problem("warning", f"{who}: no other call proceeds; {FIX}")


def _is_authors(frame: FrameType) -> bool:
    """Whether a frame is in a file of the author, not in a library."""
    path = frame.f_code.co_filename
    return not path.startswith((_STANDARD, "<")) and "site-packages" not in path
