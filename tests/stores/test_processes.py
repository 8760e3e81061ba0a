"""Several processes on one store."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from counts import count

from .child import Child
from .place import PATIENCE, RedisPlace, run


@pytest.fixture(params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    redis_url: str = request.getfixturevalue("redis_url")
    run(RedisPlace(redis_url).empty())
    return redis_url


@contextlib.contextmanager
def children(url: str, count: int) -> Iterator[list[Child]]:
    made = [Child(url) for _ in range(count)]
    try:
        yield made
        assert not any(child.end() for child in made if child.process.poll() is None)
    finally:
        for child in made:
            if child.process.poll() is None:
                child.kill()


def bounded(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline


def test_acknowledged_writes_survive_a_killed_process(url: str) -> None:
    with children(url, 2) as (one, two):
        one.ask("listen", "t")
        one.ask("set", "s:1", b"v", 60.0)
        position = one.ask("append", "l:1", b"a", 60.0, 9)
        one.kill()
        assert two.ask("get", "s:1") == b"v"
        assert two.ask("read", "l:1", 0) == [(position, b"a")]
        two.ask("listen", "t")
        two.ask("post", "t", b"still heard")
        assert two.wait_heard(1) == [("t", b"still heard")]


def test_many_processes_write_at_once(url: str) -> None:
    """Four processes begin with an empty store at the same time and append to one log."""
    with children(url, 4) as made:
        for n in range(100):
            for child in made:
                child.tell("append", "l:many", b"%d" % n, 60.0, 1000)
        positions = [child._next("answer") for child in made for _ in range(100)]
        assert sorted(positions) == list(range(1, 401))


def test_processes_may_create_the_file_at_the_same_time(tmp_path: Path) -> None:
    for n in range(count(5)):
        with children(f"sqlite:///{tmp_path}/new/{n}/store.db", 4) as made:
            for child in made:
                child.tell("check")
            assert [child._next("answer") for child in made] == [None] * 4


def test_a_process_killed_in_the_middle_of_writing_leaves_a_usable_file(tmp_path: Path) -> None:
    """Many writes are under way when it dies, many times. All that it had acknowledged is there."""
    path = tmp_path / "store.db"
    url = f"sqlite:///{path}"
    acknowledged = 0
    for turn in range(count(20)):
        child = Child(url)
        acknowledged = max(acknowledged, child.ask("append", "l:1", b"x", 600.0, 10**6))
        for n in range(400):
            child.tell("set", f"s:{turn}:{n}", b"v" * 2000, 600.0)
            child.tell("append", "l:1", b"x" * 500, 600.0, 10**6)
            child.tell("post", "t", b"m")
        bounded(lambda child=child, turn=turn: child.answers() >= 50 * (turn % 4))
        child.kill()
        with contextlib.closing(sqlite3.connect(path)) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            logged = database.execute("SELECT count(*), max(position) FROM events").fetchone()
        assert logged[0] == logged[1] >= acknowledged
        acknowledged = logged[1]
    with children(url, 1) as (child,):
        assert child.ask("append", "l:1", b"last", 600.0, 10) == acknowledged + 1
        assert len(child.ask("read", "l:1", 0)) == 10


def test_a_process_killed_while_it_makes_the_file_leaves_a_usable_one(tmp_path: Path) -> None:
    for n in range(count(10)):
        path = tmp_path / str(n) / "store.db"
        child = Child(f"sqlite:///{path}")
        child.tell("check")
        bounded(path.exists)
        child.kill()
        with children(f"sqlite:///{path}", 1) as (other,):
            assert other.ask("check") is None


def test_two_processes_see_each_others_data(url: str) -> None:
    with children(url, 2) as (one, two):
        one.ask("set", "s:1", b"v", 60.0)
        assert two.ask("get", "s:1") == b"v"
        assert two.ask("touch", "s:1", 90.0) is True
        assert [one.ask("append", "l:1", b"a", 60.0, 9), two.ask("append", "l:1", b"b", 60.0, 9)] == [1, 2]
        assert one.ask("read", "l:1", 0) == two.ask("read", "l:1", 0) == [(1, b"a"), (2, b"b")]
        assert [one.ask("add", "n:1", b"", 60.0), two.ask("add", "n:1", b"", 60.0)] == [True, False]
        assert two.ask("count", "s:") == 1
        two.ask("delete", "s:1")
        assert one.ask("get", "s:1") is None


def test_two_processes_exchange_messages(url: str) -> None:
    with children(url, 2) as (one, two):
        one.ask("listen", "t")
        two.ask("listen", "t")
        for n in range(50):
            one.ask("post", "t", b"one %d" % n)
            two.ask("post", "t", b"two %d" % n)
        expected = [("t", b"%s %d" % (who, n)) for n in range(50) for who in (b"one", b"two")]
        assert one.wait_heard(100) == two.wait_heard(100) == expected
