"""A server process ends on SIGTERM, SIGINT, SIGHUP and with its parent, soon and without fail.

The signal handler ends the loop, or raises `Stopped` where the main thread is outside of it. If the code there swallows
that or blocks in C, a thread ends the process anyway. A second signal ends it at once. No child process survives any
of these.

Python runs a handler between two bytecodes. A signal that comes after the last of them and before a system call blocks
would wait for the call to return, possibly forever; so the kernel's part of the handler also writes to a pipe, and a
thread that reads it interrupts the main thread until the handler has run.
"""

from __future__ import annotations

import os
from _thread import get_ident, start_new_thread
from collections.abc import Callable
from time import monotonic, sleep
from types import FrameType
from typing import TYPE_CHECKING, Any, final

from longshore.limits import Limits
from longshore.server.call import Stopped

if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # `signal` makes enums of the constants, which takes 0.5 ms of a cold start

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
NUDGE = getattr(signal, "SIGRTMIN", signal.SIGURG)
"""Sent when the parent has ended, and to interrupt a system call. Nothing else uses it."""
_WATCH_SECONDS = 0.5
_NUDGE_SECONDS = 0.01
TICK_SECONDS = 10.0
"""Between two wake-ups of an idle process."""


def next_tick(now: float) -> float:
    """The next multiple of ten seconds on a loop's clock, so that all periodic work wakes an idle process once."""
    return (now // TICK_SECONDS + 1) * TICK_SECONDS


@final
class Process:
    """Stop signals and child processes of the serving process."""

    def __init__(self, limits: Limits, extra_seconds: Callable[[], float] = float) -> None:
        """`extra_seconds` returns how much longer than `limits.stop_seconds` the end may take for toolsets."""
        self._limits = limits
        self._extra_seconds = extra_seconds
        self._end_soon: Callable[[], bool] = lambda: False
        self._parent = os.getppid()
        self._main = get_ident()
        self._code = 0
        self._ending = False
        self._before: dict[int, Any] = {}
        self._wakeup = -1
        self.threads = 0
        """How many threads of ours have begun. They send nothing to a client."""

    def install(self) -> None:
        """Handle the stop signals until `end`. Does nothing outside the main thread: Python allows none there."""
        try:
            self._before[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._stop)
        except ValueError:
            return
        reader, self._wakeup = os.pipe()
        os.set_blocking(self._wakeup, False)
        for signum in STOP_SIGNALS[1:]:
            self._before[signum] = signal.signal(signum, self._stop)
        self._before[NUDGE] = signal.signal(NUDGE, self._nudged)
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        start_new_thread(self._watch_signals, (reader,))

    def end_by(self, end_soon: Callable[[], bool]) -> None:
        """Stop the main thread by `end_soon` from now on. It returns False if only an exception can stop the thread."""
        self._end_soon = end_soon

    def watch_family(self) -> None:
        """Adopt orphaned descendants, and watch for the parent's end. Called after the first answers."""
        from longshore.sandbox.descendants import adopt, signal_on_parent_death

        adopt()
        if not self._before or not signal_on_parent_death(NUDGE):
            start_new_thread(self._watch_parent, ())
        if os.getppid() != self._parent:
            os.kill(os.getpid(), signal.SIGTERM)

    def leave(self) -> None:
        """Raise `Stopped` with the exit code if a signal has ended the serving."""
        if self._code:
            raise Stopped(self._code)

    def end(self) -> None:
        """End child processes and restore the signal handlers."""
        self._ending = True
        _end_children(self._limits.term_grace_seconds)
        if self._before and not self._code:
            signal.set_wakeup_fd(-1)
            os.close(self._wakeup)  # ends the thread that reads it
            for signum, handler in self._before.items():
                signal.signal(signum, handler)

    def end_within(self, seconds: float) -> None:
        """Force the process to exit after this many seconds, unless it has ended by then."""
        start_new_thread(self._force_exit, (seconds, self._code))

    def end_unsignalled(self) -> None:
        """Begin the end of a process that was stopped by other means than a signal, with the same deadline."""
        self._ending = True
        self.end_within(self._limits.stop_seconds + self._extra_seconds())

    def _stop(self, signum: int, _: FrameType | None) -> None:
        if self._code:
            _end_children(0)
            os._exit(128 + signum)
        self._code = 128 + signum
        if self._ending:
            return  # raising would interrupt the cleanup
        start_new_thread(self._force_exit, (self._limits.stop_seconds + self._extra_seconds(), self._code))
        if not self._end_soon():
            raise Stopped(self._code)

    def _force_exit(self, seconds: float, code: int) -> None:
        sleep(seconds)
        _end_children(0)
        os._exit(code)

    def _nudged(self, _: int, frame: FrameType | None) -> None:
        # The kernel also sends it when only the thread that started us has ended.
        if os.getppid() != self._parent and not self._code and not self._ending:
            self._stop(signal.SIGTERM, frame)

    def _watch_signals(self, reader: int) -> None:
        self.threads += 1  # only once it runs: before, the interpreter does not count it either
        while signals := os.read(reader, 64):
            if not set(signals).isdisjoint(STOP_SIGNALS) or os.getppid() != self._parent:
                self._ensure_handled(signal.SIGTERM)
        os.close(reader)

    def _ensure_handled(self, signum: int) -> None:
        """Interrupt the main thread until the handler has run; force an exit if it never does."""
        end = monotonic() + self._limits.stop_seconds
        while not self._code:
            sleep(_NUDGE_SECONDS)
            if monotonic() > end:
                self._force_exit(0, 128 + signum)
            if not self._code:
                signal.pthread_kill(self._main, NUDGE)

    def _watch_parent(self) -> None:
        self.threads += 1
        while os.getppid() == self._parent:
            sleep(_WATCH_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)


def _end_children(grace: float) -> None:
    from longshore.sandbox.descendants import end_all

    end_all(grace)


def import_asyncio() -> None:
    """Import the modules that the first call needs, which takes 40 ms, while the client does not wait."""
    from importlib import import_module

    import_module("asyncio")
    import_module("longshore.server.watchdog")


def release_threads(process: Process, limits: Limits) -> None:
    """Limit how long a tool's thread can delay the end of the process."""
    import sys

    threading = sys.modules.get("threading")
    if threading is not None and any(
        not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()
    ):
        process.end_within(limits.stop_seconds / 3)  # closing may have taken two thirds
