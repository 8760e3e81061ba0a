"""inotify, by which Linux tells what happens in a folder."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from contextlib import suppress
from typing import Final, NamedTuple, final

MODIFIED: Final = 0x002
ATTRIBUTES: Final = 0x004
MOVED_FROM: Final = 0x040
MOVED_TO: Final = 0x080
CREATED: Final = 0x100
DELETED: Final = 0x200
FOLDER_DELETED: Final = 0x400
FOLDER_MOVED: Final = 0x800
UNMOUNTED: Final = 0x2000
OVERFLOW: Final = 0x4000
"""Events were lost because nobody read them."""
OF_A_FOLDER: Final = 0x4000_0000
"""The name is one of a folder."""

_ONLY_FOLDERS: Final = 0x0100_0000
_MASK: Final = (
    MODIFIED | ATTRIBUTES | MOVED_FROM | MOVED_TO | CREATED | DELETED | FOLDER_DELETED | FOLDER_MOVED | _ONLY_FOLDERS
)
_HEADER: Final = struct.Struct("iIII")
_READ_BYTES: Final = 1 << 20  # as many events as the kernel keeps (16,384) if their names are of usual length


class Event(NamedTuple):
    """Something happened to a name in a watched folder, or to the folder if the name is empty."""

    watch: int
    mask: int
    name: str


@final
class Inotify:
    """An inotify instance. All methods raise OSError; so does making one where there is no inotify or no /proc."""

    def __init__(self) -> None:
        if not sys.platform.startswith("linux") or not os.path.isdir("/proc/self/fd"):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self._check(self._libc.inotify_init1(os.O_CLOEXEC))

    def watch(self, folder: int) -> int:
        """Watch a folder by its descriptor, which may be closed afterwards. A folder has one number at a time."""
        path = f"/proc/self/fd/{folder}".encode()
        return self._check(self._libc.inotify_add_watch(self.descriptor, path, ctypes.c_uint32(_MASK)))

    def unwatch(self, number: int) -> None:
        """No longer watch a folder, which may have been deleted."""
        with suppress(OSError):
            self._check(self._libc.inotify_rm_watch(self.descriptor, number))

    def read(self) -> list[Event]:
        """The events that are due; blocks until there is one."""
        data = os.read(self.descriptor, _READ_BYTES)
        events = list[Event]()
        at = 0
        while at < len(data):
            watch, mask, _, size = _HEADER.unpack_from(data, at)
            at += _HEADER.size + size
            events.append(Event(watch, mask, os.fsdecode(data[at - size : at].rstrip(b"\0"))))
        return events

    def close(self) -> None:
        os.close(self.descriptor)

    def _check(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result
