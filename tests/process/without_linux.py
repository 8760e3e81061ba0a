"""Makes this process look like one without Linux: import it first. Given code as arguments, it runs that.

What only Linux has is taken out of the standard library and the C library, and /proc can't be opened.
"""

from __future__ import annotations

import builtins
import ctypes
import fcntl
import os
import resource
import select
import selectors
import signal
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

selectors.DefaultSelector = selectors.SelectSelector  # type: ignore[misc,assignment]
sys.platform = "darwin"

ONLY_LINUX: dict[ModuleType, str] = {
    os: "memfd_create pidfd_open eventfd splice copy_file_range posix_fadvise setns unshare getrandom "
    "getxattr setxattr listxattr sched_getaffinity sched_setaffinity setresuid getresuid fdatasync pipe2 O_PATH "
    "O_TMPFILE O_DIRECT O_NOATIME P_PIDFD MFD_CLOEXEC RWF_NOWAIT",
    signal: "SIGRTMIN SIGRTMAX SIGPWR SIGSTKFLT SIGPOLL sigtimedwait sigwaitinfo pidfd_send_signal",
    select: "epoll",
    socket: "SO_PEERCRED SO_MARK SOCK_CLOEXEC SOCK_NONBLOCK AF_NETLINK AF_VSOCK TCP_USER_TIMEOUT TCP_CORK TCP_QUICKACK",
    resource: "prlimit RLIMIT_NICE RLIMIT_RTPRIO RLIMIT_SIGPENDING RLIMIT_MSGQUEUE RUSAGE_THREAD",
    fcntl: "F_ADD_SEALS F_SEAL_WRITE F_NOTIFY F_SETPIPE_SZ F_OFD_SETLK",
}
ONLY_LINUX_C = {
    "prctl",
    "inotify_init1",
    "inotify_add_watch",
    "unshare",
    "mount",
    "umount2",
    "setns",
    "statx",
    "renameat2",
}

for module, names in ONLY_LINUX.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)


class NumberedCall:
    """The function `syscall`. It is there on macOS too, where the numbers are those of other calls."""

    def __call__(self, number: Any, *_: Any) -> int:
        os.write(2, f"the system call {number} was called by its number\n".encode())
        os._exit(9)


_find = ctypes.CDLL.__getattr__


def _find_other(self: ctypes.CDLL, name: str) -> Any:
    if name in ONLY_LINUX_C:
        raise AttributeError(name)
    return NumberedCall() if name == "syscall" else _find(self, name)


ctypes.CDLL.__getattr__ = _find_other  # type: ignore[method-assign]


def _without_proc(function: Any) -> Any:
    def call(path: Any, *args: Any, **options: Any) -> Any:
        if isinstance(path, (str, bytes)) and os.fsdecode(path).startswith("/proc/"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return function(path, *args, **options)

    return call


os.open, builtins.open = _without_proc(os.open), _without_proc(open)
os.path.isdir, os.path.exists = (
    lambda path, ask=ask: not os.fsdecode(path).startswith("/proc/") and ask(path)
    for ask in (os.path.isdir, os.path.exists)
)


def import_all(package: Path) -> None:
    """Import every module of ours, except those of an extra's library, which is not ours."""
    import importlib

    for path in sorted(package.rglob("*.py")):
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        if name.endswith("__main__") or ".postgres" in name:
            continue
        importlib.import_module(name.removesuffix(".__init__"))


if __name__ == "__main__":
    import longshore

    if sys.argv[1:]:
        import runpy

        sys.argv[0] = "longshore"
        runpy.run_module("longshore", run_name="__main__")
    else:
        import_all(Path(longshore.__file__).parent)
        print("imported")
