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
from types import FrameType
from typing import TYPE_CHECKING, final

from longshore.registry.source_location import locate_frame
from longshore.server.call import Call
from longshore.telemetry.recorder import is_own

if TYPE_CHECKING:
    from longshore.server.executor import Executor

LOOK_SECONDS = 0.5
BLOCKED_SECONDS = 1.0
"""How long the loop may fail to answer before that is reported."""
FIX = "write `def`, which runs in a thread, or `await asyncio.to_thread(…)`"
_STANDARD = os.path.dirname(os.__file__) + os.sep
_LOOP = os.path.join("asyncio", "base_events.py")


@final
class Watchdog:
    """Watches the loop of one executor."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._reported: set[str] = set()

    def start(self) -> None:
        self._executor.watched = True
        start_new_thread(self._watch, ())

    def _watch(self) -> None:
        executor = self._executor
        while executor.watched:
            sleep(LOOK_SECONDS)
            try:
                self._look()
            except BaseException:
                executor.watched = False  # the next call starts another thread
                raise
            if not self._is_busy():
                executor.watched = False
                executor.watched = self._is_busy()  # a call that began meanwhile may have started no other thread

    def _look(self) -> None:
        before = self._find()
        if before is not None and not self._loop_answers():
            after = self._find()
            if after is not None and after[0] is before[0]:
                self._report(*after)

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

    def _find(self) -> tuple[Call | FrameType, FrameType] | None:
        """The author's frame that the serving thread is in, after the call that runs it.

        If the stack shows no call, the outermost frame stands for it: it tells one iteration of the loop from the next.
        """
        frames: list[FrameType] = []
        call: object = None
        for frame in self._stack():
            if frame.f_code.co_filename.endswith(_LOOP) or call is not None:
                break
            if not is_own(frame.f_code.co_filename):
                frames.append(frame)
            elif isinstance(frame.f_locals.get("call"), Call):
                call = frame.f_locals["call"]
        if not frames:
            return None
        authors = next((each for each in frames if _is_authors(each)), frames[-1])
        return call if isinstance(call, Call) else frames[-1], authors

    def _stack(self) -> list[FrameType]:
        """The frames of the serving thread, the innermost first.

        It runs on meanwhile: CPython 3.11 was seen to return a function as the caller of a frame that had ended.
        """
        frame: object = sys._current_frames().get(self._executor.main_thread)  # pyright: ignore[reportPrivateUsage]
        frames: list[FrameType] = []
        while isinstance(frame, FrameType):
            frames.append(frame)
            frame = frame.f_back
        return frames

    def _report(self, runner: Call | FrameType, frame: FrameType) -> None:
        where = locate_frame(frame)
        if isinstance(runner, Call):
            text = f"{runner.entry.name} has blocked the event loop for {BLOCKED_SECONDS:g} s at {where}"
        else:
            names = sorted({call.entry.name for call in tuple(self._executor.live) if call.running})
            if not names:
                return  # the calls have ended meanwhile, so it is not known whose code it was
            text = f"{where} has blocked the event loop for {BLOCKED_SECONDS:g} s while {', '.join(names)} ran"
        if text not in self._reported:
            self._reported.add(text)
            self._executor.recorder.problem("warning", f"{text}: no other call proceeds; {FIX}")


def _is_authors(frame: FrameType) -> bool:
    """Whether a frame is in a file of the author, not in a library."""
    path = frame.f_code.co_filename
    return not path.startswith((_STANDARD, "<")) and "site-packages" not in path
