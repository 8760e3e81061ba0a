"""All processes of a command: its first one, their descendants, and orphans that this process has adopted.

An orphan belongs to the command if it is in its session or has its mark in its environment. For that, this process
must be the subreaper (`sandbox.descendants.adopt`).
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Final, final

from longshore.sandbox.descendants import children, descendants

KILL_SECONDS: Final = 2.0
"""How long processes are killed again and again: some may start others. One that is left is stuck in the kernel."""
_FIRST_STEP, _LAST_STEP = 0.001, 0.02
"""Seconds between two checks whether they have ended. Most end within a millisecond."""


@final
class ProcessTree:
    """The processes of one command. `leader` is its first process, which leads its session and is not reaped here."""

    def __init__(self, leader: int, mark: str) -> None:
        self._leader, self._mark = leader, mark.encode()
        self._known = set[tuple[int, bytes]]()
        """Members with the times when they began: one that has ended has no mark any more, and is to be reaped."""

    def members(self) -> list[int]:
        """The processes that run. Orphans that have ended are reaped."""
        found = [] if self._has_leader_ended() else [self._leader, *descendants(self._leader)]
        for pid in children(os.getpid()):
            if pid != self._leader and self._is_orphan(pid):
                found += [pid, *descendants(pid)]
        self._known = {(pid, _began(pid)) for pid in found}
        return found

    def send(self, number: int) -> list[int]:
        """Send a signal to all of them, and return which they were."""
        found = self.members()
        for pid in found:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass
        return found

    def cpu_seconds(self) -> float:
        """The processor time of those that run."""
        return sum(map(_cpu_seconds, self.members()))

    async def end(self, grace: float) -> int:
        """End all: by SIGTERM, and after `grace` seconds by SIGKILL. Returns how many there were."""
        found = self.send(signal.SIGTERM)
        if not found:
            return 0
        self.send(signal.SIGCONT)  # a stopped process gets no other signal
        loop = asyncio.get_running_loop()
        until, step = loop.time() + grace, _FIRST_STEP
        while self.members() and loop.time() < until:
            await asyncio.sleep(step)
            step = min(2 * step, _LAST_STEP)
        until = loop.time() + KILL_SECONDS
        while self.send(signal.SIGKILL) and loop.time() < until:
            await asyncio.sleep(_FIRST_STEP)
        return len(found)

    def _has_leader_ended(self) -> bool:
        try:
            return os.waitid(os.P_PID, self._leader, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _is_orphan(self, pid: int) -> bool:
        """Whether a child of ours is a process of the command that runs. If it has ended, it is reaped."""
        try:
            is_ours = os.getsid(pid) == self._leader or (pid, _began(pid)) in self._known or self._is_marked(pid)
            return is_ours and os.waitpid(pid, os.WNOHANG)[0] == 0
        except (ProcessLookupError, ChildProcessError):
            return False

    def _is_marked(self, pid: int) -> bool:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return self._mark in file.read()
        except OSError:
            return False


def _cpu_seconds(pid: int) -> float:
    fields = _status(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _began(pid: int) -> bytes:
    """The time when a process began. No other has had the same number then."""
    fields = _status(pid)
    return fields[19] if fields else b""


def _status(pid: int) -> list[bytes]:
    """The fields of a process's status that follow its name; none if it is not there."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []
