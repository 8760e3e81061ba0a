"""The recorder: takes events from the server, and hands them to the ring and to listeners.

Without either, a call costs a look at `on`, and neither records nor the ring are imported.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections.abc import Callable, Iterator
from itertools import count
from time import monotonic, time
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, final

if TYPE_CHECKING:
    from longshore.telemetry.events import RequestInfo
    from longshore.telemetry.records import Level, ProcessKind, Record
    from longshore.telemetry.ring import Event, Ring

Listener: TypeAlias = "Callable[[Record], None]"
Started: TypeAlias = "Callable[[ProcessKind, int, str], Callable[[int | None], None]]"
"""Called when a process was started, with its kind, pid and principal; the result when it has ended."""

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_STEP_SECONDS = 0.001
"""A wall clock that has moved less is not set anew: a record that is read twice has one time."""


@final
class Recorder:
    """Hands events to the ring, and their records to listeners. A listener that fails is dropped: telemetry never
    fails a request."""

    __slots__ = (
        "_append",
        "_lock",
        "_offset",
        "dropped",
        "drops",
        "fallback",
        "is_detailed",
        "keeps_values",
        "listeners",
        "numbers",
        "on",
        "put",
        "ring",
        "threads",
        "traces",
    )

    def __init__(self) -> None:
        self.listeners: tuple[Listener, ...] = ()
        self.ring: Ring | None = None
        self.put: Callable[[Event], object] = _ignore
        """Takes an event. Its number is the next of `numbers`. Without a listener it is the ring's own `append`."""
        self._append: Callable[[Event], object] = _ignore
        """Puts an event into the ring, if there is one."""
        self._lock = allocate_lock()
        self.on = False
        """Whether there is a ring or a listener."""
        self.keeps_values = False
        """Whether arguments and results are recorded too."""
        self.traces = False
        """Whether spans are exported, so that each request is one."""
        self.is_detailed = False
        """Whether a call that is answered at once needs more than one event at its end."""
        self.threads = 0
        """Threads that read the ring. They send nothing to a client."""
        self.dropped = 0
        """Records that no listener got, because it failed."""
        self.drops: dict[str, Callable[[], int]] = {}
        """How many events did not reach a sink, by the sink's name."""
        self.fallback: Callable[[], Listener] | None = None
        """Makes the listener of problems while there is no other listener."""
        self.numbers: Iterator[int] = count(1)
        """The numbers of events: the first thing in each. `next` takes half as long as a bound `__next__`."""
        self._offset = time() - monotonic()

    @property
    def offset(self) -> float:
        """What the wall clock is ahead of the monotonic one, by which events are timed."""
        now = time() - monotonic()
        if abs(now - self._offset) > _STEP_SECONDS:
            self._offset = now
        return self._offset

    def open_ring(self, size: int) -> Ring:
        """The ring, made if there is none: from now on events are kept."""
        if self.ring is None:
            from longshore.telemetry.ring import Ring

            self.ring = Ring(size, self._set_append)
            self._update()
        return self.ring

    def keep(self, *, values: bool, traces: bool) -> None:
        """Record arguments and results too; make each request a span."""
        self.keeps_values, self.traces = values, traces
        self._update()

    def _update(self) -> None:
        self.on = bool(self.listeners) or self.ring is not None
        self.is_detailed = bool(self.listeners) or self.traces or self.keeps_values
        self._set_append(self._append)

    def _set_append(self, append: Callable[[Event], object]) -> None:
        with self._lock:  # a thread that waits for an event sets it, too
            self._append = append
            self.put = self._put_and_record if self.listeners else append

    def close_ring(self) -> None:
        """Keep no more events, and forget those that were kept."""
        self.ring, self._append = None, _ignore
        self._update()

    def add(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every record from now on; the result removes it."""
        self.listeners = (*self.listeners, listener)
        self._update()
        return lambda: self.remove(listener)

    def remove(self, listener: Listener) -> None:
        self.listeners = tuple(each for each in self.listeners if each is not listener)
        self._update()

    def record(self, record: Record) -> None:
        """Hand a record to the listeners."""
        for listener in self.listeners:
            try:
                listener(record)
            except Exception:
                self.dropped += 1
                self.remove(listener)

    def _put_and_record(self, event: Event) -> None:
        """Take an event while there are listeners."""
        from longshore.telemetry.events import expand

        self._append(event)
        for record in expand(event, self.offset):
            self.record(record)

    # -- what is rare

    def emit(self, record: Record) -> None:
        """Take a record that was made already."""
        self.put((next(self.numbers), 5, record))

    def refused(self, info: RequestInfo, why: str, status: int = 0) -> None:
        """A request was refused."""
        from longshore.telemetry.events import refusal

        self.emit(refusal(info, why, status, time()))

    def arguments_mended(self, tool: str, id: int | str, notes: tuple[str, ...]) -> None:
        from longshore.telemetry.records import ArgumentsMended

        self.emit(ArgumentsMended(tool, id, notes, time()))

    def process_started(self, kind: ProcessKind, pid: int, principal: str = "") -> Callable[[int | None], None]:
        """A process was started. The result is to be called when it has ended, with its exit code if that is known."""
        from longshore.telemetry.records import ProcessEnded, ProcessStarted

        began = monotonic()
        if self.on:
            self.emit(ProcessStarted(kind=kind, pid=pid, principal=principal, at=time()))

        def ended(code: int | None = None) -> None:
            nonlocal began
            if began and self.on:
                seconds = monotonic() - began
                self.emit(ProcessEnded(kind=kind, pid=pid, principal=principal, seconds=seconds, code=code, at=time()))
            began = 0.0

        return ended

    # -- problems

    def problem(self, level: Level, text: str, error: BaseException | None = None) -> None:
        """Report a problem to the operator. Secrets are removed from its text and its trace."""
        if self.on or self.fallback is not None:
            from longshore.telemetry.records import Problem
            from longshore.telemetry.redactor import redact

            self.report(Problem(level, redact(text), time(), redact(_trace(error))))

    def report(self, record: Record) -> None:
        """Hand a problem to the ring and the listeners, or to the fallback where there are none of these."""
        if self.on:
            self.emit(record)
        if not self.listeners and self.fallback is not None:
            try:
                self.fallback()(record)
            except Exception:
                self.dropped += 1


def _ignore(event: Event) -> None:
    """Where there is no ring."""


def ignore_process(kind: ProcessKind, pid: int, principal: str) -> Callable[[int | None], None]:  # noqa: ARG001
    """Where nothing records processes."""
    return lambda _: None


def reporter_of(server: Any) -> Started:
    """The `process_started` of a server's recorder; a toolset may have been made without a server."""
    recorder: Recorder | None = getattr(server, "recorder", None)
    return ignore_process if recorder is None else recorder.process_started


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
