"""What the calls of one session keep for one another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from longshore import Client, Context, Limits, Server
from posting import Session, ask_modern
from posting import call as calling
from serving import serve
from talk import ERAS, WAIT_SECONDS, converse, text
from talk import Client as Peer


def server(**options: Any) -> Server:
    app = Server("shop", **options)

    @app.tool
    async def put(item: Any, ctx: Context) -> int:
        """Put an item into the cart."""
        cart = await ctx.session.state.get("cart", [])
        await ctx.session.state.set("cart", [*cart, item])
        return len(cart) + 1

    @app.tool
    def cart(ctx: Context) -> list[Any]:
        """What is in the cart; on a thread."""
        return list(ctx.session.state.get("cart", []))

    @app.tool
    def clear(ctx: Context) -> str:
        ctx.session.state.delete("cart")
        ctx.session.state.delete("never there")
        return "cleared"

    @app.tool(run="inline_first")
    def first(ctx: Context) -> int:
        return len(ctx.session.state.get("cart", []))

    @app.tool(run="inline")
    def quick(ctx: Context) -> int:
        return len(ctx.session.state.get("cart", []))

    return app


@pytest.mark.parametrize("revision", ERAS)
def test_calls_of_one_connection_share_it(revision: str) -> None:
    async def script(client: Peer) -> list[Any]:
        seen: list[Any] = [await client.call_tool("put", item=each) for each in ("tea", {"milk": 2})]
        seen += [await client.call_tool("cart"), await client.call_tool("first"), await client.call_tool("clear")]
        return [text(each) for each in [*seen, await client.call_tool("cart")]]

    assert converse(server(), script, revision) == ["1", "2", '["tea",{"milk":2}]', "2", "cleared", "[]"]


def test_connections_do_not_share_it() -> None:
    app = server()

    async def script() -> str:
        async with Client(app) as one, Client(app) as other:
            await one.call_tool("put", {"item": 1})
            return str((await other.call_tool("cart")).text)

    assert asyncio.run(asyncio.wait_for(script(), WAIT_SECONDS)) == "[]"


def test_a_value_is_a_copy() -> None:
    app = Server("t")

    @app.tool
    async def change(ctx: Context) -> list[int]:
        value = [1]
        await ctx.session.state.set("list", value)
        value.append(2)
        (await ctx.session.state.get("list")).append(3)
        return list(await ctx.session.state.get("list"))

    async def script(client: Peer) -> str:
        return text(await client.call_tool("change"))

    assert converse(app, script) == "[1]"


@pytest.mark.parametrize(("size", "fits"), [(99, True), (100, True), (101, False)])
def test_a_session_keeps_so_many_bytes_and_no_more(size: int, fits: bool) -> None:
    app = server(limits=Limits(session_state_bytes=100))
    empty = len('{"cart":[""]}')

    async def script(client: Peer) -> tuple[dict[str, Any], str]:
        put = await client.call_tool("put", item="x" * (size - empty))
        return put, text(await client.call_tool("first"))

    put, count = converse(app, script)
    assert (bool(put.get("isError")), count) == (not fits, "1" if fits else "0")
    if not fits:
        assert text(put) == (
            "the session would keep 101 bytes and may keep 100 (limits.session_state_bytes); keep less, or a key of "
            "what is stored elsewhere"
        )


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        (5, 1, "session state: the key 5 is no text; use str(…)"),
        ("cart", object(), "cart can\\'t be kept: the result holds a object"),
    ],
)
def test_what_would_not_be_found_again_is_refused(key: Any, value: Any, what: str) -> None:
    app = Server("shop")
    problems: list[str] = []
    app.listen(lambda record: problems.append(str(record)))

    @app.tool
    async def put(ctx: Context) -> str:
        await ctx.session.state.set(key, value)
        return "put"

    async def script(client: Peer) -> dict[str, Any]:
        return await client.call_tool("put")

    assert "put failed unexpectedly" in text(converse(app, script))
    assert any(what in each for each in problems), problems


def test_an_inline_tool_is_told_to_run_otherwise() -> None:
    async def script(client: Peer) -> dict[str, Any]:
        return await client.call_tool("quick")

    found = converse(server(), script)
    assert found["isError"]
    assert text(found) == "quick can't wait for the session's state; leave out run=\"inline\""


def test_over_http_a_session_has_it_and_a_request_without_a_session_says_what_to_do() -> None:
    with serve(server(auth={"mode": "off"}).asgi()) as served:
        session = Session(served).open()
        assert [session.call("put", item="tea"), session.call("cart"), session.call("first")] == ["1", '["tea"]', "1"]
        assert Session(served).open().call("cart") == "[]"
        result = ask_modern(served, calling("cart")).json["result"]
        assert result["isError"]
        assert result["content"][0]["text"] == (
            "cart keeps values in a session, and this request (2026-07-28) has none; return a handle from one call and "
            "take it as an argument of the next"
        )


def test_call_tool_and_the_tool_share_it_and_need_a_session_over_http_too() -> None:
    app = server(catalog="search", auth={"mode": "off"})
    with serve(app.asgi()) as served:
        session = Session(served).open()
        assert session.call("call_tool", name="put", arguments={"item": 1}) == "1"
        assert session.call("cart") == "[1]"
        params = calling("call_tool", {"name": "cart"})
        assert ask_modern(served, params).json["result"]["isError"]
