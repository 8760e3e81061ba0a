"""The protocol's own file descriptors, out of the reach of everything else in the process.

Fd 0 and 1 are moved away before any tool can touch them: a `print`, a C library's write to fd 1 or a child that
reads fd 0 must not reach the protocol. Afterwards fd 1 is stderr and fd 0 is /dev/null. Children inherit neither of
the moved ones.
"""

from __future__ import annotations

import os
import stat
import sys

_F_SETPIPE_SZ = 1031
LARGE_PIPE_BYTES = 1 << 20
"""What a pipe is grown to when large frames pass through it; 64 KiB pieces cost more than the parsing."""


def claim() -> tuple[int, int]:
    """Take stdin and stdout for the protocol; give the descriptors that they have now."""
    reader, writer = _move(0), _move(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    if null == 2:  # there was no stderr; from now on there is
        os.set_inheritable(2, True)
    else:
        os.close(null)
    os.dup2(2, 1)
    # What was printed before this, and still waits in Python's buffer, goes to stderr with the rest.
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        pass
    return reader, writer


def _move(fd: int) -> int:
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def is_regular(fd: int) -> bool:
    return stat.S_ISREG(os.fstat(fd).st_mode)


def unblock(fd: int) -> int:
    """A descriptor for the same peer on which writes never block, where that can be had without touching anyone else's.

    O_NONBLOCK belongs to the open file, which may be shared. A FIFO is opened anew; a socket is taken as it is unless
    stderr is the same one; a terminal or a file stays blocking, and hurts nobody.
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
    """Make a pipe roomier, if it is one and the system allows it."""
    import fcntl

    try:
        fcntl.fcntl(fd, _F_SETPIPE_SZ, LARGE_PIPE_BYTES)
    except OSError:
        pass
