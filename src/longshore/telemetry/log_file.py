"""The log file: one JSON line a record. At its size it becomes `NAME.1`, that `NAME.2`, and so on to the last.

Several processes may write to one: a line is one write to the end, and who rotates holds a lock.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Final, final

from longshore.telemetry.events import expand
from longshore.telemetry.lines import json_line
from longshore.telemetry.records import level_of
from longshore.telemetry.ring import Event

PRIVATE: Final = 0o600
"""Who may read it: its owner. It names tools and principals."""


@final
class LogFile:
    """A file of at most `most_bytes`, and `count` older ones. One record may be larger: a line is never divided."""

    def __init__(self, path: str, most_bytes: int, count: int) -> None:
        self._path, self._most, self._count = path, most_bytes, count
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        self._fd = self._open()

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE)

    def write(self, events: list[Event], offset: float) -> None:
        held: list[bytes] = []
        room = self._room()
        for record in (record for event in events for record in expand(event, offset)):
            line = json_line(record, level_of(record))
            if len(line) > room:
                self._flush(held)
                self._rotate(len(line))
                room = self._room()
            held.append(line)
            room -= len(line)
        self._flush(held)

    def _room(self) -> int:
        """How many bytes still fit."""
        return self._most - os.fstat(self._fd).st_size

    def _flush(self, lines: list[bytes]) -> None:
        data = memoryview(b"".join(lines))
        lines.clear()
        while data:  # a full disk may take a part, and raises for the rest
            data = data[os.write(self._fd, data) :]

    def _rotate(self, size: int) -> None:
        """Begin a new file, unless another process has begun one with room for a line of this size."""
        with self._locked():
            os.close(self._fd)
            self._fd = self._open()
            if 0 < os.fstat(self._fd).st_size > self._most - size:
                self._shift()
                os.close(self._fd)
                self._fd = self._open()

    def _shift(self) -> None:
        """Rename each file to the next, over the last."""
        names = [self._path, *(f"{self._path}.{number}" for number in range(1, self._count + 1))]
        for old, new in reversed(list(pairwise(names))):
            with suppress(FileNotFoundError):
                os.replace(old, new)
        if not self._count:
            os.truncate(self._path, 0)

    @contextmanager
    def _locked(self) -> Generator[None]:
        fd = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def close(self) -> None:
        os.close(self._fd)
