"""The interface between the context graph and a database.

SQLite (`sqlite_file`) and PostgreSQL (`postgres`) implement it.

Statements are those that both engines understand, with `?` for a value: `ON CONFLICT`, `RETURNING`, `LIKE`, partial
indexes, `IN` lists of at most `BATCH` values. All differences of the engines are behind `Database` and in the words of
`schema`. Scores are computed in Python from the tables, so both engines rank alike.
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
    """A transaction: its reads see one state of the store, and its writes are all committed or none. For one thread."""

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows that a statement gives."""
        ...

    def row(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        """The first row that a statement gives."""
        ...

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; return how many rows it changed."""
        ...

    def run_many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each list of values."""
        ...

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Insert many rows, in the fastest way of the engine."""
        ...

    def join_picked(self, table: str, where: str) -> str:
        """A join with the rows of a table that `where` selects, which may name the tables before the join.

        `where` may end with `ORDER BY` and `LIMIT`: the limit applies to each row before the join.
        """
        ...


class ChangeWatcher(Protocol):
    """Waits until this or another process has changed the store. For one thread, except `close`.

    `await asyncio.to_thread(watcher.wait, 30)` waits in an event loop; `close` ends that wait when the task is
    cancelled. It may report a change where there was none: `Store.events` tells what happened.
    """

    def wait(self, seconds: float) -> bool:
        """Return whether the store was changed since the last wait or, at first, since the watcher was made.

        It returns at the change, and with False after `seconds` or when the watcher is closed. An unreachable database
        raises nothing; its return counts as a change.
        """
        ...

    def close(self) -> None:
        """End a wait in progress, and all later ones at once. Callable from any thread, and more than once."""
        ...


class Database(Protocol):
    """The database that holds the tables.

    Safe for use from many threads; every failure is a StoreError with the fix.
    """

    place: str
    """For people: a file, or an address without its password."""

    def reading(self, seconds: float | None = None) -> AbstractContextManager[Transaction]:
        """A transaction that only reads.

        It does not wait for writers, and ends after so many seconds (None: the default).
        """
        ...

    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction that writes, and is committed at its end. It excludes all other writers of all processes."""
        ...

    def bytes_used(self, transaction: Transaction) -> int:
        """The size of the tables on the disk, without space that is free for new rows."""
        ...

    def journal(self) -> str:
        """How changes are made durable, as text for people."""
        ...

    def erase_traces(self) -> tuple[str, ...]:
        """Overwrite the deleted rows of a purge as far as possible; return the copies of the store it can't reach."""
        ...

    def check(self) -> list[str]:
        """Problems of the database itself; empty if it is intact."""
        ...

    def watch_changes(self) -> ChangeWatcher:
        """A watcher that notices each change from now on."""
        ...

    def last_ids(self, transaction: Transaction) -> dict[str, int]:
        """By table: the last id that was given to a row, which may have been deleted since."""
        ...

    def go_on_after(self, transaction: Transaction, last_ids: Mapping[str, int]) -> None:
        """Give no id up to these again, after rows with given ids were inserted; the last step of a copy."""
        ...

    def close(self) -> None:
        """Close all connections. Transactions in progress in other threads end with an error."""
        ...


def batches(values: Iterable[T]) -> Generator[list[T]]:
    """The values in lists of at most `BATCH`."""
    listed = list(values)
    for start in range(0, len(listed), BATCH):
        yield listed[start : start + BATCH]


def refused_value(error: Exception) -> ToolError:
    """The message for a value that no engine stores: an unpaired surrogate, or a number of more than 64 bits."""
    if isinstance(error, UnicodeEncodeError):
        found = error.object[error.start : error.start + 1]
        return ToolError(f"a text has {found!r}, which is half a character; leave it out")
    return ToolError("a number is larger than any id or time; give the one that was shown")


def marks(values: Sequence[object]) -> str:
    """A placeholder for each value of an `IN` list."""
    return ",".join("?" * len(values))
