"""The one timer for all requests of a connection, and the order of messages from a server in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from longshore import Context, Server
from longshore.client import Client
from longshore.errors import CallTimeout

ERAS = ("modern", "legacy")


def _server() -> Server:
    app = Server("clock")

    @app.tool
    async def hang() -> str:
        await asyncio.Event().wait()
        return ""

    @app.tool
    async def steps(count: int) -> str:
        for _ in range(count):
            await asyncio.sleep(0.05)
        return "done"

    @app.tool
    async def tell(ctx: Context, count: int) -> str:
        for number in range(count):
            await asyncio.sleep(0.05)
            await ctx.progress(number + 1, count)
        return "told"  # in the same turn as the last progress

    return app


@pytest.mark.parametrize("era", ERAS)
async def test_each_request_ends_at_its_own_time_whatever_was_sent_before(era: str) -> None:
    ended: list[str] = []

    async def late(client: Client, name: str, timeout: float) -> None:
        with pytest.raises(CallTimeout, match=f"within {timeout:g} s"):
            await client.call_tool("hang", timeout=timeout)
        ended.append(name)

    async with asyncio.timeout(20), Client(_server(), era=era, timeout=15) as client:
        slow = asyncio.ensure_future(late(client, "slow", 0.9))
        await asyncio.sleep(0)
        quick = asyncio.ensure_future(late(client, "quick", 0.1))
        await asyncio.sleep(0)
        await asyncio.gather(slow, quick, late(client, "middle", 0.5))
        assert (await client.call_tool("steps", {"count": 1})).text == "done"
    assert ended == ["quick", "middle", "slow"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_request_without_a_timeout_outlives_others(era: str) -> None:
    async with asyncio.timeout(20), Client(_server(), era=era) as client:
        endless = asyncio.ensure_future(client.call_tool("steps", {"count": 8}, timeout=None))
        with pytest.raises(CallTimeout):
            await client.call_tool("hang", timeout=0.05)
        assert (await endless).text == "done"


@pytest.mark.parametrize("era", ERAS)
def test_all_progress_is_reported_before_the_answer(era: str) -> None:
    async def work() -> list[Any]:
        heard: list[Any] = []
        async with asyncio.timeout(20), Client(_server(), era=era) as client:
            result = await client.call_tool(
                "tell", {"count": 3}, on_progress=lambda done, total, _: heard.append((done, total))
            )
            heard.append(result.text)
        return heard

    assert asyncio.run(work()) == [(1.0, 3.0), (2.0, 3.0), (3.0, 3.0), "told"]


def test_a_closed_client_leaves_no_timer_behind() -> None:
    async def work() -> int:
        loop: Any = asyncio.get_running_loop()
        async with Client(_server()) as client:
            await client.call_tool("steps", {"count": 0})
        return sum(1 for timer in loop._scheduled if not timer.cancelled() and "clock.py" in repr(timer))

    assert asyncio.run(work()) == 0
