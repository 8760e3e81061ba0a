"""The file: how it is made, recognised, migrated and locked, and what is said of one that can't be used."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from counts import count
from longshore.errors import StoreError
from longshore.toolsets.context import postings
from longshore.toolsets.context.records import Query, Targets
from longshore.toolsets.context.schema import APPLICATION_ID, MIGRATIONS
from longshore.toolsets.context.sqlite_file import SqliteFile, file_system_type
from services import skip

from .graphs import ME, fact, names, opened

FIX = "mend that, or name another file in CONTEXTGRAPH_DB"


@contextmanager
def looking_into(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_its_user_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "context.db"
    before = os.umask(0)
    try:
        with opened(path) as store:
            store.add([fact("a", "secret")], ME)
            assert mode(path.parent) == 0o700
            assert {mode(file) for file in path.parent.iterdir()} == {0o600}
    finally:
        os.umask(before)


def test_it_is_written_ahead_and_recognised(path: Path) -> None:
    with opened(path) as store:
        store.add([fact("a", "alpha")], ME)
        assert store.status().journal == "write-ahead log"
    assert [file.name for file in path.parent.iterdir()] == ["context.db"]  # closed cleanly
    with looking_into(path) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert file.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    with opened(path) as store:
        assert names(store, "alpha") == ["a"]


def test_a_network_file_system_has_no_write_ahead_log(path: Path) -> None:
    with opened(path, file_system=lambda _: "nfs4") as store:
        store.add([fact("a", "alpha")], ME)
        assert store.status().journal == "rollback journal, because the file system is a network's"
        assert not Path(f"{path}-wal").exists()
        assert names(store, "alpha") == ["a"]


def test_the_type_of_a_file_system_is_known() -> None:
    assert file_system_type("/proc/self/x") == "proc"
    assert file_system_type("/nowhere/at/all") == file_system_type("/x")


def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    with looking_into(path) as file:
        file.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(StoreError) as raised:
        SqliteFile(str(path))
    assert str(raised.value) == f"store {path}: it is a database of another program; {FIX}"
    assert path.read_bytes()[100:] == before[100:]


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON observation BEGIN UPDATE observation SET text = 'EVIL'; END", "trigger"),
        ("CREATE VIEW v AS SELECT 1", "view"),
        ("CREATE TABLE more (x)", "table"),
    ],
)
def test_a_file_with_what_longshore_does_not_make_is_refused(path: Path, made: str, kind: str) -> None:
    with opened(path) as store:
        store.add([fact("a", "alpha")], ME)
    with looking_into(path) as file:
        file.execute(made)
    with pytest.raises(StoreError, match=f"it has a {kind} that is not Longshore's"):
        SqliteFile(str(path))


def test_a_newer_file_is_refused(path: Path) -> None:
    with opened(path):
        pass
    with looking_into(path) as file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match=rf"a newer Longshore made it \(schema 99; this one knows {len(MIGRATIONS)}\)"):
        SqliteFile(str(path))


NEXT = (*MIGRATIONS, ("ALTER TABLE node ADD COLUMN colour TEXT",))


def test_a_migration_backs_the_file_up_first(path: Path) -> None:
    with opened(path) as store:
        store.add([fact("a", "alpha")], ME)
    with opened(path, migrations=NEXT) as store:
        assert names(store, "alpha") == ["a"]
        backup = Path(f"{path}.before-{len(NEXT)}")
        assert mode(backup) == 0o600
        store.add([fact("b", "beta")], ME)
        report = store.purge(Targets(nodes=(1,)), ME)
        assert report.backups == (str(backup),)
    with opened(backup) as old:
        assert names(old, "alpha beta") == ["a"]
    with pytest.raises(StoreError, match="a newer Longshore"):
        SqliteFile(str(path))


def test_a_failed_migration_changes_nothing(path: Path) -> None:
    with opened(path) as store:
        store.add([fact("a", "alpha")], ME)
    broken = (*MIGRATIONS, ("ALTER TABLE node ADD COLUMN colour TEXT", "ALTER TABLE missing ADD COLUMN x TEXT"))
    with pytest.raises(StoreError, match="no such table: missing"):
        SqliteFile(str(path), migrations=broken)
    with opened(path) as store:
        assert names(store, "alpha") == ["a"]
    with opened(path, migrations=NEXT) as store:
        assert names(store, "alpha") == ["a"]


def test_processes_may_migrate_at_once(path: Path) -> None:
    with opened(path) as store:
        store.add([fact("a", "alpha")], ME)
    program = textwrap.dedent("""
        import sys
        from longshore.toolsets.context.schema import MIGRATIONS
        from longshore.toolsets.context.sqlite_file import SqliteFile
        more = tuple((f"CREATE TABLE extra{n} (x TEXT)",) for n in range(5))
        SqliteFile(sys.argv[1], migrations=(*MIGRATIONS, *more)).close()
        """)
    children = [subprocess.Popen([sys.executable, "-c", program, path]) for _ in range(4)]
    assert [child.wait(100) for child in children] == [0] * 4
    with looking_into(path) as file:
        assert file.execute("SELECT count(*) FROM sqlite_master WHERE name LIKE 'extra%'").fetchone() == (5,)
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert len(list(path.parent.glob("*.before-*"))) == 1


def test_another_tokenizer_indexes_all_texts_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(path) as store:
        store.add([fact("a", "alpha"), fact("b", "alpha old")], ME)
        store.supersede(2, "beta", ME)
        before = store.query(Query(text="alpha beta")).hits
    monkeypatch.setattr(postings, "INDEX_VERSION", postings.INDEX_VERSION + 1)
    with looking_into(path) as file:
        file.execute("DELETE FROM posting")
    with opened(path) as store:
        assert store.check() == []
        assert [hit.node.id for hit in store.query(Query(text="alpha beta")).hits] == [hit.node.id for hit in before]


def test_a_damaged_index_is_noticed_and_rebuilt(path: Path) -> None:
    with opened(path) as store:
        store.add([fact("a", "alpha beta"), fact("b", "alpha")], ME)
        for damage in (
            "DELETE FROM posting WHERE observation = 2",
            "UPDATE posting SET is_current = 0 WHERE observation = 1",
            "UPDATE term SET texts = texts + 1 WHERE text = 'alpha'",
            "UPDATE totals SET texts = 7",
            "DELETE FROM term WHERE text = 'beta'",
            "INSERT INTO term (text, word, texts) VALUES ('gamma', 'gamma', 0)",
        ):
            with looking_into(path) as file:
                file.execute(damage)
            assert store.check() != [], damage
            assert store.rebuild_index() == 4
            assert store.check() == []
        assert sorted(names(store, "alpha")) == ["a", "b"]


def test_a_file_that_stays_locked_is_reported(path: Path) -> None:
    with opened(path, patience=0.05) as store:
        store.add([fact("a", "alpha")], ME)
        with looking_into(path) as file:
            file.execute("BEGIN IMMEDIATE")
            with pytest.raises(
                StoreError, match=r"another writer has kept the file locked for 0\.05 s; see who holds it"
            ):
                store.add([fact("b", "beta")], ME)
            assert names(store, "alpha") == ["a"]  # reading goes on
        store.add([fact("b", "beta")], ME)


def test_a_read_that_takes_too_long_is_given_up(path: Path) -> None:
    with opened(path) as store:
        store.add([fact(f"n{n}", "apple") for n in range(500)], ME)
    file = SqliteFile(str(path), read_seconds=0.0)
    with pytest.raises(StoreError, match="reading took longer than 0 s"), file.reading() as transaction:
        transaction.rows("SELECT count(*) FROM posting a, posting b, posting c")
    with pytest.raises(ZeroDivisionError), file.writing() as transaction:
        transaction.run("DELETE FROM event")
        raise ZeroDivisionError
    file.close()
    with opened(path) as store:
        assert store.status().events == 1_000


def test_a_closed_store_says_so(path: Path) -> None:
    with opened(path) as store:
        pass
    with pytest.raises(StoreError, match="it was closed"):
        store.add([fact("a")], ME)
    with pytest.raises(StoreError, match="it was closed"):
        store.status()


def test_a_file_deleted_under_a_store_is_made_again(path: Path) -> None:
    with opened(path) as store:
        store.add([fact("a", "alpha")], ME)
        for file in path.parent.iterdir():
            file.unlink()
        assert names(store, "alpha") == []
        store.add([fact("b", "beta")], ME)
        with opened(path) as other:
            assert names(other, "beta") == ["b"]


def test_a_broken_file_that_is_removed_is_made_again_for_its_user_only(path: Path) -> None:
    with opened(path) as store:
        store.add([fact("a", "alpha")], ME)
        for file in path.parent.iterdir():
            file.unlink()
        path.write_text("garbage" * 1000)
        with pytest.raises(StoreError, match="not an intact SQLite database"):
            names(store, "alpha")
        path.unlink()
        assert names(store, "alpha") == []
        assert path.stat().st_mode & 0o777 == 0o600
        store.add([fact("b", "beta")], ME)
        assert names(store, "beta") == ["b"]


@pytest.mark.parametrize("name", [":memory:", "file:x?mode=memory", "we ird%20?#.db"])
def test_any_name_is_that_of_a_file(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with opened(name) as store:
        store.add([fact("a", "alpha")], ME)
    assert (tmp_path / name).stat().st_size > 0


def test_damaged_files_are_reported_or_read_but_never_crash(path: Path, tmp_path: Path) -> None:
    with opened(path) as store:
        store.add([fact(f"node {n}", f"apple pear{n} " * 20) for n in range(200)], ME)
    whole, chance, reported = path.read_bytes(), random.Random(5), 0
    for number in range(count(60)):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 10, 1000))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        damaged = tmp_path / f"damaged{number}.db"
        damaged.write_bytes(data if number % 5 else data[: chance.randrange(len(data))])
        try:
            with opened(damaged) as store:
                store.query(Query(text="apple pear3"))
                store.add([fact("new", "text")], ME)
                if store.check():
                    reported += 1
        except StoreError as error:
            reported += 1
            assert str(error).startswith(f"store {damaged}: ")
        for file in tmp_path.glob("damaged*"):
            file.unlink()
    assert reported > 10


def test_a_file_that_is_no_database_is_reported(path: Path) -> None:
    path.write_text("This is not a database. " * 100)
    with pytest.raises(StoreError) as raised:
        SqliteFile(str(path))
    assert "the file is not an intact SQLite database; stop the server, keep a copy, and restore" in str(raised.value)


# What needs a process of its own

PREAMBLE = """
import ctypes, os, sys
from longshore.errors import StoreError
from longshore.toolsets.context.records import NewItem, NewSource, Query
from longshore.toolsets.context.store import open_store

path, me = sys.argv[1], NewSource()

def attempt(use, *args):
    try:
        print("done", use(*args) is not None)
    except StoreError as error:
        print(error)
"""


def lines_of(source: str, path: Path) -> list[str]:
    argv = [sys.executable, "-c", PREAMBLE + textwrap.dedent(source), str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_file_without_write_permission_is_reported() -> None:
    """As a user who is not root, whom no permission stops."""
    source = """
    store = open_store(path)
    store.add([NewItem(text="alpha")], me)
    store.close()
    os.chmod(path, 0o444)
    os.chmod(os.path.dirname(path), 0o555)
    if os.getuid() == 0:
        os.setgroups([]), os.setegid(65534), os.seteuid(65534)
    attempt(open_store, path)
    attempt(open_store, path + ".new")
    """
    with tempfile.TemporaryDirectory() as folder:  # every start of pytest shuts the folder above `tmp_path` to others
        Path(folder).chmod(0o755)
        path = Path(folder, "shut", "context.db")
        path.parent.mkdir()
        lines = lines_of(source, path)
        path.parent.chmod(0o755)
    assert lines == [
        f"store {path}: this user may not write the file or its folder; {FIX}",
        f"store {path}.new: it can't be made (Permission denied); {FIX}",
    ]


def test_a_full_disk_is_reported_and_nothing_is_half_written(tmp_path: Path) -> None:
    """A real one: a small file system in a mount namespace of its own."""
    source = """
    libc = ctypes.CDLL(None, use_errno=True)
    if os.getuid() != 0 and libc.unshare(0x10000000):
        sys.exit(print("no namespace") or 0)
    if libc.unshare(0x00020000) or libc.mount(None, b"/", None, 0x44000, None):
        sys.exit(print("no namespace") or 0)
    folder = os.path.dirname(path)
    if libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, b"size=3m"):
        sys.exit(print("no namespace") or 0)
    with open(folder + "/filler", "wb") as filler:
        filler.write(bytes(1_000_000))
    store = open_store(path)
    added = 0
    try:
        for number in range(1000):
            words = " ".join(f"w{number}x{n}" for n in range(300))
            store.add([NewItem(name=f"item {number}", text=words)], me)
            added += 1
    except StoreError as error:
        print(error)
    print(1 <= added < 1000, store.status().nodes == store.status().observations == added)
    os.unlink(folder + "/filler")
    attempt(store.add, [NewItem(name="after", text="after")], me)
    print(store.status().nodes == added + 1, store.check())
    """
    (tmp_path / "small").mkdir()
    path = tmp_path / "small" / "context.db"
    lines = lines_of(source, path)
    if lines == ["no namespace"]:
        skip("this kernel lets nobody mount a file system of his own; run as root to see this test", by_kernel=True)
    full = f"store {path}: the disk is full; nothing was changed; make room on it, and try again"
    assert lines == [full, "True True", "done True", "True []"]
