"""The pace of reading output, so that a command that prints without end does not block the event loop."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from longshore.toolsets.terminal.output import FILE_BYTES
from longshore.toolsets.terminal.spawn import PIPE_BYTES


class ReadingPace(Struct, frozen=True):
    """The size of a read, and the pause between two reads of a command that has printed much."""

    at_once: int
    much: int
    """Bytes."""
    pause: float
    """Seconds."""
    held: int
    """Bytes that the kernel holds at most, which are read at the end of a command."""


PIPE_PACE: Final = ReadingPace(256 << 10, FILE_BYTES, 0.001, PIPE_BYTES)
"""A gigabyte is read in some seconds. Past what the log holds there is no hurry."""
TERMINAL_PACE: Final = ReadingPace(4 << 10, 1 << 20, 0.01, 64 << 10)
"""A screen takes milliseconds to draw 4 KiB. Eight terminals that print without end take half of the loop's time."""
