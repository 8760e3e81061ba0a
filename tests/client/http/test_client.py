"""The client over HTTP, against our own server, in both eras."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import uvloop

from client.http.fixture import ERAS, HOST, Counter, served
from client.http.relay import relay
from client.http.scripted import SECONDS, run
from longshore.client import Client
from longshore.client import http as http_channel
from longshore.errors import CallTimeout, ClientError, ConnectError, ConnectionLost, ServerError, ToolFailed
from serving import Served, eventually

pytestmark = pytest.mark.parametrize("era", ERAS)


@pytest.fixture
def place() -> Iterator[tuple[Served, Counter]]:
    with served(own=True) as found:
        yield found


ServedPair = tuple[Served, Counter]


async def test_everything_once(place: ServedPair, era: str) -> None:
    async with Client(place[0].url, era=era) as client:
        assert client.server.name == "fixture"
        assert client.server.instructions == "Try it."
        assert client.server.revision == ("2026-07-28" if era == "modern" else era)
        assert "add" in [tool.name for tool in await client.list_tools()]
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert await client.call_tool("add", {"a": 1, "b": 2}, returns=int) == 3
        assert (await client.read_resource("test://thing"))[0].text == "it"  # type: ignore[union-attr]
        assert (await client.get_prompt("poem", {"about": "é\n☃"})).messages[0].content.text == "write about é\n☃"  # type: ignore[union-attr]
        await client.ping()
        with pytest.raises(ToolFailed, match="int"):
            await client.call_tool("add", {"a": "x", "b": 2})
        with pytest.raises(ServerError, match="nothing"):
            await client.call_tool("nothing")
        with pytest.raises(ServerError):
            await client.read_resource("test://nothing")
        with pytest.raises(ServerError) as caught:
            await client.request("no/such")
        assert caught.value.code == -32601


async def test_auto_finds_the_newest(place: ServedPair, era: str) -> None:
    async with Client(place[0].url) as client:
        assert client.server.revision == "2026-07-28"


async def test_progress(place: ServedPair, era: str) -> None:
    async with Client(place[0].url, era=era) as client:
        seen: list[Any] = []
        result = await client.call_tool("steps", {"n": 3}, on_progress=lambda *step: seen.append(step))
        assert result.text == "done"
        messages = [f"step {at}" for at in range(3)]
        assert [step[:2] for step in seen] == [(at, 3.0) for at in range(3)]
        assert [step[2] for step in seen] == messages


async def test_questions(place: ServedPair, era: str) -> None:
    asked: list[Any] = []

    def elicit(question: Any) -> Any:
        asked.append(question.message)
        return dict.fromkeys(question.schema["properties"], "Ann")

    async def sample(params: dict[str, Any]) -> str:
        return "roses are red"

    async with Client(place[0].url, era=era, on_elicit=elicit, on_sample=sample) as client:
        assert (await client.call_tool("rhyme")).text == "roses are red"
        if era != "2025-03-26":  # which has no elicitation
            assert (await client.call_tool("greet")).text == "hello Ann"
            assert asked == ["What is your name?"]


@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_cancelling_a_call_stops_the_handler(place: ServedPair, era: str, how: str) -> None:
    server, seen = place
    async with Client(server.url, era=era) as client:
        begun = asyncio.Event()
        call = asyncio.ensure_future(
            client.call_tool("wait", on_progress=lambda *_: begun.set(), timeout=0.5 if how == "timeout" else None)
        )
        async with asyncio.timeout(SECONDS):
            await begun.wait()
            if how == "cancel":
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            else:
                with pytest.raises(CallTimeout):
                    await call
        await asyncio.to_thread(eventually, lambda: seen.cancelled == 1)
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"


async def test_changes_are_watched(place: ServedPair, era: str) -> None:
    async with (
        Client(place[0].url, era=era) as client,
        client.watch(tools=True, uris=["test://thing"]) as changes,
    ):
        if era != "modern":
            await listening(place[0])
        await client.call_tool("change")
        async with asyncio.timeout(SECONDS):
            found = {(change.kind, change.uri) for change in [await anext(changes), await anext(changes)]}
        assert found == {("tools", None), ("resource", "test://thing")}


async def listening(server: Served) -> None:
    """The client opens its stream by itself; wait until the server has it."""
    state = server._server.server_state if server._listener is None else server._listener
    await asyncio.to_thread(server.until, lambda: len(state.connections) >= 2, "the stream of the session")
    await asyncio.to_thread(server.settle)


async def test_large_messages_arrive(place: ServedPair, era: str) -> None:
    async with Client(place[0].url, era=era) as client:
        for size in (0, 1, 100_000, 5_000_000):
            text = ("é☃x" * (size // 3 + 1))[:size]
            assert (await client.call_tool("echo", {"text": text})).text == text


async def test_concurrent_calls_are_answered(place: ServedPair, era: str) -> None:
    async with Client(place[0].url, era=era) as client:
        results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}, returns=int) for n in range(50)))
        assert results == [n + 1 for n in range(50)]
        seen: list[Any] = []
        await asyncio.gather(*(client.call_tool("steps", on_progress=lambda *at: seen.append(at)) for _ in range(20)))
        assert len(seen) == 100


async def test_requests_beyond_the_limit_wait(place: ServedPair, era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_channel, "MOST_REQUESTS", 4)
    async with relay(place[0].port) as wire, Client(wire.url, headers={"Host": HOST}, era=era) as client:
        results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}, returns=int) for n in range(40)))
        assert results == [n + 1 for n in range(40)]
        assert wire.connections <= 4 + 1  # and the stream of the session


async def test_one_connection_serves_call_after_call(place: ServedPair, era: str) -> None:
    async with relay(place[0].port) as wire, Client(wire.url, headers={"Host": HOST}, era=era) as client:
        for n in range(10):
            assert await client.call_tool("add", {"a": n, "b": 1}, returns=int) == n + 1
        assert wire.connections <= 2


# -- when the other side goes


async def test_a_restarted_server_is_reconnected_to(era: str) -> None:
    """Its sessions are lost, and concurrent calls succeed nevertheless."""
    seen = Counter()
    with served(seen=seen) as (first, _), served(seen=seen) as (second, _):
        async with relay(first.port) as wire, Client(wire.url, headers={"Host": HOST}, era=era) as client:
            assert await client.call_tool("count", returns=int) == 1
            await wire.stop()
            wire.upstream = second.port
            await wire.start()
            results = await asyncio.gather(*(client.call_tool("count", returns=int) for _ in range(10)))
            assert sorted(results) == list(range(2, 12))  # each was done once
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"


async def test_a_server_that_comes_back_in_time_is_reconnected_to(era: str) -> None:
    with served() as (server, seen):
        async with relay(server.port) as wire, Client(wire.url, headers={"Host": HOST}, era=era) as client:
            await client.call_tool("count")
            await wire.stop()
            call = asyncio.ensure_future(client.call_tool("count", returns=int))
            await asyncio.sleep(0)
            await wire.start()
            assert await call == 2
            assert seen.calls == 2


async def test_a_server_that_does_not_come_back_is_an_error(era: str) -> None:
    with served() as (server, _):
        async with relay(server.port) as wire:
            async with Client(wire.url, headers={"Host": HOST}, era=era) as client:
                await wire.stop()
                with pytest.raises(ClientError, match="nothing listens") as caught:
                    await client.call_tool("count")
                assert wire.url in str(caught.value)
            with pytest.raises(ConnectError, match="nothing listens"):
                await Client(wire.url, headers={"Host": HOST}, era=era).open()


async def test_a_connection_that_breaks_during_a_call_fails_it(era: str) -> None:
    """A call that may not be repeated fails; the next one works."""
    with served() as (server, seen):
        async with (
            relay(server.port) as wire,
            Client(wire.url, headers={"Host": HOST}, era=era, reconnect=True) as client,
        ):
            begun = asyncio.Event()
            call = asyncio.ensure_future(client.call_tool("wait", on_progress=lambda *_: begun.set(), timeout=2.0))
            async with asyncio.timeout(SECONDS):
                await begun.wait()
                await wire.cut()
                # A stream of the newest handshake era can be taken up again; then it is as if nothing had been.
                with pytest.raises((ConnectionLost, CallTimeout)) as caught:
                    await call
            assert seen.started == 1
            assert era != "modern" or isinstance(caught.value, ConnectionLost)
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
            if era == "modern":
                await asyncio.to_thread(eventually, lambda: seen.cancelled == 1)


async def test_a_stream_that_the_server_closes_is_resumed(place: ServedPair, era: str) -> None:
    server, seen = place
    async with Client(server.url, era=era) as client:
        steps: list[float] = []
        result = await client.call_tool("broken_off", on_progress=lambda done, *_: steps.append(done))
        assert result.text == "taken up again"
        assert steps == [1.0, 2.0]
        assert seen.calls == 1


async def test_a_watch_outlives_a_connection(era: str) -> None:
    with served() as (server, _):
        async with (
            relay(server.port) as wire,
            Client(wire.url, headers={"Host": HOST}, era=era) as client,
            client.watch(uris=["test://thing"]) as changes,
        ):
            async with asyncio.timeout(SECONDS):
                if era != "modern":
                    await listening(server)
                await wire.cut()
                if era != "modern":
                    await asyncio.to_thread(eventually, lambda: wire.open >= 1)
                    await asyncio.to_thread(server.settle)
                else:
                    assert (await anext(changes)).uri == "test://thing"  # something may have been missed
                await client.call_tool("change")
                assert (await anext(changes)).uri == "test://thing"


# -- the end


def test_nothing_is_left(place: ServedPair, era: str) -> None:
    def files() -> int:
        return len(os.listdir("/proc/self/fd"))

    async def test() -> None:
        async with Client(place[0].url, era=era) as client:
            await client.call_tool("add", {"a": 1, "b": 2})
        before = files()
        for _ in range(5):
            async with Client(place[0].url, era=era) as client:
                await asyncio.gather(*(client.call_tool("add", {"a": 1, "b": 2}) for _ in range(5)))
                client_call = asyncio.ensure_future(client.call_tool("wait"))
                await asyncio.sleep(0.01)
            with contextlib.suppress(ConnectionLost):
                await client_call
            assert len(asyncio.all_tasks()) == 1
        await asyncio.to_thread(eventually, lambda: not place[0].look(lambda: place[0].busy))
        assert files() <= before

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(test)
        gc.collect()


def test_a_client_can_be_used_on_another_loop(place: ServedPair, era: str) -> None:
    async def test() -> None:
        async with Client(place[0].url, era=era) as client:
            results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}, returns=int) for n in range(20)))
            assert results == [n + 1 for n in range(20)]
            text = "x" * 3_000_000
            assert (await client.call_tool("echo", {"text": text})).text == text
            with pytest.raises(CallTimeout):
                await client.call_tool("wait", timeout=0.1)
        assert len(asyncio.all_tasks()) == 1

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(test())


async def test_the_session_is_ended(place: ServedPair, era: str) -> None:
    client = Client(place[0].url, era=era)
    await client.open()
    channel: Any = client._connection.current.channel  # type: ignore[union-attr]
    session = channel._session
    assert (session is None) == (era == "modern")
    await asyncio.gather(client.close(), client.close())
    await client.close()
    if session is not None:
        gone = place[0].send("GET", "/mcp", [("Mcp-Session-Id", session), ("Accept", "text/event-stream")])
        assert gone.finish().status == 404
    with pytest.raises(ClientError):
        await client.call_tool("add", {"a": 1, "b": 2})
