"""HTTP+SSE of 2024-11-05: against our own server, and against servers that do as a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from client.http.fixture import served
from client.http.scripted import SECONDS, Got, ScriptedServer, Wire, result, scripted
from client.http.speaking import Key
from longshore.client import Client
from longshore.client.auth import AuthRequest
from longshore.client.sse import _MOST_URL
from longshore.errors import CallTimeout, ConnectError, ConnectionLost, HttpRefused
from serving import eventually


def entry(url: str) -> dict[str, str]:
    return {"type": "sse", "url": url.replace("/mcp", "/sse")}


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("named", [False, True])
async def test_everything_once(own: bool, named: bool) -> None:
    """Named as such in a configuration, or found out."""
    with served(own=own) as (server, seen):
        target: Any = entry(server.url) if named else server.url.replace("/mcp", "/sse")
        async with Client(target, on_sample=lambda _: "roses") as client:
            assert client.server.revision in ("2024-11-05", "2025-11-25")
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
            steps: list[Any] = []
            await client.call_tool("steps", {"n": 3}, on_progress=lambda done, *_: steps.append(done))
            assert steps == [0, 1, 2]
            assert (await client.call_tool("rhyme")).text == "roses"
            text = "é" * 500_000
            assert (await client.call_tool("echo", {"text": text})).text == text
            results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}, returns=int) for n in range(50)))
            assert results == [n + 1 for n in range(50)]
            with pytest.raises(CallTimeout):
                await client.call_tool("wait", timeout=0.3)
            await asyncio.to_thread(eventually, lambda: seen.cancelled == 1)
            async with client.watch(uris=["test://thing"]) as changes, asyncio.timeout(SECONDS):
                await client.call_tool("change")
                assert (await anext(changes)).uri == "test://thing"


Take = Callable[[Got, Wire], Awaitable[None]]


class Old:
    """A server whose stream the test holds."""

    def __init__(self, endpoint: str = "/post?session=1") -> None:
        self.endpoint = endpoint
        self.stream: Wire | None = None
        self.status = 202
        self.answering = True

    async def __call__(self, got: Got, wire: Wire) -> None:
        if got.method == "GET":
            self.stream = wire
            await wire.stream()
            await wire.event(self.endpoint, event="endpoint")
            await asyncio.sleep(60)
            return
        await wire.answer(self.status)
        if self.answering and "id" in got.message:
            assert self.stream is not None
            found = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}
            await self.stream.event(result(got.message, **found, content=[]), event="message")


@asynccontextmanager
async def attempt(old: Old) -> AsyncIterator[tuple[Client, ScriptedServer]]:
    async with scripted(old) as server, Client(entry(server.url), timeout=SECONDS) as client:
        yield client, server


async def test_messages_go_to_the_named_url() -> None:
    async with attempt(Old()) as (client, server):
        await client.call_tool("x")
        assert [(got.method, got.path) for got in server.requests] == [("GET", "/sse")] + [
            ("POST", "/post?session=1")
        ] * 3
        methods = [got.message["method"] for got in server.requests[1:]]
        assert methods == ["initialize", "notifications/initialized", "tools/call"]


@pytest.mark.parametrize(
    ("endpoint", "what"),
    [
        ("http://elsewhere.test/post", "another origin"),
        ("//elsewhere.test/post", "another origin"),
        ("https://127.0.0.1/post", "another origin"),
        ("http://127.0.0.1:1/post", "another origin"),
        ("http://127.0.0.1@elsewhere.test/", "name or a password"),
        ("file:///etc/passwd", "no URL"),
        ("http://[", "no URL|Invalid"),
        ("x" * 5000, "too long"),
    ],
)
async def test_a_post_url_of_another_origin_is_refused(endpoint: str, what: str) -> None:
    async with scripted(Old(endpoint)) as server:
        with pytest.raises(ConnectError, match=what):
            await Client(entry(server.url)).open()
        assert len(server.requests) == 1


async def test_a_stream_without_a_post_url_is_an_error() -> None:
    async def handler(_: Got, wire: Wire) -> None:
        await wire.stream()
        await wire.event({"jsonrpc": "2.0", "method": "x"})
        wire.close()

    async with scripted(handler) as server:
        with pytest.raises(ConnectError, match="before it said where"):
            await Client(entry(server.url)).open()


async def test_waiting_for_the_post_url_has_a_deadline() -> None:
    async def handler(_: Got, wire: Wire) -> None:
        await wire.stream()
        await asyncio.sleep(60)

    async with scripted(handler) as server:
        with pytest.raises(ConnectError, match=r"within 0\.3 s"):
            await Client(entry(server.url), timeout=0.3).open()


async def test_a_refused_message_fails_its_request() -> None:
    old = Old()
    async with attempt(old) as (client, _):
        old.status, old.answering = 500, False
        with pytest.raises(HttpRefused, match="500"):
            await client.call_tool("x")


@pytest.mark.parametrize(("size", "fits"), [(_MOST_URL - 1, True), (_MOST_URL, True), (_MOST_URL + 1, False)])
async def test_the_length_of_the_post_url_is_bounded(size: int, fits: bool) -> None:
    async with scripted(Old("/" + "x" * (size - 1))) as server:
        if fits:
            async with Client(entry(server.url), timeout=SECONDS) as client:
                await client.call_tool("x")
            assert len(server.requests[-1].path) == size
        else:
            with pytest.raises(ConnectError, match="too long"):
                await Client(entry(server.url)).open()


async def test_a_stream_that_breaks_before_the_post_url_is_an_error() -> None:
    async def handler(_: Got, wire: Wire) -> None:
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99\r\n\r\n: x\n\n")
        wire.close()

    async with scripted(handler) as server:
        with pytest.raises(ConnectError, match="middle of its answer") as caught:
            await Client(entry(server.url)).open()
        assert caught.value.server == server.url.replace("/mcp", "/sse")


async def test_credentials_are_for_the_server_and_proofs_for_the_post_url() -> None:
    asked: list[tuple[str, str, str]] = []

    class Noting(Key):
        def auth_flow(self, request: AuthRequest) -> Any:
            asked.append((request.method, urlsplit(request.url).path, urlsplit(request.server).path))
            return super().auth_flow(request)

    async with scripted(Old()) as server, Client(entry(server.url), auth=Noting(), timeout=SECONDS) as client:
        await client.call_tool("x")
    assert asked == [("GET", "/sse", "/sse")] + [("POST", "/post", "/sse")] * 3


async def test_a_stream_as_response_to_a_message_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer comes on the other stream, so the end of these is not awaited."""
    monkeypatch.setattr("longshore.client.mcp_endpoint._REFUSAL_SECONDS", 10 * SECONDS)
    old = Old()

    async def handler(got: Got, wire: Wire) -> None:
        if got.method == "POST" and "id" not in got.message:
            await wire.stream()
            await asyncio.sleep(60)
        await old(got, wire)

    async with scripted(handler) as server, Client(entry(server.url), timeout=SECONDS) as client:
        await client.call_tool("x")


@pytest.mark.parametrize("told", ["answer", "cancelled"])
async def test_the_number_of_messages_in_flight_is_bounded(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More wait. Responses and cancellations don't wait, and a cancelled message is not sent."""
    monkeypatch.setattr("longshore.client.sse.MOST_REQUESTS", 3)
    old = Old()

    async def handler(got: Got, wire: Wire) -> None:
        if got.method == "POST" and b"tools/call" in got.body:
            await hold.wait()
        await old(got, wire)

    def calls(server: ScriptedServer) -> int:
        return sum(b"tools/call" in got.body for got in server.requests)

    hold: Any = None
    hold = asyncio.Event()
    async with (
        scripted(handler) as server,
        Client(entry(server.url), timeout=SECONDS, roots=["file:///x"]) as client,
    ):
        waiting = [asyncio.ensure_future(client.call_tool("x")) for _ in range(10)]
        await server.until(lambda server: calls(server) == 3)
        assert old.stream is not None
        if told == "answer":
            await old.stream.event({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
            await server.until(lambda server: any(b'"roots"' in got.body for got in server.requests[3:]))
        else:
            waiting.pop(0).cancel()
            await server.until(lambda server: any(b"notifications/cancelled" in got.body for got in server.requests))
            waiting.pop().cancel()
        assert calls(server) == 3
        hold.set()
        await asyncio.gather(*waiting)
        assert calls(server) == (10 if told == "answer" else 9)
        assert sum(b"notifications/cancelled" in got.body for got in server.requests) == (told == "cancelled")


async def test_a_stream_that_ends_during_a_call_fails_it() -> None:
    old = Old()
    async with attempt(old) as (client, server):
        old.answering = False
        call = asyncio.ensure_future(client.call_tool("x"))
        await server.until(lambda server: any(b"tools/call" in got.body for got in server.requests))
        assert old.stream is not None
        old.stream.close()
        with pytest.raises(ConnectionLost, match=r"ended the stream|closed the connection"):
            await call
        old.answering = True
        await client.call_tool("x")  # over another one


async def test_the_error_without_any_server_says_so() -> None:
    async def handler(_: Got, wire: Wire) -> None:
        await wire.answer(404)

    async with scripted(handler) as server:
        for target in (server.url, entry(server.url)):
            with pytest.raises(ConnectError, match="no MCP server of any revision at this URL; is its path right"):
                await Client(target).open()


async def test_a_message_goes_to_the_url_of_its_own_connection() -> None:
    """Also if the stream ends in the very turn in which it was handed over."""
    async with attempt(Old()) as (client, server):
        await client.call_tool("x")
        channel: Any = client._connection.current.channel  # type: ignore[union-attr]
        call = asyncio.ensure_future(client.call_tool("x"))
        while not channel._sending:
            await asyncio.sleep(0)
        channel._post_url = ""
        await call
        assert server.requests[-1].path == "/post?session=1"
