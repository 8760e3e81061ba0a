"""The process between the server and a browser it started.

It deletes the browser's files, even if the server is killed.

It starts the browser as another user if asked to, with the protocol's pipes as descriptors 3 and 4. It ends when the
browser does, or when the lifeline closes, whose other end only the server has: then it kills all processes that the
browser started, and deletes its folder. It also deletes the folders of browsers whose guard was killed together with
its server: those without a lock. Its arguments: UID (-1 for ours) GID LIFELINE STATUS READ WRITE FOLDER PROGRAM
ARGUMENT… On STATUS it writes "pid N", or "errno N text" if the program could not be run.

It runs as `python -I -S guard.py`, on the standard library alone: it imports no other module of Longshore.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_KILL_SECONDS = 5.0
"""A killed process ends in milliseconds, unless it waits for a disk."""
_LEAST_AGE = 60.0
"""Seconds. A younger folder may be one that its guard has not locked yet."""
_PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> None:
    uid, gid, lifeline, status, read, write = map(int, arguments[:6])
    folder, argv = arguments[6], arguments[7:]
    for descriptor in (lifeline, status, read, write):
        os.set_inheritable(descriptor, False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the lifeline alone ends it
        signal.signal(number, _ignore)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, _ignore)
    browser = os.fork()
    if browser == 0:
        _become_browser(uid, gid, read, write, status, argv)
    os.close(read)
    os.close(write)
    _say(status, f"pid {browser}\n")
    _adopt_orphans()
    _lock(folder)
    _delete_abandoned(folder, uid)
    _wait(browser, woken, lifeline)
    _kill_all(browser)
    _delete(folder)
    os._exit(0)


def _ignore(number: int, frame: object) -> None:
    """Do nothing. Unlike an ignored signal, a handler isn't inherited."""


def _become_browser(uid: int, gid: int, read: int, write: int, status: int, argv: list[str]) -> None:
    """Never returns."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the browser would inherit that
        os.setsid()
        if uid >= 0:
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
        # 3 and 4 may be in use for each other, or for the status
        status, read, write = (fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in (status, read, write))
        os.dup2(read, 3)
        os.dup2(write, 4)
        os.execv(argv[0], argv)  # noqa: S606
    except OSError as problem:
        _say(status, f"errno {problem.errno} {problem.strerror}\n")
    finally:
        os._exit(127)


def _say(status: int, text: str) -> None:
    try:
        os.write(status, text.encode())
    except OSError:
        pass  # the server was killed; the closed lifeline shows it


def _adopt_orphans() -> None:
    """Become the parent of processes whose own parent, started by the browser, has ended. Linux only."""
    if sys.platform == "linux":
        import ctypes  # after the start of the browser, which this does not delay

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _wait(browser: int, woken: int, lifeline: int) -> None:
    """Return when the browser has ended, or the lifeline is closed."""
    polled = select.poll()
    polled.register(woken, select.POLLIN)
    polled.register(lifeline, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in polled.poll()}
        if woken in ready:
            os.read(woken, 512)
        while ended := _reap():
            if ended == browser:
                return
        if lifeline in ready:
            return


def _reap() -> int:
    try:
        return os.waitpid(-1, os.WNOHANG)[0]
    except ChildProcessError:
        return 0


def _kill_all(browser: int) -> None:
    end = time.monotonic() + _KILL_SECONDS
    _kill(os.killpg, browser)
    while time.monotonic() < end:
        for child in _children(browser):
            _kill(os.kill, child)
        while _reap():
            pass
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        time.sleep(0.005)


def _children(browser: int) -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(each) for each in file.read().split()]
    except OSError:
        return [browser]


def _kill(kill: Callable[[int, int], None], pid: int) -> None:
    try:
        kill(pid, signal.SIGKILL)
    except OSError:
        pass


def _lock(folder: str) -> bool:
    """Lock a folder until this process ends. False if another process has."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return False
    return True


def _delete_abandoned(folder: str, uid: int) -> None:
    """Delete the folders beside ours, of the same user's browsers, that no guard has locked."""
    parent, own = os.path.split(folder)
    prefix, oldest = own[: own.rindex("-") + 1], time.time() - _LEAST_AGE
    users = (os.geteuid(), uid)
    try:
        names = [name for name in os.listdir(parent) if name.startswith(prefix) and name != own]
    except OSError:
        return
    for name in names:
        other = os.path.join(parent, name)
        try:
            found = os.lstat(other)
        except OSError:
            continue
        if found.st_uid in users and found.st_mtime < oldest and _lock(other):
            _delete(other)


def _delete(folder: str) -> None:
    import shutil

    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1:])
