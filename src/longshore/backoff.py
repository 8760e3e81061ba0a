"""Backoff: how long to wait before the next attempt."""

from __future__ import annotations

from msgspec import Struct


class Backoff(Struct, frozen=True):
    """Pauses that double from `first` up to `most` seconds."""

    first: float
    most: float

    def pauses(self, count: int) -> tuple[float, ...]:
        """The first `count` pauses, for a loop of so many attempts."""
        return tuple(self.pause(failures) for failures in range(1, count + 1))

    def pause(self, failures: int) -> float:
        """Seconds to wait after this many failures in a row; 0 after none."""
        if failures < 1:
            return 0.0
        return float(min(self.first * 2.0 ** min(failures - 1, 64), self.most))
