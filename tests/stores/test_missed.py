"""A listener that may have missed messages gets MISSED once, and then new messages."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import redis.asyncio

from longshore.stores import MISSED
from longshore.stores.sqlite import SqliteStore

from .place import Place, RedisPlace, run, until


def test_listeners_get_missed_after_a_lost_connection(redis_url: str) -> None:
    place = RedisPlace(redis_url)

    async def body(store: object) -> None:
        heard: list[bytes] = []
        other: list[bytes] = []
        listening = place.open()
        await listening.listen("t", heard.append)
        await listening.listen("u", other.append)
        await listening.post("t", b"before")
        await until(lambda: heard == [b"before"])
        async with redis.asyncio.Redis.from_url(redis_url) as client:
            await client.client_kill_filter(_type="pubsub")
        await until(lambda: heard == [b"before", MISSED] and other == [MISSED])
        await listening.post("t", b"after")
        await until(lambda: heard == [b"before", MISSED, b"after"])

    place.run(body)


def test_listeners_get_missed_after_messages_were_deleted_unread(sqlite_path: Path) -> None:
    """This happens to a process that is stopped for longer than messages are stored."""

    async def body() -> None:
        heard: list[bytes] = []
        store = SqliteStore(str(sqlite_path))
        try:
            await store.listen("t", heard.append)
            await store.post("t", b"first")
            await until(lambda: heard == [b"first"])
            with closing(sqlite3.connect(sqlite_path, isolation_level=None)) as database:
                database.execute("BEGIN IMMEDIATE")
                database.execute("INSERT INTO messages (topic, body, sent) VALUES (?, ?, 0)", (b"t", b"unread"))
                database.execute("DELETE FROM messages WHERE body = ?", (b"unread",))
                database.execute("COMMIT")
            await until(lambda: heard == [b"first", MISSED])  # though nobody posts again
            await store.post("t", b"second")
            await until(lambda: heard == [b"first", MISSED, b"second"])
        finally:
            await store.close()

    run(body())


def test_without_a_loss_no_listener_gets_missed(shared_place: Place) -> None:
    async def body(store: object) -> None:
        one, two = shared_place.open(), shared_place.open()
        heard: list[bytes] = []
        await one.listen("t", heard.append)
        for n in range(50):
            await (one, two)[n % 2].post("t", b"%d" % n)
        await until(lambda: len(heard) == 50)
        assert MISSED not in heard

    shared_place.run(body)
