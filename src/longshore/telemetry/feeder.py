"""Feeders: threads that read the ring for one sink each.

A sink that is slow or dead holds up its own thread and nothing else. What the ring overwrites meanwhile is lost for
this sink, and counted. A sink that fails is opened again, after pauses that grow.
"""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep
from typing import Final, Protocol, final

from longshore.backoff import Backoff
from longshore.telemetry.recorder import Recorder
from longshore.telemetry.ring import Event, Ring

BATCH_SECONDS: Final = 0.05
"""From the first new event until a batch is written: many events cost one wake-up of the thread."""
BATCH_EVENTS: Final = 1000
"""In one batch, so that a sink need not take the whole ring at once."""
BACKOFF: Final = Backoff(0.5, 30.0)
"""Pauses before a sink that failed is opened again."""


_FLUSH_SECONDS: Final = 0.005


class Sink(Protocol):
    """Where events go. All methods are called on the feeder's thread, and may take their time."""

    def write(self, events: list[Event], offset: float) -> None:
        """Write events; `offset` is what the wall clock is ahead of their times. Raises if that fails."""
        ...

    def close(self) -> None:
        """Write what is held, and close."""
        ...


@final
class Feeder:
    """Feeds one sink with the events of a ring. `open` makes the sink, on the thread, also after a failure."""

    def __init__(self, name: str, recorder: Recorder, ring: Ring, open: Callable[[], Sink]) -> None:
        self.name = name
        self.dropped = 0
        """Events that did not reach the sink: overwritten before they were read, or lost with a failure."""
        self.failures = 0
        self._recorder, self._ring, self._open = recorder, ring, open
        self._sink: Sink | None = None
        self._cursor = self._written = ring.last
        self._failed = 0
        """Times in a row."""
        self.is_running = False
        self._stopping = False
        self._until = 0.0
        """When to stop at the latest, once it is stopping."""
        self._wakeup, self._stop, self._ended = allocate_lock(), allocate_lock(), allocate_lock()
        for lock in (self._wakeup, self._stop, self._ended):
            lock.acquire()

    def start(self) -> None:
        """Start the thread."""
        self.is_running = True
        self._recorder.drops[self.name] = lambda: self.dropped
        start_new_thread(self._run, ())

    def stop(self, seconds: float) -> bool:
        """Write what is there and close the sink, within so many seconds. False: it took longer, and is left alone."""
        self._until = monotonic() + seconds
        self._stopping = True
        for lock in (self._stop, self._wakeup):
            _release(lock)
        self.is_running = False
        return self._ended.acquire(timeout=seconds)

    def flush(self, seconds: float) -> None:
        """Wait until everything that was recorded so far is written, or for so many seconds."""
        last, end = self._ring.last, monotonic() + seconds
        while self._written < last and self.is_running and monotonic() < end:
            sleep(_FLUSH_SECONDS)

    def _run(self) -> None:
        self._recorder.threads += 1  # not before it runs: until then the interpreter does not count it either
        try:
            while self._write_next():
                pass
            if self._sink is not None:
                self._sink.close()
        except Exception:
            self.failures += 1  # at its end there is nobody left to tell
        finally:
            self._recorder.threads -= 1
            self._ended.release()

    def _write_next(self) -> bool:
        """Write the next batch, or wait for one. False: it is stopping, and there is none, or no time for it."""
        batch = self._ring.since(self._cursor, BATCH_EVENTS)
        self._cursor, self.dropped = batch.cursor, self.dropped + batch.dropped
        if not batch.events:
            if self._stopping:
                return False
            self._wait()
            return True
        try:
            if self._sink is None:
                self._sink = self._open()
            self._sink.write(batch.events, self._recorder.offset)
            self._failed = 0
        except Exception as problem:
            self._fail(problem, len(batch.events))
        self._written = self._cursor
        return not self._stopping or monotonic() < self._until

    def _wait(self) -> None:
        """Wait for the next event, and then a little for more."""
        wake = self._wake
        self._ring.notify(wake)
        if self._ring.last <= self._cursor:
            self._wakeup.acquire()
        self._ring.forget(wake)
        self._pause(BATCH_SECONDS)

    def _wake(self) -> None:
        _release(self._wakeup)

    def _pause(self, seconds: float) -> None:
        """Wait for a while, or until `stop`."""
        if not self._stopping:
            self._stop.acquire(timeout=seconds)

    def _fail(self, problem: Exception, lost: int) -> None:
        """Drop the sink and what it was to write. Of failures in a row the first is reported."""
        self.dropped += lost
        self.failures += 1
        self._failed += 1
        if self._failed == 1:
            self._recorder.problem("warning", f"telemetry can't be written to the {self.name}: {problem}")
        sink, self._sink = self._sink, None
        if sink is not None:
            with suppress(Exception):
                sink.close()
        self._pause(BACKOFF.pause(self._failed))


def _release(lock: object) -> None:
    with suppress(RuntimeError):  # it is free already
        lock.release()  # type: ignore[attr-defined]
