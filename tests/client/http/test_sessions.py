"""Sessions of the handshake era where something is late, stuck, misleading or broken."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from client.http.scripted import SECONDS, Got, ScriptedServer, Wire, result, scripted
from client.http.speaking import MODERN, Key, attempt, call_ok, done, legacy
from longshore.backoff import Backoff
from longshore.client import Client, negotiate
from longshore.client import http as http_channel
from longshore.client.auth import AuthRequest
from longshore.client.http import _SESSION_CHARS
from longshore.errors import CallTimeout, ConnectError, ConnectionLost, HttpRefused, ServerError


def count(server: ScriptedServer, word: str) -> int:
    return sum(word.encode() in got.body for got in server.requests)


# -- what a refusal means


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_an_error_with_the_id_of_the_request_is_about_the_request(status: int) -> None:
    async def take(got: Got, wire: Wire) -> None:
        error = {"code": -32602, "message": "the argument session_name is missing"}
        await wire.answer(status, {"jsonrpc": "2.0", "id": got.message["id"], "error": error})

    async with attempt(legacy(take)) as (client, server):
        with pytest.raises(ServerError, match="session_name") as caught:
            await client.call_tool("x")
        assert caught.value.code == -32602
        assert client.connected
        assert (count(server, '"initialize"'), count(server, "tools/call")) == (1, 1)


@pytest.mark.parametrize(
    "body",
    [
        b"Invalid session ID",
        {"error": "Invalid session ID"},
        {"error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}, "id": None},
        {"jsonrpc": "2.0", "error": {"code": -32000, "message": "the browser session crashed"}, "id": None},
        {"jsonrpc": "2.0", "error": {"code": -32001, "message": "Request timed out"}, "id": None},
        {"jsonrpc": "2.0", "error": {"code": -32603, "message": "Invalid session ID"}, "id": None},
        {"jsonrpc": "2.0", "error": "Invalid session ID", "id": None},
    ],
)
async def test_a_refusal_that_only_mentions_a_session_is_not_sent_again(body: Any) -> None:
    """The call may have been run: the text may be of a tool, or of a gateway."""

    async def take(got: Got, wire: Wire) -> None:
        await wire.answer(400, body)

    async with attempt(legacy(take)) as (client, server):
        with pytest.raises(HttpRefused):
            await client.call_tool("x")
        assert client.connected
        assert (count(server, '"initialize"'), count(server, "tools/call")) == (1, 1)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32000, "Bad Request: No valid session ID provided"),
        (-32000, "Bad Request: Mcp-Session-Id header is required"),
        (-32001, "Session not found"),
        (-32600, "Invalid or missing session ID"),
    ],
)
@pytest.mark.parametrize("id", [None, "server-error"])
async def test_an_error_with_another_id_may_be_about_the_session(id: Any, code: int, message: str) -> None:
    async def take(got: Got, wire: Wire) -> None:
        if count(server, "tools/call") == 1:
            error = {"code": code, "message": message}
            await wire.answer(400, {"jsonrpc": "2.0", "id": id, "error": error})
        else:
            await call_ok(got, wire)

    async with scripted(legacy(take)) as server, Client(server.url, timeout=SECONDS) as client:
        assert (await client.call_tool("x")).text == "ok"
        assert count(server, '"initialize"') == 2


@pytest.mark.parametrize(("size", "fits"), [(_SESSION_CHARS - 1, True), (_SESSION_CHARS, True), (1025, False)])
async def test_the_length_of_a_session_id_is_bounded(size: int, fits: bool) -> None:
    async with scripted(legacy(call_ok, session="x" * size)) as server:
        client = Client(server.url, timeout=SECONDS)
        if fits:
            async with client:
                await client.call_tool("x")
            assert server.requests[-1].headers["mcp-session-id"] == "x" * size
        else:
            with pytest.raises(ConnectError, match="visible ASCII"):
                await client.open()


async def test_a_session_of_a_modern_server_is_ended_and_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server answers the handshake when it has turned out to be a modern one."""
    monkeypatch.setattr(negotiate, "PROBE_SECONDS", 0.05)
    offered, answered = asyncio.Event(), asyncio.Event()

    async def handler(got: Got, wire: Wire) -> None:
        method = got.message["method"] if got.body else got.method
        if method == "server/discover":
            await offered.wait()
            found = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "resultType": "complete"}
            await wire.answer(200, result(got.message, **found))
        elif method == "initialize":
            offered.set()
            await answered.wait()
            found = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            await wire.answer(200, result(got.message, **found), "application/json", ("Mcp-Session-Id", "late"))
        elif method == "DELETE":
            await wire.answer(200)
        else:
            await (call_ok(got, wire) if "id" in got.message else wire.answer(202))

    async with attempt(handler) as (client, server):
        assert client.server.revision == MODERN
        answered.set()
        channel: Any = client._connection.current.channel  # type: ignore[union-attr]
        async with asyncio.timeout(SECONDS):
            while channel._session is None:
                await asyncio.sleep(0.002)
        await client.call_tool("x")
        await client.notify("notifications/x")
        await client.close()
        *_, told, ended = server.requests
        assert "mcp-session-id" not in told.headers
        assert (ended.method, ended.headers["mcp-session-id"]) == ("DELETE", "late")
        assert all("mcp-session-id" not in got.headers for got in server.requests[:-1])


# -- what is told


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever waits for a body that never ends would wait for longer than a test may take."""
    monkeypatch.setattr("longshore.client.mcp_endpoint._REFUSAL_SECONDS", 10 * SECONDS)
    yield


@pytest.mark.usefixtures("patient")
async def test_a_stream_as_response_to_initialized_is_not_awaited() -> None:
    inner = legacy(call_ok)

    async def handler(got: Got, wire: Wire) -> None:
        if b"notifications/initialized" in got.body:
            await wire.stream()
            await asyncio.sleep(60)
        await inner(got, wire)

    async with attempt(handler) as (client, _):
        assert (await client.call_tool("x")).text == "ok"


async def test_a_cancellation_is_delivered_although_another_notification_hangs() -> None:
    async def take(got: Got, wire: Wire) -> None:
        if b"notifications/cancelled" in got.body:
            await wire.answer(202)
        else:
            await asyncio.sleep(60)

    async with attempt(legacy(take)) as (client, server):
        await client.notify("notifications/stuck")
        with pytest.raises(CallTimeout):
            await client.call_tool("x", timeout=0.1)
        await server.until(lambda server: count(server, "notifications/cancelled"))


# -- credentials


async def test_closing_starts_no_login() -> None:
    inner = legacy(call_ok)

    async def handler(got: Got, wire: Wire) -> None:
        await (wire.answer(401) if got.method == "DELETE" else inner(got, wire))

    key = Key()
    async with scripted(handler) as server:
        async with Client(server.url, auth=key, timeout=SECONDS) as client:
            await client.call_tool("x")
        assert server.requests[-1].method == "DELETE"
        assert key.challenges == []


class Buggy(Key):
    """An authorizer that fails as no authorizer should, on what a test names."""

    def __init__(self, *words: str) -> None:
        super().__init__()
        self.words = words

    def auth_flow(self, request: AuthRequest) -> Any:
        if any(word.encode() in request.body or word == request.method for word in self.words):
            raise KeyError("bug")
        return super().auth_flow(request)

    async def close(self) -> None:
        if "close" in self.words:
            raise KeyError("bug")


@pytest.mark.parametrize(
    ("word", "noted"),
    [
        ("notifications/initialized", "notifications/initialized could not be delivered: KeyError"),
        ("GET", "the stream of the session has ended (KeyError"),
        ("DELETE", ""),
        ("close", ""),
    ],
)
async def test_a_bug_in_an_authorizer_fails_only_its_own_request(word: str, noted: str) -> None:
    async with attempt(legacy(call_ok), auth=Buggy(word)) as (client, _):
        assert (await client.call_tool("x")).text == "ok"
        notes = client._connection.current.notes  # type: ignore[union-attr]
        assert any(noted in note for note in notes) or not noted
        await client.close()
        assert noted or any("bug" in note for note in notes)


# -- while all places are taken


QUESTIONS = {"elicitation/create": "result", "ping": "result", "sampling/createMessage": "error"}


@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_response_of_ours_is_sent_beyond_the_request_limit(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call whose place it would wait for waits for the answer."""
    monkeypatch.setattr(http_channel, "MOST_REQUESTS", 1)
    answers: list[Any] = []

    async def take(got: Got, wire: Wire) -> None:
        if "method" not in got.message:
            answers.append(got.message)
            await wire.answer(202)
            return
        await wire.stream()
        await wire.event({"jsonrpc": "2.0", "id": "q", "method": question, "params": {"message": "Who?"}})
        await server.until(lambda _: answers)
        await wire.event(done(got))
        wire.close()

    async with (
        scripted(legacy(take)) as server,
        Client(server.url, timeout=SECONDS, on_elicit=lambda _: {"name": "Ann"}) as client,
    ):
        assert (await client.call_tool("x")).text == "ok"
        assert [(each["id"], QUESTIONS[question] in each) for each in answers] == [("q", True)]


async def test_a_notification_of_ours_is_sent_beyond_the_request_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_channel, "MOST_REQUESTS", 1)

    async def take(got: Got, wire: Wire) -> None:
        if "id" not in got.message:
            await wire.answer(202)
            return
        await server.until(lambda _: count(server, "notifications/x"))
        await wire.answer(200, done(got))

    async with attempt(legacy(take)) as (client, server):
        call = asyncio.ensure_future(client.call_tool("x"))
        await server.until(lambda _: count(server, "tools/call"))
        with pytest.raises(CallTimeout, match=r"within 0\.1 s"):
            await client.call_tool("x", timeout=0.1)
        assert count(server, "tools/call") == 1
        await client.notify("notifications/x")
        assert (await call).text == "ok"


# -- the end


async def test_a_request_that_waits_to_be_sent_fails_when_the_session_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_channel, "MOST_REQUESTS", 2)
    monkeypatch.setattr("longshore.client.sse._BACKOFF", Backoff(first=0.001, most=30.0))

    async def get(_: Got, wire: Wire) -> None:
        await wire.stream()
        await full.wait()
        server._server.close()
        wire.close()

    async def take(_: Got, __: Wire) -> None:
        if count(server, "tools/call") == 2:
            full.set()
        await asyncio.sleep(60)

    full = asyncio.Event()
    handler = legacy(take, get=get)
    async with scripted(handler) as server, Client(server.url, timeout=None, reconnect=False) as client:
        calls = [asyncio.ensure_future(client.call_tool("x")) for _ in range(4)]
        async with asyncio.timeout(SECONDS):
            found = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(each, (ConnectionLost, ConnectError)) for each in found), found
