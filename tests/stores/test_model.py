"""SQLite and Redis do, step by step, what memory does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from counts import count

from .place import MemoryPlace, Place, RedisPlace, SqlitePlace

KEYS = st.sampled_from(["s:1", "s:2", "s:3", "s:x:1", "s:x:2", "t:1", "t:2", "bare"])
PREFIXES = st.sampled_from(["s:", "s:x:", "t:", "u:"])
VALUES = st.binary(max_size=8)
LIVES = st.integers(1, 9)
"""In hundreds of seconds; time passes by 130, so that no sum of both comes near zero and no clock matters."""


class Machine(RuleBasedStateMachine):
    """Each life is a little longer than the one before: no two expire together, so their order is certain."""

    place: Place

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.model_place = MemoryPlace()
        self.model = self.model_place.open()
        self.real = self.make()
        self.steps = 0

    def make(self) -> Any:
        raise NotImplementedError

    def teardown(self) -> None:
        self.runner.run(self.real.close())
        self.runner.close()

    def both(self, method: str, *args: Any) -> None:
        expected, got = (self.runner.run(getattr(store, method)(*args)) for store in (self.model, self.real))
        assert got == expected, (method, args)

    def seconds(self, life: int) -> float:
        self.steps += 1
        return 100.0 * life + 0.01 * self.steps

    @rule(key=KEYS)
    def get(self, key: str) -> None:
        self.both("get", key)

    @rule(key=KEYS, value=VALUES, life=LIVES)
    def set(self, key: str, value: bytes, life: int) -> None:
        self.both("set", key, value, self.seconds(life))

    @rule(key=KEYS, value=VALUES, life=LIVES)
    def add(self, key: str, value: bytes, life: int) -> None:
        self.both("add", key, value, self.seconds(life))

    @rule(key=KEYS, value=VALUES, life=LIVES, known=st.booleans())
    def swap(self, key: str, value: bytes, life: int, known: bool) -> None:
        old = self.runner.run(self.model.get(key)) if known else value
        self.both("swap", key, old or b"", value + b"+", self.seconds(life))

    @rule(key=KEYS, life=LIVES)
    def touch(self, key: str, life: int) -> None:
        self.both("touch", key, self.seconds(life))

    @rule(keys=st.lists(KEYS, max_size=3))
    def delete(self, keys: list[str]) -> None:
        self.both("delete", *keys)

    @rule(prefix=PREFIXES)
    def find(self, prefix: str) -> None:
        expected, got = (self.runner.run(store.find(prefix)) for store in (self.model, self.real))
        assert list(got.items()) == list(expected.items()), prefix

    @rule(key=KEYS, value=VALUES, life=LIVES, most=st.integers(0, 4))
    def append(self, key: str, value: bytes, life: int, most: int) -> None:
        self.both("append", key, value, self.seconds(life), most)

    @rule(key=KEYS, after=st.integers(-1, 6), most=st.integers(0, 4))
    def read(self, key: str, after: int, most: int) -> None:
        self.both("read", key, after, most)

    @rule()
    def wait(self) -> None:
        self.runner.run(self.model_place.pass_time(130))
        self.runner.run(self.place.pass_time(130))


STEPS = settings(max_examples=count(40), stateful_step_count=40, deadline=None)


def test_sqlite_does_what_memory_does() -> None:
    class SqliteMachine(Machine):
        def make(self) -> Any:
            self.folder = TemporaryDirectory()
            self.place = SqlitePlace(Path(self.folder.name))
            return self.place.open()

        def teardown(self) -> None:
            super().teardown()
            self.folder.cleanup()

    run_state_machine_as_test(SqliteMachine, settings=STEPS)


@pytest.mark.timeout(120)
def test_redis_does_what_memory_does(redis_url: str) -> None:
    class RedisMachine(Machine):
        def make(self) -> Any:
            self.place = RedisPlace(redis_url)
            self.runner.run(self.place.empty())
            return self.place.open()

    run_state_machine_as_test(RedisMachine, settings=STEPS)
