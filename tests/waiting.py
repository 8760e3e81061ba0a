"""Waiting for what another process does: bounded, and as short as it can be."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PATIENCE = 60.0
"""Seconds that anything may take here before the test fails. Never a promise of the product's."""


def eventually(what: str, check: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Ask until the answer is true."""
    end = time.monotonic() + patience
    while True:
        if found := check():
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience:g} s: {what}")
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def wakeups(pid: int) -> int:
    """How often the threads of a process have gone to sleep: once after each time that something woke one."""
    found = 0
    for path in Path(f"/proc/{pid}/task").glob("*/status"):
        found += int(path.read_text().partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return found


def wait_for_rest(pids: Sequence[int]) -> None:
    """Wait until processes have done what they do after an answer: their timers for that are of a second at most."""

    def rests() -> bool:
        before = [wakeups(pid) for pid in pids]
        time.sleep(1.5)
        return [wakeups(pid) for pid in pids] == before

    eventually("rest", rests)


def times_woken(pids: Sequence[int], seconds: float) -> dict[int, list[float]]:
    """When each process woke in the next seconds. What follows within two seconds belongs to the same time."""
    start = time.monotonic()
    switches = {pid: wakeups(pid) for pid in pids}
    woken: dict[int, list[float]] = {pid: [] for pid in pids}
    while (now := time.monotonic() - start) < seconds:
        for pid in pids:
            before, switches[pid] = switches[pid], wakeups(pid)
            if switches[pid] != before and (not woken[pid] or now > woken[pid][-1] + 2):
                woken[pid].append(round(now, 2))
        time.sleep(0.25)
    return woken


def seconds_worked(pid: int) -> float:
    """The processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")
