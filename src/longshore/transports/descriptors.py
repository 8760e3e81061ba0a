"""The protocol's file descriptors, moved to numbers that tools do not use.

Fd 0 and 1 are moved before any tool runs: a `print`, a C library's write to fd 1 or a child that reads fd 0 must not
reach the protocol. Afterwards fd 1 is stderr and fd 0 is /dev/null. Children do not inherit the moved ones.
"""

from __future__ import annotations

import os
import stat
import sys

_F_SETPIPE_SZ = 1031
LARGE_PIPE_BYTES = 1 << 20
"""The size of a pipe for large frames; reading them in 64 KiB pieces costs more than parsing them."""


def claim() -> tuple[int, int]:
    """Move stdin and stdout; return their new descriptors. Raises ConfigError if one is closed."""
    try:
        reader, writer = _move(0), _move(1)
    except OSError:
        from longshore.errors import ConfigError

        fix = "start it with pipes, as MCP clients do, or serve over HTTP (longshore serve --http)"
        raise ConfigError(f"stdio: the standard input or output is closed; {fix}") from None
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    if null == 2:  # there was no stderr: now it is /dev/null
        os.set_inheritable(2, True)
    else:
        os.close(null)
    os.dup2(2, 1)
    # Text that was printed before and is still in Python's buffer goes to stderr too.
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        pass
    return reader, writer


def _move(fd: int) -> int:
    """A copy of a descriptor with a number other than the standard three, of which some may be closed."""
    copy = os.dup(fd)
    if copy > 2:
        return copy
    try:
        return _move(fd)
    finally:
        os.close(copy)


def is_unattended(fd: int) -> bool:
    """Whether no client is at the other end: it is a terminal, or /dev/null."""
    return os.isatty(fd) or _is_null(fd)


def never_blocks(fd: int) -> bool:
    """Whether every read returns at once: it is a regular file, or /dev/null. Epoll refuses both."""
    return stat.S_ISREG(os.fstat(fd).st_mode) or _is_null(fd)


def _is_null(fd: int) -> bool:
    found = os.fstat(fd)
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == os.stat(os.devnull).st_rdev


def unblock(fd: int) -> int:
    """A descriptor for the same peer on which writes don't block, without making a shared one non-blocking.

    O_NONBLOCK belongs to the open file, which other processes may share. A FIFO is opened again; a socket is set
    non-blocking unless stderr is the same one; a terminal or a file stays blocking.
    """
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode):
        try:
            return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return fd
    if stat.S_ISSOCK(mode) and not os.path.sameopenfile(fd, 2):
        os.set_blocking(fd, False)
    return fd


def grow(fd: int) -> None:
    """Enlarge a pipe, if the descriptor is one and the system allows it."""
    import fcntl

    try:
        fcntl.fcntl(fd, _F_SETPIPE_SZ, LARGE_PIPE_BYTES)
    except OSError:
        pass
