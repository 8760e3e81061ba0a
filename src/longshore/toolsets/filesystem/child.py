"""A child process that is read until it ends, its time is over or the caller gives up. It never outlives that."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

_CHECK_SECONDS: Final = 0.05
"""How often the caller is asked whether it has given up."""
_CHUNK: Final = 1 << 20
_PIPE_BYTES: Final = 1 << 20
"""The most that a user's pipe may hold by default. With less a fast program waits for us."""


class OutOfTime(Exception):
    """The time limit was reached and the process was killed."""


class Child:
    """A started process, alone in its process group."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float, check: Callable[[], None]) -> None:
        self._process, self._check = process, check
        self._seconds, self._deadline = seconds, monotonic() + seconds
        assert process.stdout is not None
        self._output = process.stdout.fileno()
        _enlarge(self._output)

    def chunks(self) -> Iterator[bytes]:
        """Its output. Raises OutOfTime, or what `check` raises, which is called several times a second."""
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        while True:
            self._check()
            left = self._deadline - monotonic()
            if left <= 0:
                raise OutOfTime(f"took longer than {self._seconds:g} s")
            if not poll.poll(min(left, _CHECK_SECONDS) * 1000):
                continue
            chunk = os.read(self._output, _CHUNK)
            if not chunk:
                return
            yield chunk

    def end(self) -> None:
        """Kill it and its own children, and wait for it."""
        if self._process.poll() is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def running(process: subprocess.Popen[bytes], seconds: float, check: Callable[[], None]) -> Generator[Child]:
    """Read a process that was started in a process group of its own; afterwards it has ended."""
    child = Child(process, seconds, check)
    try:
        yield child
    finally:
        child.end()


def _enlarge(pipe: int) -> None:
    try:
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (AttributeError, OSError):
        pass  # not Linux, or the user's pipes hold too much already
