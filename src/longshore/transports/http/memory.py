"""Giving memory back to the system, which neither Python nor malloc does by itself while a server has nothing to do."""

from __future__ import annotations

import ctypes
import gc


def give_back() -> None:
    """Free what holds itself in circles, and have malloc return what nobody uses. A few milliseconds."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc
    if trim is not None:
        trim(0)
