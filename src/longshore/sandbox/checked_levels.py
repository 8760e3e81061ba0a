"""A cache of the sandbox levels that this machine can enforce, so that a start need not test them again.

A test takes 60 ms, most of a start. Only successes are stored, until the next boot, and for the same user, rights and
bubblewrap. A wrong entry does no harm: the mechanisms are tried again before the first command.
"""

from __future__ import annotations

import os
from typing import Final

from longshore import __version__
from longshore.files import read_bounded, user_directory, write_atomic
from longshore.sandbox.environment import SYSTEM_PATH

MOST_REMEMBERED: Final = 16
"""Levels of different users, containers and boots that share a cache folder."""
_MARK_CHARACTERS: Final = 500
_STATUS_CHARACTERS: Final = 16 << 10
_PROGRAMS: Final = [f"{folder}/bwrap" for folder in SYSTEM_PATH.split(":")]
_RIGHTS: Final = ("CapEff:", "NoNewPrivs:", "Seccomp:")


def was_checked(level: str) -> bool:
    """Whether this level was found to work on this machine as it is now."""
    mark = _describe_machine(level)
    return mark is not None and mark in _read()


def remember(level: str) -> None:
    """Store that a level works. A cache that can't be written is no problem."""
    path, mark = _path(), _describe_machine(level)
    if path is None or mark is None:
        return
    marks = [*(each for each in _read() if each != mark), mark][-MOST_REMEMBERED:]
    try:
        write_atomic(path, "\n".join(marks).encode(), 0o600)
    except OSError:
        pass


def _path() -> str | None:
    folder = user_directory("cache")
    return None if folder is None else os.path.join(folder, "sandbox-levels")


def _read() -> list[str]:
    path = _path()
    try:
        text = "" if path is None else read_bounded(path, MOST_REMEMBERED * _MARK_CHARACTERS).decode("utf-8", "replace")
    except OSError:
        return []
    return [mark for mark in text.split("\n") if len(mark) < _MARK_CHARACTERS]


def _describe_machine(level: str) -> str | None:
    """All that determines whether a level works, on one line. None where it is unknown: on systems other than Linux."""
    try:
        boot = _read_text("/proc/sys/kernel/random/boot_id").strip()
        rights = [line.split()[1] for line in _read_text("/proc/self/status").splitlines() if line.startswith(_RIGHTS)]
        namespaces = [os.readlink(f"/proc/self/ns/{kind}") for kind in ("user", "mnt")]
    except (OSError, IndexError):
        return None
    return " ".join([__version__, level, str(os.geteuid()), boot, *rights, *namespaces, *map(_date, _PROGRAMS)])


def _read_text(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read(_STATUS_CHARACTERS)


def _date(path: str) -> str:
    """The time and size of a program, which change with its version."""
    try:
        status = os.stat(path)
    except OSError:
        return "-"
    return f"{status.st_mtime_ns}/{status.st_size}"
