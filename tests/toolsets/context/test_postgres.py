"""What only PostgreSQL can do wrong: addresses, rights, restarts, connections that are cut, versions of the tables."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from counts import count
from longshore.errors import StoreError
from longshore.toolsets.context.database import marks
from longshore.toolsets.context.postgres import PostgresDatabase
from longshore.toolsets.context.postgres_address import parse_address
from longshore.toolsets.context.records import NewLink, NewSource, Targets
from longshore.toolsets.context.schema import MIGRATIONS
from longshore.toolsets.context.store import Store, open_store
from services import PostgresServer, free_port, start_postgres

from .cut_wire import cut_wire
from .graphs import ME, fact, names, opened, texts

SECRET = "s3cr3t/p@ss"
WRITTEN = "s3cr3t%2Fp%40ss"


def schema_of(url: str) -> str:
    return url.partition("?schema=")[2]


# Addresses


@pytest.mark.parametrize(
    ("url", "place", "schema"),
    [
        ("postgresql://h/d", "postgresql://h/d", "contextgraph"),
        (f"postgres://u:{WRITTEN}@h:5433/d?schema=a_1", "postgresql://u@h:5433/d?schema=a_1", "a_1"),
        (f"postgresql://h/d?password={WRITTEN}&schema=x&sslmode=require", "postgresql://h/d?schema=x", "x"),
        (f"postgresql://u:{WRITTEN}@a:1,b:2/d", "postgresql://u@a,b:1,2/d", "contextgraph"),
        ("postgresql://u:a?b@h/d?schema=x", "postgresql://u@h/d?schema=x", "x"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, place: str, schema: str) -> None:
    address = parse_address(url)
    assert (address.place, address.schema) == (place, schema)
    shown = "no ***, no ***" if WRITTEN in url else f"no {SECRET}, no {WRITTEN}"
    assert address.masked(f"no {SECRET}, no {WRITTEN}") == shown


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{SECRET}@h/d",
        "postgresql://u:s3cr3t@p@h/d",
        "postgresql://u:12/s3cr3t@h/d",
        "postgresql://u:s3cr3t%zz@h/d",
        "postgresql://u:s3cr3t@h/d?nonsense=1",
        "postgresql://u:s3cr3t@h:port/d",
        "postgresql://u:s3cr3t@h/d?schema=A;DROP",
        "postgresql://u:s3cr3t@h/d?schema=" + "a" * 51,
    ],
)
def test_a_wrong_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(StoreError) as refused:
        open_store(url)
    assert "s3cr3t" not in str(refused.value)
    assert "PASSWORD@HOST" in refused.value.fix


def test_without_the_driver_the_message_has_the_line_that_installs_it() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from longshore.toolsets.context.store import open_store\n"
        "try: open_store('postgresql://u:s3cr3t@h/d')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("StoreError store postgresql://…: it needs the package psycopg; pip install")
    assert "'longshore[postgres]'" in done.stdout


def test_sqlite_does_not_load_the_driver(path: Path) -> None:
    code = (
        "import sys; from longshore.toolsets.context.store import open_store; open_store(sys.argv[1]).close()\n"
        "assert 'psycopg' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True)


# Refusals


def test_no_server_is_reported_with_the_fix() -> None:
    with pytest.raises(StoreError, match=r"no connection: .*refused") as failed:
        open_store(f"postgresql://u:s3cr3t@127.0.0.1:{free_port()}/d")
    assert "see that the server runs" in failed.value.fix
    assert "s3cr3t" not in str(failed.value)


@pytest.fixture
def guarded(postgres: PostgresServer, postgres_url: str) -> str:
    """An address of a user that has a password, and the right to nothing."""
    postgres.run("DROP ROLE IF EXISTS guarded")
    postgres.run("CREATE ROLE guarded LOGIN PASSWORD 's3cr3t/p@ss'")
    return postgres_url.replace("//postgres@", f"//guarded:{WRITTEN}@")


def test_a_wrong_password_is_refused_and_not_shown(guarded: str) -> None:
    for wrong in ("other-s3cr3t", ""):
        with pytest.raises(StoreError, match="no connection: ") as failed:
            open_store(guarded.replace(WRITTEN, wrong))
        assert "check the user, password and database" in failed.value.fix
        assert "s3cr3t" not in str(failed.value)
    with pytest.raises(StoreError, match='database "absent" does not exist'):
        open_store(guarded.replace("/postgres?", "/absent?"))


def test_missing_rights_are_reported(postgres: PostgresServer, guarded: str, postgres_url: str) -> None:
    with pytest.raises(StoreError, match="no right to do that") as failed:
        open_store(guarded)
    assert "GRANT" in failed.value.fix
    open_store(postgres_url).close()
    schema = schema_of(postgres_url)
    try:
        postgres.run(f"GRANT USAGE ON SCHEMA {schema} TO guarded")
        postgres.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO guarded")
        with opened(guarded) as store:  # who may only read, reads
            assert store.status().nodes == 0
            assert "s3cr3t" not in store.place
            with pytest.raises(StoreError, match="no right to do that"):
                store.add([fact("a")], ME)
            assert names(store, "a") == []
    finally:
        postgres.run("DROP OWNED BY guarded")


def test_a_replica_is_read_and_written_when_it_was_promoted(postgres: PostgresServer, postgres_url: str) -> None:
    with opened(postgres_url) as store:
        store.add([fact("a", "apple")], ME)
    with (
        start_postgres(replica_of=postgres) as replica,
        opened(postgres_url.replace(str(postgres.port), str(replica.port))) as store,
    ):
        assert names(store, "apple") == ["a"]
        for use in (lambda: store.add([fact("b")], ME), store.watch_changes):
            with pytest.raises(StoreError, match="the server only reads: it is a replica") as failed:
                use()
            assert "target_session_attrs=read-write" in failed.value.fix
        with pytest.raises(StoreError, match="the server only reads"):
            open_store(replica.url + "?schema=absent")
        replica.run("SELECT pg_promote()")
        assert store.add([fact("b", "apple")], ME)[0].outcome == "created"
        assert store.check() == []


def test_a_full_disk_changes_nothing(postgres: PostgresServer, postgres_url: str) -> None:
    """The server raises its error for it at some insertion."""
    with opened(postgres_url) as store:
        schema = schema_of(postgres_url)
        postgres.run(
            f"CREATE FUNCTION {schema}.fail() RETURNS trigger AS $$ BEGIN IF NEW.text = 'b' THEN"
            " RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END IF; RETURN NEW; END $$"
            f" LANGUAGE plpgsql; CREATE TRIGGER fail BEFORE INSERT ON {schema}.observation FOR EACH ROW"
            f" EXECUTE FUNCTION {schema}.fail()"
        )
        with pytest.raises(StoreError, match="disk is full; nothing was changed"):
            store.add([fact("x", "a"), fact("y", "b")], ME)
        assert store.status().nodes == 0
        store.add([fact("x", "a")], ME)
        assert store.check() == []


def test_a_long_read_and_a_kept_lock_are_given_up(postgres_url: str) -> None:
    with opened(postgres_url, read_seconds=0.2) as store:
        with (
            pytest.raises(StoreError, match=r"reading took longer than 0\.2 s"),
            store.database.reading() as transaction,
        ):
            transaction.row("SELECT pg_sleep(60)")
        with (
            opened(postgres_url, patience=0.2) as other,
            store.database.writing(),
            pytest.raises(StoreError, match=r"another writer has kept the store locked for 0\.2 s"),
        ):
            other.add([fact("a")], ME)
        store.add([fact("b")], ME)


def test_a_statement_that_is_too_large_is_no_lost_connection(postgres_url: str) -> None:
    many = list(range(70_000))
    with opened(postgres_url) as store:
        with pytest.raises(StoreError, match="number of parameters") as failed, store.database.reading() as transaction:
            transaction.rows(f"SELECT id FROM node WHERE id IN ({marks(many)})", many)
        assert "lost" not in str(failed.value)


def test_other_encodings_are_refused(postgres: PostgresServer) -> None:
    postgres.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(StoreError, match="the encoding of the database is LATIN1"):
            open_store(postgres.url.removesuffix("postgres") + "latin")
    finally:
        postgres.run("DROP DATABASE latin")


# Versions of the tables

SECOND = (*MIGRATIONS, ("ALTER TABLE node ADD COLUMN more {integer}", "CREATE INDEX node_more ON node (more)"))


def test_tables_are_migrated_once_and_not_by_an_older_version(postgres: PostgresServer, postgres_url: str) -> None:
    with opened(postgres_url) as store:
        store.add([fact("a", "apple")], ME)
    with ThreadPoolExecutor(4) as threads:  # four processes at once, as far as the server can tell
        for each in list(threads.map(lambda _: PostgresDatabase(postgres_url, migrations=SECOND), range(4))):
            each.close()
    schema = schema_of(postgres_url)
    assert postgres.run(f"SELECT version FROM {schema}.longshore_schema") == [(len(SECOND),)]
    assert postgres.run(f"SELECT more FROM {schema}.node") == [(None,)]
    with pytest.raises(StoreError, match=rf"a newer Longshore made it \(schema {len(SECOND)}; this one knows"):
        open_store(postgres_url)


def test_a_failed_migration_changes_nothing(postgres: PostgresServer, postgres_url: str) -> None:
    open_store(postgres_url).close()
    broken = (*SECOND[:-1], (*SECOND[-1], "CREATE TABLE node (id {integer})"))
    with pytest.raises(StoreError, match='"node" already exists'):
        PostgresDatabase(postgres_url, migrations=broken)
    with opened(postgres_url) as store:
        store.add([fact("a", "apple")], ME)
    assert "more" not in str(postgres.run(f"SELECT row_to_json(node)::text FROM {schema_of(postgres_url)}.node"))


def test_a_schema_of_others_is_left_alone(postgres: PostgresServer, postgres_url: str) -> None:
    schema = schema_of(postgres_url)
    postgres.run(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.users (id int)")
    with pytest.raises(StoreError, match=f"the schema {schema} has tables of another program"):
        open_store(postgres_url)
    assert postgres.run(f"SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace") == [("users",)]


# Connections that are lost


def end_connections(server: PostgresServer, *, but: int = 0) -> int:
    sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'longshore'"
    [(ended,)] = server.run(f"{sql} AND pid <> {but}")
    return int(ended)


def test_a_restarted_server_is_used_again(postgres: PostgresServer, postgres_url: str) -> None:
    with opened(postgres_url) as store:
        store.add([fact("a", "apple")], ME)
        assert names(store, "apple") == ["a"]
        postgres.stop()
        try:
            with pytest.raises(StoreError, match="see that the server runs"):
                store.add([fact("b", "apple")], ME)
            with pytest.raises(StoreError, match="see that the server runs"):
                names(store, "apple")
        finally:
            postgres.start()
        assert names(store, "apple") == ["a"]
        store.add([fact("b", "apple")], ME)
        assert sorted(names(store, "apple")) == ["a", "b"]
        assert store.check() == []


def test_a_connection_that_ends_within_a_change_leaves_nothing_of_it(
    postgres: PostgresServer, postgres_url: str
) -> None:
    with opened(postgres_url) as store:
        with (
            pytest.raises(StoreError, match="lost before the change was committed; nothing was changed"),
            store.database.writing() as transaction,
        ):
            transaction.run("UPDATE totals SET nodes = 7")
            assert end_connections(postgres) >= 1
            transaction.run("UPDATE totals SET nodes = 8")
        assert store.add([fact("a", "apple")], ME)[0].outcome == "created"
        assert store.check() == []


def test_nothing_is_lost_or_doubled_while_connections_end_at_random(
    postgres: PostgresServer, postgres_url: str
) -> None:
    """A writer tries again what was not acknowledged. Something that was, is never reported as new."""
    chance, done = random.Random(17), threading.Event()
    with opened(postgres_url) as store, ThreadPoolExecutor(5) as threads:

        def add(number: int) -> list[str]:
            outcomes = list[str]()
            for _ in range(200):
                try:
                    item = fact(f"item {number}", f"text {number}", links=(NewLink(to="hub"),))
                    outcomes.append(store.add([item], ME)[0].outcome)
                except StoreError as error:
                    assert "nothing was changed" in error.what, error  # so no outcome is unknown
                else:
                    return outcomes
            raise AssertionError("never acknowledged")

        def end() -> int:
            ended = 0
            while not done.wait(chance.uniform(0.0, 0.2)):
                ended += end_connections(postgres)
            return ended

        ending = threads.submit(end)
        try:
            results = list(threads.map(add, range(count(100))))
        finally:
            done.set()
        assert ending.result() > 0
        assert results == [["created"]] * len(results)
        status = store.status()
        assert (status.nodes, status.observations, status.edges) == (len(results) + 1, len(results), len(results))
        assert store.check() == []


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_the_outcome_of_a_commit_is_asked_for_when_its_connection_is_cut(
    postgres: PostgresServer, postgres_url: str, lost: Any
) -> None:
    with cut_wire(postgres.port) as wire, opened(postgres_url.replace(str(postgres.port), str(wire.port))) as store:
        store.add([fact("a", "first")], ME)
        wire.cut = lost
        if lost == "request":
            with pytest.raises(StoreError, match="nothing was changed"):
                store.supersede(1, "second", ME)
            assert texts(store, 1) == ["first"]
        else:
            assert store.supersede(1, "second", ME) == 2
            assert texts(store, 1) == ["second"]
        assert store.check() == []


def test_a_commit_of_which_nobody_knows_is_reported_as_such(postgres: PostgresServer, postgres_url: str) -> None:
    with (
        cut_wire(postgres.port) as wire,
        opened(postgres_url.replace(str(postgres.port), str(wire.port)), patience=0.3) as store,
    ):
        wire.cut, wire.is_dead_after = "answer", True
        with pytest.raises(StoreError, match="it is not known whether the change was made"):
            store.add([fact("a", "first")], ME)


# What a purge leaves


def test_a_purge_leaves_no_byte_of_the_text_in_the_tables(postgres: PostgresServer, postgres_url: str) -> None:
    secret = "xyzzypassword"

    def files_with_secret() -> list[str]:
        postgres.run("CHECKPOINT")
        files = [file for file in postgres.table_files.rglob("*") if file.is_file()]
        return [str(file) for file in files if secret.encode() in file.read_bytes()]

    def fill(store: Store) -> None:
        store.add([fact(f"token {secret}", f"The {secret} is here.")], NewSource(uri=f"https://{secret}.example"))
        store.supersede(1, "It was there.", ME, reason=secret)

    with opened(postgres_url) as store:
        fill(store)
        assert files_with_secret() != []
        report = store.purge(Targets(nodes=(1,)), ME)
        assert report.backups == ("the server's write-ahead log, replicas and backups",)
        assert files_with_secret() == []


def test_a_purge_by_another_user_than_the_owner_names_the_tables(
    postgres: PostgresServer, guarded: str, postgres_url: str
) -> None:
    open_store(postgres_url).close()
    schema = schema_of(postgres_url)
    try:
        postgres.run(f"GRANT USAGE ON SCHEMA {schema} TO guarded")
        postgres.run(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO guarded")
        with opened(guarded) as store:
            [added] = store.add([fact("a", "apple")], ME)
            [tables, _] = store.purge(Targets(nodes=(added.node,)), ME).backups
            assert tables.startswith("the files of the tables, until their owner runs VACUUM FULL")
    finally:
        postgres.run("DROP OWNED BY guarded")
