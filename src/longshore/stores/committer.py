"""The one thread that touches a SQLite file: it runs everything that waits in one transaction (group commit).

The loop puts work into a queue and rings a bell (a pipe); the thread waits on the bell and on nudges from other
processes, so that it needs no second thread and the loop never waits for a disk. Answers leave after the commit.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from selectors import EVENT_READ, BaseSelector, DefaultSelector
from typing import Any, Concatenate, ParamSpec, TypeVar, final

from msgspec import Struct

from longshore.errors import StoreError
from longshore.stores.database import explain, is_broken, is_locked, open_database, transaction
from longshore.stores.mailbox import Mailbox
from longshore.stores.tables import Tables

P = ParamSpec("P")
T = TypeVar("T")

GROUP = 256
"""Operations of one transaction. Other processes wait for it, some ten milliseconds at most."""

LOOK_SECONDS = 1.0
"""How often messages are looked for without a nudge."""

REST_SECONDS = 10.0
"""How much longer the thread waits where nudges come, if it has nothing else to do: the look is only a safety net."""

SWEEP_SECONDS = 10.0
"""How often expired rows are deleted."""

CLOSE_SECONDS = 2.0
"""How long `close` waits for what is in flight, which a file locked by others may hold up."""


class _Job(Struct, eq=False):
    """One operation. It is run again if the transaction that it was part of failed."""

    run: Callable[..., Any]
    args: tuple[Any, ...]
    writes: bool
    future: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None


@final
class Committer:
    """`ask` and `close` belong to the loop, everything else to the thread."""

    def __init__(self, path: str, mailbox: Mailbox, *, patience: float, clock: Callable[[], float]) -> None:
        self._path, self._patience, self._clock = path, patience, clock
        self._mailbox = mailbox
        self._jobs: deque[_Job] = deque()
        self._waiting: set[asyncio.Future[Any]] = set()
        self._thread: threading.Thread | None = None
        self._bell = (-1, -1)
        self._rung = False
        self._closing = False
        self._ended: _Job | None = None
        self._selector: BaseSelector
        self._tables: Tables | None = None
        self._inbox: int | None = None
        self._attending = False
        self._look_at = self._sweep_at = 0.0

    def ask(
        self, writes: bool, run: Callable[Concatenate[Tables, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]:
        """Have an operation done. Raises StoreError, at once or from the future."""
        assert not kwargs
        if self._closing:
            raise StoreError(self._path, "the store is closed", "open a new one")
        if self._thread is None:
            self._start()
        elif not self._thread.is_alive():
            raise StoreError(self._path, "the store's thread is gone, after a fork?", "open the store in each process")
        job = self._job(run, args, writes)
        self._waiting.add(job.future)
        self._jobs.append(job)
        self.ring()
        return job.future

    def ring(self) -> None:
        """Wake the thread, with one system call however many jobs come before it looks."""
        if not self._rung and self._thread is not None:
            self._rung = True
            try:
                os.write(self._bell[1], b"!")
            except BrokenPipeError:
                pass  # closed, and it saw so by itself

    async def close(self) -> None:
        """Do what waits, then end. What could not be done in time fails."""
        if self._closing:
            return
        ended = self._ended = self._job(_nothing, (), False)
        self._closing = True
        if self._thread is None:
            return
        self.ring()
        await asyncio.wait([ended.future], timeout=CLOSE_SECONDS)
        for future in self._waiting:
            if not future.done():
                future.set_exception(StoreError(self._path, "the store was closed meanwhile", "open a new one"))
        if ended.future.done():
            os.close(self._bell[1])

    def _job(self, run: Callable[..., Any], args: tuple[Any, ...], writes: bool) -> _Job:
        return _Job(run, args, writes, asyncio.get_running_loop().create_future())

    def _start(self) -> None:
        self._bell = os.pipe()
        os.set_blocking(self._bell[0], False)
        self._selector = DefaultSelector()
        self._selector.register(self._bell[0], EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="longshore-store", daemon=True)
        self._thread.start()

    def _settle(self, jobs: list[_Job]) -> None:
        for job in jobs:
            self._waiting.discard(job.future)
            if job.future.done():
                continue  # who asked was cancelled
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)

    # From here on: the thread.

    def _run(self) -> None:
        try:
            while self._jobs or not self._closing:
                self._turn()
        finally:
            self._end()

    def _turn(self) -> None:
        nudged = self._wait()
        jobs = [self._jobs.popleft() for _ in range(min(GROUP, len(self._jobs)))]
        if jobs:
            self._attempt(jobs)
            self._answer(jobs)
        try:
            self._tell_others()
            if self._mailbox.started:
                self._attend(nudged)
            self._sweep()
        except sqlite3.Error as error:
            self._let_go(error)  # there is another turn
        except OSError:
            pass  # the inbox could not be waited on: looking is enough
        except StoreError:
            pass  # it could not be opened: whoever asks is told

    def _wait(self) -> bool:
        """Wait for work. True: another process has posted."""
        nudged = False
        for key, _ in self._selector.select(self._patience_now()):
            if key.fd == self._bell[0]:
                os.read(key.fd, 64)
                self._rung = False
            else:
                self._mailbox.drain()
                nudged = True
        return nudged

    def _patience_now(self) -> float | None:
        if self._jobs or self._closing or (self._mailbox.started and not self._attending):
            return 0.0
        if not self._attending:
            return None
        rest = 0.0 if self._inbox is None else REST_SECONDS
        return max(0.0, self._look_at + rest - time.monotonic())

    def _attempt(self, jobs: list[_Job]) -> None:
        """Do them all in one transaction, or each on its own if one of them spoils it."""
        try:
            tables = self._opened()
            if len(jobs) == 1 and not jobs[0].writes:
                jobs[0].result = jobs[0].run(tables, *jobs[0].args)
                return
            with transaction(tables.connection, writes=any(job.writes for job in jobs)):
                for job in jobs:
                    job.result = job.run(tables, *job.args)
        except Exception as error:
            self._let_go(error)
            if len(jobs) == 1 or isinstance(error, StoreError) or is_locked(error):
                self._fail(jobs, error)
                return
            for job in jobs:
                self._attempt([job])

    def _fail(self, jobs: list[_Job], error: Exception) -> None:
        if isinstance(error, sqlite3.Error):
            error = explain(self._path, error, self._patience)
        for job in jobs:
            # An exception of its own for each, because raising one writes into it.
            job.error = StoreError(error.where, error.what, error.fix) if isinstance(error, StoreError) else error

    def _answer(self, jobs: list[_Job]) -> None:
        for loop in {job.future.get_loop() for job in jobs}:
            try:
                loop.call_soon_threadsafe(self._settle, [job for job in jobs if job.future.get_loop() is loop])
            except RuntimeError:
                pass  # it is closed: nobody waits any more

    def _opened(self) -> Tables:
        if self._tables is None:
            self._tables = Tables(open_database(self._path, self._patience), self._clock)
            self._mailbox.rewind(self._tables.newest())
        return self._tables

    def _let_go(self, error: Exception) -> None:
        """After an error that a new connection may not have."""
        if is_broken(error) and self._tables is not None:
            self._tables.connection.close()
            self._tables = None

    def _tell_others(self) -> None:
        if self._tables is not None and self._tables.posted:
            self._tables.posted = False
            self._mailbox.tell_others()
            self._look_at = 0.0  # our own listeners too

    def _attend(self, nudged: bool) -> None:
        """Read the mail if there may be some. The inbox first, or a message could fall between."""
        now = time.monotonic()
        if not nudged and now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS  # first: whatever fails below is not tried again at once
        if not self._attending or self._mailbox.lost():
            self._attending = True
            self._open_inbox()
        self._mailbox.collect(self._opened())

    def _open_inbox(self) -> None:
        self._shut_inbox()
        inbox = self._mailbox.open()
        if inbox is not None:
            self._selector.register(inbox, EVENT_READ)
            self._inbox = inbox

    def _shut_inbox(self) -> None:
        if self._inbox is not None:
            self._selector.unregister(self._inbox)
            self._inbox = None
        self._mailbox.shut()

    def _sweep(self) -> None:
        now = time.monotonic()
        if now < self._sweep_at or self._tables is None:
            return
        self._sweep_at = now + SWEEP_SECONDS
        if self._tables.litter():
            with transaction(self._tables.connection, writes=True):
                self._tables.sweep()
            if self._tables.litter():
                self._sweep_at = now

    def _end(self) -> None:
        """Close everything; nobody may be left waiting, whatever happened."""
        self._shut_inbox()
        self._mailbox.close()
        self._selector.close()
        os.close(self._bell[0])
        if self._tables is not None:
            self._tables.connection.close()
        left = list(self._jobs)
        self._fail(left, StoreError(self._path, "the store has ended", "open a new one"))
        self._answer(left if self._ended is None else [*left, self._ended])


def _nothing(*_: Any) -> None:
    pass
