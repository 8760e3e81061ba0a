"""Redis at the end of a bad wire."""

from __future__ import annotations

import asyncio

import pytest

from longshore.errors import StoreError
from longshore.stores import open_store
from longshore.stores.redis import SECONDS

from .place import RedisPlace, run
from .proxy import proxied


def test_nothing_is_sent_twice(redis_url: str) -> None:
    """The answer is lost, but the entry is there: sent again, it would be there twice."""

    async def body() -> None:
        await RedisPlace(redis_url).empty()
        async with proxied(redis_url) as (proxy, url):
            store, near = open_store(url), open_store(redis_url)
            for n in range(1, 4):
                await store.check()
                proxy.lose_answer = True
                with pytest.raises(StoreError, match=r"can't be reached \(the connection was lost\)"):
                    await store.append("l:1", b"%d" % n, 60, 100)
                assert [position for position, _ in await near.read("l:1", 0)] == list(range(1, n + 1))
            assert await store.append("l:1", b"4", 60, 100) == 4
            await store.close()
            await near.close()

    run(body())


def test_slow_answers_time_out(redis_url: str) -> None:
    """Each would come in time, all of them do not."""

    async def body() -> None:
        async with proxied(redis_url) as (proxy, url):
            store = open_store(url)
            await store.set("s:1", b"value", 60)
            proxy.drip = 0.05
            answers = await asyncio.gather(*(store.get("s:1") for _ in range(20)), return_exceptions=True)
            assert all(f"no answer within {SECONDS:g} s" in str(answer) for answer in answers)
            proxy.drip = 0.0
            assert await store.get("s:1") == b"value"
            await store.close()

    run(body())
