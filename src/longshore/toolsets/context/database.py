"""What the context graph needs of a database. SQLite (`sqlite_file`) and PostgreSQL (`postgres`) have it.

Statements are those that both engines understand, with `?` for a value: `ON CONFLICT`, `RETURNING`, `LIKE`, partial
indexes, `IN` lists of at most `BATCH` values. Everything in which the engines differ stands behind `Database`, and in
the words of `schema`. Scores are computed in Python of what the tables hold, so both engines rank alike.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from longshore.errors import ToolError

Row: TypeAlias = tuple[Any, ...]
T = TypeVar("T")

BATCH: Final = 500
"""Values of one `IN` list. The oldest SQLite that we know takes 999."""


class Transaction(Protocol):
    """A transaction: reads see one state of the store, and writes happen together or not at all. For one thread."""

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows that a statement gives."""
        ...

    def row(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        """Its first row."""
        ...

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it changed."""
        ...

    def run_many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each of these."""
        ...

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Insert many rows, the fastest way that the engine has."""
        ...

    def join_picked(self, table: str, where: str) -> str:
        """A join with those rows of a table that `where` picks, which may name the tables before the join.

        It may end with `ORDER BY` and `LIMIT`: so many rows are picked for each row before the join.
        """
        ...


class ChangeWatcher(Protocol):
    """Waits until somebody has changed the store, in this process or another one. For one thread, but for `close`.

    `await asyncio.to_thread(watcher.wait, 30)` waits in an event loop; `close` ends that wait when the task is
    cancelled. It may report a change where there was none: `Store.events` tells what happened.
    """

    def wait(self, seconds: float) -> bool:
        """Whether something was changed since the last wait or, at first, since the watcher was made.

        It returns as soon as that is known, and with False after so many seconds or when the watcher is closed. A
        database that can't be reached raises nothing; when it is back, that counts as a change.
        """
        ...

    def close(self) -> None:
        """End a wait that is under way, and all later ones at once. From any thread, more than once too."""
        ...


class Database(Protocol):
    """A place that holds the tables. Safe for use from many threads; every failure is a StoreError with the fix."""

    place: str
    """For people: a file, or an address without its password."""

    def reading(self, seconds: float | None = None) -> AbstractContextManager[Transaction]:
        """A transaction that only reads. It waits for no writer, and is given up after so long (None: the usual)."""
        ...

    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction that writes, and is committed at the end. No other one of any process writes meanwhile."""
        ...

    def bytes_used(self, transaction: Transaction) -> int:
        """What the tables take on the disk, without space that is free for new rows."""
        ...

    def journal(self) -> str:
        """How changes are made safe, for people."""
        ...

    def erase_traces(self) -> tuple[str, ...]:
        """Overwrite what a purge has deleted, as far as the engine can; the copies of the store that it can't reach."""
        ...

    def check(self) -> list[str]:
        """What is wrong with the database itself; empty if it is intact."""
        ...

    def watch_changes(self) -> ChangeWatcher:
        """A watcher that learns of each change from now on."""
        ...

    def last_ids(self, transaction: Transaction) -> dict[str, int]:
        """By table: the last id that was given to a row, which may have been deleted since."""
        ...

    def go_on_after(self, transaction: Transaction, last_ids: Mapping[str, int]) -> None:
        """Give no id again up to these, after rows with ids of their own were inserted; the last step of a copy."""
        ...

    def close(self) -> None:
        """Close all connections. Transactions that others have begun end with an error."""
        ...


def batches(values: Iterable[T]) -> Generator[list[T]]:
    """The values in lists of at most `BATCH`."""
    listed = list(values)
    for start in range(0, len(listed), BATCH):
        yield listed[start : start + BATCH]


def refused_value(error: Exception) -> ToolError:
    """What to say of a value that no engine stores: half a character, or a number of more than 64 bits."""
    if isinstance(error, UnicodeEncodeError):
        found = error.object[error.start : error.start + 1]
        return ToolError(f"a text has {found!r}, which is half a character; leave it out")
    return ToolError("a number is larger than any id or time; give the one that was shown")


def marks(values: Sequence[object]) -> str:
    """A mark for each value of an `IN` list."""
    return ",".join("?" * len(values))
