"""The descendants of this process: child processes of tools, and their children. None may survive the server.

`adopt` makes this process the subreaper of orphans, so that a daemon started by a tool is still found; `end_all` sends
SIGTERM to every descendant, waits for a grace time and kills the rest.
"""

from __future__ import annotations

import os
import signal
import sys
from time import monotonic, sleep
from typing import Final

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36

_STEP_SECONDS = 0.01
"""Between two checks whether they have ended. Most end within a few milliseconds."""

_REAP_STEP_SECONDS = 0.0005
"""Between two checks whether a killed process has ended, before a call is answered."""

_KILL_SECONDS = 0.2
"""How long new descendants are killed too. A process that survives this is stuck in the kernel."""


spared: Final[set[int]] = set()
"""Children that `end_all` does not kill: they end by themselves after us, and delete what is left of theirs."""


def adopt() -> bool:
    """Make orphaned descendants children of this process. False if the system can't."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def signal_on_parent_death(signum: int) -> bool:
    """Request a signal for when the parent, or its thread that started us, ends. False if the system can't."""
    return _prctl(_PR_SET_PDEATHSIG, signum)


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        import ctypes

        return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0)) == 0
    except (ImportError, OSError, AttributeError):
        return False


def children(pid: int) -> list[int]:
    """The direct children of a process, zombies among them."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        found: list[int] = []
        for task in tasks:
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
        return found
    except (OSError, ValueError):
        return _children_by_scan(pid)


def _children_by_scan(pid: int) -> list[int]:
    found: list[int] = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if parent == pid:
                found.append(int(name))
    return found


def descendants(pid: int | None = None) -> list[int]:
    """Every descendant of a process, by default of this one, children first."""
    found: list[int] = []
    todo = [os.getpid() if pid is None else pid]
    while todo:
        for child in children(todo.pop(0)):
            found.append(child)
            todo.append(child)
    return found


def reap(pid: int, seconds: float) -> bool:
    """Reap a process that has ended or is about to. False if it continues, or is no child of this process."""
    end = monotonic() + seconds
    try:
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if monotonic() >= end:
                return False
            sleep(_REAP_STEP_SECONDS)
    except ChildProcessError:
        return False
    return True


def end_all(grace: float) -> None:
    """End every descendant that is not spared: by SIGTERM, and after `grace` seconds by SIGKILL.

    Returns as soon as none is left.
    """
    if _none_left() or not os.path.exists("/proc/self"):
        return  # without /proc they can't be found
    _send(signal.SIGTERM)
    if _gone_within(grace):
        return
    end = monotonic() + _KILL_SECONDS
    while monotonic() < end:
        _send(signal.SIGKILL)
        if _gone_within(_STEP_SECONDS * 2):
            return


def _send(signum: int) -> None:
    for pid in descendants():
        if pid in spared:
            continue
        try:
            os.kill(pid, signum)
        except OSError:
            pass


def _gone_within(seconds: float) -> bool:
    end = monotonic() + seconds
    while not _none_left():
        if monotonic() >= end:
            return False
        sleep(_STEP_SECONDS)
    return True


def _none_left() -> bool:
    """Reap ended children. Without a child there is no descendant: an orphan becomes our child at once."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return False
    except ChildProcessError:
        return True
