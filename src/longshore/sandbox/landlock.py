"""Landlock: start a process that the kernel lets read some folders only, wherever links in them lead.

A landlock domain belongs to a thread and is inherited by the processes that it starts. So a process is started from a
thread of its own that is restricted first and ends afterwards; nothing runs between fork and exec.
"""

from __future__ import annotations

import ctypes
import os
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
"""Every right of the first version: execute, write, read, make, remove. What is not allowed is refused."""
T = TypeVar("T")
_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


@cache
def is_available() -> bool:
    """Whether the kernel has landlock and it is switched on."""
    if sys.platform != "linux":
        return False
    try:
        return _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_CREATE_RULESET_VERSION)) >= 1
    except OSError:
        return False


def start_reading_only(start: Callable[[], T], program: str, folders: Iterable[int]) -> T:
    """Call `start` where it and its processes can read these open folders and run `program`, and touch nothing else.

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
    attributes = _RulesetAttributes(_ALL)
    ruleset = _syscall(
        _CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes)), ctypes.c_uint32(0)
    )
    try:
        for folder in folders:
            _allow(ruleset, folder, _READ_FILE | _READ_DIR)
        for path, rights in ((program, _EXECUTE | _READ_FILE), *((path, _EXECUTE | _READ_FILE) for path in _LIBRARIES)):
            try:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                _allow(ruleset, descriptor, rights)
            finally:
                os.close(descriptor)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


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
