"""The state of processes: their processor time, and whether they seem to wait for input. The latter is a guess."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable
from typing import Final

_READ: Final = {"x86_64": b"0", "aarch64": b"63", "riscv64": b"63"}.get(platform.machine())
"""The number of the system call `read`."""
_PROMPT: Final = re.compile(r"(?:[:?>$#%»❯]|\[[^\]]{1,12}\]|\([^)]{1,12}\)) ?\Z")
"""The end of a question: `Password:`, `Continue? [Y/n]`, `>>> `."""


def cpu_seconds(pids: Iterable[int]) -> float:
    """The processor time that these processes have used."""
    return sum(map(_cpu_seconds, pids))


def is_reading_terminal(pids: Iterable[int]) -> bool:
    """Whether one of these processes is blocked in reading a terminal."""
    return _READ is not None and any(map(_reads_terminal, pids))


def looks_like_prompt(text: str) -> bool:
    """Whether a line without an end looks like a question."""
    return bool(_PROMPT.search(text))


def _cpu_seconds(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0


def _reads_terminal(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/syscall", "rb") as file:
            call = file.read(100).split()
        if len(call) < 2 or call[0] != _READ:
            return False
        return os.readlink(f"/proc/{pid}/fd/{int(call[1], 16)}").startswith(("/dev/pts/", "/dev/tty"))
    except (OSError, ValueError):
        return False
