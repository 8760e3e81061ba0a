"""Private mounts for a process: everything is read-only except some folders.

Landlock does not cover modes, owners, times and attributes of files, which their owner may change by path. A read-only
mount does.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import Final

_NEW_MOUNTS, _NEW_IPC, _NEW_USER = 0x00020000, 0x08000000, 0x10000000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same numbers on every architecture
_CLONE_TREE: Final = 0x1 | os.O_CLOEXEC
_RECURSIVE: Final = 0x8000
_FROM_EMPTY_PATH: Final = 0x4
_AT_FDCWD: Final = -100
_READ_ONLY: Final = 0x1
_PRIVATE: Final = 1 << 18


def keep_writable(folders: Iterable[str]) -> None:
    """Make everything except these folders read-only for this process. Raises OSError.

    Its working folder is read-only, too, until it enters it again.
    """
    _unshare()
    _set(_PRIVATE, 0)
    # Copies of the trees keep mounts in them that were read-only.
    trees = [(_call(_OPEN_TREE, _AT_FDCWD, os.fsencode(path), _CLONE_TREE | _RECURSIVE), path) for path in folders]
    _set(0, _READ_ONLY)
    for tree, path in trees:
        _call(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(path), _FROM_EMPTY_PATH)
        os.close(tree)


def _unshare() -> None:
    """Enter new namespaces, as an ordinary user within a new one of users in which the user keeps the number."""
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS | _NEW_IPC) == 0:
        return
    if libc.unshare(_NEW_MOUNTS | _NEW_IPC | _NEW_USER) != 0:
        raise _last_error()
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _set(propagation: int, attributes: int) -> None:
    """Set a propagation and attributes of all mounts."""
    changes = (ctypes.c_uint64 * 4)(attributes, 0, propagation, 0)  # set, cleared, propagation, user namespace
    _call(_MOUNT_SETATTR, _AT_FDCWD, b"/", _RECURSIVE, ctypes.byref(changes), ctypes.sizeof(changes))


def _call(number: int, *arguments: object) -> int:
    typed = (ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments)
    outcome = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *typed)
    if outcome < 0:
        raise _last_error()
    return int(outcome)


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
