"""What a process does when nobody waits for it: settle in after the first answers, and let go at the end."""

from __future__ import annotations

from typing import Any

from longshore.limits import Limits

_M_ARENA_MAX = -8
"""An option of glibc's `mallopt`: how many separate heaps threads may have."""
TICK_SECONDS = 10.0
"""Between two wake-ups of a process that has nothing to do."""


def next_tick(now: float) -> float:
    """The next multiple of ten seconds on a loop's clock. Periodic work that is due then wakes an idle process once."""
    return (now // TICK_SECONDS + 1) * TICK_SECONDS


def settle_in(process: Any, stdio: Any) -> None:
    process.settle_in()
    stdio.own_threads = process.threads
    _share_heap()


def _share_heap() -> None:
    """Have all threads use one heap, so that the answers of threads take the place of arguments that were freed."""
    try:
        import ctypes

        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    except (ImportError, OSError, AttributeError):
        pass  # another libc


def import_asyncio() -> None:
    from importlib import import_module

    import_module("asyncio")  # it takes 40 ms, and now nobody waits
    import_module("longshore.server.watchdog")


def release_threads(process: Any, limits: Limits) -> None:
    """A thread that somebody started and does not end must not hold the process."""
    import sys

    threading = sys.modules.get("threading")
    if threading is not None and any(
        not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()
    ):
        process.end_within(limits.stop_seconds / 3)  # closing may have taken two thirds
