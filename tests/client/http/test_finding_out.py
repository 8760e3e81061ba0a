"""Which era a server speaks over HTTP, however it refuses the others, and what is said of it if it speaks none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from client.http.scripted import SECONDS, Got, Wire, scripted
from client.http.speaking import attempt, call_ok, legacy
from client.http.test_sse import Old
from longshore.client import Client, negotiate
from longshore.errors import ConnectError

MODERN = "2026-07-28"


def refusing_the_probe(status: int) -> Any:
    inner = legacy(call_ok)

    async def handler(got: Got, wire: Wire) -> None:
        if b"server/discover" in got.body:
            await wire.answer(status, b"no", "text/plain", ("Location", "/else"))
        else:
            await inner(got, wire)

    return handler


@pytest.mark.parametrize("status", [200, 202, 400, 404, 405, 406, 410, 411, 415, 422, 500, 501])
async def test_after_these_the_handshake_is_offered(status: int) -> None:
    async with attempt(refusing_the_probe(status)) as (client, _):
        assert client.server.revision == "2025-11-25"
        assert (await client.call_tool("x")).text == "ok"


@pytest.mark.parametrize("wish", ["auto", "modern"])
@pytest.mark.parametrize("status", [301, 302, 401, 403, 429, 502, 503, 504])
async def test_these_refusals_say_nothing_about_the_transport(status: int, wish: str) -> None:
    async with scripted(refusing_the_probe(status)) as server:
        with pytest.raises(ConnectError, match=f"HTTP status {status}") as caught:
            await Client(server.url, era=wish).open()
        assert len(server.requests) == 1
        assert "does not speak" not in str(caught.value)


@pytest.mark.parametrize("order", ["probe", "hello"])
async def test_a_slow_server_of_the_first_revision_is_reached(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses both what it was asked, in either order, after the handshake was offered for want of an answer."""
    monkeypatch.setattr(negotiate, "PROBE_SECONDS", 0.05)
    old = Old()
    first = asyncio.Event()

    async def handler(got: Got, wire: Wire) -> None:
        if got.method == "GET" or got.path != "/mcp":
            await old(got, wire)
            return
        if (b"server/discover" in got.body) is (order == "probe"):
            await server.until(lambda server: len(server.requests) >= 2)
            await wire.answer(405)
            first.set()
        else:
            await first.wait()
            await wire.answer(405)

    async with scripted(handler) as server, Client(server.url, timeout=SECONDS) as client:
        assert client.server.revision == "2024-11-05"
        await client.call_tool("x")


@pytest.mark.parametrize(("status", "slow"), [(500, False), (500, True), (503, True)])
async def test_a_handshake_that_is_refused_is_no_connection(
    status: int, slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(negotiate, "PROBE_SECONDS", 0.05)

    async def handler(got: Got, wire: Wire) -> None:
        if b"server/discover" in got.body:
            if slow:
                await server.until(lambda server: len(server.requests) >= 2)
            await wire.answer(400)
        else:
            await wire.answer(status)

    async with scripted(handler) as server:
        with pytest.raises(ConnectError, match=f"HTTP status {status}") as caught:
            await Client(server.url, timeout=SECONDS).open()
        assert type(caught.value) is ConnectError
        assert caught.value.server == server.url


async def test_the_error_names_the_refusal_of_the_handshake_too() -> None:
    async def handler(got: Got, wire: Wire) -> None:
        if got.method == "GET":
            await wire.answer(405)
        else:
            error = {"code": -32600, "message": "Invalid Request: Server already initialized"}
            await wire.answer(400, {"jsonrpc": "2.0", "id": None, "error": error})

    async with scripted(handler) as server:
        with pytest.raises(ConnectError, match=r"HTTP status 405.*Server already initialized"):
            await Client(server.url, timeout=SECONDS).open()
