"""Messages from anyone to everyone who listens."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from counts import count
from longshore.stores import Store

from .place import Place, until


def test_only_the_listeners_of_a_topic_get_its_messages(place: Place) -> None:
    async def body(store: Store) -> None:
        one: list[bytes] = []
        two: list[bytes] = []
        other: list[bytes] = []
        await store.listen("lists", one.append)
        await store.listen("lists", two.append)
        await store.listen("else", other.append)
        await store.post("lists", b"\x00changed")
        await store.post("nobody", b"?")
        await store.post("else", b"end")
        await until(lambda: other and one and two)
        assert (one, two, other) == ([b"\x00changed"], [b"\x00changed"], [b"end"])

    place.run(body)


def test_a_listener_is_called_on_the_loop_after_the_post(place: Place) -> None:
    async def body(store: Store) -> None:
        called: list[int] = []
        heard = asyncio.Event()

        def hear(message: bytes) -> None:
            called.append(threading.get_ident())
            asyncio.get_running_loop().call_soon(heard.set)

        await store.listen("t", hear)
        await store.post("t", b"m")
        await heard.wait()
        assert called == [threading.get_ident()]

    place.run(body)


def test_messages_arrive_in_order(place: Place) -> None:
    async def body(store: Store) -> None:
        heard: list[bytes] = []
        await store.listen("t", heard.append)
        sent = [b"%d" % n for n in range(1500)]
        await asyncio.gather(*(store.post("t", message) for message in sent))
        await until(lambda: len(heard) >= len(sent))
        assert heard == sent

    place.run(body)


def test_every_store_gets_the_messages_of_every_other(shared_place: Place) -> None:
    async def body(store: Store) -> None:
        stores = [store, shared_place.open(), shared_place.open()]
        heard: list[list[bytes]] = [[] for _ in stores]
        for member, got in zip(stores, heard, strict=True):
            await member.listen("t", got.append)
        for number, member in enumerate(stores):
            await member.post("t", b"%d" % number)
        await until(lambda: all(len(got) == 3 for got in heard))
        assert all(got == [b"0", b"1", b"2"] for got in heard)  # one after the other: so everybody hears them

    shared_place.run(body)


def test_a_listener_gets_no_earlier_messages(place: Place) -> None:
    async def body(store: Store) -> None:
        await store.post("t", b"early")
        heard: list[bytes] = []
        await store.listen("t", heard.append)
        await store.post("t", b"late")
        await until(lambda: heard)
        assert heard == [b"late"]

    place.run(body)


def test_a_stopped_listener_gets_no_more_messages(place: Place) -> None:
    async def body(store: Store) -> None:
        stopped: list[bytes] = []
        heard: list[bytes] = []
        stop = await store.listen("t", stopped.append)
        await store.listen("t", heard.append)
        await store.post("t", b"1")
        await until(lambda: stopped and heard)
        stop()
        stop()
        await store.post("t", b"2")
        await until(lambda: len(heard) == 2)
        assert stopped == [b"1"]

    place.run(body)


def test_a_listener_may_stop_itself_and_others(place: Place) -> None:
    async def body(store: Store) -> None:
        heard: list[str] = []
        stops = {}

        def first(_: bytes) -> None:
            heard.append("first")
            stops["first"]()
            stops["second"]()

        stops["first"] = await store.listen("t", first)
        stops["second"] = await store.listen("t", lambda _: heard.append("second"))
        await store.listen("t", lambda _: heard.append("third"))
        await store.post("t", b"1")
        await store.post("t", b"2")
        await until(lambda: heard.count("third") == 2)
        assert heard == ["first", "third", "third"]

    place.run(body)


def test_listening_again_at_once_misses_nothing(place: Place) -> None:
    """As when a stream is resumed: the old one ends, the new one begins."""

    async def body(store: Store) -> None:
        for n in range(100):
            heard: list[bytes] = []
            stop = await store.listen("t", heard.append)
            await store.post("t", b"%d" % n)
            await until(lambda heard=heard: heard)
            assert heard == [b"%d" % n]
            stop()

    place.run(body)


def test_a_failing_listener_is_reported_and_the_others_get_the_message(place: Place) -> None:
    async def body(store: Store) -> None:
        reports: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context))
        heard: list[bytes] = []

        def fail(_: bytes) -> None:
            raise RuntimeError("on purpose")

        await store.listen("t", fail)
        await store.listen("t", heard.append)
        await store.post("t", b"1")
        await store.post("t", b"2")
        await until(lambda: len(heard) == 2)
        assert [str(report["exception"]) for report in reports] == ["on purpose", "on purpose"]

    place.run(body)


def test_topics_may_be_anything(place: Place) -> None:
    async def body(store: Store) -> None:
        for topic in ("", "ü😀", "a\0b", "*", "\udcff"):
            heard: list[bytes] = []
            stop = await store.listen(topic, heard.append)
            await store.post(topic, b"m" * 300_000)
            await until(lambda heard=heard: heard)
            stop()

    place.run(body)


def test_a_closed_store_keeps_no_listener(place: Place) -> None:
    async def body(store: Store) -> None:
        class Ear:
            def hear(self, message: bytes) -> None: ...

        import weakref

        ear = Ear()
        await store.listen("t", ear.hear)
        gone = weakref.ref(ear)
        await store.close()
        del ear
        gc.collect()
        assert gone() is None

    place.run(body)


@pytest.mark.parametrize("again", range(count(3)))
def test_a_listener_added_under_load_gets_all_later_messages(shared_place: Place, again: int) -> None:
    """Posts come from another store while this one's connection is being made: none after `listen` may be missed."""

    async def body(store: Store) -> None:
        poster = shared_place.open()
        heard: list[int] = []
        storm = True

        async def post() -> None:
            n = 0
            while storm:
                n += 1
                await poster.post("t", b"%d" % n)

        task = asyncio.ensure_future(post())
        await store.listen("t", lambda message: heard.append(int(message)))
        await until(lambda: len(heard) > 50)
        storm = False
        await task
        assert heard == list(range(heard[0], heard[0] + len(heard)))

    shared_place.run(body)


def test_many_listen_and_stop_at_once(place: Place) -> None:
    async def body(store: Store) -> None:
        heard: list[int] = []
        stops = await asyncio.gather(*(store.listen(f"t{n % 50}", lambda _, n=n: heard.append(n)) for n in range(200)))
        for stop in stops[::2]:
            stop()
        await asyncio.gather(*(store.post(f"t{n}", b"m") for n in range(50)))
        await until(lambda: len(heard) >= 100)
        assert sorted(heard) == list(range(1, 200, 2))
        for stop in stops:
            stop()

    place.run(body)
