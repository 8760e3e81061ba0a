"""A SQLite file of ours: made, opened, recognised; and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager

from longshore.errors import StoreError

APPLICATION_ID = 0x4C53_484F  # "LSHO", in the file's header
VERSION = 1
FILE_MODE, FOLDER_MODE = 0o600, 0o700
"""Sessions are secrets of the user that serves."""

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
    """What happened, where, and what to do about it."""
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
