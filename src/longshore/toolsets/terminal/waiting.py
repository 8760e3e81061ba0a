"""One wait for a command: until it ends, prints, pauses after printing, or its output matches a pattern."""

from __future__ import annotations

import asyncio
from typing import Literal, final

from longshore.toolsets.terminal.output_pattern import OutputPattern

Until = Literal["exit", "output", "quiet"]
Reason = Literal["exit", "match", "output", "quiet", "time"]


@final
class Waiter:
    """Takes output as it arrives. `reason` is done at the end of the wait."""

    def __init__(self, until: Until, pattern: OutputPattern | None, quiet_seconds: float) -> None:
        self._until, self._pattern, self._quiet_seconds = until, pattern, quiet_seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self.reason: asyncio.Future[Reason] = self._loop.create_future()

    @property
    def takes_output(self) -> bool:
        """Whether output can end the wait."""
        return not self.reason.done() and (self._until != "exit" or self._pattern is not None)

    def take(self, data: bytes) -> None:
        """Take output. A pattern is matched in addition to the other conditions."""
        if self._pattern is not None and not self.reason.done() and self._pattern.feed(data):
            self.end("match")
        elif self._until == "output":
            self.end("output")
        elif self._until == "quiet":
            self.cancel()
            self._timer = self._loop.call_later(self._quiet_seconds, self.end, "quiet")

    def end(self, reason: Reason) -> None:
        if not self.reason.done():
            self.reason.set_result(reason)

    def cancel(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
