"""Watched resources of a mounted server are subscribed to there while a client of ours watches them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from longshore import Server
from longshore.client import Client
from longshore.client.watches import Watch
from longshore.limits import Limits
from longshore.registry.catalog import Catalog
from longshore.registry.watch_hooks import WatchedResources

from .gateway import ERAS, gate_to, hostile, problems, through, until, until_async
from .mounted_server import make_server

theirs = pytest.mark.parametrize("inner", ERAS)
ours = pytest.mark.parametrize("outer", ERAS)


async def told(client: Client, tool: str, changes: Watch) -> Any:
    """Have the server say that something has changed, and hear of it; None if nobody does for a while."""
    await client.call_tool(tool)
    try:
        async with asyncio.timeout(0.1):
            return await anext(changes)
    except TimeoutError:
        return None


@theirs
@ours
async def test_a_watch_that_is_older_than_the_list(inner: str, outer: str) -> None:
    gate = gate_to(make_server(), inner)
    async with through(gate, outer) as client, client.watch(uris=["test://thing"]) as changes:
        change = await until_async("the change", lambda: told(client, "b_touch", changes))
        assert change.uri == "test://thing"


@theirs
@ours
async def test_a_resource_without_watchers_is_unsubscribed(inner: str, outer: str) -> None:
    behind = make_server()
    gate = gate_to(behind, inner)
    watched = behind.engine.subscriptions.watched
    async with through(gate, outer) as client:
        await client.list_resources()
        async with client.watch(uris=["test://thing"]):
            await until("the watch", lambda: watched() == {"test://thing"})
            async with client.watch(uris=["test://parts/one"]):
                await until("both", lambda: watched() == {"test://thing", "test://parts/one"})
            await until("the first alone", lambda: watched() == {"test://thing"})
        await until("no watch", lambda: watched() == set())


@theirs
@ours
async def test_a_client_that_disconnects_watches_nothing(inner: str, outer: str) -> None:
    behind = make_server()
    gate = gate_to(behind, inner)
    watched = behind.engine.subscriptions.watched
    async with through(gate) as client:
        await client.list_resources()
        async with Client(gate, era=outer) as other:
            await other.watch(uris=["test://thing"]).__aenter__()
            await until("the watch", lambda: watched() == {"test://thing"})
        await until("no watch", lambda: watched() == set())


@ours
async def test_a_refused_resource_affects_no_other(outer: str) -> None:
    gate = gate_to(hostile("watch"))
    heard = problems(gate)
    async with through(gate, outer) as client:
        await client.list_resources()
        async with (
            client.watch(uris=["test://good"]) as changes,
            Client(gate, era=outer) as other,
            other.watch(uris=["test://bad"]),
        ):
            await until("the refusal", lambda: any("'test://bad' are not reported" in text for text in heard))
            assert await until_async("the change", lambda: told(client, "b_go", changes))


@theirs
async def test_another_watch_looks_up_no_more_than_itself(inner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each costs more than the one before it."""
    gate = gate_to(make_server(), inner)
    looked_up: list[str] = []
    async with through(gate, "legacy") as client:
        await client.list_resources()
        find = gate.catalog.find_resource
        monkeypatch.setattr(Catalog, "find_resource", lambda _, uri: looked_up.append(uri) or find(uri))
        watched = WatchedResources(gate.catalog, gate.engine.executor.spawn, gate.recorder.problem)
        for n in range(10):
            watched.update({f"test://parts/{part}" for part in range(n + 1)})
        watched.update({"test://parts/3"})
        assert sorted(looked_up) == [f"test://parts/{n}" for n in range(10)]


@pytest.mark.parametrize(("wanted", "heard"), [(2, 2), (3, 3), (4, 3)])
@theirs
async def test_watched_resources_at_one_server_are_bounded(
    wanted: int, heard: int, inner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.mounting.supervisor.FOLLOWED", 3)
    behind = make_server()
    gate = gate_to(behind, inner)
    watched = behind.engine.subscriptions.watched
    async with through(gate) as client:
        await client.list_resources()
        async with client.watch(uris=[f"test://parts/{n}" for n in range(wanted)]):
            await until("those", lambda: watched() == {f"test://parts/{n}" for n in range(heard)})


async def test_a_stateless_server_that_refuses_the_stream_of_all_resources_is_noted() -> None:
    behind = Server("behind", limits=Limits(subscriptions=2))
    for name in ("one", "two", "three"):
        behind.resource(f"test://{name}")(lambda: "it")
    gate = Server("gate")
    heard = problems(gate)
    gate.mount(Client(behind, era="modern"), prefix="b")
    async with through(gate) as client:
        await client.list_resources()
        async with client.watch(uris=["test://one", "test://two", "test://three"]):
            await until("the refusal", lambda: any("and 2 more are not reported" in text for text in heard))
            assert (await client.read_resource("test://one"))[0].text == "it"  # type: ignore[union-attr]
