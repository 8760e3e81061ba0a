"""Where records go. With nobody listening, a call costs one look at `on`."""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import final

from longshore.telemetry.records import Level, Problem, Record

Listener = Callable[[Record], None]


@final
class Recorder:
    """Hands each record to its listeners. A listener that fails is dropped: telemetry never fails a request."""

    __slots__ = ("_listeners", "dropped", "fallback", "on")

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self.on = False
        self.dropped = 0
        self.fallback: Callable[[], Listener] | None = None
        """Makes who hears of problems when nobody listens to everything."""

    def add(self, listener: Listener) -> Callable[[], None]:
        """Listen to every record from now on; call the result to stop."""
        self._listeners = (*self._listeners, listener)
        self.on = True
        return lambda: self.remove(listener)

    def remove(self, listener: Listener) -> None:
        self._listeners = tuple(each for each in self._listeners if each is not listener)
        self.on = bool(self._listeners)

    def record(self, record: Record) -> None:
        for listener in self._listeners:
            try:
                listener(record)
            except Exception:
                self.dropped += 1
                self.remove(listener)

    def problem(self, level: Level, text: str, error: BaseException | None = None) -> None:
        """Tell whoever runs the server."""
        if self.on or self.fallback is not None:
            self.report(Problem(level, text, time(), _trace(error)))

    def report(self, record: Record) -> None:
        """Hand a problem to the listeners, or to the fallback where there are none."""
        if self.on:
            self.record(record)
        elif self.fallback is not None:
            try:
                self.fallback()(record)
            except Exception:
                self.dropped += 1


def _trace(error: BaseException | None) -> str:
    if error is None:
        return ""
    from longshore.telemetry.frames import format_trace

    return format_trace(error)
