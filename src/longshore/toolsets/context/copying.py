"""Copying a whole store to another place or engine: all rows with their ids, in one transaction."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from random import Random
from typing import Final

from msgspec import Struct

from longshore.errors import StoreError
from longshore.toolsets.context.database import Row, Transaction, marks
from longshore.toolsets.context.place import is_address
from longshore.toolsets.context.store import Store

ROWS_AT_ONCE: Final = 2_000
"""Rows that are in memory at a time."""
SAMPLE: Final = 200
"""Rows of each table that are compared at the end."""
COPY_SECONDS: Final = 86_400.0
"""After so long reading the source is given up: there is no model that waits."""

Progress = Callable[[str, int, int], None]
"""Receives the table, the number of its copied rows, and that of all its rows."""


class _Table(Struct, frozen=True):
    """A table and its columns; the first ones are its key."""

    name: str
    columns: tuple[str, ...]
    keys: int = 1

    @property
    def key(self) -> tuple[str, ...]:
        return self.columns[: self.keys]


_INTERVAL = (
    "valid_from",
    "valid_to",
    "recorded_at",
    "superseded_at",
    "ended_at",
    "closed_as",
    "superseded_by",
    "reason",
)
_TABLES: Final = (
    _Table("source", ("id", "type", "uri", "session", "client", "actor", "at")),
    _Table(
        "node",
        (
            *("id", "kind", "name", "name_key", "path", "importance", "pinned", "attributes"),
            *("created_at", "updated_at", "retracted_at", "retracted_as", "has_derived_name", "term_ids"),
        ),
    ),
    _Table(
        "observation",
        (
            *("id", "node", "text", "text_hash", "source", "confidence", "term_ids"),
            *_INTERVAL,
        ),
    ),
    _Table("contradiction", ("older", "newer", "recorded_at"), keys=2),
    _Table("edge", ("id", "from_node", "relation", "to_node", "source", "weight", *_INTERVAL)),
    _Table("event", ("sequence", "at", "actor", "operation", "node", "observation", "edge", "detail")),
    _Table("file_state", ("path", "size", "modified_ns", "hash", "parser")),
    _Table("term", ("id", "text", "word", "texts")),
    _Table("posting", ("term", "is_current", "node", "observation", "frequency", "length"), keys=4),
)
"""In an order in which no row refers to one of a later table."""
_TOTALS: Final = ("tokenizer", "nodes", "texts", "terms")


def copy_store(
    source: Store, target: Store, progress: Progress | None = None, *, replace: bool = False
) -> dict[str, int]:
    """Copy all of a store, with its history and ids, into an empty one; return the number of rows of each table.

    Raises StoreError. It is one transaction, and the copy is compared with the source before it is committed: an error
    or an interruption leaves the target as it was. Changes that others make to the source in the meantime are not in
    the copy. With `replace`, the rows of the target are deleted first.
    """
    if _same(source.place, target.place):
        raise StoreError(target.place, "a store can't be copied to itself", "name another place")
    with source.database.reading(COPY_SECONDS) as old:
        counts = {table.name: _count(old, table) for table in _TABLES}
        if not any(counts.values()):
            raise StoreError(source.place, "there is nothing in it to copy", "check the place")
        with target.database.writing() as new:
            _empty(new, target.place, replace=replace)
            for table in _TABLES:
                new.insert(table.name, table.columns, _rows(old, table, counts[table.name], progress))
            totals = old.row(f"SELECT {', '.join(_TOTALS)} FROM totals WHERE id = 1")
            assert totals is not None
            new.run(f"UPDATE totals SET {', '.join(f'{name} = ?' for name in _TOTALS)} WHERE id = 1", totals)
            target.database.go_on_after(new, source.database.last_ids(old))
            _verify(old, new, target.place, counts)
    return counts


def _same(place: str, other: str) -> bool:
    if is_address(place):
        return place == other
    return os.path.realpath(place) == os.path.realpath(other)


def _count(transaction: Transaction, table: _Table) -> int:
    row = transaction.row(f"SELECT count(*) FROM {table.name}")
    return int(row[0]) if row else 0


def _empty(new: Transaction, place: str, *, replace: bool) -> None:
    for table in reversed(_TABLES):
        if not replace and new.row(f"SELECT 1 FROM {table.name} LIMIT 1"):
            raise StoreError(place, "it is not empty; nothing was copied", "name another place, or replace what it has")
        new.run(f"DELETE FROM {table.name}")


def _rows(old: Transaction, table: _Table, total: int, progress: Progress | None) -> Generator[Row]:
    """All rows of a table, in the order of its key."""
    order = ", ".join(table.key)
    select = f"SELECT {', '.join(table.columns)} FROM {table.name}"
    end = f"ORDER BY {order} LIMIT {ROWS_AT_ONCE}"
    rows, done = old.rows(f"{select} {end}"), 0
    while rows:
        yield from rows
        done += len(rows)
        if progress is not None:
            progress(table.name, done, total)
        rows = old.rows(f"{select} WHERE ({order}) > ({marks(table.key)}) {end}", rows[-1][: table.keys])


def _verify(old: Transaction, new: Transaction, place: str, counts: Mapping[str, int]) -> None:
    """Compare the counts, and a sample of rows of each table. Raises StoreError."""
    chance = Random(17)  # noqa: S311  (a sample)
    for table in _TABLES:
        if (found := _count(new, table)) != counts[table.name]:
            raise _differs(place, f"{found:,} rows of {table.name}, and not {counts[table.name]:,}")
        select = (
            f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {', '.join(table.key)} LIMIT 20 OFFSET ?"
        )
        last = max(0, counts[table.name] - 20)
        for offset in {0, last, *(chance.randint(0, last) for _ in range(SAMPLE // 20 - 2))}:
            rows, copied = (transaction.rows(select, (offset,)) for transaction in (old, new))
            if rows != copied:
                raise _differs(place, f"other rows of {table.name} than the source")


def _differs(place: str, what: str) -> StoreError:
    return StoreError(place, f"the copy has {what}; nothing was changed", "report this, with both versions")
