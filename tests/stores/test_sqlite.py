"""The SQLite store: its file, its messages, and its errors."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sqlite3
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from longshore.errors import StoreError
from longshore.stores import backend, sqlite
from longshore.stores.sqlite import SqliteStore

from .place import run, until


@contextlib.asynccontextmanager
async def opened(path: Path, **options: object) -> contextlib.AbstractAsyncContextManager[SqliteStore]:
    store = SqliteStore(str(path), **options)
    try:
        yield store
    finally:
        await store.close()


@contextlib.contextmanager
def looking_into(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        yield database


@contextlib.contextmanager
def locking(path: Path) -> Iterator[None]:
    with looking_into(path) as database:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_its_user_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "store.db"

    async def body() -> None:
        async with opened(path) as store:
            await store.set("s:1", b"secret", 60)
            await store.listen("t", lambda _: None)
            await until((tmp_path / "new/store.db.bus").is_dir)
            assert mode(path.parent) == 0o700
            assert mode(path) == mode(Path(f"{path}-wal")) == mode(Path(f"{path}-shm")) == 0o600
            assert mode(Path(f"{path}.bus")) == 0o700

    before = os.umask(0)
    try:
        run(body())
    finally:
        os.umask(before)


def test_it_writes_ahead_and_closes_cleanly(sqlite_path: Path) -> None:
    async def body() -> None:
        async with opened(sqlite_path) as store:
            await store.set("s:1", b"v", 60)
        assert not Path(f"{sqlite_path}-wal").exists()
        with looking_into(sqlite_path) as database:
            assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        async with opened(sqlite_path) as store:
            assert await store.get("s:1") == b"v"

    run(body())


def commits(path: Path) -> int:
    """How many transactions the write-ahead log holds: frames whose header gives the size of the database."""
    data = Path(f"{path}-wal").read_bytes()
    (page,) = struct.unpack(">I", data[8:12])
    frames = [data[at : at + 24] for at in range(32, len(data), page + 24)]
    return sum(frame[4:8] != b"\0\0\0\0" for frame in frames)


def test_concurrent_operations_are_committed_together(sqlite_path: Path) -> None:
    async def body() -> None:
        async with opened(sqlite_path) as store:
            await store.check()
            before = commits(sqlite_path)
            await asyncio.gather(*(store.set(f"s:{n}", b"v", 60) for n in range(1000)))
            assert commits(sqlite_path) - before < 100

    run(body())


def test_one_failing_operation_does_not_fail_the_group(sqlite_path: Path) -> None:
    async def body() -> None:
        async with opened(sqlite_path) as store:
            bad: object = object()
            good = [store.append("l:1", b"%d" % n, 60, 100) for n in range(20)]
            results = await asyncio.gather(*good[:10], store.set("s:bad", bad, 60), *good[10:], return_exceptions=True)
            assert isinstance(results.pop(10), StoreError)
            assert results == list(range(1, 21))

    run(body())


def test_the_loop_goes_on_while_the_file_is_locked(sqlite_path: Path) -> None:
    async def body() -> None:
        async with opened(sqlite_path) as store:
            await store.set("s:1", b"v", 60)
            with locking(sqlite_path):
                write = asyncio.ensure_future(store.set("s:1", b"w", 60))
                for _ in range(200):
                    await asyncio.sleep(0)
                assert not write.done()
            await write
            assert await store.get("s:1") == b"w"

    run(body())


def test_operations_fail_on_a_file_that_stays_locked(sqlite_path: Path) -> None:
    async def body() -> None:
        async with opened(sqlite_path, patience=0.05) as store:
            await store.check()
            with locking(sqlite_path):
                failed = await asyncio.gather(
                    *(store.set(f"s:{n}", b"v", 60) for n in range(20)), return_exceptions=True
                )
                text = f"store {sqlite_path}: another process has kept the file locked for 0.05 s; see who holds it"
                assert all(isinstance(error, StoreError) and str(error).startswith(text) for error in failed)
                assert len(set(map(id, failed))) == 20
                assert await store.get("s:1") is None  # reading goes on
            await store.set("s:1", b"v", 60)

    run(body())


def test_closing_works_while_the_file_is_locked(sqlite_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (backend, sqlite):
        monkeypatch.setattr(module, "CLOSE_SECONDS", 0.05)

    async def body() -> None:
        store = SqliteStore(str(sqlite_path), patience=10)
        await store.check()
        with locking(sqlite_path):
            writes = [asyncio.ensure_future(store.set(f"s:{n}", b"v", 60)) for n in range(300)]
            await asyncio.sleep(0)
            await store.close()
            for write in writes:
                with pytest.raises(StoreError, match="closed meanwhile"):
                    await write
        [thread] = store._thread._threads
        await until(lambda: not thread.is_alive())

    run(body())


def test_operations_in_flight_complete_when_the_store_is_closed(sqlite_path: Path) -> None:
    async def body() -> None:
        store = SqliteStore(str(sqlite_path))
        writes = [asyncio.ensure_future(store.append("l:1", b"v", 60, 5000)) for _ in range(2000)]
        await asyncio.sleep(0)
        await asyncio.gather(store.close(), store.close())
        assert [await write for write in writes] == list(range(1, 2001))
        for use in (store.get("s:1"), store.post("t", b""), store.listen("t", print), store.check()):
            with pytest.raises(StoreError, match="the store is closed"):
                await use

    run(body())


def test_the_loop_may_end_without_closing_the_store(sqlite_path: Path) -> None:
    store = SqliteStore(str(sqlite_path))

    async def leave() -> None:
        await store.listen("t", lambda _: None)
        waiting.append(asyncio.ensure_future(store.set("s:1", b"v", 60)))
        await asyncio.sleep(0)

    waiting: list[asyncio.Future[None]] = []
    run(leave())

    async def come_back() -> None:  # on another loop
        await store.set("s:2", b"v", 60)
        heard: list[bytes] = []
        await store.listen("u", heard.append)
        await store.post("u", b"m")
        await until(lambda: heard)
        await store.close()

    run(come_back())


# Messages.


def test_a_datagram_wakes_the_other_process(sqlite_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "IDLE_POLL_SECONDS", 3600.0)
    for name in ("SOCK_NONBLOCK", "SOCK_CLOEXEC"):  # macOS has neither
        monkeypatch.delattr(socket, name, raising=False)

    async def body() -> None:
        async with opened(sqlite_path) as one, opened(sqlite_path) as two:
            heard: list[bytes] = []
            await two.listen("t", heard.append)
            for n in range(20):
                await one.post("t", b"%d" % n)
                await until(lambda n=n: len(heard) == n + 1)

    run(body())


@pytest.mark.parametrize("folder", ["", "x" * 60 + "/" + "y" * 60])
def test_messages_arrive_by_polling_where_no_socket_can_be_made(
    tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is in the way, or the path is too long for the address of a socket."""
    monkeypatch.setattr(sqlite, "POLL_SECONDS", 0.05)
    path = tmp_path / folder / "store.db"
    if not folder:
        Path(f"{path}.bus").write_text("in the way")

    async def body() -> None:
        async with opened(path) as one, opened(path) as two:
            heard: list[bytes] = []
            await two.listen("t", heard.append)
            await one.post("t", b"m")
            await until(lambda: heard == [b"m"])

    run(body())


def test_a_folder_that_was_removed_is_made_again(sqlite_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(f"{sqlite_path}.bus")
    monkeypatch.setattr(sqlite, "IDLE_POLL_SECONDS", 0.05)

    async def body() -> None:
        async with opened(sqlite_path) as store:
            await store.listen("t", lambda _: None)
            for _ in range(3):
                await until(lambda: folder.is_dir() and list(folder.iterdir()))
                for socket in folder.iterdir():
                    socket.unlink()
                folder.rmdir()
            await until(lambda: folder.is_dir() and list(folder.iterdir()))
        assert list(folder.iterdir()) == []

    run(body())


def test_sockets_of_the_dead_are_removed(sqlite_path: Path) -> None:
    import socket

    folder = Path(f"{sqlite_path}.bus")
    folder.mkdir()
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    dead.bind(str(folder / "dead.sock"))
    dead.close()
    (folder / "other.txt").write_text("not ours")

    async def body() -> None:
        async with opened(sqlite_path) as store:
            await store.post("t", b"m")
            await until(lambda: sorted(os.listdir(folder)) == ["other.txt"])

    run(body())


def test_a_process_that_reads_no_datagrams_blocks_no_other(sqlite_path: Path) -> None:
    import socket

    folder = Path(f"{sqlite_path}.bus")
    folder.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stuck:
        stuck.bind(str(folder / "stuck.sock"))

        async def body() -> None:
            async with opened(sqlite_path) as one, opened(sqlite_path) as two:
                heard: list[bytes] = []
                await two.listen("t", heard.append)
                for n in range(500):
                    await one.post("t", b"%d" % n)
                await until(lambda: len(heard) == 500)

        run(body())
        assert (folder / "stuck.sock").exists()


def test_old_messages_and_expired_rows_are_deleted(sqlite_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "SWEEP_SECONDS", 0.0)
    monkeypatch.setattr(sqlite, "SWEPT_ENTRIES", 100)
    monkeypatch.setattr(sqlite, "SWEPT_LOGS", 100)
    now = 1000.0

    def counts() -> list[int]:
        with looking_into(sqlite_path) as database:
            names = ("entries", "logs", "events", "messages")
            return [database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names]

    async def body() -> None:
        nonlocal now
        async with opened(sqlite_path, clock=lambda: now) as store:
            await asyncio.gather(*(store.set(f"s:{n}", b"v", 50) for n in range(500)))
            await asyncio.gather(*(store.append(f"l:{n % 300}", b"v", 50, 9) for n in range(600)))
            await asyncio.gather(*(store.post("t", b"m") for _ in range(30)))
            assert counts() == [500, 300, 600, 30]
            now += 59
            await store.post("t", b"young")
            now += 2
            for _ in range(10):  # each turn of the thread sweeps some
                await store.get("s:1")
            await until(lambda: counts() == [0, 0, 0, 1])
            now += 60
            await store.get("s:1")
            await until(lambda: counts() == [0, 0, 0, 0])
            heard: list[bytes] = []
            await store.listen("t", heard.append)
            await store.post("t", b"new")  # its number is higher than that of those deleted
            await until(lambda: heard == [b"new"])

    run(body())


# Unusable files.


async def use(path: Path) -> None:
    async with opened(path, patience=0.1) as store:
        await store.check()


def error_of(path: Path) -> str:
    with pytest.raises(StoreError) as caught:
        run(use(path))
    return str(caught.value)


BROKEN = "the file is not an intact SQLite database; stop the server, move the file away and start again"


def test_a_file_that_is_no_database_is_refused(sqlite_path: Path) -> None:
    sqlite_path.write_bytes(b"these are notes about something else\n" * 100)
    assert error_of(sqlite_path).startswith(f"store {sqlite_path}: {BROKEN}")
    assert sqlite_path.read_bytes().startswith(b"these are notes")


def test_a_database_of_another_program_is_refused(sqlite_path: Path) -> None:
    with looking_into(sqlite_path) as database:
        database.execute("CREATE TABLE theirs (x)")
    before = sqlite_path.read_bytes()
    assert "it is a database of another program" in error_of(sqlite_path)
    assert sqlite_path.read_bytes() == before


def test_a_file_of_a_newer_version_is_refused(sqlite_path: Path) -> None:
    run(use(sqlite_path))
    with looking_into(sqlite_path) as database:
        database.execute("PRAGMA user_version = 99")
    assert "a newer Longshore made it (schema 99; this one knows 1)" in error_of(sqlite_path)


def test_an_empty_file_is_used(sqlite_path: Path) -> None:
    sqlite_path.touch()
    run(use(sqlite_path))


@pytest.mark.parametrize("name", ["", "file/store.db", "/proc/no/store.db"])
def test_a_path_where_no_file_can_be_made_is_reported(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / name
    text = error_of(path)
    assert text.startswith(f"store {path}: ")
    assert text.endswith("; mend that, or name another file in http.store")


def test_a_file_that_breaks_in_use_is_reported(sqlite_path: Path) -> None:
    async def body() -> None:
        async with opened(sqlite_path) as store:
            await asyncio.gather(*(store.set(f"s:{n}", b"v" * 5000, 60) for n in range(500)))
        with sqlite_path.open("r+b") as file:
            file.seek(4096)
            file.write(os.urandom(500_000))
        async with opened(sqlite_path) as store:
            results = await asyncio.gather(
                *(store.get(f"s:{n}") for n in range(500)), store.check(), return_exceptions=True
            )
            errors = [result for result in results if isinstance(result, Exception)]
            assert errors
            assert all(isinstance(error, StoreError) and BROKEN in str(error) for error in errors)
            sqlite_path.unlink()
            for suffix in ("-wal", "-shm"):
                Path(f"{sqlite_path}{suffix}").unlink(missing_ok=True)
            await store.check()  # somebody did what the message says

    run(body())
