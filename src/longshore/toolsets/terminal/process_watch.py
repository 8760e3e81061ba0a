"""Waiting on the event loop for the end of a process without reaping it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final, final

_POLL_SECONDS: Final = 0.01
"""Where the kernel has no pidfd."""


@final
class ProcessWatch:
    """Calls `ended` once when a child process has ended, unless it is closed before."""

    def __init__(self, pid: int, ended: Callable[[], None]) -> None:
        self._pid, self._ended = pid, ended
        self._loop = asyncio.get_running_loop()
        self._descriptor: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        try:
            self._descriptor = os.pidfd_open(pid)
        except (AttributeError, OSError):  # not Linux, or too old a kernel
            self._poll()
        else:
            self._loop.add_reader(self._descriptor, self._report)

    def close(self) -> None:
        """Stop waiting. May be called again."""
        if self._timer is not None:
            self._timer.cancel()
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)

    def _poll(self) -> None:
        if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            self._timer = self._loop.call_later(_POLL_SECONDS, self._poll)
        else:
            self._report()

    def _report(self) -> None:
        self.close()
        self._ended()
