"""A server without requests sleeps, and so do its workers, also while a client keeps its connection."""

from __future__ import annotations

from posting import ask_modern, call
from waiting import times_woken, wait_for_rest

from .serverproc import start
from .servers import SOURCE

WINDOW_SECONDS = 11.0
LEAST_APART = 9.0
"""Seconds: a tick of ten, of which the first may come late on a busy machine."""


def test_an_idle_server_and_its_workers_wake_at_most_once_in_ten_seconds() -> None:
    with start(SOURCE) as alone, start(SOURCE, "--workers", "2") as shared:
        for server in (alone, shared):
            assert ask_modern(server, call("add", a=1, b=2)).status == 200  # its connection stays open
        pids = [alone.pid, shared.pid, *shared.workers]
        wait_for_rest(pids)
        for pid, times in times_woken(pids, WINDOW_SECONDS).items():
            assert len(times) < 2 or times[1] - times[0] >= LEAST_APART, (pids.index(pid), times)
