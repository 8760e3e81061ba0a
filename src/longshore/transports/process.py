"""A server process's life: it ends on SIGTERM, SIGINT, SIGHUP and with its parent, soon and for certain.

The handler has the loop end, or raises `Stopped` where the main thread is outside of it. Should the code there swallow
that or sit in C, a watchdog thread ends the process anyway. A second signal ends it at once. No child process survives
any of these.

Python runs a handler between two bytecodes. A signal that comes after the last of them and before a system call blocks
would wait for the call to return, which may be for ever; so the kernel's part of the handler also writes to a pipe, and
a thread that reads it nudges the main thread until the handler has run.
"""

from __future__ import annotations

import os
import signal
from _thread import get_ident, start_new_thread
from collections.abc import Callable
from time import monotonic, sleep
from types import FrameType
from typing import Any, final

from longshore.limits import Limits
from longshore.sandbox.descendants import adopt, end_all, signal_on_parent_death
from longshore.server.stopping import Stopped

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
NUDGE = getattr(signal, "SIGRTMIN", signal.SIGURG)
"""Says that the parent has ended, and interrupts a system call; nobody else uses it."""
_WATCH_SECONDS = 0.5
_NUDGE_SECONDS = 0.01


@final
class Process:
    """Stop signals and child processes of the process that serves."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._parent = os.getppid()
        self._main = get_ident()
        self._code = 0
        self._ending = False
        self._before: dict[int, Any] = {}
        self._wakeup = -1
        self.threads = 0
        """How many were started here. They have nothing to say to a client; Python counts one only once it runs."""
        self.end_soon: Callable[[], bool] = lambda: False
        """Has the main thread end by itself. False: only an exception can make it."""

    def install(self) -> None:
        """Take the stop signals over, until `end`. Only the main thread may; elsewhere they stay whoever's they are."""
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
        self.threads += 1
        start_new_thread(self._watch_signals, (reader,))

    def settle_in(self) -> None:
        """What can wait until the first requests are answered: adopt orphans, and hear of the parent's end."""
        adopt()
        if not self._before or not signal_on_parent_death(NUDGE):
            self.threads += 1
            start_new_thread(self._watch_parent, ())
        if os.getppid() != self._parent:
            os.kill(os.getpid(), signal.SIGTERM)

    def leave(self) -> None:
        """Carry on, unless a signal has ended the serving: then with its exit code."""
        if self._code:
            raise Stopped(self._code)

    def end(self) -> None:
        """Leave nothing behind."""
        self._ending = True
        end_all(self._limits.term_grace_seconds)
        if self._before and not self._code:
            signal.set_wakeup_fd(-1)
            os.close(self._wakeup)  # ends the thread that reads it
            for signum, handler in self._before.items():
                signal.signal(signum, handler)

    def end_within(self, seconds: float) -> None:
        """From now on the process has this long to end by itself."""
        start_new_thread(self._bite, (seconds, self._code))

    def end_untold(self) -> None:
        """The process was told to end by other means than a signal: it has as long as one gives."""
        self._ending = True
        self.end_within(self._limits.stop_seconds)

    def _stop(self, signum: int, _: FrameType | None) -> None:
        if self._code:
            end_all(0)
            os._exit(128 + signum)
        self._code = 128 + signum
        if self._ending:
            return  # raising now would only keep it from cleaning up
        start_new_thread(self._bite, (self._limits.stop_seconds, self._code))
        if not self.end_soon():
            raise Stopped(self._code)

    def _bite(self, seconds: float, code: int) -> None:
        sleep(seconds)
        end_all(0)
        os._exit(code)

    def _nudged(self, _: int, frame: FrameType | None) -> None:
        # The kernel also sends it when only the thread that started us has ended.
        if os.getppid() != self._parent and not self._code and not self._ending:
            self._stop(signal.SIGTERM, frame)

    def _watch_signals(self, reader: int) -> None:
        while signals := os.read(reader, 64):
            if not set(signals).isdisjoint(STOP_SIGNALS) or os.getppid() != self._parent:
                self._see_to_it(signal.SIGTERM)
        os.close(reader)

    def _see_to_it(self, signum: int) -> None:
        """Nudge the main thread until the handler has run; end the process if it never can."""
        end = monotonic() + self._limits.stop_seconds
        while not self._code:
            sleep(_NUDGE_SECONDS)
            if monotonic() > end:
                self._bite(0, 128 + signum)
            if not self._code:
                signal.pthread_kill(self._main, NUDGE)

    def _watch_parent(self) -> None:
        while os.getppid() == self._parent:
            sleep(_WATCH_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
