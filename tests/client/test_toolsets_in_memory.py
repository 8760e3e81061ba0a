"""The last client of a server in memory stops its toolsets; a server that something else serves keeps them."""

from __future__ import annotations

import asyncio

import pytest

from longshore import Client, Server, SyncClient, Toolset, tool
from memory_link import Memory


class Till(Toolset):
    """Counts how often it was started and stopped."""

    def __init__(self) -> None:
        self.events: list[str] = []

    async def start(self) -> None:
        self.events.append("start")

    async def stop(self) -> None:
        self.events.append("stop")

    @tool
    async def pay(self) -> str:
        """Pay at the till."""
        return "paid"


def serve() -> tuple[Server, Till]:
    app, till = Server("shop"), Till()
    app.add_toolset(till)
    return app, till


async def test_the_last_client_stops_the_toolsets() -> None:
    app, till = serve()
    async with Client(app) as one:
        async with Client(app) as other:
            await one.call_tool("pay")
            await other.call_tool("pay")
        assert till.events == ["start"]
    assert till.events == ["start", "stop"]


async def test_a_toolset_is_started_again_by_the_next_client() -> None:
    app, till = serve()
    for _ in range(2):
        async with Client(app) as client:
            assert (await client.call_tool("pay")).text == "paid"
    assert till.events == ["start", "stop"] * 2


async def test_a_toolset_that_was_not_used_is_not_stopped() -> None:
    app, till = serve()
    async with Client(app) as client:
        await client.list_tools()
    assert till.events == []


def test_a_sync_client_stops_them_too() -> None:
    app, till = serve()
    with SyncClient(app) as client:
        client.call_tool("pay")
    assert till.events == ["start", "stop"]


async def test_a_stop_that_fails_is_reported_and_closes_the_client(capfd: pytest.CaptureFixture[str]) -> None:
    app, till = serve()

    async def fail() -> None:
        raise OSError("the drawer is stuck")

    till.stop = fail  # type: ignore[method-assign]
    async with Client(app) as client:
        await client.call_tool("pay")
    assert "the drawer is stuck" in capfd.readouterr().err


async def test_toolsets_stay_open_where_something_else_serves_them() -> None:
    app, till = serve()
    Memory(app.engine)
    async with Client(app) as client:
        await client.call_tool("pay")
    assert till.events == ["start"]


async def test_a_toolset_has_until_its_own_deadline_to_stop(capfd: pytest.CaptureFixture[str]) -> None:
    app, till = serve()
    till.stop_seconds = 0.01  # type: ignore[misc]

    async def hang() -> None:
        await asyncio.Event().wait()

    till.stop = hang  # type: ignore[method-assign]
    async with Client(app) as client:
        await client.call_tool("pay")
    assert "not closed within 0.0 s, so ended as it is: till" in capfd.readouterr().err


async def test_a_toolset_that_can_not_run_is_reported_to_the_developer_once(capfd: pytest.CaptureFixture[str]) -> None:
    app, _ = serve()
    app.add_toolset(Shut())
    for _ in range(2):
        async with Client(app) as client:
            assert [tool.name for tool in await client.list_tools()] == ["pay"]
    assert capfd.readouterr().err.count("the toolset 'shut' is unavailable: no key; ask for one") == 1


class Shut(Toolset):
    def available(self) -> str | None:
        return "no key; ask for one"

    @tool
    async def open(self) -> str:
        """Open the shop."""
        return "open"
