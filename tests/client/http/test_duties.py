"""Duties of an HTTP client with every server. Those of every transport are in `client/test_duties.py`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from client.http.scripted import SECONDS, Got, Wire, result, scripted
from client.http.speaking import MODERN, attempt, call_ok, done, legacy, modern
from client.test_handshake import PREFIX, REFUSALS
from longshore.client import Client
from longshore.errors import ConnectError


async def test_over_http_the_headers_say_the_same() -> None:
    async def take(got: Got, wire: Wire) -> None:
        if got.message["method"] != "subscriptions/listen":
            await wire.answer(200, done(got) if "name" in got.message["params"] else result(got.message, tools=[]))
            return
        label = {"_meta": {PREFIX + "subscriptionId": got.message["id"]}}
        wanted = {**label, "notifications": got.message["params"]["notifications"]}
        await wire.stream()
        await wire.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": wanted})
        await asyncio.sleep(SECONDS)

    async with attempt(modern(take)) as (client, server):
        async with client.watch(tools=True):
            await client.list_tools()
            await client.call_tool("x")
            await client.ping()
        assert [got.headers["mcp-method"] for got in server.requests] == [
            *("server/discover", "subscriptions/listen", "tools/list", "tools/call", "server/discover")
        ]
        for got in server.requests:
            meta = got.message["params"]["_meta"]
            assert got.headers["mcp-protocol-version"] == meta[PREFIX + "protocolVersion"] == "2026-07-28"
            assert got.headers["mcp-method"] == got.message["method"]
            assert meta[PREFIX + "clientCapabilities"] == {} and meta[PREFIX + "clientInfo"]["name"] == "longshore"


@pytest.mark.parametrize(("code", "data"), REFUSALS)
async def test_a_modern_refusal_in_the_body_of_a_400_leads_to_no_handshake(code: int, data: Any) -> None:
    async def handler(got: Got, wire: Wire) -> None:
        fault = {"code": code, "message": "not so", "data": data}
        await wire.answer(400, {"jsonrpc": "2.0", "id": got.message["id"], "error": fault})

    async with scripted(handler) as server:
        with pytest.raises(ConnectError):
            await Client(server.url).open()
        assert {got.message["method"] for got in server.requests} == {"server/discover"}
        assert len(server.requests) <= 3


@pytest.mark.parametrize("change", [str.lower, str.upper, str.title])
async def test_the_names_of_headers_have_no_case_and_their_values_do(change: Any) -> None:
    """The name of a session goes back as it came, however its header is spelled."""

    async def handler(got: Got, wire: Wire) -> None:
        if got.method != "POST" or b"server/discover" in got.body:
            await wire.answer(405, b"", "text/plain")
            return
        message = got.message
        if "id" not in message:
            await wire.answer(202)
            return
        shaken = b'"protocolVersion":"2025-11-25","capabilities":{}'
        made = shaken if message["method"] == "initialize" else b'"content":[]'
        data = b'data: {"jsonrpc":"2.0","id":%d,"result":{%s}}\n\n' % (message["id"], made)
        head = {"Content-Type": "text/event-stream", "Content-Length": str(len(data)), "Mcp-Session-Id": "aBcD"}
        lines = [f"{change(name)}: {value}" for name, value in head.items()]
        await wire.send("\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode() + data)

    async with attempt(handler) as (client, server):
        await client.call_tool("x")
        call = server.requests[-1]
        assert call.headers["mcp-session-id"] == "aBcD"


async def test_a_name_in_a_header_keeps_its_case() -> None:
    async def handler(got: Got, wire: Wire) -> None:
        made = f'"supportedVersions":["{MODERN}"],"capabilities":{{}},"content":[]'
        body = f'{{"jsonrpc":"2.0","id":{got.message["id"]},"result":{{{made}}}}}'.encode()
        await wire.send(b"HTTP/1.1 200 OK\r\nCONTENT-TYPE: application/json\r\nCONTENT-LENGTH: %d\r\n\r\n" % len(body))
        await wire.send(body)

    async with attempt(handler) as (client, server):
        for name in ("tool", "Tool", "TOOL"):
            await client.call_tool(name)
            assert server.requests[-1].headers["mcp-name"] == name


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_token_is_in_the_header_of_every_request_and_nowhere_else(era: str) -> None:
    token = "a-token-that-is-easy-to-find"
    async with attempt(modern(call_ok) if era == "modern" else legacy(call_ok), auth=token) as (client, server):
        await client.call_tool("x")
        await client.close()
        assert {got.method for got in server.requests} == ({"POST"} if era == "modern" else {"POST", "GET", "DELETE"})
        for got in server.requests:
            assert got.headers.pop("authorization") == f"Bearer {token}"
            assert token not in f"{got.path} {got.headers} {got.body!r}"
