"""The SQLite file: how it is made, opened and recognised; the store's operations as SQL; what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import final

from longshore.errors import StoreError
from longshore.stores.store import family_of_prefix, to_bytes, to_text

APPLICATION_ID = 0x4C53_484F  # "LSHO", in the file's header
VERSION = 1
FILE_MODE, FOLDER_MODE = 0o600, 0o700
"""Sessions are secrets of the user that runs the server."""

WAL_RETRY_SECONDS = 0.01
"""SQLite does not wait its busy timeout for the switch to WAL; so we try again this often."""

SCHEMA = (
    "CREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB NOT NULL, expires REAL NOT NULL)",
    "CREATE INDEX entries_by_expiry ON entries (expires)",
    "CREATE TABLE logs (id INTEGER PRIMARY KEY, key BLOB UNIQUE, last INTEGER NOT NULL, expires REAL NOT NULL)",
    "CREATE INDEX logs_by_expiry ON logs (expires)",
    "CREATE TABLE events (log INTEGER, position INTEGER, value BLOB NOT NULL, PRIMARY KEY (log, position))"
    " WITHOUT ROWID",
    # AUTOINCREMENT: the id of a deleted message is never given to a new one, which listeners would then miss.
    "CREATE TABLE messages"
    " (id INTEGER PRIMARY KEY AUTOINCREMENT, topic BLOB NOT NULL, body BLOB NOT NULL, sent REAL NOT NULL)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)

MESSAGE_SECONDS = 60.0
"""How long a message stays for a process that is slow to read it."""

SWEPT_ENTRIES, SWEPT_LOGS = 1000, 100
"""Expired rows that one sweep deletes at most, so that no process waits long for the lock."""

LAST_POSITION = (1 << 63) - 1
"""The largest integer of SQLite. Clients name positions, and may name a larger one."""

READ_MESSAGES = 1000
"""Messages read at once."""


@final
class Tables:
    """The store's operations, inside whatever transaction is open. `posted` is set when a message was written."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self.connection = connection
        self._execute = connection.execute
        self._clock = clock
        self.posted = False

    def get(self, key: str) -> bytes | None:
        found = self._execute("SELECT value FROM entries WHERE key = ? AND expires > ?", (to_bytes(key), self._clock()))
        row = found.fetchone()
        return row[0] if row else None

    def set(self, key: str, value: bytes, seconds: float) -> None:
        self._execute(
            "INSERT INTO entries VALUES (?, ?, ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires",
            (to_bytes(key), value, self._clock() + seconds),
        )

    def add(self, key: str, value: bytes, seconds: float) -> bool:
        now = self._clock()
        done = self._execute(
            "INSERT INTO entries VALUES (?, ?, ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires"
            " WHERE entries.expires <= ?",
            (to_bytes(key), value, now + seconds, now),
        )
        return done.rowcount == 1

    def swap(self, key: str, old: bytes, new: bytes, seconds: float) -> bool:
        now = self._clock()
        done = self._execute(
            "UPDATE entries SET value = ?, expires = ? WHERE key = ? AND expires > ? AND value = ?",
            (new, now + seconds, to_bytes(key), now, old),
        )
        return done.rowcount == 1

    def touch(self, key: str, seconds: float) -> bool:
        now = self._clock()
        done = self._execute(
            "UPDATE entries SET expires = ? WHERE key = ? AND expires > ?", (now + seconds, to_bytes(key), now)
        )
        return done.rowcount == 1

    def delete(self, *keys: str) -> None:
        for key in map(to_bytes, keys):
            self._execute("DELETE FROM entries WHERE key = ?", (key,))
            self._delete_log(key)

    def find(self, prefix: str) -> dict[str, bytes]:
        found = self._execute(
            "SELECT key, value FROM entries WHERE key >= ? AND key < ? AND expires > ? ORDER BY expires",
            (*_range(prefix), self._clock()),
        )
        return {to_text(key): value for key, value in found}

    def count(self, family: str) -> int:
        # With the expired ones: so the key's index alone can count, and no row is read.
        row = self._execute("SELECT count(*) FROM entries WHERE key >= ? AND key < ?", _range(family)).fetchone()
        return int(row[0])

    def append(self, key: str, value: bytes, seconds: float, most: int) -> int:
        log, position = self._next_position(to_bytes(key), seconds)
        self._execute("INSERT INTO events VALUES (?, ?, ?)", (log, position, value))
        self._execute("DELETE FROM events WHERE log = ? AND position <= ?", (log, position - max(most, 1)))
        return position

    def read(self, key: str, after: int, most: int) -> list[tuple[int, bytes]]:
        return self._execute(
            "SELECT position, events.value FROM logs JOIN events ON events.log = logs.id"
            " WHERE key = ? AND expires > ? AND position > ? ORDER BY position LIMIT ?",
            (to_bytes(key), self._clock(), min(max(after, 0), LAST_POSITION), max(most, 0)),
        ).fetchall()

    def post(self, topic: str, message: bytes) -> None:
        row = (to_bytes(topic), message, self._clock())
        self._execute("INSERT INTO messages (topic, body, sent) VALUES (?, ?, ?)", row)
        self.posted = True

    def newest(self) -> int:
        """The id of the last message that was ever posted."""
        row = self._execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
        return row[0] if row else 0

    def collect(self, after: int | None) -> tuple[int, list[tuple[int, bytes, bytes]]]:
        """The id of the newest message, and the first messages after an id (none for None): id, topic, body."""
        newest = self.newest()  # first: a message that is posted in between is then among those read
        if after is None:
            return newest, []
        select = "SELECT id, topic, body FROM messages WHERE id > ? ORDER BY id LIMIT ?"
        return newest, self._execute(select, (after, READ_MESSAGES)).fetchall()

    def check(self) -> None:
        self.set("longshore-check", b"", MESSAGE_SECONDS)

    def has_expired(self) -> bool:
        """Whether there is anything to sweep. Takes no write lock."""
        now = self._clock()
        row = self._execute(
            "SELECT EXISTS (SELECT 1 FROM entries WHERE expires <= ?)"
            " OR EXISTS (SELECT 1 FROM logs WHERE expires <= ?)"
            " OR EXISTS (SELECT 1 FROM messages WHERE sent <= ?)",
            (now, now, now - MESSAGE_SECONDS),
        ).fetchone()
        return bool(row[0])

    def sweep(self) -> None:
        """Delete expired rows, a bounded number of them."""
        now = self._clock()
        self._execute(
            "DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries WHERE expires <= ? LIMIT ?)",
            (now, SWEPT_ENTRIES),
        )
        expired = self._execute("SELECT key FROM logs WHERE expires <= ? LIMIT ?", (now, SWEPT_LOGS)).fetchall()
        for (key,) in expired:
            self._delete_log(key)
        self._execute("DELETE FROM messages WHERE sent <= ?", (now - MESSAGE_SECONDS,))

    def _next_position(self, key: bytes, seconds: float) -> tuple[int, int]:
        """The row of a log, made if need be, and the position that now is its last."""
        now = self._clock()
        row = self._execute("SELECT id, last FROM logs WHERE key = ? AND expires > ?", (key, now)).fetchone()
        if row:
            log, position = row[0], row[1] + 1
            self._execute("UPDATE logs SET last = ?, expires = ? WHERE id = ?", (position, now + seconds, log))
            return log, position
        self._delete_log(key)  # it may have expired and still be there
        made = self._execute("INSERT INTO logs (key, last, expires) VALUES (?, 1, ?)", (key, now + seconds))
        assert made.lastrowid is not None
        return made.lastrowid, 1

    def _delete_log(self, key: bytes) -> None:
        self._execute("DELETE FROM events WHERE log = (SELECT id FROM logs WHERE key = ?)", (key,))
        self._execute("DELETE FROM logs WHERE key = ?", (key,))


def _range(prefix: str) -> tuple[bytes, bytes]:
    """The first key with a prefix, and the first after all of them."""
    family_of_prefix(prefix)
    low = to_bytes(prefix)
    return low, low[:-1] + bytes((low[-1] + 1,))  # no byte of UTF-8 is 255


def open_database(path: str, patience: float) -> sqlite3.Connection:
    """Open the file, made if there is none. Another process may do the same now. Raises StoreError."""
    try:
        _make(path)
        connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
    except OSError as error:
        raise _unusable(path, f"it can't be made ({error.strerror})") from None
    except sqlite3.Error as error:
        raise explain(path, error, patience) from None
    try:
        _prepare(connection, path, patience)
    except sqlite3.Error as error:
        connection.close()
        raise explain(path, error, patience) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _make(path: str) -> None:
    os.makedirs(os.path.dirname(path), FOLDER_MODE, exist_ok=True)
    try:
        # Only if there is none: closing an existing file would end the locks that this process holds on it.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, FILE_MODE))
    except FileExistsError:
        pass


def _prepare(connection: sqlite3.Connection, path: str, patience: float) -> None:
    known = _recognise(connection, path)
    _use_wal(connection, path, patience)
    connection.execute("PRAGMA synchronous = NORMAL")
    if known:
        return
    with transaction(connection, writes=True):
        if not _recognise(connection, path):  # another process may have been faster
            for statement in SCHEMA:
                connection.execute(statement)


def _recognise(connection: sqlite3.Connection, path: str) -> bool:
    """Whether it holds our tables. Raises if it holds anything else."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if not tables:
        return False
    if owner != APPLICATION_ID:
        raise _unusable(path, "it is a database of another program")
    if version > VERSION:
        raise _unusable(path, f"a newer Longshore made it (schema {version}; this one knows {VERSION})")
    return True


def _use_wal(connection: sqlite3.Connection, path: str, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            if not is_locked(error) or time.monotonic() > deadline:
                raise
            time.sleep(WAL_RETRY_SECONDS)
    if mode != "wal":
        raise _unusable(path, "its file system has no shared memory, which several workers need")


@contextmanager
def transaction(connection: sqlite3.Connection, *, writes: bool) -> Generator[None]:
    """A writer takes the lock at once: one that began by reading could not wait for it without losing its view."""
    connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors have ended it already
            connection.execute("ROLLBACK")
        raise


def is_locked(error: Exception) -> bool:
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_broken(error: Exception) -> bool:
    """Whether the connection should not be used again."""
    return _code(error) in (
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_MISUSE,
    )


def explain(path: str, error: sqlite3.Error, patience: float) -> StoreError:
    """A StoreError that says what happened, where, and what to do."""
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            fix = f"see who holds it (fuser {path}) and end that"
            return StoreError(path, f"another process has kept the file locked for {patience:g} s", fix)
        case sqlite3.SQLITE_FULL:
            return StoreError(path, "the disk is full", "make room on it, or name a file elsewhere in http.store")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return _unusable(path, "this user may not write the file or its folder")
        case sqlite3.SQLITE_CANTOPEN:
            return _unusable(path, "the file can't be opened")
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            fix = "stop the server, move the file away and start again; open sessions are lost"
            return StoreError(path, "the file is not an intact SQLite database", fix)
        case sqlite3.SQLITE_IOERR:
            return StoreError(path, "the disk failed to read or write", "check the disk and the room on it")
        case _:
            return _unusable(path, f"SQLite says: {error}")


def _unusable(path: str, what: str) -> StoreError:
    return StoreError(path, what, "mend that, or name another file in http.store")


def _code(error: Exception) -> int:
    """The primary result code, 0 if the error is not SQLite's; details stand in the upper bits."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
