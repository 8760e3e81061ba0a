"""The store of one host: a SQLite file that any number of processes use at once.

One thread touches the file: it runs all waiting operations in one transaction (group commit), so the event loop never
waits for a disk. Results are delivered after the commit.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Concatenate, ParamSpec, TypeVar, final

from msgspec import Struct

from longshore.errors import StoreError
from longshore.stores.sqlite_bus import Bus, Inbox
from longshore.stores.sqlite_file import Tables, explain, is_broken, is_locked, open_database, transaction
from longshore.stores.store import OnMessage, Stop, family_of_prefix

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE_SECONDS = 5.0
"""How long an operation waits while another process holds the file locked. A group commit takes milliseconds."""

GROUP = 256
"""Operations of one transaction. Other processes wait for it, some ten milliseconds at most."""

SWEEP_SECONDS = 10.0
"""How often expired rows are deleted."""

CLOSE_SECONDS = 2.0
"""How long `close` waits for operations in flight, which a file locked by others may delay."""

BUS_SUFFIX = ".bus"
"""The folder of the processes' sockets, beside the file."""

READS, WRITES = False, True


@final
class SqliteStore:
    """`Tables` has the operations, `CommitThread` runs them. The file is opened by the first operation."""

    shared: bool = True

    def __init__(
        self, path: str, *, patience: float = PATIENCE_SECONDS, clock: Callable[[], float] = time.time
    ) -> None:
        inbox = Inbox(path + BUS_SUFFIX)
        self._worker = CommitThread(path, patience=patience, clock=clock, posted=inbox.notify_others)
        self._ask = self._worker.ask
        self._bus = Bus(inbox, self._collect)

    async def get(self, key: str) -> bytes | None:
        return await self._ask(READS, Tables.get, key)

    async def set(self, key: str, value: bytes, seconds: float) -> None:
        await self._ask(WRITES, Tables.set, key, value, seconds)

    async def add(self, key: str, value: bytes, seconds: float) -> bool:
        return await self._ask(WRITES, Tables.add, key, value, seconds)

    async def swap(self, key: str, old: bytes, new: bytes, seconds: float) -> bool:
        return await self._ask(WRITES, Tables.swap, key, old, new, seconds)

    async def touch(self, key: str, seconds: float) -> bool:
        return await self._ask(WRITES, Tables.touch, key, seconds)

    async def delete(self, *keys: str) -> None:
        await self._ask(WRITES, Tables.delete, *keys)

    async def find(self, prefix: str) -> dict[str, bytes]:
        family_of_prefix(prefix)
        return await self._ask(READS, Tables.find, prefix)

    async def count(self, family: str) -> int:
        family_of_prefix(family)
        return await self._ask(READS, Tables.count, family)

    async def append(self, key: str, value: bytes, seconds: float, most: int) -> int:
        return await self._ask(WRITES, Tables.append, key, value, seconds, most)

    async def read(self, key: str, after: int, most: int = 100) -> list[tuple[int, bytes]]:
        return await self._ask(READS, Tables.read, key, after, most)

    async def post(self, topic: str, message: bytes) -> None:
        await self._ask(WRITES, Tables.post, topic, message)
        self._bus.wake()

    async def listen(self, topic: str, on_message: OnMessage) -> Stop:
        return await self._bus.listen(topic, on_message)

    async def check(self) -> None:
        await self._ask(WRITES, Tables.check)

    async def close(self) -> None:
        self._bus.close()
        await self._worker.close()

    async def _collect(self, after: int | None) -> tuple[int, list[tuple[int, bytes, bytes]]]:
        return await self._ask(READS, Tables.collect, after)


class _Job(Struct, eq=False):
    """One operation. It is run again if the transaction that it was part of failed."""

    run: Callable[..., Any]
    args: tuple[Any, ...]
    writes: bool
    future: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None


@final
class CommitThread:
    """The thread and its queue. `ask` and `close` run on the event loop, all else on the thread.

    `posted` is called on the thread after a commit that wrote messages.
    """

    def __init__(self, path: str, *, patience: float, clock: Callable[[], float], posted: Callable[[], None]) -> None:
        self._path, self._patience, self._clock, self._posted = path, patience, clock, posted
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._waiting: set[asyncio.Future[Any]] = set()
        self._thread: threading.Thread | None = None
        self._ended: asyncio.Future[None] | None = None
        self._tables: Tables | None = None
        self._sweep_at = 0.0

    def ask(
        self, writes: bool, run: Callable[Concatenate[Tables, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]:
        """Queue an operation. Raises StoreError, at once or from the future."""
        assert not kwargs
        if self._ended is not None:
            raise StoreError(self._path, "the store is closed", "open a new one")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="longshore-store", daemon=True)
            self._thread.start()
        elif not self._thread.is_alive():
            raise StoreError(self._path, "the store's thread is gone, after a fork?", "open the store in each process")
        job = _Job(run, args, writes, asyncio.get_running_loop().create_future())
        self._waiting.add(job.future)
        self._jobs.put(job)
        return job.future

    async def close(self) -> None:
        """Run the queued operations, then end the thread. Operations that take too long fail."""
        if self._ended is not None:
            return
        self._ended = asyncio.get_running_loop().create_future()
        if self._thread is None:
            return
        self._jobs.put(None)
        await asyncio.wait([self._ended], timeout=CLOSE_SECONDS)
        for future in self._waiting:
            if not future.done():
                future.set_exception(StoreError(self._path, "the store was closed meanwhile", "open a new one"))

    def _deliver(self, jobs: list[_Job]) -> None:
        """Resolve futures, on their loop."""
        for job in jobs:
            self._waiting.discard(job.future)
            if job.future.done():
                continue  # the caller was cancelled
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)

    # From here on: the thread.

    def _run(self) -> None:
        try:
            while (first := self._jobs.get()) is not None:
                more = [self._jobs.get() for _ in range(min(GROUP - 1, self._jobs.qsize()))]
                jobs = [first, *(job for job in more if job is not None)]
                self._attempt(jobs)
                self._answer(jobs)
                self._tidy()
                if None in more:
                    break
        finally:
            self._end()

    def _tidy(self) -> None:
        """After each group: wake the other processes, delete expired rows."""
        try:
            if self._tables is not None and self._tables.posted:
                self._tables.posted = False
                self._posted()
            self._sweep()
        except sqlite3.Error as error:
            self._reopen_after(error)

    def _attempt(self, jobs: list[_Job]) -> None:
        """Run them all in one transaction, or each on its own if one of them fails."""
        try:
            tables = self._opened()
            if len(jobs) == 1 and not jobs[0].writes:
                jobs[0].result = jobs[0].run(tables, *jobs[0].args)
                return
            with transaction(tables.connection, writes=any(job.writes for job in jobs)):
                for job in jobs:
                    job.result = job.run(tables, *job.args)
        except Exception as error:
            self._reopen_after(error)
            if len(jobs) == 1 or isinstance(error, StoreError) or is_locked(error):
                self._fail(jobs, error)
                return
            for job in jobs:
                self._attempt([job])

    def _fail(self, jobs: list[_Job], error: Exception) -> None:
        if isinstance(error, sqlite3.Error):
            error = explain(self._path, error, self._patience)
        for job in jobs:
            # One exception for each future: raising an exception changes it.
            job.error = StoreError(error.where, error.what, error.fix) if isinstance(error, StoreError) else error

    def _answer(self, jobs: list[_Job]) -> None:
        for loop in {job.future.get_loop() for job in jobs}:
            self._call(loop, self._deliver, [job for job in jobs if job.future.get_loop() is loop])

    def _call(self, loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
        try:
            loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            pass  # the loop is closed: no task awaits the result

    def _opened(self) -> Tables:
        if self._tables is None:
            self._tables = Tables(open_database(self._path, self._patience), self._clock)
        return self._tables

    def _reopen_after(self, error: Exception) -> None:
        """Close the connection after an error that a new one may not have."""
        if is_broken(error) and self._tables is not None:
            self._tables.connection.close()
            self._tables = None

    def _sweep(self) -> None:
        now = time.monotonic()
        if now < self._sweep_at or self._tables is None:
            return
        self._sweep_at = now + SWEEP_SECONDS
        if self._tables.has_expired():
            with transaction(self._tables.connection, writes=True):
                self._tables.sweep()
            if self._tables.has_expired():
                self._sweep_at = now

    def _end(self) -> None:
        """Close the file and fail the operations that are still queued."""
        if self._tables is not None:
            self._tables.connection.close()
        left = [job for _ in range(self._jobs.qsize()) if (job := self._jobs.get()) is not None]
        self._fail(left, StoreError(self._path, "the store has ended", "open a new one"))
        self._answer(left)
        if self._ended is not None:
            self._call(self._ended.get_loop(), self._ended.set_result, None)
