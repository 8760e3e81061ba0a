"""The context graph in one SQLite file that any number of processes and threads use at once.

One connection of a process writes, at one time, and its transactions begin with `BEGIN IMMEDIATE`: one that began with
a read could not wait for another process without losing its snapshot (574 of 800 such writes failed in a measurement).
Readers have connections of their own and see the last commit.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from glob import escape, glob
from typing import Any, Final, final

from msgspec import DecodeError

from longshore.errors import StoreError
from longshore.toolsets.context.database import ChangeWatcher, Row, Transaction, marks, refused_value
from longshore.toolsets.context.schema import APPLICATION_ID, MIGRATIONS, SQLITE, statements

PATIENCE_SECONDS: Final = 10.0
"""How long to wait while another process writes. Its transactions take milliseconds; an ingest's, a second."""
READ_SECONDS: Final = 10.0
"""After so long a read is given up: a model waits for the answer."""
_INSTRUCTIONS: Final = 100_000
"""Of SQLite's machine between two looks at the clock: about a millisecond."""
POLL_SECONDS: Final = 0.2
"""Between two looks of a watcher for changes: each takes microseconds, and SQLite has nothing to wait for."""
IDLE_READERS: Final = 4
"""Connections that wait for the next read; more are closed after use."""
WAL_RETRY_SECONDS: Final = 0.01
"""SQLite does not wait its busy timeout for the switch to WAL; so we try again this often."""
WAL_BYTES: Final = 64 << 20
"""The size of the write-ahead log after a large ingest."""
OLDEST_SQLITE: Final = (3, 37, 0)
"""The first with STRICT tables; it has RETURNING and UPSERT."""
FILE_MODE, FOLDER_MODE = 0o600, 0o700
"""A project's memory is its user's."""

NETWORK_FILE_SYSTEMS: Final = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "glusterfs", "lustre"),
        *("nfs", "nfs4", "ocfs2", "smb3", "smbfs", "virtiofs"),
    )
)
"""They have no memory that processes share, or locks that fail: the write-ahead log is not used there."""


_CREATED: Final = re.compile(r"CREATE TABLE (\w+)")


@final
class _Connected:
    """A transaction on a connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        row: Row | None = self._connection.execute(sql, values).fetchone()
        return row

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        return self._connection.execute(sql, values).rowcount

    def run_many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, values)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks(columns)})"
        self._connection.executemany(sql, rows)

    def join_picked(self, table: str, where: str) -> str:
        return f"JOIN {table} ON {table}.id IN (SELECT id FROM {table} WHERE {where})"


@final
class _FileWatcher:
    """Polls the version of the file, which changes for a connection with each commit of another one."""

    def __init__(self, path: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self._path, self._connect = path, connect
        self._closed = threading.Event()
        self._lock = threading.Lock()
        """Held while the connection is used: it is not to be closed meanwhile."""
        self._identity = _identity(path)
        self._connection = connect()
        self._seen = self._version()

    def wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self._closed.is_set():
            if (version := self._version()) != self._seen:
                self._seen = version
                return True
            if (left := deadline - time.monotonic()) <= 0:
                return False
            self._closed.wait(min(POLL_SECONDS, left))
        return False

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            self._connection.close()

    def _version(self) -> tuple[Any, ...]:
        with self._lock:
            if self._closed.is_set():
                return self._seen
            try:
                if (identity := _identity(self._path)) not in (self._identity, (0, 0)):  # the file was replaced
                    self._connection.close()
                    self._connection, self._identity = self._connect(), identity
                return (*self._identity, self._connection.execute("PRAGMA data_version").fetchone()[0])
            except sqlite3.Error:
                return self._seen  # locked, or the disk fails: the next poll may succeed


@final
class SqliteFile:
    """A database in a file, created, checked and migrated when it is opened. Raises StoreError."""

    def __init__(
        self,
        path: str,
        *,
        patience: float = PATIENCE_SECONDS,
        read_seconds: float = READ_SECONDS,
        migrations: tuple[tuple[str, ...], ...] = MIGRATIONS,
        file_system: Callable[[str], str] | None = None,
    ) -> None:
        self.place = path
        self._patience, self._read_seconds, self._migrations = patience, read_seconds, migrations
        self._tables = {name for each in migrations for sql in each for name in _CREATED.findall(sql)}
        self._lock = threading.Lock()
        """Held by the thread that writes. SQLite would make the others poll."""
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._network = (file_system or file_system_type)(path) in NETWORK_FILE_SYSTEMS
        self._identity: tuple[int, int] | None = None
        """Of the file that is open; None if its connections have failed."""
        with self._explained():
            self._writer = self._open()

    # -- transactions

    @contextmanager
    def writing(self) -> Generator[Transaction]:
        if not self._lock.acquire(timeout=self._patience):
            raise self._locked()
        try:
            with self._explained():
                self._reopen_if_replaced()
                with _transaction(self._writer, "BEGIN IMMEDIATE"):
                    yield _Connected(self._writer)
        finally:
            self._lock.release()

    @contextmanager
    def reading(self, seconds: float | None = None) -> Generator[Transaction]:
        with self._explained():
            if self._is_another_file():
                with self._lock:
                    self._reopen_if_replaced()
            identity = self._identity
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect()
            try:
                deadline = time.monotonic() + (self._read_seconds if seconds is None else seconds)
                connection.set_progress_handler(lambda: time.monotonic() > deadline, _INSTRUCTIONS)
                with _transaction(connection, "BEGIN"):
                    yield _Connected(connection)
            except BaseException:
                connection.close()
                raise
            if self._closed or identity != self._identity or len(self._idle) >= IDLE_READERS:
                connection.close()
            else:
                self._idle.append(connection)

    def close(self) -> None:
        """Wait for a transaction in progress that writes, and close."""
        with self._lock:
            self._closed = True
            try:
                self._writer.execute("PRAGMA optimize")
            except sqlite3.Error:
                pass  # this only updates statistics
            self._writer.close()
        while self._idle:
            self._idle.pop().close()

    # -- facts of the file

    def bytes_used(self, transaction: Transaction) -> int:
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (int(row[0]) for name in names if (row := transaction.row(f"PRAGMA {name}")))
        return (pages - free) * size

    def journal(self) -> str:
        return "rollback journal, because the file system is a network's" if self._network else "write-ahead log"

    def erase_traces(self) -> tuple[str, ...]:
        # Deleted rows are overwritten in the file itself (secure_delete); the log still has the previous pages.
        with self._lock, self._explained():
            self._reopen_if_replaced()
            is_busy, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        copies = sorted(glob(escape(self.place) + ".before-*"))
        return (*copies, f"{self.place}-wal") if is_busy else tuple(copies)

    def check(self) -> list[str]:
        with self.reading() as transaction:
            rows = [*transaction.rows("PRAGMA integrity_check(20)"), *transaction.rows("PRAGMA foreign_key_check")]
        return [" ".join(map(str, row)) for row in rows if row != ("ok",)]

    def watch_changes(self) -> ChangeWatcher:
        with self._explained():
            if self._closed:
                raise self._was_closed()
            return _FileWatcher(self.place, self._connect)

    def last_ids(self, transaction: Transaction) -> dict[str, int]:
        return dict(transaction.rows("SELECT name, seq FROM sqlite_sequence"))

    def go_on_after(self, transaction: Transaction, last_ids: Mapping[str, int]) -> None:
        for table, last in last_ids.items():
            transaction.run("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            transaction.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, last))

    # -- opening

    def _is_another_file(self) -> bool:
        """Whether the file was deleted or replaced since it was opened, or its connection failed. Raises StoreError."""
        if self._closed:
            raise self._was_closed()
        return self._identity != _identity(self.place)

    def _reopen_if_replaced(self) -> None:
        """Open the file again if it was deleted or replaced: writes to a deleted one are lost.

        The lock must be held.
        """
        if self._is_another_file():
            while self._idle:
                self._idle.pop().close()
            self._writer.close()
            self._writer = self._open()

    def _open(self) -> sqlite3.Connection:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            needed = ".".join(map(str, OLDEST_SQLITE))
            raise self._unusable(f"this Python has SQLite {sqlite3.sqlite_version}, and {needed} is needed")
        self._make_file()
        connection = self._connect()
        try:
            self._use_journal(connection)
            self._migrate(connection)
            self._identity = _identity(self.place)
            return connection
        except BaseException:
            connection.close()
            raise

    def _make_file(self) -> None:
        try:
            os.makedirs(os.path.dirname(os.path.abspath(self.place)), FOLDER_MODE, exist_ok=True)
            # Only for a missing file: closing an existing one would release the locks that this process holds on it.
            os.close(os.open(self.place, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, FILE_MODE))
        except FileExistsError:
            pass
        except OSError as error:
            raise self._unusable(f"it can't be made ({error.strerror})") from None

    def _connect(self) -> sqlite3.Connection:
        # A URI can forbid SQLite to create the file. One that SQLite created would not have our mode.
        name = os.path.abspath(self.place).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        connection = sqlite3.connect(
            f"file:{name}?mode=rw",
            uri=True,
            timeout=self._patience,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        # NORMAL: a killed process loses nothing that was committed; a power failure may lose the last moments.
        level = "FULL" if self._network else "NORMAL"
        settings = ("foreign_keys = ON", "secure_delete = ON", "trusted_schema = OFF", "cache_size = -16000")
        for setting in (f"synchronous = {level}", *settings):
            connection.execute(f"PRAGMA {setting}")
        return connection

    def _use_journal(self, connection: sqlite3.Connection) -> None:
        wanted = "DELETE" if self._network else "WAL"
        deadline = time.monotonic() + self._patience
        while True:
            try:
                connection.execute(f"PRAGMA journal_mode = {wanted}")
                connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
                return
            except sqlite3.OperationalError as error:
                if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or time.monotonic() > deadline:
                    raise
                time.sleep(WAL_RETRY_SECONDS)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Bring the tables to the newest version, after a copy of the file. Other processes wait."""
        version = self._recognise(connection)
        if version == len(self._migrations):
            return
        if version:
            self._back_up(connection, version)
        with _transaction(connection, "BEGIN EXCLUSIVE"):
            version = self._recognise(connection)  # another process may have migrated it already
            for number in range(version, len(self._migrations)):
                for statement in statements(self._migrations[number], SQLITE):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {len(self._migrations)}")

    def _recognise(self, connection: sqlite3.Connection) -> int:
        """The version of the tables, 0 if there are none. Raises if they belong to another program, or are newer."""
        tables = connection.execute("SELECT type, name FROM sqlite_master WHERE type <> 'index'").fetchall()
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if tables and owner != APPLICATION_ID:
            raise self._unusable("it is a database of another program")
        if version > len(self._migrations):
            what = f"a newer Longshore made it (schema {version}; this one knows {len(self._migrations)})"
            raise StoreError(self.place, what, "update Longshore here, or name another file in CONTEXTGRAPH_DB")
        for kind, name in tables:
            # A trigger or a view could change stored text under the label of another source.
            if kind != "table" or not (name in self._tables or str(name).startswith("sqlite_")):
                what = f"it has a {kind} that is not Longshore's ({str(name)[:100]!r}): somebody else has changed it"
                raise StoreError(self.place, what, "remove that file, unless you know who made it")
        return int(version)

    def _back_up(self, connection: sqlite3.Connection, version: int) -> None:
        """Copy the file next to itself. Two processes may do so at once; both copies are complete."""
        copy = f"{self.place}.before-{version + 1}"
        draft = f"{copy}.{os.urandom(4).hex()}"
        try:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, FILE_MODE))
            connection.execute("VACUUM INTO ?", (draft,))
            os.replace(draft, copy)
        except (sqlite3.Error, OSError) as error:
            if os.path.exists(draft):
                os.unlink(draft)
            what = f"no copy could be made before the migration to schema {version + 1} ({error})"
            raise StoreError(
                self.place, what, "make room beside the file, and start again; nothing was changed"
            ) from None

    # -- errors

    @contextmanager
    def _explained(self) -> Generator[None]:
        """Raise a StoreError for each error of SQLite."""
        try:
            yield
        except sqlite3.Error as error:
            if _code(error) in _BROKEN:
                self._identity = None  # a new connection may succeed
            raise self._explain(error) from None
        except (UnicodeEncodeError, OverflowError) as error:
            raise refused_value(error) from None
        except (UnicodeDecodeError, DecodeError):  # from a text in the file
            raise self._damaged() from None
        except TypeError:  # a value has another type than its column, unless this code is at fault
            if self.check():
                raise self._damaged() from None
            raise

    def _explain(self, error: sqlite3.Error) -> StoreError:
        place = self.place
        match _code(error):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return self._locked()
            case sqlite3.SQLITE_FULL:
                return StoreError(place, "the disk is full; nothing was changed", "make room on it, and try again")
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
                return self._unusable("this user may not write the file or its folder")
            case sqlite3.SQLITE_CANTOPEN:
                return self._unusable("the file can't be opened")
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                return self._damaged()
            case sqlite3.SQLITE_IOERR:
                return StoreError(place, "the disk failed to read or write", "check the disk and the room on it")
            case sqlite3.SQLITE_INTERRUPT:
                what = f"reading took longer than {self._read_seconds:g} s"
                return StoreError(place, what, "ask for fewer words, or name kinds or a path")
            case _:
                return self._unusable(f"SQLite says: {error}")

    def _damaged(self) -> StoreError:
        fix = "stop the server, keep a copy, and restore a backup or what `sqlite3 FILE .recover` can read"
        return StoreError(self.place, "the file is not an intact SQLite database", fix)

    def _locked(self) -> StoreError:
        fix = f"see who holds it (fuser {self.place}) and try again"
        return StoreError(self.place, f"another writer has kept the file locked for {self._patience:g} s", fix)

    def _was_closed(self) -> StoreError:
        return StoreError(self.place, "it was closed", "start the server again")

    def _unusable(self, what: str) -> StoreError:
        return StoreError(self.place, what, "mend that, or name another file in CONTEXTGRAPH_DB")


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Generator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors have rolled it back already
            connection.execute("ROLLBACK")
        raise


def file_system_type(path: str) -> str:
    """The type of the file system that holds a path, as the kernel names it; empty where that is unknown."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            lines = [line.split(" ") for line in mounts]
    except OSError:
        return ""
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    best, found = "", ""
    for fields in lines:
        point = fields[4].replace("\\040", " ")
        beneath = folder == point or folder.startswith(point.rstrip("/") + "/")
        if beneath and len(point) >= len(best):  # of two mounts on one folder the later one is visible
            best, found = point, fields[fields.index("-") + 1]
    return found


_BROKEN: Final = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_MISUSE,
)
"""Errors after which a new connection may succeed."""


def _identity(path: str) -> tuple[int, int]:
    """Device and inode of a file, to notice its replacement; zeros if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino


def _code(error: sqlite3.Error) -> int:
    """The primary result code; the upper bits hold details."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
