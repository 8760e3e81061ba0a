"""The contract of a store, tested on every backend."""

from __future__ import annotations

import asyncio

import pytest

from longshore.stores import Store

from .place import Place


def test_a_value_is_there_until_it_expires(place: Place) -> None:
    async def body(store: Store) -> None:
        assert await store.get("session:1") is None
        await store.set("session:1", b"\x00\xffvalue", 30)
        await place.pass_time(29)
        assert await store.get("session:1") == b"\x00\xffvalue"
        await place.pass_time(2)
        assert await store.get("session:1") is None

    place.run(body)


def test_setting_again_replaces_value_and_expiry(place: Place) -> None:
    async def body(store: Store) -> None:
        await store.set("a:1", b"old", 10)
        await store.set("a:1", b"", 100)
        await place.pass_time(50)
        assert await store.get("a:1") == b""
        await store.set("a:1", b"brief", 5)
        await place.pass_time(6)
        assert await store.get("a:1") is None

    place.run(body)


def test_add_leaves_an_existing_value(place: Place) -> None:
    async def body(store: Store) -> None:
        assert await store.add("nonce:1", b"first", 10) is True
        assert await store.add("nonce:1", b"second", 1000) is False
        assert await store.get("nonce:1") == b"first"
        await place.pass_time(11)
        assert await store.add("nonce:1", b"third", 10) is True
        assert await store.get("nonce:1") == b"third"

    place.run(body)


def test_only_one_of_many_adds_wins(place: Place) -> None:
    async def body(store: Store) -> None:
        stores = [store, place.open()] if place.shared else [store]
        won = await asyncio.gather(*(stores[n % len(stores)].add("nonce:x", b"%d" % n, 60) for n in range(200)))
        assert sum(won) == 1
        assert await store.get("nonce:x") == b"%d" % won.index(True)

    place.run(body)


def test_swap_replaces_exactly_what_was_read(place: Place) -> None:
    async def body(store: Store) -> None:
        assert await store.swap("s:1", b"", b"none", 10) is False
        assert await store.get("s:1") is None
        await store.set("s:1", b"\x00one", 10)
        assert await store.swap("s:1", b"\x00", b"other", 1000) is False
        assert await store.get("s:1") == b"\x00one"
        assert await store.swap("s:1", b"\x00one", b"two", 100) is True
        assert await store.swap("s:1", b"\x00one", b"three", 100) is False
        await place.pass_time(50)
        assert await store.get("s:1") == b"two"
        await store.delete("s:1")
        assert await store.swap("s:1", b"two", b"again", 100) is False
        await store.set("s:2", b"v", 10)
        await place.pass_time(11)
        assert await store.swap("s:2", b"v", b"late", 100) is False
        assert await store.get("s:2") is None

    place.run(body)


def test_swaps_made_at_once_lose_nothing(place: Place) -> None:
    async def body(store: Store) -> None:
        stores = [store, place.open()] if place.shared else [store]
        await store.set("s:n", b"0", 60)

        async def count(mine: Store) -> None:
            while True:
                old = await mine.get("s:n")
                assert old is not None
                if await mine.swap("s:n", old, b"%d" % (int(old) + 1), 60):
                    return

        await asyncio.gather(*(count(stores[n % len(stores)]) for n in range(40)))
        assert await store.get("s:n") == b"40"

    place.run(body)


def test_touch_moves_the_expiry_both_ways(place: Place) -> None:
    async def body(store: Store) -> None:
        await store.set("s:1", b"v", 10)
        assert await store.touch("s:1", 100) is True
        await place.pass_time(50)
        assert await store.get("s:1") == b"v"
        assert await store.touch("s:1", 5) is True
        await place.pass_time(6)
        assert await store.get("s:1") is None
        assert await store.touch("s:1", 100) is False
        assert await store.get("s:1") is None
        assert await store.touch("s:never", 100) is False

    place.run(body)


def test_delete_drops_values_and_logs(place: Place) -> None:
    async def body(store: Store) -> None:
        for name in ("a:1", "a:2", "b:3"):
            await store.set(name, b"v", 60)
            await store.append(name, b"e", 60, 10)
        await store.delete("a:1", "b:3", "c:none")
        await store.delete()
        assert await store.find("a:") == {"a:2": b"v"}
        assert await store.get("b:3") is None
        assert await store.read("a:1", 0) == await store.read("b:3", 0) == []
        assert await store.read("a:2", 0) == [(1, b"e")]
        assert await store.append("a:1", b"again", 60, 10) == 1

    place.run(body)


def test_find_returns_unexpired_values_with_a_prefix(place: Place) -> None:
    async def body(store: Store) -> None:
        await store.set("worker:1", b"one", 10)
        await store.set("worker:12", b"twelve", 60)
        await store.set("worker:2", b"two", 60)
        await store.set("workers:3", b"another family", 60)
        await store.append("worker:log", b"not a value", 60, 5)
        assert await store.find("worker:") == {"worker:1": b"one", "worker:12": b"twelve", "worker:2": b"two"}
        assert await store.find("worker:1") == {"worker:1": b"one", "worker:12": b"twelve"}
        assert await store.find("worker:none") == await store.find("nobody:") == {}
        await place.pass_time(11)
        assert set(await store.find("worker:")) == {"worker:12", "worker:2"}

    place.run(body)


def test_a_prefix_without_a_family_is_refused(place: Place) -> None:
    async def body(store: Store) -> None:
        for prefix in ("", "session"):
            with pytest.raises(ValueError, match="has no colon"):
                await store.find(prefix)
            with pytest.raises(ValueError, match="has no colon"):
                await store.count(prefix)

    place.run(body)


def test_find_returns_the_soonest_to_expire_first(place: Place) -> None:
    async def body(store: Store) -> None:
        for key, seconds in {"s:c": 300, "s:a": 100, "s:e": 500, "s:b": 200, "s:d": 400}.items():
            await store.set(key, b"v", seconds)
        assert await store.touch("s:a", 600)
        assert await store.touch("s:d", 50)
        assert list(await store.find("s:")) == ["s:d", "s:b", "s:c", "s:e", "s:a"]

    place.run(body)


def test_count_counts_one_family(place: Place) -> None:
    async def body(store: Store) -> None:
        assert await store.count("s:") == 0
        for n in range(5):
            await store.set(f"s:{n}", b"v", 10 + n)
        await store.set("t:1", b"v", 10)
        await store.append("s:9", b"v", 10, 5)
        assert await store.count("s:") == 5
        await store.delete("s:1", "s:2")
        assert await store.count("s:") == 3

    place.run(body)


def test_positions_count_from_one_and_survive_trimming(place: Place) -> None:
    async def body(store: Store) -> None:
        assert await store.read("log:1", 0) == []
        for n in range(1, 11):
            assert await store.append("log:1", b"%d" % n, 60, 4) == n
        assert await store.read("log:1", 0) == [(n, b"%d" % n) for n in (7, 8, 9, 10)]
        assert await store.append("log:1", b"11", 60, 1) == 11
        assert await store.read("log:1", 0) == [(11, b"11")]
        assert await store.append("log:1", b"12", 60, 0) == 12  # the last one stays in any case
        assert await store.read("log:1", 0) == [(12, b"12")]

    place.run(body)


def test_a_log_can_be_read_in_pieces(place: Place) -> None:
    async def body(store: Store) -> None:
        for n in range(1, 151):
            await store.append("log:1", b"%d" % n, 60, 1000)
        assert [n for n, _ in await store.read("log:1", 0)] == list(range(1, 101))
        assert [n for n, _ in await store.read("log:1", 100)] == list(range(101, 151))
        assert await store.read("log:1", 148, 1) == [(149, b"149")]
        assert await store.read("log:1", 150) == []
        assert await store.read("log:1", 0, 0) == []
        assert len(await store.read("log:1", -5, 3)) == 3
        assert await store.read("log:1", 10**30) == []  # whatever a client names
        assert len(await store.read("log:1", -(10**30), 3)) == 3

    place.run(body)


def test_a_log_expires_as_a_whole_unless_it_grows(place: Place) -> None:
    async def body(store: Store) -> None:
        await store.append("log:1", b"a", 30, 10)
        await place.pass_time(20)
        assert await store.append("log:1", b"b", 30, 10) == 2
        await place.pass_time(20)
        assert await store.read("log:1", 0) == [(1, b"a"), (2, b"b")]
        await place.pass_time(11)
        assert await store.read("log:1", 0) == []
        assert await store.append("log:1", b"c", 30, 10) == 1
        assert await store.read("log:1", 0) == [(1, b"c")]

    place.run(body)


def test_a_value_and_a_log_of_one_name_are_two_things(place: Place) -> None:
    async def body(store: Store) -> None:
        await store.set("x:1", b"value", 60)
        assert await store.append("x:1", b"entry", 60, 5) == 1
        assert await store.get("x:1") == b"value"
        assert await store.read("x:1", 0) == [(1, b"entry")]
        assert await store.count("x:") == 1

    place.run(body)


def test_concurrent_appends_leave_no_gap(place: Place) -> None:
    async def body(store: Store) -> None:
        stores = [store, place.open()] if place.shared else [store]
        at = await asyncio.gather(*(stores[n % len(stores)].append("log:1", b"%d" % n, 60, 5000) for n in range(600)))
        assert sorted(at) == list(range(1, 601))
        read = await store.read("log:1", 0, 1000)
        assert read == [(position, b"%d" % n) for position, n in sorted(zip(at, range(600), strict=True))]

    place.run(body)


def test_thousands_of_concurrent_operations_complete(place: Place) -> None:
    async def body(store: Store) -> None:
        await asyncio.gather(*(store.set(f"s:{n}", b"%d" % n, 600) for n in range(3000)))
        values = await asyncio.gather(*(store.get(f"s:{n}") for n in range(3000)))
        assert values == [b"%d" % n for n in range(3000)]
        assert all(await asyncio.gather(*(store.touch(f"s:{n}", 700) for n in range(3000))))
        await asyncio.gather(*(store.delete(f"s:{n}") for n in range(2990)))
        assert len(await store.find("s:")) == 10

    place.run(body)


def test_operations_take_effect_in_the_order_they_were_asked(place: Place) -> None:
    async def body(store: Store) -> None:
        writes = [asyncio.ensure_future(store.set("s:1", b"%d" % n, 60)) for n in range(50)]
        read = asyncio.ensure_future(store.get("s:1"))
        await asyncio.gather(*writes)
        assert await read == b"49"

    place.run(body)


def test_names_and_values_may_be_anything(place: Place) -> None:
    async def body(store: Store) -> None:
        large = bytes(range(256)) * 4096 * 2
        for key in ("k:ü€😀", "k:\0nul", "k: a b\n", "k:\udcff", "k:*?[", "k:" + "x" * 5000, "plain", ":"):
            await store.set(key, large, 60)
            assert await store.get(key) == large
            assert await store.append(key, large, 60, 5) == 1
            assert await store.read(key, 0) == [(1, large)]
        assert len(await store.find("k:")) == 6
        assert set(await store.find("k:\udcff")) == {"k:\udcff"}
        assert set(await store.find("k:\U0010ffff")) == set()

    place.run(body)


def test_unusual_expiries_work(place: Place) -> None:
    async def body(store: Store) -> None:
        await store.set("s:forever", b"v", float("inf"))
        await store.set("s:long", b"v", 10 * 365 * 86_400.0)
        await store.set("s:brief", b"v", 1e-9)
        await store.set("s:gone", b"v", -5)
        await place.pass_time(0.01)
        assert set(await store.find("s:")) == {"s:forever", "s:long"}
        assert await store.get("s:brief") is await store.get("s:gone") is None

    place.run(body)


def test_a_store_can_be_checked_and_closed(place: Place) -> None:
    async def body(store: Store) -> None:
        assert store.shared is place.shared
        await store.check()
        await store.check()
        await store.close()
        await store.close()

    place.run(body)


def test_closed_without_being_used(place: Place) -> None:
    async def body(store: Store) -> None:
        await store.close()

    place.run(body)


def test_a_cancelled_operation_does_not_affect_others(place: Place) -> None:
    async def body(store: Store) -> None:
        task = asyncio.ensure_future(store.set("s:1", b"v", 60))
        other = asyncio.ensure_future(store.set("s:2", b"v", 60))
        await asyncio.sleep(0)
        task.cancel()
        await other
        assert await store.get("s:2") == b"v"

    place.run(body)
