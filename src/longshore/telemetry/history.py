"""The history: records in a SQLite file, which are deleted when they are too old or too many."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from time import monotonic, time
from typing import Any, Final, final
from urllib.parse import quote

import msgspec

from longshore.telemetry.events import expand
from longshore.telemetry.lines import json_line
from longshore.telemetry.records import Record, level_of
from longshore.telemetry.ring import Event

PRUNE_SECONDS: Final = 60.0
"""Between two deletions of what is too old or too much."""
LOCK_SECONDS: Final = 5.0
"""How long a writer waits for another process. This thread waits, and no call does."""
PAGE_BYTES: Final = 4096
_SHARE: Final = 10
"""Of too many records the oldest tenth is deleted, again until they fit."""
_MOST_READ: Final = 1000

_SETTINGS: Final = (
    f"page_size = {PAGE_BYTES}",
    "auto_vacuum = INCREMENTAL",
    "journal_mode = WAL",
    "synchronous = NORMAL",
)
_COLUMNS: Final = ("method", "tool", "session", "principal", "outcome", "seconds", "tokens")
_SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS records (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    type TEXT NOT NULL,
    {", ".join(_COLUMNS)},
    data TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS records_at ON records (at);
"""
_INSERT: Final = (
    f"INSERT INTO records (at, type, {', '.join(_COLUMNS)}, data) VALUES (?, ?, {', '.join('?' for _ in _COLUMNS)}, ?)"  # noqa: S608
)
_read_record: Final = msgspec.json.Decoder(Record)


@final
class History:
    """Writes records, none older than `most_seconds`, in a file of about `most_bytes`."""

    def __init__(self, path: str, most_seconds: float, most_bytes: int, clock: Callable[[], float] = time) -> None:
        self._seconds, self._bytes, self._clock = most_seconds, most_bytes, clock
        self._pruned = 0.0
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._database = sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
        for setting in _SETTINGS:
            self._database.execute(f"PRAGMA {setting}")
        self._database.executescript(_SCHEMA)

    def write(self, events: list[Event], offset: float) -> None:
        rows = [_row(record) for event in events for record in expand(event, offset)]
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._database.executemany(_INSERT, rows)
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")
        if monotonic() - self._pruned >= PRUNE_SECONDS or self.size > self._bytes:
            self._pruned = monotonic()
            self.prune()

    @property
    def size(self) -> int:
        """The bytes of the pages in use."""
        pages = self._database.execute("PRAGMA page_count").fetchone()[0]
        free = self._database.execute("PRAGMA freelist_count").fetchone()[0]
        return int(pages - free) * PAGE_BYTES

    def prune(self) -> None:
        """Delete what is too old, and the oldest of what is too much."""
        self._database.execute("DELETE FROM records WHERE at < ?", (self._clock() - self._seconds,))
        while self.size > self._bytes:
            first, last = self._database.execute("SELECT min(number), max(number) FROM records").fetchone()
            if first is None:
                break
            until = first + (last - first) // _SHARE
            self._database.execute("DELETE FROM records WHERE number <= ?", (until,))
        self._database.execute("PRAGMA incremental_vacuum").fetchall()

    def close(self) -> None:
        self._database.close()


def _row(record: Record) -> tuple[Any, ...]:
    fields = [getattr(record, name, None) for name in _COLUMNS]
    return record.at, record.__struct_config__.tag, *fields, json_line(record, level_of(record)).decode()


def read_history(path: str, after: int = 0, most: int = _MOST_READ, *, since: float = 0.0) -> list[tuple[int, Record]]:
    """The records after a number and since a time, the oldest first, each with its number."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=LOCK_SECONDS)
    try:
        found = database.execute(
            "SELECT number, data FROM records WHERE number > ? AND at >= ? ORDER BY number LIMIT ?",
            (after, since, min(most, _MOST_READ)),
        )
        return [(number, _read_record.decode(data)) for number, data in found]
    finally:
        database.close()


def search_history(
    path: str, *, before: int = 0, tool: str = "", outcome: str = "", most: int = _MOST_READ
) -> list[tuple[int, Record]]:
    """Completed calls before a number (0: the latest), the latest first. `tool` and `outcome` narrow."""
    wanted = {"number <": before or None, "tool =": tool or None, "outcome =": outcome or None}
    given = {name: value for name, value in wanted.items() if value is not None}
    clause = " AND ".join(["type = 'request_completed'", *(f"{name} ?" for name in given)])
    database = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=LOCK_SECONDS)
    try:
        found = database.execute(
            f"SELECT number, data FROM records WHERE {clause} ORDER BY number DESC LIMIT ?",  # noqa: S608
            (*given.values(), min(most, _MOST_READ)),
        )
        return [(number, _read_record.decode(data)) for number, data in found]
    finally:
        database.close()
