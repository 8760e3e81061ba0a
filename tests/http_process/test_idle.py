"""A server without requests sleeps, and so do its workers, also while a client keeps its connection."""

from __future__ import annotations

import time

import pytest

from posting import ask_modern, call
from waiting import eventually, wakeups

from .serverproc import start
from .servers import SOURCE

WINDOW_SECONDS = 5.0


@pytest.mark.parametrize(("flags", "most"), [((), 2), (("--workers", "2"), 4)], ids=["alone", "two workers"])
def test_an_idle_server_wakes_at_most_once_in_ten_seconds(flags: tuple[str, ...], most: int) -> None:
    """One tick of ten seconds may fall into the window; with a store it is a few steps of two threads."""
    with start(SOURCE, *flags) as server:
        assert ask_modern(server, call("add", a=1, b=2)).status == 200  # its connection stays open
        pids = [server.pid, *server.workers]
        eventually("it rests", lambda: rests(pids))
        before = {pid: wakeups(pid) for pid in pids}
        time.sleep(WINDOW_SECONDS)
        woken = {pid: wakeups(pid) - before[pid] for pid in pids}
        assert max(woken.values()) <= most, woken


def rests(pids: list[int]) -> bool:
    before = [wakeups(pid) for pid in pids]
    time.sleep(0.2)
    return [wakeups(pid) for pid in pids] == before
