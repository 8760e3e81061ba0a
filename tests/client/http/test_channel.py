"""The requests of an HTTP channel and its reaction to responses, with scripted servers."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest

from client.http.scripted import SECONDS, Got, Wire, result, scripted
from client.http.speaking import MODERN, Key, Take, attempt, call_ok, done, legacy, modern
from longshore.backoff import Backoff
from longshore.client import Client
from longshore.client.auth import AuthRequest
from longshore.client.channel import CLIENT_LIMITS, TransportOptions
from longshore.client.mcp_endpoint import CHALLENGES, REFUSAL_BYTES, answered_ids, error_for
from longshore.client.sse import SseParser
from longshore.errors import (
    AuthorizationError,
    BadAnswer,
    CallTimeout,
    ClientError,
    ConnectError,
    ConnectionLost,
    HttpRefused,
    ServerError,
)
from longshore.limits import Limits


async def listed(got: Got, wire: Wire) -> bool:
    """Answer a list, with one tool that may be repeated."""
    if got.message["method"] != "tools/list":
        return False
    tool = {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    await wire.answer(200, result(got.message, tools=[tool], ttlMs=0, cacheScope="private", resultType="complete"))
    return True


# -- what is said


async def test_a_modern_request_has_its_headers() -> None:
    async with attempt(modern(call_ok), headers={"X-Own": "yes"}) as (client, server):
        await client.call_tool("straße")
        probe, call = server.requests
        for got, method in ((probe, "server/discover"), (call, "tools/call")):
            assert got.method == "POST"
            assert got.headers["mcp-protocol-version"] == MODERN
            assert got.headers["mcp-method"] == method
            assert got.headers["accept"] == "application/json, text/event-stream"
            assert got.headers["content-type"] == "application/json"
            assert got.headers["x-own"] == "yes"
            assert "mcp-session-id" not in got.headers
        assert "mcp-name" not in probe.headers
        assert call.headers["mcp-name"] == "=?base64?c3RyYcOfZQ==?="


async def test_a_request_without_a_name_names_none() -> None:
    async with attempt(modern(call_ok)) as (client, server):
        await client.request("tools/call", {})
        await client.request("tools/call", {"name": None})
        assert all("mcp-name" not in got.headers for got in server.requests)


async def test_a_modern_server_that_hands_out_a_session_gets_none_back() -> None:
    async def handler(got: Got, wire: Wire) -> None:
        message = result(got.message, supportedVersions=[MODERN], capabilities={}, content=[], resultType="complete")
        await wire.answer(200, message, "application/json", ("Mcp-Session-Id", "abc"))

    async with attempt(handler) as (client, server):
        await client.call_tool("x")
        assert "mcp-session-id" not in server.requests[-1].headers


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_requests_of_a_session_carry_its_id(version: str) -> None:
    async with attempt(legacy(call_ok, version)) as (client, server):
        await client.call_tool("x")
        await client.close()
        assert [got.headers.get("mcp-session-id") for got in server.requests[:2]] == [None, None]
        rest = server.requests[2:]
        assert {"POST", "GET", "DELETE"} == {got.method for got in rest}
        for got in rest:
            assert got.headers["mcp-session-id"] == "abc"
            assert got.headers.get("mcp-protocol-version") == (version if version >= "2025-06-18" else None)
            assert "mcp-method" not in got.headers
        assert server.requests[1].message["method"] == "initialize"
        assert "mcp-protocol-version" not in server.requests[1].headers


async def test_a_server_without_sessions_gets_no_session_header() -> None:
    async with attempt(legacy(call_ok, session=None)) as (client, server):
        await client.call_tool("x")
        await client.close()
        assert all("mcp-session-id" not in got.headers for got in server.requests)
        assert "DELETE" not in [got.method for got in server.requests]


async def test_no_request_is_sent_before_the_handshake_is_confirmed() -> None:
    inner = legacy(call_ok)

    async def handler(got: Got, wire: Wire) -> None:
        if b"notifications/initialized" in got.body:
            await release.wait()
        await inner(got, wire)

    release: Any = None
    release = asyncio.Event()
    async with scripted(handler) as server:
        client = Client(server.url, timeout=SECONDS)
        opening = asyncio.ensure_future(client.open())
        await server.until(lambda server: any(b"initialized" in got.body for got in server.requests))
        call = asyncio.ensure_future(client.call_tool("x"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert b"notifications/initialized" in server.requests[-1].body and not opening.done()
        release.set()
        await opening
        await call
        await client.close()
        methods = [got.message["method"] if got.body else got.method for got in server.requests]
        assert methods[1:] == ["initialize", "notifications/initialized", "GET", "tools/call", "DELETE"]


async def test_notifications_keep_their_order() -> None:
    async def take(got: Got, wire: Wire) -> None:
        await asyncio.sleep(0.001 * (5 - got.message["params"]["n"] % 5))
        await wire.answer(202)

    async with attempt(legacy(take)) as (client, server):
        for n in range(10):
            await client.notify("notifications/x", {"n": n})
        await server.until(lambda server: len(server.requests) >= 14)
        seen = [got.message["params"]["n"] for got in server.requests if b"notifications/x" in got.body]
        assert seen == list(range(10))


# -- what is heard


@pytest.mark.parametrize(
    ("status", "body", "kind", "error", "match"),
    [
        (500, b"<h1>no</h1>", "text/html", HttpRefused, "HTTP status 500: <h1>no"),
        (503, b"", "", HttpRefused, r"503; try again in 7 \(Retry-After\)"),
        (429, b"", "", HttpRefused, "429; try again in 7"),
        (302, b"", "", HttpRefused, "points to http://elsewhere.test/mcp, and redirects are not followed"),
        (401, b"", "", HttpRefused, "401; it wants credentials; give the client auth="),
        (403, b"no", "text/plain", HttpRefused, "403: no"),
        (200, b"<html>", "text/html", HttpRefused, "HTTP status 200: <html>"),
        (202, b"", "", HttpRefused, "HTTP status 202"),
        (200, b"", "application/json", BadAnswer, "belongs to no request"),
        (200, b'{"jsonrpc":"2.0","id":999,"result":{}}', "application/json", BadAnswer, "belongs to no request"),
        (200, b"{", "application/json", BadAnswer, "belongs to no request"),
        (200, b'{"jsonrpc":"2.0","id":"2","result":{}}', "application/json", BadAnswer, "belongs to no request"),
        (400, b'{"id":null,"error":{"code":-32000,"message":"hm"}}', "application/json", ServerError, "hm"),
        (404, b'{"id":2,"error":{"code":-32601,"message":"hm"}}', "application/json", ServerError, "hm"),
        (404, b'{"jsonrpc":"2.0","id":77,"error":{"code":-1,"message":"x"}}', "application/json", HttpRefused, "404"),
        (200, b": nothing\n\n", "text/event-stream", ConnectionLost, "ended before the answer"),
        (200, b"data: {\n\n", "text/event-stream", ConnectionLost, "ended before the answer"),
    ],
)  # fmt: skip
async def test_a_response_that_is_no_answer_fails_the_request(
    status: int, body: bytes, kind: str, error: type[ClientError], match: str
) -> None:
    async def take(_: Got, wire: Wire) -> None:
        extra = [("Retry-After", "7"), ("Location", "http://elsewhere.test/mcp?key=secret")]
        await wire.answer(status, body, kind or "text/plain", *extra)

    async with attempt(modern(take)) as (client, server):
        with pytest.raises(error, match=match) as caught:
            await client.call_tool("x")
        assert type(caught.value) is error
        assert "secret" not in str(caught.value)
        assert caught.value.server == server.url
        if isinstance(caught.value, HttpRefused):
            assert (caught.value.status, caught.value.body) == (status, body)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("more", "fits"), [(0, True), (100_000, False)])
async def test_the_size_of_a_message_is_bounded(stream: bool, more: int, fits: bool) -> None:
    async def take(got: Got, wire: Wire) -> None:
        if await listed(got, wire):
            return
        message = done(got, "x" * (30_000 + more))
        if stream:
            await wire.stream()
            await wire.event(message)
            wire.close()
        else:
            await wire.answer(200, message)

    async with attempt(modern(take), limits=Limits(frame_bytes=50_000)) as (client, server):
        if fits:
            assert len((await client.call_tool("read")).text) == 30_000
        else:
            await client.list_tools()
            with pytest.raises(BadAnswer, match="more than 50,000 bytes"):
                await client.call_tool("read")
            assert [got.message["method"] for got in server.requests].count("tools/call") == 1, "it would come again"
            assert client.connected


async def test_a_stream_that_does_not_end_after_the_answer() -> None:
    """The answer counts at once, and what hangs on is cut off at the end."""

    async def take(got: Got, wire: Wire) -> None:
        await wire.stream()
        await wire.event(done(got))
        await asyncio.sleep(60)

    async with attempt(modern(take)) as (client, _):
        for _ in range(3):
            assert (await client.call_tool("x")).text == "ok"


@pytest.mark.parametrize("how", ["close", "cut", "end"])
@pytest.mark.parametrize("tool", ["read", "write"])
async def test_a_modern_stream_that_breaks_fails_the_request(how: str, tool: str) -> None:
    """Its request is lost. It is sent again, as another one, where that can do no harm."""
    calls: list[Any] = []

    async def take(got: Got, wire: Wire) -> None:
        if await listed(got, wire):
            return
        calls.append(got.message["id"])
        if len(calls) > 1:
            await call_ok(got, wire)
            return
        await wire.stream() if how != "end" else await wire.answer(200, b": x\n\n", "text/event-stream")
        if how == "close":
            wire.close()
        elif how == "cut":
            wire.cut()

    async with attempt(modern(take)) as (client, _):
        await client.list_tools()
        if tool == "read":
            assert (await client.call_tool(tool)).text == "ok"
            assert len(set(calls)) == 2
        else:
            with pytest.raises(ConnectionLost, match="before the answer"):
                await client.call_tool(tool)
            assert len(calls) == 1


async def test_a_connection_closed_without_a_response_fails_the_request() -> None:
    async def take(_: Got, wire: Wire) -> None:
        wire.close()

    async with attempt(modern(take)) as (client, server):
        with pytest.raises(ConnectionLost, match="without an answer"):
            await client.call_tool("x")
        assert len(server.requests) == 2


# -- streams that are resumed


def resuming(events: list[tuple[Any, dict[str, Any]]], last: list[str | None]) -> Take:
    """A server that breaks its stream after each event."""

    async def next_event(wire: Wire, id: Any) -> None:
        await wire.stream()
        data, fields = events[len(last)]
        await wire.event(data(id) if callable(data) else data, **fields)
        wire.close()

    asked: list[Any] = []

    async def take(got: Got, wire: Wire) -> None:
        asked.append(got)
        await next_event(wire, got)

    async def get(got: Got, wire: Wire) -> None:
        if "last-event-id" not in got.headers:
            await wire.answer(405)
            return
        last.append(got.headers["last-event-id"])
        await next_event(wire, asked[-1])

    return legacy(take, get=get)


async def test_a_stream_is_resumed_after_its_last_event_with_the_server_s_delay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []
    delay = SseParser.delay
    monkeypatch.setattr(SseParser, "delay", lambda place: waits.append(delay(place)) or 0.0)
    last: list[str | None] = []
    progress = {"jsonrpc": "2.0", "method": "notifications/x"}
    events: list[tuple[Any, dict[str, Any]]] = [
        ("", {"id": "one", "retry": 500}),
        (progress, {"id": "two"}),
        (lambda got: done(got, "at last"), {"id": "three"}),
    ]
    handler = resuming(events, last)
    async with attempt(handler) as (client, _):
        assert (await client.call_tool("x")).text == "at last"
        assert last == ["one", "two"]
        assert waits == [0.5, 0.5]


@pytest.mark.parametrize("status", [405, 400, 500])
async def test_a_stream_that_can_not_be_resumed_fails_the_request(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.sse._BACKOFF", Backoff(first=0.001, most=30.0))

    async def take(_: Got, wire: Wire) -> None:
        await wire.stream()
        await wire.event("", id="1")
        wire.close()

    async def get(_: Got, wire: Wire) -> None:
        await wire.answer(status)

    async with attempt(legacy(take, get=get)) as (client, _):
        with pytest.raises(ConnectionLost, match=f"could not be resumed.*{status}"):
            await client.call_tool("x")


async def test_a_stream_without_ids_is_not_resumed() -> None:
    async def take(_: Got, wire: Wire) -> None:
        await wire.stream()
        await wire.event({"jsonrpc": "2.0", "method": "notifications/x"})
        wire.close()

    async with attempt(legacy(take)) as (client, _):
        with pytest.raises(ConnectionLost, match="ended before the answer"):
            await client.call_tool("x")


async def test_the_stream_of_a_session_goes_on_after_its_last_event() -> None:
    last: list[str | None] = []
    heard = asyncio.Event()

    async def get(got: Got, wire: Wire) -> None:
        last.append(got.headers.get("last-event-id"))
        await wire.stream()
        params = {"level": "info", "data": len(last)}
        message = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
        await wire.event(message, id=f"e{len(last)}", retry=10)
        wire.close()

    def on_log(log: Any) -> None:
        if log.data == 3:
            heard.set()

    async with attempt(legacy(call_ok, get=get), on_log=on_log) as (_, _):
        async with asyncio.timeout(SECONDS):
            await heard.wait()
        assert last[:3] == [None, "e1", "e2"]


async def test_a_server_asks_on_the_stream_of_the_session() -> None:
    async def get(_: Got, wire: Wire) -> None:
        await wire.stream()
        await wire.event({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
        await asyncio.sleep(SECONDS)

    got_answer = asyncio.Event()
    found: list[Any] = []

    async def take(got: Got, wire: Wire) -> None:
        found.append(got.message)
        await wire.answer(202)
        got_answer.set()

    async with attempt(legacy(take, get=get), roots=["file:///x"]) as (_, __):
        async with asyncio.timeout(SECONDS):
            await got_answer.wait()
        assert found == [{"jsonrpc": "2.0", "id": "q", "result": {"roots": [{"uri": "file:///x"}]}}]


async def test_an_answer_may_come_on_the_stream_of_the_session() -> None:
    """It counts, and its own stream is not visited again."""
    stream: asyncio.Future[Wire] | None = None

    async def get(got: Got, wire: Wire) -> None:
        assert "last-event-id" not in got.headers
        assert stream is not None
        await wire.stream()
        stream.set_result(wire)
        await asyncio.sleep(60)

    async def take(got: Got, wire: Wire) -> None:
        assert stream is not None and stream.done()  # it is there before anything is asked
        await wire.stream()
        await wire.event("", id="1", retry=100)
        wire.close()
        await (await stream).event(done(got, "here"))

    stream = asyncio.get_running_loop().create_future()
    async with scripted(legacy(take, get=get)) as server, Client(server.url, timeout=SECONDS) as client:
        assert (await client.call_tool("x")).text == "here"
        await asyncio.sleep(0.2)
        assert sum(got.method == "GET" for got in server.requests) == 1


async def test_a_server_that_does_not_say_whether_it_has_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.http._LISTEN_SECONDS", 0.05)

    async def get(_: Got, __: Wire) -> None:
        await asyncio.sleep(60)

    async with attempt(legacy(call_ok, get=get)) as (client, _):
        assert (await client.call_tool("x")).text == "ok"


def test_an_unencrypted_connection_is_noted() -> None:
    from longshore.client.http import HttpChannel

    def notes(url: str) -> list[str]:
        events: Any = Mock()
        asyncio.run(HttpChannel(url, events, TransportOptions()).open())
        return [call.args[0] for call in events.note.call_args_list]

    assert notes("http://127.0.0.1:1/mcp") == []
    assert notes("https://example.test/mcp") == []
    [note] = notes("http://example.test/mcp?key=secret")
    assert "not encrypted" in note and "secret" not in note


# -- sessions that end


@pytest.mark.parametrize(
    ("status", "words"),
    [(404, "Session not found"), (400, "Bad Request: No valid session ID provided")],  # as TypeScript servers say it
)
async def test_a_session_that_the_server_ended_is_replaced(status: int, words: str) -> None:
    sessions: list[str] = []

    async def handler(got: Got, wire: Wire) -> None:
        message = got.message if got.body else {}
        session = got.headers.get("mcp-session-id")
        if message.get("method") == "initialize":
            assert session is None
            sessions.append(f"s{len(sessions)}")
            await legacy(call_ok, session=sessions[-1])(got, wire)
        elif session is not None and session != sessions[-1]:
            lost = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": words}}
            await wire.answer(status, lost)
        elif message.get("params", {}).get("name") == "forget" and len(sessions) == 1:
            sessions.append("forgotten")
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": words}}
            await wire.answer(status, error)
        else:
            await legacy(call_ok)(got, wire)

    async with attempt(handler) as (client, server):
        assert (await client.call_tool("x")).text == "ok"
        assert (await client.call_tool("forget")).text == "ok"
        assert server.requests[-1].headers["mcp-session-id"] == "s2"
        await client.close()
        ended = [got.headers["mcp-session-id"] for got in server.requests if got.method == "DELETE"]
        assert ended == ["s2"]  # one that the server has ended needs no end


@pytest.mark.parametrize("session", ["", "a b", "é", "x" * 2000])
async def test_an_invalid_session_id_is_refused(session: str) -> None:
    async with scripted(legacy(call_ok, session=session)) as server:
        with pytest.raises(ConnectError, match="visible ASCII"):
            await Client(server.url, era="legacy").open()


async def test_closing_does_not_wait_long_for_the_delete() -> None:
    """The DELETE of a session is optional: its response is not awaited for long."""

    async def handler(got: Got, wire: Wire) -> None:
        if got.method == "DELETE":
            await asyncio.sleep(60)
        await legacy(call_ok)(got, wire)

    async with attempt(handler) as (client, server):
        await client.call_tool("x")
        await client.close()
        assert server.requests[-1].method == "DELETE"


# -- giving up


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("begun", [False, True])
async def test_cancelling_a_request_closes_its_stream(era: str, begun: bool) -> None:
    async def take(got: Got, wire: Wire) -> None:
        if "id" not in got.message:
            await wire.answer(202)
            return
        if begun:
            await wire.stream()
        while not wire._writer.transport.is_closing():
            await wire.send(b": x\n\n" if begun else b"")
            await asyncio.sleep(0.01)
        raise ConnectionError

    async with attempt(modern(take) if era == "modern" else legacy(take)) as (client, server):
        with pytest.raises(CallTimeout):
            await client.call_tool("x", timeout=0.1)
        if era == "legacy":
            await server.until(lambda server: any(b"notifications/cancelled" in got.body for got in server.requests))
            [told] = [got.message for got in server.requests if b"notifications/cancelled" in got.body]
            [call] = [got.message for got in server.requests if b"tools/call" in got.body]
            assert told["params"]["requestId"] == call["id"]
        else:
            assert all(b"notifications/cancelled" not in got.body for got in server.requests)


# -- credentials


def guarded(inner: Take, wanted: int) -> Take:
    async def handler(got: Got, wire: Wire) -> None:
        if int(got.headers["authorization"].split()[1]) < wanted:
            await wire.answer(401, b"who?", "text/plain", ("WWW-Authenticate", "Test realm=x"))
        else:
            await inner(got, wire)

    return handler


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_refused_request_is_sent_again_with_new_credentials(era: str) -> None:
    key = Key()
    inner = modern(call_ok) if era == "modern" else legacy(call_ok)
    async with attempt(guarded(inner, 2), auth=key) as (client, server):
        assert (await client.call_tool("x")).text == "ok"
        if era == "legacy":
            async with asyncio.timeout(SECONDS):
                while not (key.answers == len(server.requests) == 7):  # a GET among them
                    await asyncio.sleep(0.002)
        await client.close()
        assert key.challenges == [(401, "Test realm=x")] * 2
        assert key.answers == len(server.requests)
        assert key.closed


async def test_a_request_is_sent_again_a_bounded_number_of_times() -> None:
    key = Key()
    async with scripted(guarded(modern(call_ok), 999)) as server:
        with pytest.raises(AuthorizationError, match=r"3 times over .HTTP status 401"):
            await Client(server.url, auth=key).open()
        assert len(key.challenges) == CHALLENGES
        assert len(server.requests) == CHALLENGES + 1


async def test_an_authorizer_that_accepts_the_refusal_fails_the_request() -> None:
    async with scripted(guarded(modern(call_ok), 999)) as server:
        with pytest.raises(ConnectError, match="401: who"):
            await Client(server.url, auth=Key(1)).open()
        with pytest.raises(AuthorizationError, match="no way"):
            await Client(server.url, auth=Key(problem=AuthorizationError("no way"))).open()
        with pytest.raises(ClientError, match="bug"):
            await Client(server.url, auth=Key(problem=KeyError("bug"))).open()


async def test_the_error_without_credentials_says_how_to_give_some() -> None:
    async def handler(_: Got, wire: Wire) -> None:
        await wire.answer(401, b"", "text/plain", ("WWW-Authenticate", "Bearer"))

    async with scripted(handler) as server:
        with pytest.raises(ConnectError, match="give the client auth="):
            await Client(server.url).open()


@pytest.mark.parametrize("how", ["auth", "headers"])
@pytest.mark.parametrize(
    ("status", "says"),
    [
        (403, r'403; the credentials that it got do not allow this \(Bearer error="insufficient_scope"'),
        (401, r"401; it does not take the credentials that it got \(Bearer"),
    ],
)
async def test_the_error_with_credentials_says_that_they_were_refused(status: int, says: str, how: str) -> None:
    async def handler(_: Got, wire: Wire) -> None:
        challenge = 'Bearer error="insufficient_scope", scope="files:write"'
        await wire.answer(status, b"", "text/plain", ("WWW-Authenticate", challenge))

    async with scripted(handler) as server:
        given: Any = {"auth": Key(0)} if how == "auth" else {"headers": {"authorization": "Bearer x"}}
        with pytest.raises(ConnectError, match=says) as caught:
            await Client(server.url, **given).open()
        assert "give the client auth=" not in str(caught.value)


@pytest.mark.parametrize("more", [-1, 0, 1])
async def test_the_body_of_a_refusal_is_read_up_to_a_bound(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for what is behind it."""
    monkeypatch.setattr("longshore.client.mcp_endpoint._REFUSAL_SECONDS", 10 * SECONDS)
    size = REFUSAL_BYTES + more

    async def take(_: Got, wire: Wire) -> None:
        await wire.send(b"HTTP/1.1 500 X\r\nContent-Length: %d\r\n\r\n" % (size if more <= 0 else 2 * size))
        await wire.send(b"x" * size)

    async with attempt(modern(take)) as (client, _):
        with pytest.raises(HttpRefused) as caught:
            await client.call_tool("x")
        assert len(caught.value.body) == min(size, REFUSAL_BYTES)


async def test_a_key_in_a_url_is_not_shown() -> None:
    async def handler(_: Got, wire: Wire) -> None:
        await wire.answer(500, b"no")

    async with scripted(handler) as server:
        with pytest.raises(ConnectError) as caught:
            await Client(server.url + "?api_key=secret").open()
        assert "secret" not in str(caught.value)
        assert server.requests[0].path == "/mcp?api_key=secret"


@pytest.mark.parametrize("mark", ["", "/", "?", "#", "/?", "@"])
async def test_a_password_in_a_url_is_not_shown(mark: str) -> None:
    """Not even one that reaches beyond where a host must end."""
    client = Client(f"https://user:sec{mark}ret@host.test/mcp")
    with pytest.raises(ClientError) as unopened:
        await client.call_tool("x")
    with pytest.raises(ConnectError) as caught:
        await client.open()
    for text in (client.name, str(unopened.value), str(caught.value)):
        assert "host.test" in text
        assert "sec" not in text and "ret" not in text


# -- redirects


@pytest.mark.parametrize("status", [307, 308])
async def test_one_redirect_within_the_origin_is_followed(status: int) -> None:
    async def handler(got: Got, wire: Wire) -> None:
        if got.path == "/mcp":
            await wire.answer(status, b"", "text/plain", ("Location", "/mcp/"))
        else:
            await modern(call_ok)(got, wire)

    class Noting(Key):
        """Its tokens are those of the URL that the user gave; a proof is of where a request goes."""

        def auth_flow(self, request: AuthRequest) -> Any:
            asked.append((urlsplit(request.url).path, urlsplit(request.server).path))
            return super().auth_flow(request)

    asked: list[tuple[str, str]] = []
    async with attempt(handler, auth=Noting()) as (client, server):
        await client.call_tool("x")
        assert [got.path for got in server.requests] == ["/mcp", "/mcp/", "/mcp/"]
        assert server.requests[0].body == server.requests[1].body
        assert asked == [("/mcp", "/mcp"), ("/mcp/", "/mcp"), ("/mcp/", "/mcp")]


@pytest.mark.parametrize(
    ("status", "to"),
    [
        (307, "http://elsewhere.test/mcp"),
        (307, "//elsewhere.test/mcp"),
        (307, "https://127.0.0.1/mcp"),
        (307, "http://127.0.0.1:1/mcp"),
        (307, "/mcp"),  # in a circle
        (307, "http://["),
        (307, "file:///x"),
        (302, "/other"),
        (301, "/other"),
    ],
)
async def test_no_other_redirect_is_followed(status: int, to: str) -> None:
    async def handler(_: Got, wire: Wire) -> None:
        await wire.answer(status, b"", "text/plain", ("Location", to))

    async with scripted(handler) as server:
        with pytest.raises(ConnectError, match="redirects are not followed"):
            await Client(server.url, auth=Key()).open()
        assert len(server.requests) <= 2


# -- what a frame is


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (b'{"id":1,"result":{}}', True),
        (b'{"id":1,"error":{}}', True),
        (b'{"result":{"id":2},"id":1}', True),
        (b'[{"id":2,"result":{}},{"id":1,"result":{}}]', True),
        (b'{"id":1,"method":"ping"}', False),
        (b'{"id":"1","result":{}}', False),
        (b'{"id":1.0,"result":{}}', False),
        (b'{"id":true,"result":{}}', False),
        (b'{"method":"x"}', False),
        (b"{", False),
        (b"", False),
        (b"[1]", False),
        (b"1", False),
        (b"\xff", False),
        (b"[" * 100_000, False),
    ],
)
def test_which_requests_a_frame_answers(frame: bytes, expected: bool) -> None:
    assert (1 in answered_ids(frame)) is expected


def test_an_error_in_a_refusal_belongs_to_its_request() -> None:
    own, nobodys = b'{"id":1,"error":{"code":1}}', b'{"error":{"code":1},"id":null}'
    assert error_for(own, 1, accept_null_id=False) == b'{"jsonrpc":"2.0","id":1,"error":{"code":1}}'
    assert error_for(nobodys, 1, accept_null_id=False) is None
    assert error_for(nobodys, 1, accept_null_id=True) == b'{"jsonrpc":"2.0","id":1,"error":{"code":1}}'
    for other in (b'{"id":2,"error":{}}', b'{"id":1,"result":{}}', b"", b"[]", b"<html>", b'{"error":null}'):
        assert error_for(other, 1, accept_null_id=True) is None
    assert CLIENT_LIMITS.frame_bytes == 64 << 20


async def test_a_request_that_is_cancelled_before_it_is_sent_is_not_remembered() -> None:
    async with attempt(legacy(call_ok)) as (client, server):
        session: Any = client._connection.current
        session.cancel(session.start("tools/call", {"name": "x"}).id, "at once")
        assert (await client.call_tool("x")).text == "ok"
        assert not session.channel._queued
        assert len([each for each in server.requests if b"tools/call" in each.body]) == 1
