"""Limits of single processes (setrlimit), for a command and, by inheritance, each process that it starts."""

from __future__ import annotations

import resource
from typing import Final

from longshore.sandbox.launch import Limits

Rlimits = tuple[tuple[int, int], ...]
"""A kind of limit and its value."""
UNCOUNTED_PROCESSES: Final = 1024
"""Assumed to run already, where the system does not tell how many do."""
_ULIMIT: Final = {
    resource.RLIMIT_DATA: ("d", 1024),
    resource.RLIMIT_FSIZE: ("f", 512),
    resource.RLIMIT_NOFILE: ("n", 1),
    resource.RLIMIT_CPU: ("t", 1),
    resource.RLIMIT_CORE: ("c", 1),
}
"""The letter of each limit for the shell's ulimit, and its unit in bytes."""


def process_limits(limits: Limits) -> Rlimits:
    """The limits of each process, no higher than the server's own.

    Memory is what a process can write to (RLIMIT_DATA): JavaScript engines reserve far more addresses than they use.
    """
    asked = {
        resource.RLIMIT_DATA: limits.memory_bytes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_CORE: 0,
    }
    return tuple((kind, _within_own(kind, value)) for kind, value in asked.items() if value is not None)


def user_processes(processes: int) -> int:
    """RLIMIT_NPROC for so many more processes: it counts all of the user's, or only those of a new user namespace."""
    try:
        with open("/proc/loadavg", encoding="ascii") as file:
            processes += int(file.read().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        processes += UNCOUNTED_PROCESSES
    return _within_own(resource.RLIMIT_NPROC, processes)


def ulimit_commands(rlimits: Rlimits) -> str:
    """Shell commands that set limits, joined by &&. A limit that can't be set fails them."""
    pairs = ((_ULIMIT[kind], value) for kind, value in rlimits)
    return " && ".join(f"ulimit -{letter} {-(-value // unit)}" for (letter, unit), value in pairs)


def _within_own(kind: int, value: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
