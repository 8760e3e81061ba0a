"""Waiting until somebody has changed a store, on both engines."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from longshore.toolsets.context.database import ChangeWatcher
from longshore.toolsets.context.store import Store
from services import PostgresServer
from waiting import PATIENCE

from .graphs import ME, fact, names, opened

CHILD = Path(__file__).parent / "child.py"


@pytest.fixture
def watcher(store: Store) -> Iterator[ChangeWatcher]:
    made = store.watch_changes()
    yield made
    made.close()


def test_each_change_is_reported_once(store: Store, watcher: ChangeWatcher) -> None:
    assert not watcher.wait(0)
    for name in ("a", "b", "c"):
        store.add([fact(name)], ME)
        assert watcher.wait(PATIENCE)
        assert not watcher.wait(0)


def test_reading_is_no_change(store: Store, watcher: ChangeWatcher) -> None:
    names(store, "apple")
    store.status()
    assert not watcher.wait(0.05)


def test_a_change_of_another_process_ends_the_wait(store: Store, watcher: ChangeWatcher, place: str) -> None:
    child = subprocess.Popen([sys.executable, CHILD, place, "ann", "0", "1"], stdout=subprocess.DEVNULL)
    assert watcher.wait(PATIENCE)
    assert child.wait(PATIENCE) == 0


def test_another_file_at_the_same_path_is_a_change(path: Path, tmp_path: Path) -> None:
    with opened(tmp_path / "other.db") as other:
        other.add([fact("b")], ME)
    with opened(path) as store:
        watcher = store.watch_changes()
        path.unlink()
        assert not watcher.wait(0)
        (tmp_path / "other.db").rename(path)
        assert watcher.wait(PATIENCE)
        assert not watcher.wait(0)
        store.add([fact("c")], ME)
        assert watcher.wait(PATIENCE)
        watcher.close()


def test_closing_ends_a_wait_of_another_thread(store: Store) -> None:
    watcher = store.watch_changes()
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(watcher.wait(PATIENCE)))
    thread.start()
    watcher.close()
    thread.join(PATIENCE)
    watcher.close()
    assert found == [False]
    assert not watcher.wait(PATIENCE)


def test_a_task_waits_in_a_thread_and_can_be_cancelled(store: Store) -> None:
    watcher = store.watch_changes()

    async def follow(seen: asyncio.Event) -> None:
        try:
            while True:
                if await asyncio.to_thread(watcher.wait, PATIENCE):
                    seen.set()
        finally:
            watcher.close()

    async def work() -> None:
        seen = asyncio.Event()
        task = asyncio.create_task(follow(seen))
        await asyncio.to_thread(store.add, [fact("a")], ME)
        await asyncio.wait_for(seen.wait(), PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(work(), PATIENCE))  # it waits for its threads, too


def test_a_lost_server_is_waited_for_and_its_return_is_a_change(postgres: PostgresServer, postgres_url: str) -> None:
    with opened(postgres_url) as store:
        watcher = store.watch_changes()
        postgres.stop()
        try:
            assert not watcher.wait(0.3)
        finally:
            postgres.start()
        assert watcher.wait(PATIENCE)
        assert not watcher.wait(0)
        store.add([fact("a")], ME)
        assert watcher.wait(PATIENCE)
        watcher.close()
