"""Starting the process of a command, with a pipe or a terminal for its output.

It is started from the caller's thread, which must be the event loop's: the kernel ends a process with its parent
*thread* if it is asked to, and that thread lives as long as the server.
"""

from __future__ import annotations

import os
import subprocess
from secrets import token_hex
from typing import Final

from msgspec import Struct

from longshore.errors import ToolError
from longshore.sandbox.launch import Launch

MARK: Final = "LONGSHORE_COMMAND"
"""A variable by which processes of a command are found that left its session and lost their parent."""
PIPE_BYTES: Final = 1 << 20
"""The most that a user's pipe may hold by default. With less a fast program waits for us."""
_ON_TERMINAL: Final = 'exec "$@" <>"$0" >&0 2>&0'
"""The leader of a session that opens a terminal gets it as its own. Only then do ctrl-c and /dev/tty work."""


class Started(Struct, frozen=True):
    """A process that was started, and our ends of its descriptors."""

    process: subprocess.Popen[bytes]
    mark: str
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
        started = _start(launch, launch.argv, stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, stdout=writer)
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    process, mark = started
    given = None if process.stdin is None else _detach(process)
    for descriptor in (reader, given):
        if descriptor is not None:
            os.set_blocking(descriptor, False)
    return Started(process, mark, reader, given, None)


def start_on_terminal(launch: Launch, rows: int, columns: int) -> Started:
    """Start a process on a new terminal of this size. Raises ToolError."""
    _check_program(launch)
    ours, theirs = os.openpty()
    try:
        set_size(ours, rows, columns)
        argv = ("/bin/sh", "-c", _ON_TERMINAL, os.ttyname(theirs), *launch.argv)
        process, mark = _start(launch, argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    except BaseException:
        os.close(ours)
        os.close(theirs)
        raise
    os.set_blocking(ours, False)
    return Started(process, mark, ours, ours, theirs)


def set_size(terminal: int, rows: int, columns: int) -> None:
    """Set the size of a terminal. The kernel tells the programs on it."""
    import termios

    termios.tcsetwinsize(terminal, (rows, columns))


def _start(launch: Launch, argv: tuple[str, ...], *, stdin: int, stdout: int) -> tuple[subprocess.Popen[bytes], str]:
    mark = token_hex(8)
    try:
        process = subprocess.Popen(
            argv,
            env={**launch.env, MARK: mark},
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
    return process, f"{MARK}={mark}"


def _not_started(launch: Launch, problem: OSError | ValueError) -> ToolError:
    """The error for a process that could not be started."""
    program = launch.argv[0]
    if not os.path.isdir(launch.cwd):
        return ToolError(f"there is no folder {launch.cwd!r} to run it in; give an existing one as cwd")
    if isinstance(problem, FileNotFoundError):
        return ToolError(f"there is no program {program!r}; install it, or give its full path")
    if isinstance(problem, PermissionError):
        return ToolError(f"{program!r} is not executable; run it by its interpreter, or chmod +x it")
    if isinstance(problem, OSError):
        return ToolError(f"{program!r} can't be started: {problem.strerror}")
    return ToolError(f"{program!r} can't be started: {problem}; leave out NUL characters")


def _check_program(launch: Launch) -> None:
    """Raise the error that the shell between us and the program could only print."""
    from shutil import which

    if not os.path.isdir(launch.cwd) or "\0" in "".join(launch.argv):
        return  # which starting it says
    if which(launch.argv[0], path=launch.env.get("PATH", os.defpath)) is None:
        raise _not_started(launch, FileNotFoundError())


def _detach(process: subprocess.Popen[bytes]) -> int:
    """The descriptor of a process's stdin, for us to close."""
    assert process.stdin is not None
    descriptor = os.dup(process.stdin.fileno())
    process.stdin.close()
    return descriptor


def _enlarge(pipe: int) -> None:
    try:
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except (AttributeError, OSError):
        pass  # not Linux, or the user's pipes hold too much already
