"""Watching for changes, in both eras, at our own server and scripted ones, across lost connections."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from client.scripted import run, script, until
from longshore import Server
from longshore.client import Change, Client
from longshore.errors import ClientError, ConnectError, ConnectionLost, ServerError


def connect_to(folder: Path, code: str, **options: Any) -> Client:
    return Client(script(folder, code), **{"era": "modern", "timeout": 10.0, **options})


async def next_of(changes: Any) -> Change:
    async with asyncio.timeout(10):
        return await anext(changes)


def make_server() -> Server:
    app = Server("watched")

    @app.tool
    async def touch(uri: str) -> str:
        """Say that a resource has changed."""
        app.resource_changed(uri)
        return "touched"

    @app.tool
    async def grow() -> str:
        """Add a tool."""

        async def added() -> str:
            """Another tool."""
            return "x"

        app.tool(added, replace=True)
        return "grown"

    @app.resource("test://a")
    async def a() -> str:
        """A."""
        return "a"

    @app.resource("test://b")
    async def b() -> str:
        """B."""
        return "b"

    return app


@pytest.mark.parametrize("era", ["modern", "legacy", "2024-11-05"])
async def test_our_own_server_reports_changes(era: str) -> None:
    async with Client(make_server(), era=era) as client:
        async with client.watch(tools=True, uris=["test://a"]) as changes:
            await client.call_tool("touch", {"uri": "test://b"})
            await client.call_tool("touch", {"uri": "test://a"})
            assert await next_of(changes) == Change("resource", "test://a")
            await client.call_tool("grow")
            assert await next_of(changes) == Change("tools")
        async with client.watch(uris=["test://b"]) as changes:
            for _ in range(5):
                await client.call_tool("touch", {"uri": "test://b"})
            await client.call_tool("touch", {"uri": "test://a"})
            assert await next_of(changes) == Change("resource", "test://b")
            await client.ping()
            with pytest.raises(TimeoutError):  # five times before somebody looked is once
                async with asyncio.timeout(0.1):
                    await anext(changes)


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_on_change_works_without_a_watch(era: str) -> None:
    told: list[Change] = []
    app = make_server()
    async with Client(app, era=era, on_change=told.append) as client:
        await until("it listens", lambda: era == "legacy" or app.engine.subscriptions.listens)
        await client.call_tool("grow")
        await until("the change", lambda: told == [Change("tools")])


LISTENED = """
CAPABILITIES.update(tools=dict(listChanged=True))
SUB = "io.modelcontextprotocol/subscriptionId"
def acknowledge(m, **honoured):
    honoured = honoured or m["params"]["notifications"]
    notify("notifications/subscriptions/acknowledged", _meta={SUB: m["id"]}, notifications=honoured)
def changed(m): notify("notifications/tools/list_changed", _meta={SUB: m["id"]})
"""


async def test_a_refused_subscription_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.watches.RETRIES", (0.0, 0.0))  # so that pings don't overtake another try
    code = LISTENED + "for m in modern_calls():\n    mark('asked', m['method'])\n    refuse(m, -32603, 'not now')"
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ServerError, match="not now"):
            async with client.watch(tools=True):
                raise AssertionError("it must not begin")
        for _ in range(5):
            await client.ping()
        assert (tmp_path / "asked").read_text().split().count("subscriptions/listen") == 1


async def test_a_subscription_that_ends_at_once_fails_the_watch(tmp_path: Path) -> None:
    code = LISTENED + "for m in modern_calls(): reply(m, {})"
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ConnectError, match="at once"):
            async with client.watch(tools=True):
                raise AssertionError("it must not begin")


async def test_a_subscription_without_acknowledgement_fails_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.client.watches.ACKNOWLEDGE_SECONDS", 0.2)
    code = (
        LISTENED + "for m in asks():\n    mark('heard', m['method'])\n    if m['method'] == 'server/discover': meet(m)"
    )
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ConnectError, match="does not acknowledge"):
            async with client.watch(tools=True):
                raise AssertionError("it must not begin")
        await until("a word", lambda: "notifications/cancelled" in (tmp_path / "heard").read_text())


async def test_a_subscription_that_ends_later_is_renewed(tmp_path: Path) -> None:
    code = (
        LISTENED
        + """
for m in modern_calls():
    mark("asked", m["method"])
    if m["method"] == "tools/call":
        reply(listen, {})
        reply(m, DONE)
    else:
        listen = m
        acknowledge(m)
"""
    )
    async with connect_to(tmp_path, code) as client, client.watch(tools=True) as changes:
        await client.call_tool("x")
        assert await next_of(changes) == Change("tools"), "nobody knows what happened in between"
        assert (tmp_path / "asked").read_text().split().count("subscriptions/listen") == 2


async def test_changes_under_another_id_are_not_ours(tmp_path: Path) -> None:
    code = (
        LISTENED
        + """
for m in modern_calls():
    acknowledge(m)
    for id in (999, "x", str(m["id"])): notify("notifications/tools/list_changed", _meta={SUB: id})
    notify("notifications/prompts/list_changed", _meta={SUB: m["id"]})
    changed(m)
"""
    )
    async with connect_to(tmp_path, code) as client, client.watch(tools=True, prompts=True) as changes:
        assert await next_of(changes) == Change("prompts")
        assert await next_of(changes) == Change("tools")


async def test_a_watched_uri_covers_its_children_and_no_siblings(tmp_path: Path) -> None:
    code = """
            for m in calls():
                reply(m, {})
                for uri in ("x://a2", "x://b", "x://a/b", "x://a"):
                    notify("notifications/resources/updated", uri=uri)
        """
    async with connect_to(tmp_path, code, era="legacy") as client, client.watch(uris=["x://a"]) as changes:
        assert [(await next_of(changes)).uri for _ in range(2)] == ["x://a/b", "x://a"]


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_lost_connection_is_made_anew_for_a_watch(tmp_path: Path, era: str) -> None:
    code = (
        LISTENED
        + f"""
mark("starts")
for m in {"modern_calls" if era == "modern" else "calls"}():
    mark("asked", m["method"])
    if m["method"] == "tools/call": os._exit(1)
    acknowledge(m) if m["method"] == "subscriptions/listen" else reply(m, {{}})
"""
    )
    async with connect_to(tmp_path, code, era=era) as client:
        async with client.watch(tools=True, uris=["x://a"]) as changes:
            with pytest.raises(ConnectionLost):
                await client.call_tool("x")
            found = {await next_of(changes), await next_of(changes)}
            assert found == {Change("tools"), Change("resource", "x://a")}, "all that is watched may have changed"
            assert client.connected
        method = "subscriptions/listen" if era == "modern" else "resources/subscribe"
        assert (tmp_path / "asked").read_text().split().count(method) == 2


async def test_a_watch_ends_with_the_reason_if_the_server_stays_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.client.watches.RETRIES", (0.05, 0.05))
    code = (
        LISTENED
        + """
mark("starts")
if os.path.exists(os.path.join(os.path.dirname(__file__), "died")): complain("no licence"); sys.exit(5)
for m in modern_calls():
    if m["method"] == "tools/call": mark("died"); os._exit(1)
    acknowledge(m)
"""
    )
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ClientError, match="exit code 5") as caught:
            async with client.watch(tools=True) as changes:
                with pytest.raises(ConnectionLost):
                    await client.call_tool("x")
                await next_of(changes)
        assert "no licence" in str(caught.value)
        assert len((tmp_path / "starts").read_text()) == 4, "the first, and three that failed"


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_closing_ends_a_watch(era: str) -> None:
    client = Client(make_server(), era=era)
    await client.open()

    async def watch() -> None:
        async with client.watch(tools=True, uris=["test://a"]) as changes:
            ready.set()
            await anext(changes)

    ready = asyncio.Event()
    watching = asyncio.ensure_future(watch())
    await asyncio.wait_for(ready.wait(), 10)
    await client.close()
    with pytest.raises(ConnectionLost, match="closed"):
        await asyncio.wait_for(watching, 10)


def test_a_slow_watcher_costs_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        code = (
            LISTENED
            + """
for m in modern_calls():
    if m["method"] == "tools/call":
        for n in range(20000): changed(listen)
        reply(m, DONE)
    else:
        listen = m
        acknowledge(m)
"""
        )
        async with connect_to(tmp_path, code, timeout=30) as client, client.watch(tools=True) as changes:
            await client.call_tool("x")
            assert await next_of(changes) == Change("tools")
            assert len(changes._changes) == 0

    run(test, 40)


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_leaving_a_watch_unsubscribes_at_the_server(tmp_path: Path, era: str) -> None:
    code = (
        LISTENED
        + f"""
for m in asks():
    mark("heard", m.get("method"))
    match m.get("method"):
        case "server/discover" if {era == "modern"}: meet(m)
        case "subscriptions/listen": acknowledge(m)
        case "resources/subscribe" | "resources/unsubscribe": reply(m, {{}})
        case _: usual(m)
"""
    )
    async with connect_to(tmp_path, code, era=era) as client:
        async with client.watch(uris=["x://a"]):
            pass
        word = "notifications/cancelled" if era == "modern" else "resources/unsubscribe"
        await until("the word", lambda: word in (tmp_path / "heard").read_text())


async def test_on_change_without_a_subscription_is_noted(tmp_path: Path) -> None:
    code = LISTENED + "for m in modern_calls(): refuse(m, -32603, 'no listening today')"
    async with connect_to(tmp_path, code, on_change=print) as client:
        await until("a word", lambda: client.problems)
        assert client.problems == ["on_change hears of nothing any more: no listening today (-32603)"]


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_on_change_gets_unsubscribed_changes_too(tmp_path: Path, era: str) -> None:
    """Servers report changes without declaring that, and to every connection."""
    told: list[Change] = []
    code = f"""
for m in {"modern_calls" if era == "modern" else "calls"}():
    for kind in ("tools", "prompts"): notify(f"notifications/{{kind}}/list_changed")
    notify("notifications/resources/updated", uri="x://a")
    reply(m, DONE)
"""
    async with connect_to(tmp_path, code, era=era, on_change=told.append) as client:
        await client.call_tool("x")
        await until("all", lambda: len(told) == 3)
        assert set(told) == {Change("tools"), Change("prompts"), Change("resource", "x://a")}


async def test_on_change_gets_a_watched_change_once() -> None:
    told: list[Change] = []
    app = make_server()
    async with Client(app, era="modern", on_change=told.append) as client:
        await until("it listens", lambda: app.engine.subscriptions.listens)
        async with client.watch(tools=True, uris=["test://a"]) as changes:
            await client.call_tool("grow")
            await until("the change", lambda: told == [Change("tools")])
            assert await next_of(changes) == Change("tools")
            await client.call_tool("touch", {"uri": "test://a"})
            await until("the other", lambda: told == [Change("tools"), Change("resource", "test://a")])


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_on_change_is_called_once_while_others_watch(era: str) -> None:
    app = Server("demo")

    @app.resource("test://a")
    async def a() -> str:
        """A."""
        return "a"

    async def grown() -> str:
        """Another."""
        return "x"

    told: list[Any] = []
    async with (
        Client(app, era=era, on_change=told.append) as client,
        client.watch(tools=True, uris=["test://a"]) as one,
        client.watch(tools=True, uris=["test://a"]) as two,
    ):
        app.tool(grown)
        assert await anext(one) == await anext(two) == Change("tools")
        app.resource_changed("test://a")
        assert await anext(one) == await anext(two) == Change("resource", "test://a")
        await until("both are told", lambda: len(told) >= 2)
        await client.ping()
        assert told == [Change("tools"), Change("resource", "test://a")]


async def test_leaving_a_watched_uri_keeps_other_watches() -> None:
    app = Server("demo")

    @app.resource("test://a")
    async def a() -> str:
        """A."""
        return "a"

    async with Client(app, era="legacy") as client, client.watch(uris=["test://a"]) as stays:
        async with client.watch(uris=["test://a"]):
            pass
        app.resource_changed("test://a")
        assert await anext(stays) == Change("resource", "test://a")


async def test_after_a_reconnection_everything_counts_as_changed(tmp_path: Path) -> None:
    code = """
        CAPABILITIES["tools"] = {"listChanged": True}
        for m in calls():
            os._exit(3)
    """
    told: list[Any] = []
    async with Client(script(tmp_path, code), on_change=told.append) as client:
        with pytest.raises(ConnectionLost):
            await client.call_tool("x")
        await until("it is told", lambda: told)
        assert told == [Change("tools")]
