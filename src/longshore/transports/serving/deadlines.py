"""How long a connection may stay where it is. No timers: somebody looks now and then, and this remembers since when."""

from __future__ import annotations

from typing import Final, Literal, final

from longshore.limits import Limits

LINGER_SECONDS: Final = 2.0
"""A refused peer may still be sending, and would lose the refusal to a reset. It has this long to read it."""

Phase = Literal["new", "head", "body", "waiting", "working", "idle", "stalled", "lingering"]
"""What a connection waits for: a first byte, the end of a head, more of a body, room for the body, the app, the next
request, a reader that takes what it was sent, or a refused peer that leaves."""


@final
class Clock:
    """Since when a connection has been in one place."""

    __slots__ = ("_mark", "_phase", "_since")

    def __init__(self, now: float) -> None:
        self._phase: Phase = "new"
        self._mark: object = None
        self._since = now

    def overdue(self, place: tuple[Phase, object], now: float, limits: Limits) -> Phase | None:
        """The phase that has lasted for too long, if it has. A mark that changes begins it anew."""
        phase, mark = place
        if phase != self._phase or mark != self._mark:
            self._phase, self._mark, self._since = phase, mark, now
            return None
        return phase if now - self._since >= allowed(phase, limits) else None


def allowed(phase: Phase, limits: Limits) -> float:
    """How many seconds a phase may last without any progress."""
    match phase:
        case "new" | "head":
            return limits.header_seconds
        case "body":
            return limits.body_seconds
        case "waiting":
            return limits.upload_seconds
        case "idle":
            return limits.idle_seconds
        case "stalled":
            return limits.stall_seconds
        case "lingering":
            return LINGER_SECONDS
        case "working":
            return float("inf")
