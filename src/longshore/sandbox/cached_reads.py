"""Small files read on the serving thread, which must never wait: only files that the kernel has in memory.

The kernel itself reports others: openat2 with RESOLVE_CACHED fails for a name that it would have to look up on the
disk, preadv2 with RWF_NOWAIT for a page that it would have to read. Before the file is opened, an O_PATH descriptor,
which reaches no device and no other machine, shows its kind and its file system.
"""

from __future__ import annotations

import os
import stat
from typing import Final

from longshore.errors import WouldBlock
from longshore.sandbox.syscalls import (
    AT_FDCWD,
    FREE_DEVICES,
    RESOLVE_CACHED,
    RESOLVE_NO_SYMLINKS,
    has_cached_open,
    is_on_local_disk,
    openat2,
    read_cached_status,
    reopen,
)

_LOOK_FLAGS: Final = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW
# Without a new access time the read writes nothing. The kernel allows that to the owner of a file only.
_READ_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | getattr(os, "O_NOATIME", 0)


def local_devices(folders: tuple[str, ...]) -> frozenset[int]:
    """The devices of the folders' file systems on which opening a cached file never waits. Reads from the disk."""
    found: set[int] = set()
    for folder in folders if has_cached_open() else ():
        try:
            descriptor = openat2(AT_FDCWD, folder, _LOOK_FLAGS, RESOLVE_NO_SYMLINKS)
        except OSError:
            continue
        try:
            if is_on_local_disk(descriptor):
                found.add(read_cached_status(descriptor)[2])
        except OSError:
            pass
        finally:
            os.close(descriptor)
    return frozenset(found)


def read_cached(path: str, devices: frozenset[int], most: int) -> bytes:
    """The content of a regular file of at most `most` bytes, by its real path. Raises WouldBlock, OSError.

    The path has no `..`, and no part of it may be a link: so the file lies in each folder that the path names.
    """
    found = openat2(AT_FDCWD, path, _LOOK_FLAGS, RESOLVE_NO_SYMLINKS | RESOLVE_CACHED)
    try:
        mode, size, device, is_mounted = read_cached_status(found)
        if device not in devices or not stat.S_ISREG(mode) or size > most:
            raise WouldBlock
        # The folder of a file that is itself mounted may be one of the kernel's.
        if is_mounted or (device <= FREE_DEVICES and not is_on_local_disk(found)):
            raise WouldBlock
        descriptor = reopen(found, _READ_FLAGS)
    finally:
        os.close(found)
    try:
        content = bytearray(size)
        if os.preadv(descriptor, (content,), 0, os.RWF_NOWAIT) != size:
            raise WouldBlock  # a part of it is not in memory, or the file was truncated
        return bytes(content)
    finally:
        os.close(descriptor)
