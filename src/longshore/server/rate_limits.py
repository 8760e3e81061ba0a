"""Rate limits: a token bucket for each caller and tool.

A bucket is one number, the time at which it is full again (the generic cell rate algorithm), so a call costs one
lookup. Full buckets are dropped when there are many.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final, final

from longshore.protocol.dialect import Failure

MOST_BUCKETS: Final = 10_000
"""Buckets before the full ones are dropped. A caller can't fill memory with names: only existing tools count."""


_ROUNDING: Final = 0.01
"""A hundredth of a call: the tolerance for sums of fractions, so that the last call of a burst is let through."""


@final
class Rates:
    """At most `burst` calls at once, and `rate` a second on average. Time is counted in calls, at that rate."""

    __slots__ = ("_clock", "_depth", "_full_at", "_rate")

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self._rate = rate
        self._depth = max(burst - 1, 0)
        self._clock = clock
        self._full_at: dict[tuple[str, str], float] = {}

    def take(self, caller: str, tool: str) -> float:
        """Count a call. 0.0: it may run; else the seconds to wait, and the call was not counted."""
        now = self._clock() * self._rate
        key = (caller, tool)
        full_at = max(self._full_at.get(key, now), now)
        excess = full_at - now - self._depth
        if excess > _ROUNDING:
            return excess / self._rate
        if len(self._full_at) >= MOST_BUCKETS and key not in self._full_at:
            self._full_at = {key: when for key, when in self._full_at.items() if when > now}
        self._full_at[key] = full_at + 1
        return 0.0


def rate_failure(what: str, wait: float) -> Failure:
    """The failure of a call that came too soon."""
    text = f"{what} was not run: it was called too often (the limit is http.rate)"
    return Failure("rate", f"{text}; try again in {max(wait, 0.1):.1f} s", wait)
