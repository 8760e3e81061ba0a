"""Starting the process of a command, with a pipe or a terminal for its output.

It is started from the caller's thread, which must be the event loop's: on request, the kernel ends a process with its
parent *thread*, and that thread lives as long as the server.
"""

from __future__ import annotations

import errno
import os
import subprocess
from typing import Final

from msgspec import Struct

from longshore.errors import ToolError
from longshore.sandbox.launch import Launch

PIPE_BYTES: Final = 1 << 20
"""The most that a user's pipe may hold by default. With less a fast program waits for us."""


class Started(Struct, frozen=True):
    """A started process, and the server's ends of its descriptors."""

    process: subprocess.Popen[bytes]
    output: int
    input: int | None
    """The same as `output` if it is a terminal."""
    terminal: int | None
    """The terminal's other end. While it is open, reading never fails between two programs that use it."""


def start_with_pipe(launch: Launch, stdin: bytes | None) -> Started:
    """Start a process whose stdout and stderr are one pipe. Its stdin is empty without `stdin`. Raises ToolError."""
    reader, writer = os.pipe()
    _enlarge(reader)
    try:
        process = _start(launch, subprocess.PIPE if stdin else subprocess.DEVNULL, writer)
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    os.set_blocking(reader, False)
    return Started(process, reader, None if process.stdin is None else _detach(process), None)


def start_on_terminal(launch: Launch, rows: int, columns: int) -> Started:
    """Start a process on a new terminal of this size, which the launch makes its own. Raises ToolError."""
    ours, theirs = os.openpty()
    try:
        set_size(ours, rows, columns)
        process = _start(launch, theirs, theirs)
    except BaseException:
        os.close(ours)
        os.close(theirs)
        raise
    os.set_blocking(ours, False)
    return Started(process, ours, ours, theirs)


def set_size(terminal: int, rows: int, columns: int) -> None:
    """Set the size of a terminal. The kernel notifies the programs on it."""
    import termios

    termios.tcsetwinsize(terminal, (rows, columns))


def _start(launch: Launch, stdin: int, stdout: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            launch.argv,
            env=launch.env,
            cwd=launch.cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            pass_fds=launch.pass_fds,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as problem:
        raise _not_started(launch, problem) from None


def _not_started(launch: Launch, problem: OSError | ValueError) -> ToolError:
    """The error for a process that could not be started."""
    program = launch.argv[0]
    if not os.path.isdir(launch.cwd):
        return ToolError(f"there is no folder {launch.cwd!r} to run it in; give an existing one as cwd")
    if isinstance(problem, OSError) and problem.errno == errno.E2BIG:
        return ToolError("an argument is longer than the system takes, 128 KiB: put it into a file, or into stdin")
    if isinstance(problem, FileNotFoundError):
        return ToolError(f"there is no program {program!r}; install it, or give its full path")
    if isinstance(problem, PermissionError):
        return ToolError(f"{program!r} is not executable; run it by its interpreter, or chmod +x it")
    if isinstance(problem, OSError):
        return ToolError(f"{program!r} can't be started: {problem.strerror}")
    return ToolError(f"{program!r} can't be started: {problem}; leave out NUL characters")


def _detach(process: subprocess.Popen[bytes]) -> int:
    """The descriptor of a process's stdin, for us to close."""
    assert process.stdin is not None
    descriptor = os.dup(process.stdin.fileno())
    process.stdin.close()
    os.set_blocking(descriptor, False)
    return descriptor


def _enlarge(pipe: int) -> None:
    try:
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except (AttributeError, OSError):
        pass  # not Linux, or the user's pipes exceed their limit already
