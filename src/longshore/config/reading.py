"""Files that a setting names, read with care: what lies in their place may be anything."""

from __future__ import annotations

import os
import stat


def read_regular(path: str, most: int) -> tuple[bytes, os.stat_result]:
    """A file's bytes, and what it is and whose: at its path another may lie by now. Raises OSError.

    One byte more than `most` says that there are more. Of what is neither a file nor a device such as /dev/null
    nothing is read; the mode tells.
    """
    # Non-blocking: a FIFO in the file's place must not hold up the start for ever.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        is_read = stat.S_ISREG(found.st_mode) or stat.S_ISCHR(found.st_mode)
        return _read_some(handle, most + 1) if is_read else b"", found
    finally:
        os.close(handle)


def _read_some(handle: int, most: int) -> bytes:
    raw = bytearray()
    while len(raw) < most and (chunk := os.read(handle, most - len(raw))):
        raw += chunk
    return bytes(raw)
