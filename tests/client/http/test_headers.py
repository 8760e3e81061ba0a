"""Headers that a user gives: they go with every request, and never in the way of what the protocol has to say."""

from __future__ import annotations

import pytest

from client.http.fixture import served
from client.http.scripted import SECONDS, scripted
from client.http.speaking import Key, attempt, call_ok, legacy, modern
from longshore.client import Client
from longshore.errors import ConnectError
from longshore.http_client.urls import merge_headers

OWN = {
    "accept": "text/html",
    "CONTENT-TYPE": "text/plain; charset=latin-1",
    "Mcp-Session-ID": "mine",
    "mcp-protocol-version": "1.0",
    "Accept-Encoding": "gzip, br",
    "User-Agent": "me",
    "X-Own": "yes",
}


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_the_protocol_s_headers_override_the_user_s(era: str) -> None:
    async with attempt(modern(call_ok) if era == "modern" else legacy(call_ok), headers=OWN) as (client, server):
        assert (await client.call_tool("x")).text == "ok"
        post = server.requests[-1].headers  # a header that came twice would have failed
        assert post["accept"] == "application/json, text/event-stream"
        assert post["content-type"] == "application/json"
        assert post["mcp-protocol-version"] == ("2026-07-28" if era == "modern" else "2025-11-25")
        assert post.get("mcp-session-id") == (None if era == "modern" else "abc")
        assert server.requests[0].headers.get("mcp-session-id") is None
        for got in server.requests:
            assert got.headers["accept-encoding"] == "gzip"
            assert (got.headers["user-agent"], got.headers["x-own"]) == ("me", "yes")


async def test_credentials_win_over_a_header() -> None:
    async with attempt(modern(call_ok), headers={"AUTHORIZATION": "Bearer other"}, auth=Key()) as (client, server):
        await client.call_tool("x")
        assert {got.headers["authorization"] for got in server.requests} == {"Test 0"}


@pytest.mark.parametrize("era", ["modern", "2025-11-25"])
async def test_against_a_real_server(era: str) -> None:
    with served() as (server, _):
        async with Client(server.url, headers=OWN, era=era, timeout=SECONDS) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.parametrize(
    "name", ["Content-Length", "transfer-encoding", "Connection", "Keep-Alive", "TE", "UPGRADE", "Expect"]
)
async def test_a_user_can_not_set_framing_headers(name: str) -> None:
    async with scripted(modern(call_ok)) as server:
        with pytest.raises(
            ConnectError, match=f"the header {name} says how a message is sent; leave it out of headers="
        ) as caught:
            await Client(server.url, headers={name: "secret"}).open()
        assert caught.value.server == server.url
        assert "secret" not in str(caught.value)
        with pytest.raises(
            ConnectError, match=f"the header {name} says how a message is sent; leave it out of headers="
        ):
            await Client({"type": "sse", "url": server.url}, headers={name: "5"}).open()
        assert not server.requests


@pytest.mark.parametrize("name", ["", "Content-Length ", "X Y", "X:", "X\r\nY", "é"])
async def test_an_invalid_header_name_is_refused(name: str) -> None:
    with pytest.raises(ConnectError, match="is no name of a header"):
        await Client("http://127.0.0.1:1/", headers={name: "5"}).open()


def test_each_name_once() -> None:
    assert merge_headers([("A", "1"), ("b", "2")], [], [("a", "3"), ("C", "4")], [("c", "5")]) == [
        ("a", "3"),
        ("b", "2"),
        ("c", "5"),
    ]
