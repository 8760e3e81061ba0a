"""Connections of tests leave nothing open."""

from __future__ import annotations

import asyncio
import threading

import pytest

from longshore import Client, Server
from waiting import eventually


@pytest.mark.parametrize("fresh", [False, True])
def test_threads_of_earlier_tests_are_stopped(fresh: bool) -> None:
    app = Server("x")

    @app.tool
    def a() -> str:
        """On a thread."""
        return "a"

    async def work() -> None:
        async with Client(app) as client:
            await asyncio.gather(*(client.call_tool("a") for _ in range(3)))

    before = threading.active_count()
    for _ in range(20):
        if fresh:
            app.renew()
        asyncio.run(work())
    app.renew()
    eventually("the threads end", lambda: threading.active_count() <= before)


def test_a_call_that_is_under_way_ends_as_ever_when_threads_are_dismissed() -> None:
    app = Server("x")
    gate = threading.Event()

    @app.tool
    def wait() -> bool:
        """On a thread."""
        return gate.wait(10)

    async def work() -> str:
        async with Client(app) as client:
            call = asyncio.ensure_future(client.call_tool("wait"))
            while not app.engine.executor.running:
                await asyncio.sleep(0)
            app.engine.executor.dismiss_threads()
            second = asyncio.ensure_future(client.call_tool("wait"))
            gate.set()
            return (await asyncio.wait_for(call, 10)).text + (await asyncio.wait_for(second, 10)).text

    assert asyncio.run(work()) == "truetrue"
