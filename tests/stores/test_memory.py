"""The store in memory frees what it no longer needs."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Awaitable, Callable

import pytest

from longshore.stores.memory import SWEEP_SECONDS, SWEPT, MemoryStore

from .place import run

COUNT = 10_000


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def key(n: int) -> str:
    return f"session:{n:032}"  # long enough that none is interned


Use = Callable[[MemoryStore], Awaitable[object]]


@pytest.mark.parametrize(
    "use",
    [
        lambda store: store.get("other:1"),
        lambda store: store.set("other:1", b"", 5),
        lambda store: store.touch("other:1", 5),
        lambda store: store.append("other:1", b"", 5, 5),
        lambda store: store.read("other:1", 0),
        lambda store: store.count("other:"),
        lambda store: store.find("other:"),
        lambda store: store.delete("other:1"),
        lambda store: store.check(),
    ],
    ids=["get", "set", "touch", "append", "read", "count", "find", "delete", "check"],
)
def test_any_use_frees_all_that_has_expired(use: Use) -> None:
    clock = Clock()
    store = MemoryStore(clock)
    names = [key(n) for n in range(COUNT)]
    value = bytes(bytearray(b"only here"))
    before = sys.getrefcount(value), [sys.getrefcount(name) for name in names]

    async def body() -> None:
        for name in names:
            await store.set(name, value, 60)
            await store.touch(name, 90)
            await store.append(name, value, 60, 10)
        assert sys.getrefcount(value) >= 2 * COUNT
        clock.now = 91.0
        await use(store)

    run(body())
    gc.collect()
    assert (sys.getrefcount(value), [sys.getrefcount(name) for name in names]) == before


def test_a_sweep_frees_the_memory_of_many_entries() -> None:
    clock = Clock()
    store = MemoryStore(clock)

    async def body() -> None:
        await store.set("session:stays", b"", 1e9)
        for n in range(COUNT):
            await store.set(key(n), b"", 60)
        crowded = sys.getsizeof(store._families["session:"])
        clock.now = 61.0
        assert await store.count("session:") == 1
        assert sys.getsizeof(store._families["session:"]) < crowded / 10

    run(body())


@pytest.mark.parametrize(("entries", "pause"), [(SWEPT - 1, 1), (SWEPT, 2), (3 * SWEPT, 4)])
def test_a_large_store_is_swept_less_often(entries: int, pause: float) -> None:
    store = MemoryStore(Clock())

    async def body() -> None:
        for n in range(entries):
            await store.set(f"s:{n}", b"", 60)
        store._sweep(10.0)
        assert store._sweep_at == 10.0 + pause * SWEEP_SECONDS

    run(body())


def test_a_wall_clock_that_jumps_expires_nothing() -> None:
    assert MemoryStore()._clock is time.monotonic


def test_empty_families_are_removed() -> None:
    clock = Clock()
    store = MemoryStore(clock)

    async def body() -> None:
        for n in range(1000):
            await store.set(f"{n}:x", b"", 10)
        clock.now = 20.0
        await store.check()
        assert not store._families

    run(body())


def test_deleted_keys_leave_nothing_behind_long_before_they_expire() -> None:
    store = MemoryStore(Clock())
    names = [key(n) for n in range(COUNT)]
    before = [sys.getrefcount(name) for name in names]

    async def body() -> None:
        for name in names:
            await store.set(name, b"", 1800)
            await store.append(name, b"", 1800, 10)
            await store.delete(name)

    run(body())
    assert [sys.getrefcount(name) for name in names] == before


def test_values_are_not_copied() -> None:
    store = MemoryStore()
    value = bytes(1 << 20)

    async def body() -> None:
        await store.set("s:1", value, 60)
        await store.append("l:1", value, 60, 5)
        assert await store.get("s:1") is value
        assert (await store.read("l:1", 0))[0][1] is value

    run(body())
