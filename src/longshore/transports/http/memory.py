"""Giving memory back to the system, which neither Python nor malloc does by itself while a server has nothing to do."""

from __future__ import annotations


def give_back() -> None:
    """Free what holds itself in circles, and have malloc return what nobody uses.

    A few milliseconds, or a tenth of a second with much in memory: for a process of our own, now and then.
    """
    import ctypes
    import gc

    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc
    if trim is not None:
        trim(0)
