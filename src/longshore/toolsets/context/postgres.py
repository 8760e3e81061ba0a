"""The context graph in a PostgreSQL database, for more than one machine.

The tables are those of SQLite, in a schema of their own. A transaction that writes begins with an advisory lock of that
schema, which its commit releases: so there is one writer among all machines, each sees what the one before has
committed, and known times strictly increase. Readers do not wait for locks; each sees one state of the tables.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, TypeAlias, final
from zlib import crc32

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumperUnknown

from longshore.errors import StoreError
from longshore.toolsets.context.database import ChangeWatcher, Row, Transaction, refused_value
from longshore.toolsets.context.postgres_address import parse_address
from longshore.toolsets.context.postgres_watcher import NotifiedWatcher
from longshore.toolsets.context.schema import APPLICATION_ID, MIGRATIONS, POSTGRES, statements

PATIENCE_SECONDS: Final = 10.0
"""How long to wait while another process writes."""
READ_SECONDS: Final = 10.0
"""After so long a read is given up: a model waits for the answer."""
WRITE_SECONDS: Final = 300.0
"""After so long a single statement of a change is given up. Indexing all texts again has the longest."""
IDLE_SECONDS: Final = 60.0
"""After so long the server ends a transaction whose client says nothing: a lost machine is not to keep the lock."""
READERS: Final = 8
"""Connections of a process that read at once. A server has a hundred for all."""
IDLE_READERS: Final = 4
"""Connections that wait for the next read; more are closed after use."""
OUTCOME_PAUSE_SECONDS: Final = 0.1
"""Between two questions for what became of a commit."""
OLDEST_SERVER: Final = 13
VERSION_TABLE: Final = "longshore_schema"
"""Its only row has the number of the migrations that were made. It also tells that the schema is ours."""

_BEGIN_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# READ COMMITTED: each statement sees the commits before it, so those before this transaction got the lock.
_BEGIN_WRITING: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_TIMELINE: Final = "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
"""Another one after a replica has become the server: numbers of transactions then mean others."""
_TABLES: Final = "node, observation, edge, source, event, file_state, term, posting"
_LOST: Final = frozenset(("57P01", "57P02", "57P03", "57P05", "25P03"))
"""States of a connection that the server has ended, beside those of class 08."""

Connection: TypeAlias = psycopg.Connection[Row]


class _TextDumper(StrDumperUnknown):
    """Text without NUL, which PostgreSQL does not store: the replacement is the one of the check of texts."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


@lru_cache(1024)
def _numbered(sql: str) -> bytes:
    """A statement with $1, $2 … for its placeholders."""
    first, *others = sql.split("?")
    return "".join((first, *(f"${number}{part}" for number, part in enumerate(others, 1)))).encode()


@final
class _Connected:
    """A transaction on a connection, with a deadline."""

    def __init__(self, connection: Connection, deadline: float | None = None) -> None:
        self._connection, self._deadline = connection, deadline

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._execute(sql, values).fetchall()

    def row(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        return self._execute(sql, values).fetchone()

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        return self._execute(sql, values).rowcount

    def run_many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_numbered(sql), values)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(sql.encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def join_picked(self, table: str, where: str) -> str:
        return f"JOIN LATERAL (SELECT * FROM {table} WHERE {where}) AS {table} ON TRUE"

    def _execute(self, sql: str, values: Sequence[Any]) -> psycopg.Cursor[Row]:
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise psycopg.errors.QueryCanceled
        try:
            return self._connection.execute(_numbered(sql), values)
        except psycopg.OperationalError as error:
            if error.sqlstate is None and not self._connection.closed:
                raise psycopg.ProgrammingError(str(error)) from None  # the value was too large to be sent
            raise


@final
class PostgresDatabase:
    """The tables in a schema of a PostgreSQL database, created and migrated when it is opened.

    Raises StoreError. `place` and all messages are without the password.
    """

    def __init__(
        self,
        url: str,
        *,
        patience: float = PATIENCE_SECONDS,
        read_seconds: float = READ_SECONDS,
        migrations: tuple[tuple[str, ...], ...] = MIGRATIONS,
    ) -> None:
        self._address = parse_address(url)
        self.place = self._address.place
        self._schema = self._address.schema
        self._key = APPLICATION_ID << 32 | crc32(self._schema.encode())
        self._channel = f"longshore_{self._schema}"
        self._patience, self._read_seconds, self._migrations = patience, read_seconds, migrations
        self._lock = threading.Lock()
        """Held by the thread that writes."""
        self._readers = threading.BoundedSemaphore(READERS)
        self._idle: list[Connection] = []
        self._closed = False
        self._writer: Connection | None = None
        self._journal = ""
        with self._explained():
            connection = self._connect()
            try:
                self._check_server(connection)
                self._migrate(connection)
            except BaseException:
                connection.close()
                raise
            self._writer = connection

    # -- transactions

    @contextmanager
    def writing(self) -> Generator[Transaction]:
        if not self._lock.acquire(timeout=self._patience):
            raise self._locked()
        try:
            with self._explained():
                self._check_open()
                connection = self._writer = self._begin(self._writer, _BEGIN_WRITING)
                with _rolled_back(connection):
                    self._take_lock(connection)
                    yield _Connected(connection)
                    outcome = self._before_commit(connection)
                    self._commit(connection, outcome)
        finally:
            self._lock.release()

    @contextmanager
    def reading(self, seconds: float | None = None) -> Generator[Transaction]:
        seconds = self._read_seconds if seconds is None else seconds
        deadline = time.monotonic() + seconds
        if not self._readers.acquire(timeout=seconds):
            raise StoreError(self.place, f"{READERS} reads have taken longer than {seconds:g} s", "try again")
        connection = None
        try:
            with self._explained():
                self._check_open()
                limit = f"SET LOCAL statement_timeout = {round(seconds * 1000)}"
                connection = self._begin(self._take_idle(), f"{_BEGIN_READING}; {limit}")
                yield _Connected(connection, deadline)
                connection.execute("COMMIT")
                if not self._closed and len(self._idle) < IDLE_READERS:
                    self._idle.append(connection)
                    connection = None
        finally:
            if connection is not None:
                connection.close()
            self._readers.release()

    def close(self) -> None:
        """Wait for a transaction in progress that writes, and close."""
        with self._lock:
            self._closed = True
            if self._writer is not None:
                self._writer.close()
        while (connection := self._take_idle()) is not None:
            connection.close()

    def _begin(self, connection: Connection | None, statement: str) -> Connection:
        """Begin a transaction, on a new connection if the old one was lost: it has run no statement yet."""
        if connection is not None:
            try:
                connection.execute(statement.encode())
                return connection
            except psycopg.Error as error:
                connection.close()
                if not _is_lost(connection, error):
                    raise
        connection = self._connect()
        try:
            connection.execute(statement.encode())
        except BaseException:
            connection.close()
            raise
        return connection

    def _take_idle(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _take_lock(self, connection: Connection) -> None:
        connection.execute(b"SELECT pg_advisory_xact_lock($1)", (self._key,))

    def _before_commit(self, connection: Connection) -> tuple[str, str] | None:
        """Notify the watchers of a change; return the id by which to look up its outcome later.

        None: nothing was changed.
        """
        sql = (
            f"SELECT pg_current_xact_id_if_assigned()::text, {_TIMELINE},"
            " CASE WHEN pg_current_xact_id_if_assigned() IS NOT NULL THEN pg_notify($1, '') END"
        )
        row = connection.execute(sql.encode(), (self._channel,)).fetchone()
        return (row[0], row[1]) if row and row[0] is not None else None

    def _commit(self, connection: Connection, outcome: tuple[str, str] | None) -> None:
        try:
            done = connection.execute("COMMIT")
        except psycopg.Error as error:
            if outcome is None or not _is_lost(connection, error):
                raise
            if not self._was_committed(*outcome):
                raise
            return
        if done.statusmessage != "COMMIT":  # the server rolls a failed transaction back
            raise StoreError(self.place, "the change had an error; nothing was changed", "try again")

    def _was_committed(self, number: str, timeline: str) -> bool:
        """Whether a transaction was committed whose connection was lost in the commit. Raises if it can't be known."""
        deadline = time.monotonic() + self._patience
        sql = f"SELECT pg_xact_status($1::text::xid8), {_TIMELINE}"
        while True:
            try:
                with self._connect() as connection:
                    row = connection.execute(sql.encode(), (number,)).fetchone()
            except (psycopg.Error, StoreError):
                row = ("in progress", timeline)
            if row == ("committed", timeline):
                return True
            if row == ("aborted", timeline):
                return False
            if row != ("in progress", timeline) or time.monotonic() > deadline:
                what = "the connection was lost during the commit; it is not known whether the change was made"
                raise StoreError(self.place, what, "look whether it is there; adding the same again changes nothing")
            time.sleep(OUTCOME_PAUSE_SECONDS)

    # -- facts of the database

    def bytes_used(self, transaction: Transaction) -> int:
        sql = (
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relnamespace = to_regnamespace(?) AND relkind = 'r'"
        )
        row = transaction.row(sql, (self._schema,))
        return int(row[0]) if row else 0

    def journal(self) -> str:
        return self._journal

    def erase_traces(self) -> tuple[str, ...]:
        with self._explained():
            self._check_open()
            connection = self._connect()
        warnings = list[object]()  # a table of another user is left out with a warning
        connection.add_notice_handler(warnings.append)
        try:
            # Only rewriting the tables removes all bytes of deleted rows from them.
            connection.execute("SET statement_timeout = 0")
            connection.execute(f"VACUUM (FULL) {_TABLES}".encode())
            is_erased = not warnings
        except psycopg.Error:
            is_erased = False
        finally:
            connection.close()
        tables = f"the files of the tables, until their owner runs VACUUM FULL in the schema {self._schema}"
        return (*(() if is_erased else (tables,)), "the server's write-ahead log, replicas and backups")

    def check(self) -> list[str]:
        with self.reading() as transaction:
            invalid = transaction.rows(
                "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indrelid"
                " WHERE relnamespace = to_regnamespace(?) AND NOT (indisvalid AND indisready)",
                (self._schema,),
            )
            row = transaction.row("SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database()")
        problems = [f"the index {name} is not valid; run REINDEX INDEX" for (name,) in invalid]
        if row and row[0]:
            problems.append(f"the server has read {row[0]} damaged pages; restore a backup")
        return problems

    def watch_changes(self) -> ChangeWatcher:
        with self._explained():
            self._check_open()
            return NotifiedWatcher(self._listening)

    def last_ids(self, transaction: Transaction) -> dict[str, int]:
        return {
            table: int(row[0])
            for table, sequence in self._sequences(transaction).items()
            if (row := transaction.row(f"SELECT last_value FROM {sequence} WHERE is_called"))
        }

    def go_on_after(self, transaction: Transaction, last_ids: Mapping[str, int]) -> None:
        for table, sequence in self._sequences(transaction).items():
            if table in last_ids:
                transaction.row("SELECT setval(?::text::regclass, ?)", (sequence, last_ids[table]))
        transaction.run(f"ANALYZE {_TABLES}")  # plans for tables that were empty a moment ago would be slow

    def _sequences(self, transaction: Transaction) -> dict[str, str]:
        """By table: the sequence of its ids."""
        sql = (
            "SELECT owner.relname, pg_depend.objid::regclass::text FROM pg_depend"
            " JOIN pg_class AS owner ON owner.oid = pg_depend.refobjid"
            " JOIN pg_class AS own ON own.oid = pg_depend.objid AND own.relkind = 'S'"
            " WHERE owner.relnamespace = to_regnamespace(?) AND pg_depend.deptype = 'i'"
        )
        return dict(transaction.rows(sql, (self._schema,)))

    # -- opening

    def _connect(self) -> Connection:
        try:
            connection: Connection = psycopg.connect(
                **self._address.parameters, autocommit=True, cursor_factory=psycopg.RawCursor
            )
        except psycopg.Error as error:
            raise self._unreachable(error) from None
        try:
            # The types of values are fixed, so that a statement is prepared once.
            connection.adapters.register_dumper(int, Int8Dumper)
            connection.adapters.register_dumper(str, _TextDumper)
            settings = {
                "search_path": f'"{self._schema}"',
                "statement_timeout": round(WRITE_SECONDS * 1000),
                "lock_timeout": round(self._patience * 1000),
                "idle_in_transaction_session_timeout": round(IDLE_SECONDS * 1000),
                "client_min_messages": "warning",
                "jit": "off",  # compiling takes longer than any of our queries
            }
            connection.execute("; ".join(f"SET {name} = {value}" for name, value in settings.items()).encode())
        except BaseException:
            connection.close()
            raise
        return connection

    def _listening(self) -> Connection:
        with self._explained():
            connection = self._connect()
            try:
                connection.execute(f'LISTEN "{self._channel}"'.encode())
            except BaseException:
                connection.close()
                raise
            return connection

    def _check_server(self, connection: Connection) -> None:
        version = connection.info.server_version // 10_000
        if version < OLDEST_SERVER:
            raise self._unusable(f"the server is PostgreSQL {version}, and {OLDEST_SERVER} is needed")
        if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
            what = f"the encoding of the database is {encoding}"
            raise StoreError(self.place, what, "make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0")

        [(level,)] = connection.execute("SHOW synchronous_commit").fetchall()
        self._journal = f"PostgreSQL {version}, synchronous_commit = {level}"

    def _migrate(self, connection: Connection) -> None:
        """Bring the tables to the newest version, in one transaction. Other processes wait."""
        if self._recognise(connection) == len(self._migrations):
            return
        connection.execute(_BEGIN_WRITING)
        with _rolled_back(connection):
            self._take_lock(connection)
            version = self._recognise(connection)  # another process may have been faster
            if version is None:
                if not self._has_schema(connection):
                    connection.execute(f'CREATE SCHEMA "{self._schema}"'.encode())
                connection.execute(f"CREATE TABLE {VERSION_TABLE} (version BIGINT NOT NULL)".encode())
                connection.execute(f"INSERT INTO {VERSION_TABLE} VALUES (0)".encode())
            for number in range(version or 0, len(self._migrations)):
                for statement in statements(self._migrations[number], POSTGRES):
                    connection.execute(statement.encode())
            connection.execute(f"UPDATE {VERSION_TABLE} SET version = $1".encode(), (len(self._migrations),))
            connection.execute("COMMIT")

    def _recognise(self, connection: Connection) -> int | None:
        """The version of the tables, None if there are none. Raises if they belong to another program, or are newer."""
        tables = connection.execute(
            b"SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p', 'v')",
            (self._schema,),
        ).fetchall()
        if not tables:
            return None
        if (VERSION_TABLE,) not in tables:
            what = f"the schema {self._schema} has tables of another program"
            raise StoreError(self.place, what, "name another one at the end of CONTEXTGRAPH_DB: ?schema=NAME")
        row = connection.execute(f"SELECT version FROM {VERSION_TABLE}".encode()).fetchone()
        version = int(row[0]) if row else 0
        if version > len(self._migrations):
            what = f"a newer Longshore made it (schema {version}; this one knows {len(self._migrations)})"
            raise StoreError(self.place, what, "update Longshore here, or name another schema or database")
        return version

    def _has_schema(self, connection: Connection) -> bool:
        row = connection.execute(b"SELECT to_regnamespace($1) IS NOT NULL", (self._schema,)).fetchone()
        return bool(row and row[0])

    # -- errors

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(self.place, "it was closed", "start the server again")

    @contextmanager
    def _explained(self) -> Generator[None]:
        """Raise a StoreError for each error of the driver."""
        try:
            yield
        except (UnicodeEncodeError, psycopg.errors.NumericValueOutOfRange) as error:
            raise refused_value(error) from None
        except psycopg.Error as error:
            raise self._explain(error) from None

    def _explain(self, error: psycopg.Error) -> StoreError:
        place, state = self.place, error.sqlstate or ""
        said = self._address.masked(error.diag.message_primary or str(error) or type(error).__name__)
        match state:
            case "55P03":
                return self._locked()
            case "57014":
                what = f"reading took longer than {self._read_seconds:g} s, or somebody cancelled the statement"
                return StoreError(place, what, "ask for fewer words, or name kinds or a path")
            case "53100":
                return StoreError(place, "the server's disk is full; nothing was changed", "make room on it")
            case "53200" | "53300" | "53400":
                return StoreError(place, f"the server has no more room ({said})", "try again, or raise its limits")
            case "42501":
                fix = f"have its owner run: GRANT CREATE ON DATABASE … TO …, or GRANT ALL on the schema {self._schema}"
                return StoreError(place, f"this user has no right to do that ({said})", fix)
            case "25006":
                fix = "name the server that replicas copy, or all of them and target_session_attrs=read-write"
                return StoreError(place, "the server only reads: it is a replica, or set so", fix)
            case _ if isinstance(error, psycopg.OperationalError) and (not state or _is_state_of_loss(state)):
                what = f"the connection was lost before the change was committed; nothing was changed ({said})"
                return StoreError(place, what, "see that the server runs, and try again")
            case _:
                return self._unusable(f"PostgreSQL says: {said}{f' ({state})' if state else ''}")

    def _unreachable(self, error: psycopg.Error) -> StoreError:
        said = self._address.masked("; ".join(str(error).split("\n")))
        is_refused = error.pgconn is not None and (error.pgconn.needs_password or error.pgconn.used_password)
        fix = "check the user, password and database"
        if not is_refused:
            fix = "see that the server runs, and check the host, user and database"
        return StoreError(self.place, f"no connection: {said}", f"{fix} in CONTEXTGRAPH_DB")

    def _locked(self) -> StoreError:
        fix = "see who holds the lock in pg_locks (locktype advisory), and try again"
        return StoreError(self.place, f"another writer has kept the store locked for {self._patience:g} s", fix)

    def _unusable(self, what: str) -> StoreError:
        return StoreError(self.place, what, "mend that, or name another place in CONTEXTGRAPH_DB")


@contextmanager
def _rolled_back(connection: Connection) -> Generator[None]:
    """Roll back the transaction after an error."""
    try:
        yield
    except BaseException:
        if connection.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN):
            try:
                connection.execute("ROLLBACK")
            except psycopg.Error:
                connection.close()
        raise


def _is_lost(connection: Connection, error: psycopg.Error) -> bool:
    return connection.closed or _is_state_of_loss(error.sqlstate or "")


def _is_state_of_loss(state: str) -> bool:
    return state in _LOST or state.startswith("08")
