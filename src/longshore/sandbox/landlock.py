"""Landlock: the kernel lets a process access some folders only, wherever links in them lead.

A landlock domain belongs to a thread and is inherited by the processes that it starts. `restrict` is for a process that
will run nothing but a command. `start_reading_only` is for the server: it starts a process from a thread of its own
that is restricted first and ends afterwards; nothing runs between fork and exec.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Callable, Iterable
from functools import cache
from threading import Thread
from typing import Final, TypeVar

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION: Final = 1
_RULE_PATH_BENEATH: Final = 1
_PR_SET_NO_NEW_PRIVS: Final = 38
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_ALL: Final = (1 << 13) - 1
"""Every right of the first version: execute, write, read, make, remove. Rights not allowed are refused."""
NEEDED_VERSION: Final = 6
"""For `restrict`, in Linux 6.12: earlier versions allow signals, or even truncating, to the confined process."""
_TRUNCATE, _USE_DEVICE = 1 << 14, 1 << 15
_WRITE_FILE: Final = 1 << 1
_EVERY_RIGHT: Final = (1 << 16) - 1
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _USE_DEVICE
"""Rights that a rule for a single file may have."""
_TCP_BIND_AND_CONNECT: Final = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS: Final = 0b11
T = TypeVar("T")
_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _AllAttributes(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def is_available() -> bool:
    """Whether the kernel has landlock and it is switched on."""
    return version() >= 1


@cache
def version() -> int:
    """The version of landlock; 0 if the kernel has none or it is switched off."""
    if sys.platform != "linux":
        return 0
    try:
        return _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_CREATE_RULESET_VERSION))
    except OSError:
        return 0


def restrict(readable: Iterable[str], writable: Iterable[str], *, network: bool) -> None:
    """Let this process and its children access only these files and folders, and no process outside.

    Readable files can be executed; devices can be used if they are writable. Paths that don't exist are left out.
    Without `network`, TCP is refused, too. Raises OSError.
    """
    tcp = 0 if network else _TCP_BIND_AND_CONNECT
    ruleset = _create(_AllAttributes(_EVERY_RIGHT, tcp, _ABSTRACT_SOCKETS_AND_SIGNALS))
    try:
        for paths, rights in ((readable, _EXECUTE | _READ_FILE | _READ_DIR), (writable, _EVERY_RIGHT)):
            for path in paths:
                _allow_path(ruleset, path, rights)
        _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def start_reading_only(start: Callable[[], T], program: str, folders: Iterable[int]) -> T:
    """Call `start` where it and its processes can read these open folders and run `program`, and access nothing else.

    The system's library folders can be read too, for the loader. `start` must not import anything. Raises OSError.
    """
    ruleset = _ruleset(program, folders)
    outcome = list[T]()
    failure = list[BaseException]()

    def run() -> None:
        try:
            _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
            _syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
            outcome.append(start())
        except BaseException as error:
            failure.append(error)

    try:
        thread = Thread(target=run, name="landlock")
        thread.start()
        thread.join()
    finally:
        os.close(ruleset)
    if failure:
        raise failure[0]
    return outcome[0]


def _ruleset(program: str, folders: Iterable[int]) -> int:
    ruleset = _create(_RulesetAttributes(_ALL))
    try:
        for folder in folders:
            _allow(ruleset, folder, _READ_FILE | _READ_DIR)
        for path in (program, *_LIBRARIES):
            _allow_path(ruleset, path, _EXECUTE | _READ_FILE)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def _create(attributes: ctypes.Structure) -> int:
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    return _syscall(_CREATE_RULESET, ctypes.byref(attributes), size, ctypes.c_uint32(0))


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    """Allow rights on a path, of a file those that files have. A path that doesn't exist is left out."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        _allow(ruleset, descriptor, rights if is_folder else rights & _OF_FILES)
    finally:
        os.close(descriptor)


def _allow(ruleset: int, descriptor: int, rights: int) -> None:
    rule = _PathBeneath(rights, descriptor)
    _syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_RULE_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _syscall(number: int, *arguments: object) -> int:
    return _check(_libc().syscall(ctypes.c_long(number), *arguments))


def _check(outcome: int) -> int:
    if outcome < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return outcome
