"""Watches and the log level are renewed on a new connection, without blocking it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from client.scripted import heard, script, until
from client.test_watch import LISTENED, next_of
from longshore.client import Change, Client
from longshore.errors import ClientError, ConnectError, ConnectionLost, ServerError

LIVES = (
    LISTENED
    + """
CAPABILITIES.update(resources=dict(subscribe=True, listChanged=True), prompts=dict(listChanged=True))
again = os.path.exists(os.path.join(os.path.dirname(__file__), "died"))
def die(): mark("died"); os._exit(1)
def hear(m): mark("heard", json.dumps([m.get("method"), m.get("id"), m.get("params", {}).get("requestId"), again]))
mark("starts")
"""
)
"""A server that knows whether it is its second life."""


def connect_to(folder: Path, code: str, **options: Any) -> Client:
    return Client(script(folder, LIVES + code), **{"era": "modern", "timeout": 10.0, **options})


async def kill(client: Client) -> None:
    """Have it die, and wait until it is there again without anybody's asking."""
    with pytest.raises(ConnectionLost):
        await client.call_tool("die")
    await until("it is there again", lambda: client.connected)


def methods(folder: Path, name: str, again: bool | None = None) -> list[Any]:
    """The ids of the requests of a kind, in both lives or one."""
    return [id for method, id, _, life in heard(folder / "heard") if method == name and again in (None, life)]


def cancelled(folder: Path) -> list[Any]:
    return [id for method, _, id, _ in heard(folder / "heard") if method == "notifications/cancelled"]


SILENT_AGAIN = """
slow = []
for m in asks():
    hear(m)
    name = m.get("params", {}).get("name")
    if m["method"] == "server/discover": meet(m)
    elif m["method"] == "subscriptions/listen" and not again: acknowledge(m)
    elif name == "die": die()
    elif name == "slow": slow.append(m)
    elif name == "go":
        for each in [*slow, m]: reply(each, DONE)
"""
"""In its second life it acknowledges nothing."""


async def test_leaving_a_watch_loses_no_other_answer(tmp_path: Path) -> None:
    """Ids begin anew with each connection: what was the watch's id may be a call's now."""
    async with connect_to(tmp_path, SILENT_AGAIN) as client:
        watches = [client.watch(tools=True), client.watch(resources=True), client.watch(prompts=True)]
        for watch in watches:
            await watch.__aenter__()
        await kill(client)
        calls = [asyncio.ensure_future(client.call_tool("slow")) for _ in range(5)]
        await until("they have come", lambda: len(methods(tmp_path, "tools/call", True)) == 5)
        for watch in watches:
            await watch.__aexit__(None, None, None)
        await client.call_tool("go")
        assert [(await call).text for call in calls] == ["done"] * 5
        assert not set(cancelled(tmp_path)) - set(methods(tmp_path, "subscriptions/listen", True))


async def test_a_watch_that_is_left_while_it_is_restored_leaves_the_connection(tmp_path: Path) -> None:
    async with connect_to(tmp_path, SILENT_AGAIN) as client:
        async with client.watch(tools=True):
            await kill(client)
            await until("it is restored", lambda: methods(tmp_path, "subscriptions/listen", True))
        assert (await client.call_tool("go")).text == "done"
        assert cancelled(tmp_path) == methods(tmp_path, "subscriptions/listen", True)
        assert len((tmp_path / "starts").read_text()) == 2
        assert not client._connection.watches.tasks


async def test_a_watch_that_can_not_be_restored_stops_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.client.watches.RETRIES", (0.0, 0.05))
    code = """
for m in calls():
    name = m.get("params", {}).get("name")
    if m["method"] == "resources/subscribe": refuse(m, -32002, "no such resource") if again else reply(m, {})
    elif name == "die": die()
    else: reply(m, DONE); notify("notifications/tools/list_changed")
"""
    async with connect_to(tmp_path, code, era="legacy") as client:
        one, other = client.watch(uris=["x://a"]), client.watch(tools=True)
        async with one, other:
            await kill(client)
            with pytest.raises(ServerError, match="no such resource"):
                await next_of(one)
            assert await next_of(other) == Change("tools"), "it may have changed meanwhile"
            assert [(await client.call_tool("x")).text for _ in range(3)] == ["done"] * 3
            assert await next_of(other) == Change("tools")
        assert len((tmp_path / "starts").read_text()) == 2


@pytest.mark.parametrize("era", ["legacy", "2024-11-05"])
async def test_a_level_that_is_refused_stops_nothing(tmp_path: Path, era: str) -> None:
    code = """
for m in asks():
    if m.get("method") == "logging/setLevel": refuse(m, -32601, "no levels here")
    else: usual(m) or reply(m, DONE)
"""
    async with connect_to(tmp_path, code, era=era, log_level="error") as client:
        assert (await client.call_tool("x")).text == "done"
        assert client.problems == ["the level of its log could not be set: no levels here (-32601)"]


async def test_a_server_that_dies_of_a_level_is_not_there(tmp_path: Path) -> None:
    code = """
for m in asks():
    if m.get("method") == "logging/setLevel": complain("unheard of"); os._exit(3)
    else: usual(m) or reply(m, DONE)
"""
    with pytest.raises(ClientError, match="exit code 3"):
        await connect_to(tmp_path, code, era="legacy", log_level="error").open()


async def test_a_server_that_restarts_as_an_older_version_is_negotiated_again(tmp_path: Path) -> None:
    code = """
if not again:
    for m in modern_calls():
        if m["method"] == "tools/call": die()
        acknowledge(m)
for m in calls():
    reply(m, DONE); notify("notifications/tools/list_changed")
"""
    async with connect_to(tmp_path, code, era="auto") as client, client.watch(tools=True) as changes:
        await kill(client)
        assert await next_of(changes) == Change("tools"), "it may have changed meanwhile"
        assert client.server.revision < "2026"
        await client.call_tool("x")
        assert await next_of(changes) == Change("tools")


async def test_a_watch_ends_with_the_connection_without_reconnect(tmp_path: Path) -> None:
    async with connect_to(tmp_path, SILENT_AGAIN, reconnect=False) as client:
        watches = [client.watch(tools=True), client.watch(prompts=True)]
        for watch in watches:
            await watch.__aenter__()
        with pytest.raises(ConnectionLost):
            await client.call_tool("die")
        caught = []
        for watch in watches:
            with pytest.raises(ConnectionLost, match="exit code 1") as problem:
                await next_of(watch)
            assert "odd.py" in str(problem.value)
            caught.append(problem.value)
        assert caught[0] is not caught[1], "an exception that two await must not be one object"


# -- on the same connection

ENDING = """
listen = None
for m in asks():
    hear(m)
    name = m.get("params", {}).get("name")
    if m["method"] == "server/discover": meet(m)
    elif m["method"] == "subscriptions/listen":
        ends = listen is None
        listen = m
        ACKNOWLEDGE
    elif name == "end": END; reply(m, DONE)
    elif "id" in m: reply(m, DONE)
"""


def ending(end: str, acknowledge: str = "acknowledge(m)") -> str:
    return ENDING.replace("END", end).replace("ACKNOWLEDGE", acknowledge)


CANCEL = "notify('notifications/cancelled', requestId=listen['id'])"


@pytest.mark.parametrize("end", [CANCEL, f"reply(listen, {{}}); {CANCEL}", f"{CANCEL}; {CANCEL}"])
async def test_a_subscription_that_is_taken_back_is_begun_once_again(tmp_path: Path, end: str) -> None:
    """Our own server answers it and then takes it back, for clients that know but one of the two."""
    async with connect_to(tmp_path, ending(end)) as client, client.watch(tools=True) as changes:
        await client.call_tool("end")
        assert await next_of(changes) == Change("tools"), "nobody knows what happened in between"
        await client.call_tool("x")
        assert len(methods(tmp_path, "subscriptions/listen")) == 2
        assert not cancelled(tmp_path), "it knows that it has ended it"


async def test_a_subscription_that_is_taken_back_before_it_began(tmp_path: Path) -> None:
    async with connect_to(tmp_path, ending("pass", CANCEL)) as client:
        with pytest.raises(ConnectionLost, match="has ended the subscription"):
            await client.watch(tools=True).__aenter__()
        assert (await client.call_tool("x")).text == "done"


async def test_cancelling_an_unknown_subscription_is_ignored(tmp_path: Path) -> None:
    ids = "(m['id'], 999, 'x', str(listen['id']))"
    code = ending(f"[notify('notifications/cancelled', requestId=id) for id in {ids}]")
    async with connect_to(tmp_path, code) as client, client.watch(tools=True):
        assert (await client.call_tool("end")).text == "done"
        assert (await client.call_tool("x")).text == "done"
        assert len(methods(tmp_path, "subscriptions/listen")) == 1


async def test_a_watch_that_was_left_is_not_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.watches.RETRIES", (0.05, 0.05))
    async with connect_to(tmp_path, ending("reply(listen, {})")) as client:
        async with client.watch(tools=True) as watch:
            await client.call_tool("end")
            await until("it is interrupted", watch._interrupted.is_set)
        assert not client._connection.watches.tasks
        await client.call_tool("x")
        assert len(methods(tmp_path, "subscriptions/listen")) == 1


async def test_a_watch_that_is_left_while_it_begins_again(tmp_path: Path) -> None:
    async with connect_to(tmp_path, ending("reply(listen, {})", "ends and acknowledge(m)")) as client:
        async with client.watch(tools=True):
            await client.call_tool("end")
            await until("it is begun again", lambda: len(methods(tmp_path, "subscriptions/listen")) == 2)
        await client.call_tool("x")
        assert cancelled(tmp_path) == methods(tmp_path, "subscriptions/listen")[1:]
        assert not client._connection.watches.tasks


async def test_a_server_that_ends_every_subscription_is_asked_ever_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.client.watches.RETRIES", (0.0, 0.0, 600.0))
    monkeypatch.setattr("longshore.client.watches.STABLE_SECONDS", 600.0)
    async with connect_to(tmp_path, ending("reply(listen, {})")) as client:
        async with client.watch(tools=True) as changes:
            for times in (2, 3):
                await client.call_tool("end")
                assert await next_of(changes) == Change("tools")  # it was begun again
                assert len(methods(tmp_path, "subscriptions/listen")) == times
            await client.call_tool("end")
            for _ in range(10):
                await client.ping()
        assert len(methods(tmp_path, "subscriptions/listen")) == 3


async def test_a_renewed_subscription_that_is_refused_ends_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.client.watches.RETRIES", (0.0, 0.0))
    code = ending("reply(listen, {})", "acknowledge(m) if ends else acknowledge(m, other=True)")
    async with connect_to(tmp_path, code) as client, client.watch(tools=True) as changes:
        await client.call_tool("end")
        with pytest.raises(ConnectError, match="does not tell of changes to tools"):
            await next_of(changes)
        assert (await client.call_tool("x")).text == "done"
