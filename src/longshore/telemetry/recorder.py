"""The recorder hands records to listeners. Without one, a call costs a look at `on`, and no record is imported."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import time
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias, final

if TYPE_CHECKING:
    from longshore.telemetry.records import Level, Outcome, Record

Listener: TypeAlias = "Callable[[Record], None]"

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


@final
class Recorder:
    """Hands each record to its listeners. A listener that fails is dropped: telemetry never fails a request."""

    __slots__ = ("_listeners", "dropped", "fallback", "on")

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self.on = False
        self.dropped = 0
        self.fallback: Callable[[], Listener] | None = None
        """Makes the listener of problems while there is no other listener."""

    def add(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every record from now on; the result removes it."""
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

    def request_received(self, method: str, id: int | str) -> None:
        from longshore.telemetry.records import RequestReceived

        self.record(RequestReceived(method, id, time()))

    def request_completed(self, method: str, id: int | str, seconds: float, outcome: Outcome) -> None:
        from longshore.telemetry.records import RequestCompleted

        self.record(RequestCompleted(method, id, seconds, outcome, time()))

    def tool_invoked(self, tool: str, id: int | str) -> None:
        from longshore.telemetry.records import ToolInvoked

        self.record(ToolInvoked(tool, id, time()))

    def tool_completed(self, tool: str, id: int | str, seconds: float, outcome: Outcome) -> None:
        from longshore.telemetry.records import ToolCompleted

        self.record(ToolCompleted(tool, id, seconds, outcome, time()))

    def arguments_mended(self, tool: str, id: int | str, notes: tuple[str, ...]) -> None:
        from longshore.telemetry.records import ArgumentsMended

        self.record(ArgumentsMended(tool, id, notes, time()))

    def problem(self, level: Level, text: str, error: BaseException | None = None) -> None:
        """Report a problem to the operator."""
        if self.on or self.fallback is not None:
            from longshore.telemetry.records import Problem

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
    """The traceback from the author's first frame on; all of it if every frame is ours."""
    if error is None:
        return ""
    import traceback  # slow to import, and needed only after an error

    trace: TracebackType | None = error.__traceback__
    while trace is not None and is_own(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace or error.__traceback__))


def is_own(path: str) -> bool:
    """Whether a source file belongs to Longshore."""
    return path.startswith(_PACKAGE)
