"""The store of one host: a SQLite file that any number of processes use at once.

One thread touches the file: it runs all waiting operations in one transaction (group commit), so the event loop never
waits for a disk. Results are delivered after the commit.

A message of the bus is a row of a table. The process that writes one sends a datagram to the socket of each other
process, in a folder beside the file; a datagram says only that there is something to read. Where sockets can't be used,
every process polls once a second; else it polls every ten seconds, as a safety net.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeAlias, final

from longshore.errors import StoreError
from longshore.stores.backend import CLOSE_SECONDS, Groups, Listeners, family_of_prefix, to_bytes, to_text
from longshore.stores.store import OnMessage, Stop

PATIENCE_SECONDS = 5.0
"""How long an operation waits while another process holds the file locked. A group commit takes milliseconds."""

MESSAGE_SECONDS = 60.0
"""How long a message stays for a process that is slow to read it."""

READ_MESSAGES = 1000
"""Messages read at once."""

SWEEP_SECONDS = 10.0
"""How often expired rows are deleted."""

SWEPT_ENTRIES, SWEPT_LOGS = 1000, 100
"""Expired rows that one sweep deletes at most, so that no process waits long for the lock."""

POLL_SECONDS, IDLE_POLL_SECONDS = 1.0, 10.0
"""How often messages are looked for without a datagram: where none can come, and where they can."""

LAST_POSITION = (1 << 63) - 1
"""The largest integer of SQLite. Clients name positions, and may name a larger one."""

APPLICATION_ID = 0x4C53_484F  # "LSHO", in the file's header
VERSION = 1
FILE_MODE, FOLDER_MODE = 0o600, 0o700
"""Sessions are secrets of the user that runs the server."""

WAL_RETRY_SECONDS = 0.01
"""SQLite does not wait its busy timeout for the switch to WAL; so we try again this often."""

_SCHEMA = (
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

_SET = (
    "INSERT INTO entries VALUES (?, ?, ?)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires"
)
_DELETE = (
    "DELETE FROM events WHERE log = (SELECT id FROM logs WHERE key = ?)",
    "DELETE FROM logs WHERE key = ?",
    "DELETE FROM entries WHERE key = ?",
)
_NEWEST = "SELECT seq FROM sqlite_sequence WHERE name = 'messages'"
"""The id of the last message that was ever posted."""
_MESSAGES = "SELECT id, topic, body FROM messages WHERE id > ? ORDER BY id LIMIT ?"

Statement: TypeAlias = tuple[str, tuple[Any, ...]]
Done: TypeAlias = tuple[list[Any], int]
"""The rows that a statement has found, and how many it has changed."""
Operation: TypeAlias = tuple[bool, tuple[Statement, ...]]
"""Whether it writes, and its statements."""


@final
class SqliteStore:
    """Each operation is one or more statements. The file is opened by the first one."""

    shared: bool = True

    def __init__(
        self, path: str, *, patience: float = PATIENCE_SECONDS, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._file = _File(path, patience, clock)
        self._thread = ThreadPoolExecutor(1, "longshore-store")
        self._groups = Groups(path, self._run)
        self._sweep_at = 0.0
        self._inbox = _Inbox(path + ".bus")
        self._listeners = Listeners()
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop of the listeners."""
        self._timer: asyncio.TimerHandle | None = None
        self._reader: asyncio.Task[None] | None = None
        self._stale = False
        self._last = -1
        """The id of the last message that was delivered."""

    async def get(self, key: str) -> bytes | None:
        rows = await self._find("SELECT value FROM entries WHERE key = ? AND expires > ?", to_bytes(key), self._clock())
        return rows[0][0] if rows else None

    async def set(self, key: str, value: bytes, seconds: float) -> None:
        await self._write((_SET, (to_bytes(key), value, self._clock() + seconds)))

    async def add(self, key: str, value: bytes, seconds: float) -> bool:
        now = self._clock()
        add = f"{_SET} WHERE entries.expires <= ?"
        return await self._write((add, (to_bytes(key), value, now + seconds, now))) == 1

    async def swap(self, key: str, old: bytes, new: bytes, seconds: float) -> bool:
        now = self._clock()
        swap = "UPDATE entries SET value = ?, expires = ? WHERE key = ? AND expires > ? AND value = ?"
        return await self._write((swap, (new, now + seconds, to_bytes(key), now, old))) == 1

    async def touch(self, key: str, seconds: float) -> bool:
        now = self._clock()
        touch = "UPDATE entries SET expires = ? WHERE key = ? AND expires > ?"
        return await self._write((touch, (now + seconds, to_bytes(key), now))) == 1

    async def delete(self, *keys: str) -> None:
        await self._write(*((delete, (key,)) for key in map(to_bytes, keys) for delete in _DELETE))

    async def find(self, prefix: str) -> dict[str, bytes]:
        find = "SELECT key, value FROM entries WHERE key >= ? AND key < ? AND expires > ? ORDER BY expires"
        return {to_text(key): value for key, value in await self._find(find, *_range(prefix), self._clock())}

    async def count(self, family: str) -> int:
        # With the expired ones: so the key's index alone can count, and no row is read.
        rows = await self._find("SELECT count(*) FROM entries WHERE key >= ? AND key < ?", *_range(family))
        return int(rows[0][0])

    async def append(self, key: str, value: bytes, seconds: float, most: int) -> int:
        name, now = to_bytes(key), self._clock()
        statements: tuple[Statement, ...] = (
            ("DELETE FROM events WHERE log = (SELECT id FROM logs WHERE key = ? AND expires <= ?)", (name, now)),
            ("DELETE FROM logs WHERE key = ? AND expires <= ?", (name, now)),
            (
                "INSERT INTO logs (key, last, expires) VALUES (?, 1, ?)"
                " ON CONFLICT (key) DO UPDATE SET last = last + 1, expires = excluded.expires",
                (name, now + seconds),
            ),
            ("INSERT INTO events SELECT id, last, ? FROM logs WHERE key = ?", (value, name)),
            (
                "DELETE FROM events WHERE log = (SELECT id FROM logs WHERE key = ?)"
                " AND position <= (SELECT last FROM logs WHERE key = ?) - ?",
                (name, name, max(most, 1)),
            ),
            ("SELECT last FROM logs WHERE key = ?", (name,)),
        )
        *_, (rows, _) = await self._ask(True, *statements)
        return int(rows[0][0])

    async def read(self, key: str, after: int, most: int = 100) -> list[tuple[int, bytes]]:
        return await self._find(
            "SELECT position, events.value FROM logs JOIN events ON events.log = logs.id"
            " WHERE key = ? AND expires > ? AND position > ? ORDER BY position LIMIT ?",
            to_bytes(key),
            self._clock(),
            min(max(after, 0), LAST_POSITION),
            max(most, 0),
        )

    async def check(self) -> None:
        await self.set("longshore-check", b"", MESSAGE_SECONDS)

    async def close(self) -> None:
        self._listeners.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._inbox.close()
        self._loop = None
        if not self._groups.closed:
            await self._groups.close()
            closed = asyncio.get_running_loop().run_in_executor(self._thread, self._file.close)
            self._thread.shutdown(wait=False)
            await asyncio.wait([closed], timeout=CLOSE_SECONDS)

    # -- operations

    async def _find(self, sql: str, *args: Any) -> list[Any]:
        [(rows, _)] = await self._ask(False, (sql, args))
        return rows

    async def _write(self, *statements: Statement) -> int:
        """How many rows the last statement has changed."""
        done = await self._ask(True, *statements)
        return done[-1][1] if done else 0

    async def _ask(self, writes: bool, *statements: Statement) -> list[Done]:
        done: list[Done] = await self._groups.ask((writes, statements))
        return done

    async def _run(self, group: list[Operation]) -> list[Any]:
        loop, now = asyncio.get_running_loop(), time.monotonic()
        done = await loop.run_in_executor(self._thread, self._file.run, group)
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_SECONDS
            self._thread.submit(self._file.sweep)
        return done

    # -- the bus

    async def post(self, topic: str, message: bytes) -> None:
        row = (to_bytes(topic), message, self._clock())
        try:
            await self._write(("INSERT INTO messages (topic, body, sent) VALUES (?, ?, ?)", row))
        finally:  # also if the caller is cancelled meanwhile
            self._inbox.notify_others()
            self._wake()

    async def listen(self, topic: str, on_message: OnMessage) -> Stop:
        rows = await self._find(_NEWEST)
        if self._last < 0:
            self._last = rows[0][0] if rows else 0
        stop = self._listeners.add(topic, on_message)
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the first listener, or the first one of a new loop
            self._inbox.close()
            self._loop, self._reader = loop, None
            self._poll()
        return stop

    def _wake(self) -> None:
        """Read new messages, after a post or a datagram."""
        if self._loop is not None and self._loop is asyncio.get_running_loop():
            self._stale = True
            if self._reader is None or self._reader.done():
                self._reader = self._loop.create_task(self._read_messages())

    def _poll(self) -> None:
        """Look for messages, and repair the inbox, now and regularly.

        The period ends at a multiple of ten seconds: an idle process does all of its periodic work in one wake-up.
        """
        loop = self._loop
        if loop is not None:
            if not self._inbox.is_open:
                self._inbox.open(loop, self._wake)
            seconds = IDLE_POLL_SECONDS if self._inbox.is_open else POLL_SECONDS
            self._timer = loop.call_at((loop.time() // seconds + 1) * seconds, self._poll)
            self._wake()

    async def _read_messages(self) -> None:
        """Deliver new messages. Listeners get MISSED if messages were deleted before this process read them."""
        while self._stale:
            self._stale = False
            last = self._last
            try:
                # The newest id first: a message that is posted in between is then among those read.
                (numbers, _), (found, _) = await self._ask(False, (_NEWEST, ()), (_MESSAGES, (last, READ_MESSAGES)))
            except StoreError:
                return  # closed, or the file can't be read: the next poll tries again
            newest = numbers[0][0] if numbers else 0
            if newest < last or (found and found[0][0] != last + 1) or (not found and newest > last):
                self._listeners.report_missed()
            self._last = found[-1][0] if found else newest
            self._listeners.deliver([(to_text(topic), body) for _, topic, body in found])
            self._stale = self._stale or self._last < newest


def _range(prefix: str) -> tuple[bytes, bytes]:
    """The first key with a prefix, and the first after all of them."""
    family_of_prefix(prefix)
    low = to_bytes(prefix)
    return low, low[:-1] + bytes((low[-1] + 1,))  # no byte of UTF-8 is 255


@final
class _Inbox:
    """The socket of this process, and datagrams to those of the others. Does nothing where that is impossible."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = os.path.join(folder, os.urandom(6).hex() + ".sock")
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_open(self) -> bool:
        """False if the socket could not be made, or if it or its folder was removed."""
        return self._socket is not None and os.path.exists(self._path)

    def open(self, loop: asyncio.AbstractEventLoop, received: Callable[[], None]) -> None:
        """Make the socket, again if need be; `received` is called on the loop."""
        self.close()
        try:
            os.makedirs(self._folder, FOLDER_MODE, exist_ok=True)
            self._socket = _datagram_socket()
            self._socket.bind(self._path)
        except OSError:  # also a path that is too long for a socket
            self.close()
            return
        self._loop = loop
        loop.add_reader(self._socket, self._drain, received)

    def _drain(self, received: Callable[[], None]) -> None:
        """Read all datagrams: one look at the table answers them all."""
        try:
            while self._socket is not None and self._socket.recv(1):
                pass
        except OSError:
            pass
        received()

    def close(self) -> None:
        if self._socket is not None:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
            _remove(self._path)

    def notify_others(self) -> None:
        """Send a datagram to every other process, and remove the sockets of dead ones."""
        try:
            paths = [os.path.join(self._folder, name) for name in os.listdir(self._folder) if name.endswith(".sock")]
            sender = _datagram_socket()
        except OSError:
            return
        with sender:
            for path in paths:
                try:
                    if path != self._path:
                        sender.sendto(b"!", path)
                except ConnectionRefusedError:
                    _remove(path)  # its process has ended
                except OSError:
                    pass  # full: that process has datagrams to read; or removed meanwhile


def _datagram_socket() -> socket.socket:
    """A socket that never waits. macOS has no SOCK_NONBLOCK."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


@final
class _File:
    """The file: how it is made, opened and recognised, how operations are run, what its errors mean.

    Used on the store's thread only.
    """

    def __init__(self, path: str, patience: float, clock: Callable[[], float]) -> None:
        self._path, self._patience, self._clock = path, patience, clock
        self._connection: sqlite3.Connection | None = None

    def run(self, group: list[Operation]) -> list[Any]:
        """Run them all in one transaction, or each on its own if one of them fails. Raises StoreError for all."""
        try:
            connection = self._opened()
            if len(group) == 1 and not group[0][0]:
                return [_execute(connection, group[0][1])]
            with _transaction(connection, writes=any(writes for writes, _ in group)):
                return [_execute(connection, statements) for _, statements in group]
        except sqlite3.Error as error:
            if _code(error) in _BROKEN:
                self.close()
            if _is_locked(error):
                raise self._explain(error) from None
            if len(group) == 1:
                return [self._explain(error)]
        return [result for operation in group for result in self.run([operation])]

    def sweep(self) -> None:
        """Delete expired rows, a bounded number of them in each transaction."""
        now = self._clock()
        deletes: tuple[Statement, ...] = (
            (
                "DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries WHERE expires <= ? LIMIT ?)",
                (now, SWEPT_ENTRIES),
            ),
            (
                "DELETE FROM events WHERE log IN (SELECT id FROM logs WHERE expires <= ? ORDER BY expires, id LIMIT ?)",
                (now, SWEPT_LOGS),
            ),
            (
                "DELETE FROM logs WHERE id IN (SELECT id FROM logs WHERE expires <= ? ORDER BY expires, id LIMIT ?)",
                (now, SWEPT_LOGS),
            ),
            ("DELETE FROM messages WHERE sent <= ?", (now - MESSAGE_SECONDS,)),
        )
        while True:
            [done] = self.run([(True, deletes)])
            if isinstance(done, StoreError) or (done[0][1] < SWEPT_ENTRIES and done[2][1] < SWEPT_LOGS):
                break  # an error is reported by the next operation

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> sqlite3.Connection:
        """The connection. Makes the file if there is none; another process may do the same now. Raises StoreError."""
        if self._connection is None:
            try:
                os.makedirs(os.path.dirname(self._path), FOLDER_MODE, exist_ok=True)
                # Only if there is none: closing an existing file would end the locks that this process holds on it.
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, FILE_MODE))
            except FileExistsError:
                pass
            except OSError as error:
                raise self._unusable(f"it can't be made ({error.strerror})") from None
            self._connection = sqlite3.connect(self._path, timeout=self._patience, isolation_level=None)
            try:
                self._prepare(self._connection)
            except BaseException:
                self.close()
                raise
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        is_known = self._recognise(connection)
        self._use_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        if not is_known:
            with _transaction(connection, writes=True):
                if not self._recognise(connection):  # another process may have been faster
                    for statement in _SCHEMA:
                        connection.execute(statement)

    def _recognise(self, connection: sqlite3.Connection) -> bool:
        """Whether it holds our tables. Raises if it holds anything else."""
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if tables and owner != APPLICATION_ID:
            raise self._unusable("it is a database of another program")
        if tables and version > VERSION:
            raise self._unusable(f"a newer Longshore made it (schema {version}; this one knows {VERSION})")
        return bool(tables)

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
                break
            except sqlite3.OperationalError as error:
                if not _is_locked(error) or time.monotonic() > deadline:
                    raise
                time.sleep(WAL_RETRY_SECONDS)
        if mode != "wal":
            raise self._unusable("its file system has no shared memory, which several workers need")

    def _explain(self, error: sqlite3.Error) -> StoreError:
        """A StoreError that says what happened, where, and what to do."""
        path = self._path
        match _code(error):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                fix = f"see who holds it (fuser {path}) and end that"
                return StoreError(path, f"another process has kept the file locked for {self._patience:g} s", fix)
            case sqlite3.SQLITE_FULL:
                return StoreError(path, "the disk is full", "make room on it, or name a file elsewhere in http.store")
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
                return self._unusable("this user may not write the file or its folder")
            case sqlite3.SQLITE_CANTOPEN:
                return self._unusable("the file can't be opened")
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                fix = "stop the server, move the file away and start again; open sessions are lost"
                return StoreError(path, "the file is not an intact SQLite database", fix)
            case sqlite3.SQLITE_IOERR:
                return StoreError(path, "the disk failed to read or write", "check the disk and the room on it")
            case _:
                return self._unusable(f"SQLite says: {error}")

    def _unusable(self, what: str) -> StoreError:
        return StoreError(self._path, what, "mend that, or name another file in http.store")


_BROKEN = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_MISUSE,
)
"""Errors after which a new connection may succeed."""


def _execute(connection: sqlite3.Connection, statements: tuple[Statement, ...]) -> list[Done]:
    done: list[Done] = []
    for sql, args in statements:
        cursor = connection.execute(sql, args)
        done.append((cursor.fetchall(), cursor.rowcount))
    return done


@contextmanager
def _transaction(connection: sqlite3.Connection, *, writes: bool) -> Generator[None]:
    """A writer takes the lock at once: one that began by reading could not wait for it without losing its view."""
    connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors have ended it already
            connection.execute("ROLLBACK")
        raise


def _is_locked(error: sqlite3.Error) -> bool:
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: sqlite3.Error) -> int:
    """The primary result code; details stand in the upper bits."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
