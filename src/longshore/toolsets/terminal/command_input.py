"""The input of a command: written as fast as the command reads it."""

from __future__ import annotations

import asyncio
import os
from typing import Final, final

from longshore.errors import ToolError

MOST_WAITING: Final = 1 << 20
"""Bytes that a command has not read yet. A file that is larger is given to it by its name."""


@final
class CommandInput:
    """Writes to a pipe or terminal without blocking."""

    def __init__(self, descriptor: int, *, owns: bool) -> None:
        """`owns` says whether it closes the descriptor, and thereby ends the command's input."""
        self._descriptor, self._owns = descriptor, owns
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        self._ends = self._closed = False

    def write(self, data: bytes) -> None:
        """Write data, now or as soon as the command reads. Raises ToolError if it does not read."""
        if self._closed or self._ends:
            raise ToolError("the command's input has ended; start it anew with pty=true to send more")
        if len(self._waiting) + len(data) > MOST_WAITING:
            raise ToolError(f"the command does not read its input: {len(self._waiting):,} bytes wait for it already")
        self._waiting += data
        self._flush()

    def end(self) -> None:
        """End the input once everything is written."""
        self._ends = True
        if not self._waiting:
            self.close()

    def close(self) -> None:
        """Stop writing."""
        if not self._closed:
            self._closed = True
            self._loop.remove_writer(self._descriptor)
            if self._owns:
                os.close(self._descriptor)

    def _flush(self) -> None:
        try:
            while self._waiting:
                del self._waiting[: os.write(self._descriptor, self._waiting)]
        except BlockingIOError:
            self._loop.add_writer(self._descriptor, self._flush)
            return
        except OSError:  # the other end is closed
            self._waiting.clear()
            self.close()
            return
        self._loop.remove_writer(self._descriptor)
        if self._ends:
            self.close()
