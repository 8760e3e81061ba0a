"""Our client against the servers of Python: the official SDK's (mcp 2.3.0) and FastMCP's (4.1.2), over all they have.

Each test is one connection, on which everything is done that a client can do: servers/ has the same tools for both.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from longshore.client import Change, Client
from longshore.errors import BadAnswer, CallTimeout, ConnectionLost, ServerError, ToolFailed
from longshore.protocol.content import Audio, EmbeddedResource, Image, ResourceLink, Text
from waiting import PATIENCE

from .peers import Peer, children, command, leaving_nothing, serving
from .talk import ROOT, Talk, converse, hold

MODERN = "2026-07-28"
TOOLS = ["add", "person", "blocks", "fail", "steps", "wait", "count", "speak", "big", "length", "touch"]
ASKING = ["greet", "think", "look"]


class Person(msgspec.Struct):
    name: str
    age: int


async def meet(talk: Talk) -> None:
    server = talk.client.server
    newest = "2025-11-25" if talk.way.endswith("sse") else MODERN
    assert server.revision == (newest if talk.era == "auto" else talk.era)
    assert (server.name, server.version, server.instructions) == (talk.way.split("-")[0], "7", "Be kind.")
    await talk.client.ping()


async def lists(talk: Talk) -> None:
    client = talk.client
    tools = await client.list_tools()
    assert [tool.name for tool in tools] == [*TOOLS, *ASKING]
    assert tools[0].description == "Add two numbers."
    assert set(tools[0].input_schema["properties"]) == {"a", "b"}
    pages = [page async for page in client.pages("tools/list")]
    assert len(pages) == (4 if talk.way.startswith("fast") else 1)
    assert [each.uri for each in await client.list_resources()] == ["test://thing", "test://bytes"]
    assert [each.uri_template for each in await client.list_templates()] == ["test://numbers/{n}"]
    [prompt] = await client.list_prompts()
    assert (prompt.name, prompt.arguments[0]["name"]) == ("poem", "about")


async def results(talk: Talk) -> None:
    client = talk.client
    result = await client.call_tool("add", {"a": 1, "b": 2})
    assert (result.text, result.structured) == ("3", {"result": 3})
    assert await client.call_tool("add", {"a": 1, "b": 2}, returns=int) == 3
    assert await client.call_tool("person", {"name": "Bo"}, returns=Person) == Person("Bo", 30)
    words, image, audio, link, inside = (await client.call_tool("blocks")).content
    assert isinstance(words, Text) and words.text == "words"
    assert isinstance(image, Image) and (image.data, image.mime_type) == (b"\x89PNG\x00\xff", "image/png")
    assert isinstance(audio, Audio) and audio.data == b"RIFF\x00\xff"
    assert isinstance(link, ResourceLink) and (link.uri, link.description) == ("test://thing", "over there")
    assert isinstance(inside, EmbeddedResource) and inside.resource.text == "inside"
    [read] = await client.read_resource(link.uri)
    assert read.text == "it"


async def failures(talk: Talk) -> None:
    client = talk.client
    with pytest.raises(ToolFailed, match="Error"):
        await client.call_tool("fail")
    assert (await client.call_tool("fail", check=False)).is_error
    with pytest.raises(ToolFailed, match="valid integer"):
        await client.call_tool("add", {"a": "x", "b": 1})
    with pytest.raises((ToolFailed, ServerError), match=r"[Uu]nknown tool"):
        await client.call_tool("nothing")
    with pytest.raises(ServerError, match="test://nothing"):
        await client.read_resource("test://nothing")
    with pytest.raises(ServerError):
        await client.get_prompt("nothing")
    with pytest.raises(ServerError) as caught:
        await client.request("no/such/method")
    assert caught.value.code == -32601
    assert await client.call_tool("add", {"a": 2, "b": 2}, returns=int) == 4  # none of which did any harm


async def progress(talk: Talk) -> None:
    seen: list[Any] = []
    assert (await talk.client.call_tool("steps", on_progress=lambda *step: seen.append(step))).text == "done"
    assert seen == [(at, 3.0, f"step {at}") for at in range(3)]


async def logs(talk: Talk) -> None:
    """The official server has no `logging` of the handshake era: it can't be told a level, and logs it all."""
    await talk.client.call_tool("speak")
    await talk.until("the last is heard", lambda: talk.logs and talk.logs[-1].level == "error")
    assert talk.logs[-1].logger == "town crier"
    assert "loud" in str(talk.logs[-1].data)
    assert [each.level for each in talk.logs] == ["error"]
    await talk.client.ping()


async def resources(talk: Talk) -> None:
    [some_bytes] = await talk.client.read_resource("test://bytes")
    assert (some_bytes.blob, some_bytes.mime_type, some_bytes.text) == (b"\x00\xff", "application/octet-stream", UNSET)
    [number] = await talk.client.read_resource("test://numbers/12")
    assert number.text == "number 12"


async def prompts(talk: Talk) -> None:
    filled = await talk.client.get_prompt("poem", {"about": "tea"})
    assert [(each.role, each.content.text) for each in filled.messages] == [("user", "write about tea")]
    assert (await talk.client.complete("poem", "about", "te", {"style": "a"})).values == ["tea!"]
    found = await talk.client.complete("test://numbers/{n}", "n", "1")
    assert (found.values, found.total, found.has_more) == (["1", "12"], 2, False)


async def questions(talk: Talk) -> None:
    """FastMCP asks for roots outside of any request, which over HTTP goes by the stream of the session."""
    client = talk.client
    assert (await client.call_tool("greet")).text == "hello Ann Ann"  # what is not filled in has its default
    assert "name" in (talk.questions[-1].schema or {})["properties"]
    for talk.answer, action in ((False, "decline"), (None, "cancel"), ({"name": "Bo", "often": 1}, "hello Bo")):
        assert (await client.call_tool("greet")).text == action
    assert (await client.call_tool("think")).text == "unknown: Say something. Something."
    assert ROOT in (await client.call_tool("look")).text


async def changes(talk: Talk) -> None:
    client = talk.client
    if talk.way.startswith("fast"):
        with pytest.raises(ServerError, match="not found"):
            await client.watch(uris=["test://thing"]).__aenter__()  # it has no subscriptions, and says so
        await client.call_tool("touch")
        await talk.until("tools have changed", lambda: Change("tools") in talk.changes)
        return
    async with client.watch(tools=True, uris=["test://thing"]) as watch, asyncio.timeout(PATIENCE):
        await client.call_tool("touch")
        assert {await anext(watch), await anext(watch)} == {Change("tools"), Change("resource", "test://thing")}
    assert await count(client, "subscribed") == 0


async def count(client: Client, what: str) -> int:
    return await client.call_tool("count", {"what": what}, returns=int)


async def befell(client: Client, what: str, times: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while await count(client, what) != times:
            await asyncio.sleep(0.01)


async def giving_up(talk: Talk) -> None:
    """Out of time, and cancelled by its caller: either way the server really stops."""
    client = talk.client
    while not await count(client, "started"):
        with pytest.raises(CallTimeout):
            await client.call_tool("wait", timeout=0.3)
    started = await count(client, "started")
    await befell(client, "cancelled", started)
    calls = [asyncio.create_task(client.call_tool("wait", on_progress=lambda *_: None)) for _ in range(3)]
    await befell(client, "started", started + 3)
    for call in calls:
        call.cancel()
    assert all(
        isinstance(each, asyncio.CancelledError) for each in await asyncio.gather(*calls, return_exceptions=True)
    )
    await befell(client, "cancelled", started + 3)


async def much(talk: Talk) -> None:
    client = talk.client
    assert (await client.call_tool("big", {"size": 3_000_000})).text == "é" * 3_000_000
    assert await client.call_tool("length", {"text": "é" * 1_000_000}, returns=int) == 1_000_000
    sums = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}, returns=int) for n in range(50)))
    assert sums == [n + 1 for n in range(50)]


CHAPTERS = (
    meet,
    lists,
    results,
    failures,
    progress,
    logs,
    resources,
    prompts,
    questions,
    changes,
    giving_up,
    much,
)


@pytest.mark.parametrize("peer", ["official", "fast"])
@pytest.mark.parametrize(
    ("transport", "era"),
    [("stdio", "auto"), ("stdio", "2025-06-18"), ("http", "auto"), ("http", "2025-11-25"), ("sse", "auto")],
)
def test_everything(peer: str, transport: str, era: str) -> None:
    converse(f"{peer}-{transport}", era, *CHAPTERS, log_level="warning")


def test_a_list_of_many_pages() -> None:
    async def main() -> None:
        async with Client(command("official", "pages"), timeout=PATIENCE) as client:
            assert [tool.name for tool in await client.list_tools()] == [f"tool{n}" for n in range(40)]
            pages = [page async for page in client.pages("tools/list")]
            assert [len(page) for page in pages] == [7, 7, 7, 7, 7, 5]
            with pytest.raises(BadAnswer, match="goes round"):
                await client.list_prompts()

    with leaving_nothing():
        asyncio.run(main())


@pytest.mark.parametrize("era", ["auto", "2025-11-25"])
def test_a_child_that_is_killed_is_started_anew(era: str) -> None:
    """What it was told goes for its successor: the level of the log, and who watches."""

    others = children()

    async def main(talk: Talk) -> None:
        client = talk.client
        if era == "auto":  # else it has no way to be told
            await client.set_log_level("debug")
        async with client.watch(uris=["test://thing"]) as watch, asyncio.timeout(PATIENCE):
            call = asyncio.create_task(client.call_tool("wait"))
            await befell(client, "started", 1)
            [child] = children() - others
            os.kill(int(child), signal.SIGKILL)
            with pytest.raises(ConnectionLost, match="ended by SIGKILL") as caught:
                await call
            assert f"pid {child}" in caught.value.server
            assert await anext(watch) == Change("resource", "test://thing")
            await client.call_tool("touch")
            assert await anext(watch) == Change("resource", "test://thing")
        await client.call_tool("speak")
        await talk.until("all is heard", lambda: [each.level for each in talk.logs] == ["debug", "error"])
        assert child not in children()

    level = "error" if era == "auto" else "debug"
    hold(Talk("official-stdio", command("official", "stdio"), era, log_level=level), main)


@pytest.mark.parametrize("peer", ["official", "fast"])
def test_a_server_that_is_killed_and_comes_back(peer: str) -> None:
    """A call that was under way is lost; the next one has a new session. A watcher hears that it missed something."""

    async def main(server: Peer) -> None:
        talks = [Talk(f"{peer}-http", server.url, era) for era in ("auto", "2025-11-25")]
        async with asyncio.timeout(2 * PATIENCE), talks[0].client, talks[1].client:
            watches = [talk.client.watch(tools=True) for talk in talks] if peer == "official" else []
            for watch in watches:
                await watch.__aenter__()
            calls = [asyncio.create_task(talk.client.call_tool("wait")) for talk in talks]
            await befell(talks[0].client, "started", 2)
            await asyncio.to_thread(server.kill)
            for lost in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(lost, ConnectionLost) and not lost.unsent
            await asyncio.to_thread(server.start)
            for talk in talks:
                assert await talk.client.call_tool("add", {"a": 1, "b": 3}, returns=int) == 4
                assert (await talk.client.call_tool("greet")).text == "hello Ann Ann"
            for watch in watches:
                assert await anext(watch) == Change("tools")
                await watch.__aexit__(None, None, None)
            assert len(asyncio.all_tasks()) < 20  # nothing has multiplied while nobody was there

    with serving(peer, "http") as server:
        asyncio.run(main(server))
