"""How much is kept of streams that have ended, so that a client that lost its connection can have the answer again."""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic
from typing import final

from longshore.limits import Limits


@final
class Kept:
    """The logs that this process wrote to their end. Beyond the limit the oldest go before their time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.bytes = 0
        self._logs: OrderedDict[str, tuple[str, float, int]] = OrderedDict()
        """The session of each, when the store forgets it by itself, and its size."""
        self._of: dict[str, set[str]] = {}

    def add(self, session: str, log: str, size: int) -> list[str]:
        """This log has its end. Returns those that must be deleted for it."""
        now = monotonic()
        if log in self._logs:  # it was taken up again after its end
            size += self._logs[log][2]
            self._drop(log)
        self._logs[log] = (session, now + self._limits.event_seconds, size)
        self._of.setdefault(session, set()).add(log)
        self.bytes += size
        while self._logs and self._logs[self._oldest()][1] <= now:
            self._drop(self._oldest())
        spare: list[str] = []
        while self.bytes > self._limits.kept_bytes:
            spare.append(self._drop(self._oldest()))
        return spare

    def take(self, session: str) -> list[str]:
        """The logs of a session, to be deleted with it."""
        return [self._drop(log) for log in list(self._of.get(session, ()))]

    def _oldest(self) -> str:
        return next(iter(self._logs))

    def _drop(self, log: str) -> str:
        session, _, size = self._logs.pop(log)
        self.bytes -= size
        self._of[session].discard(log)
        if not self._of[session]:
            del self._of[session]
        return log
