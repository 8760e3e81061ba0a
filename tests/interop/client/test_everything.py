"""Our client against the official TypeScript server that has everything, over stdio, streamable HTTP and HTTP+SSE.

It speaks the handshake era alone. Its long tool does not look whether it was cancelled, so that the server really
stops is shown with the Python servers; here, that a late answer does no harm.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import msgspec
import pytest

from longshore.client import Change
from longshore.errors import CallTimeout, ServerError, ToolFailed
from longshore.protocol.content import EmbeddedResource, Image, ResourceLink, Text
from waiting import PATIENCE

from .peers import Peer, serving
from .talk import ROOT, Talk, converse

WAYS = ("everything-stdio", "everything-streamableHttp", "everything-sse")
TEXT, BLOB = "demo://resource/dynamic/text/1", "demo://resource/dynamic/blob/2"


class Weather(msgspec.Struct):
    temperature: float
    conditions: str
    humidity: float


async def meet(talk: Talk) -> None:
    server = talk.client.server
    assert server.revision == ("2025-11-25" if talk.era == "auto" else talk.era)
    assert (server.name, server.title) == ("mcp-servers/everything", "Everything Reference Server")
    assert "Everything" in (server.instructions or "")
    await talk.client.ping()


async def lists(talk: Talk) -> None:
    client = talk.client
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert {"echo", "get-roots-list", "trigger-sampling-request", "trigger-url-elicitation"} <= set(tools)
    assert tools["echo"].title == "Echo Tool" and tools["echo"].repeatable
    assert all(each.mime_type == "text/markdown" for each in await client.list_resources())
    assert {each.uri_template.rpartition("/")[0] for each in await client.list_templates()} == {
        "demo://resource/dynamic/text",
        "demo://resource/dynamic/blob",
    }
    prompts = {prompt.name: prompt for prompt in await client.list_prompts()}
    assert set(prompts) == {"simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"}
    assert [(each["name"], each["required"]) for each in prompts["args-prompt"].arguments] == [
        ("city", True),
        ("state", False),
    ]


async def results(talk: Talk) -> None:
    assert (await talk.call("echo", message="hi")).text == "Echo: hi"
    assert (await talk.call("get-sum", a=1, b=2.5)).text == "The sum of 1 and 2.5 is 3.5."
    assert isinstance(json.loads((await talk.call("get-env")).text), dict)
    talk.called.add("get-structured-content")
    arguments = {"location": "Chicago"}
    weather = await talk.client.call_tool("get-structured-content", arguments, returns=Weather)
    assert weather == Weather(36, "Light rain / drizzle", 82)
    _, image, _ = (await talk.call("get-tiny-image")).content
    assert isinstance(image, Image) and image.data.startswith(b"\x89PNG") and image.mime_type == "image/png"
    text, image = (await talk.call("get-annotated-message", messageType="error", includeImage=True)).content
    assert isinstance(text, Text) and isinstance(image, Image)
    assert text.annotations.priority == 1 and text.annotations.audience == ["user", "assistant"]  # type: ignore[union-attr]
    assert image.annotations.audience == ["user"]  # type: ignore[union-attr]


async def resources(talk: Talk) -> None:
    client = talk.client
    static = (await client.list_resources())[0]
    [contents] = await client.read_resource(static.uri)
    assert (contents.uri, contents.mime_type) == (static.uri, "text/markdown")
    _, *links = (await talk.call("get-resource-links", count=4)).content
    assert all(isinstance(link, ResourceLink) for link in links) and len(links) == 4
    for link in links:
        [contents] = await client.read_resource(link.uri)  # type: ignore[union-attr]
        assert "Resource " in (contents.text or contents.blob.decode())  # type: ignore[union-attr]
    _, inside, _ = (await talk.call("get-resource-reference", resourceType="Blob", resourceId=2)).content
    assert isinstance(inside, EmbeddedResource)
    assert inside.resource.uri == BLOB and b"Resource 2" in inside.resource.blob  # type: ignore[operator]


async def a_resource_that_a_tool_makes(talk: Talk) -> None:
    talk.changes.clear()
    plain = "data:text/plain,much%20ado"
    [link] = (await talk.call("gzip-file-as-resource", name="ado.gz", data=plain)).content
    assert isinstance(link, ResourceLink)
    await talk.until("resources have changed", lambda: Change("resources") in talk.changes)
    assert link.uri in [each.uri for each in await talk.client.list_resources()]
    [contents] = await talk.client.read_resource(link.uri)
    assert gzip.decompress(contents.blob) == b"much ado"  # type: ignore[arg-type]


async def prompts(talk: Talk) -> None:
    client = talk.client
    [message] = (await client.get_prompt("simple-prompt")).messages
    assert message.content.text == "This is a simple prompt without arguments."
    [message] = (await client.get_prompt("args-prompt", {"city": "Bonn", "state": "NRW"})).messages
    assert message.content.text == "What's weather in Bonn, NRW?"
    _, message = (await client.get_prompt("resource-prompt", {"resourceType": "Text", "resourceId": "3"})).messages
    assert isinstance(message.content, EmbeddedResource)
    found = await client.complete("completable-prompt", "name", "", {"department": "Sales"})
    assert (found.values, found.total, found.has_more) == (["David", "Eve", "Frank"], 3, False)
    assert (await client.complete("demo://resource/dynamic/text/{resourceId}", "resourceId", "7")).values == ["7"]


async def failures(talk: Talk) -> None:
    client = talk.client
    with pytest.raises(ToolFailed, match="expected string, received number"):
        await client.call_tool("echo", {"message": 5})
    with pytest.raises(ToolFailed, match="nothing not found"):
        await client.call_tool("nothing")
    with pytest.raises(ServerError, match="not found"):
        await client.read_resource("demo://nothing")
    with pytest.raises(ServerError, match="Invalid arguments"):
        await client.get_prompt("args-prompt")
    with pytest.raises(ServerError) as caught:
        await client.request("no/such/method")
    assert caught.value.code == -32601
    with pytest.raises(ToolFailed, match="requires task"):  # which we don't have
        await talk.call("simulate-research-query", topic="tea")


async def progress(talk: Talk) -> None:
    seen: list[Any] = []
    talk.called.add("trigger-long-running-operation")
    arguments = {"duration": 0.05, "steps": 4}
    done = await talk.client.call_tool(
        "trigger-long-running-operation", arguments, on_progress=lambda *step: seen.append(step)
    )
    assert "completed" in done.text
    assert seen == [(at, 4.0, None) for at in (1, 2, 3, 4)]


async def questions(talk: Talk) -> None:
    talk.answer = {"name": "Ann", "check": True}
    text = (await talk.call("trigger-elicitation-request")).text
    assert "Name: Ann" in text and "Agreed to terms: true" in text
    assert "Favorite Integer: 42" in text  # the form's default
    for talk.answer, said in ((False, "declined"), (None, "cancelled")):
        assert said in (await talk.call("trigger-elicitation-request")).text
    talk.answer = True
    page = {"url": "http://127.0.0.1/consent", "message": "Go there."}
    assert "completed the URL" in (await talk.call("trigger-url-elicitation", **page)).text
    assert (talk.questions[-1].mode, talk.questions[-1].url) == ("url", page["url"])
    assert "completed the URL" in (await talk.call("trigger-url-elicitation", **page, errorPath=True)).text
    first, then = talk.questions[-2:]  # another page first, told by an error
    assert (first.mode, first.message[:14], then.url) == ("url", "Open this link", page["url"])
    talk.answer = False
    with pytest.raises(ServerError) as caught:
        await talk.call("trigger-url-elicitation", **page, errorPath=True)
    assert caught.value.code == -32042
    text = (await talk.call("trigger-sampling-request", prompt="tea?")).text
    assert "tea? Something." in text


async def roots(talk: Talk) -> None:
    assert f"URI: {ROOT}" in (await talk.call("get-roots-list")).text
    await talk.until("it has asked by itself", lambda: any("Roots updated" in str(log.data) for log in talk.logs))
    talk.logs.clear()
    await talk.client.set_roots([f"{ROOT}/else", f"{ROOT}/more"])
    await talk.until("it has asked anew", lambda: any("2 root(s)" in str(log.data) for log in talk.logs))
    assert f"URI: {ROOT}/more" in (await talk.call("get-roots-list")).text


async def logs(talk: Talk) -> None:
    """What it logs by itself has a random level, but a subscription is noted at `info`."""
    client = talk.client

    def heard(uri: str) -> bool:
        return any(uri in str(log.data) for log in talk.logs)

    async with client.watch(uris=[TEXT]):
        await talk.until("it is logged", lambda: heard(TEXT))
    await client.set_log_level("emergency")
    async with client.watch(uris=[BLOB]):
        await client.ping()
    await client.set_log_level("debug")
    talk.logs.clear()
    await talk.call("toggle-simulated-logging")
    await talk.until("something is logged", lambda: any("message" in str(log.data) for log in talk.logs))
    assert not heard(BLOB)


async def changes(talk: Talk) -> None:
    client = talk.client
    async with client.watch(uris=[TEXT]) as watch, client.watch(uris=[BLOB]) as other, asyncio.timeout(PATIENCE):
        await talk.call("toggle-subscriber-updates")
        assert await anext(watch) == Change("resource", TEXT)
        assert await anext(other) == Change("resource", BLOB)
        await talk.call("toggle-subscriber-updates")


async def giving_up(talk: Talk) -> None:
    """A long call out of time, and one cancelled. Whatever comes of them later is nobody's."""
    client = talk.client
    tool, short = "trigger-long-running-operation", {"duration": 0.5, "steps": 1}
    with pytest.raises(CallTimeout):
        await client.call_tool(tool, short, timeout=0.1)
    begun = asyncio.Event()
    long = {"duration": 30, "steps": 300}
    call = asyncio.create_task(client.call_tool(tool, long, on_progress=lambda *_: begun.set()))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert "completed" in (await client.call_tool(tool, short)).text  # the first would have been answered by now


async def much(talk: Talk) -> None:
    client = talk.client
    text = "é" * 1_000_000
    assert (await client.call_tool("echo", {"message": text})).text == f"Echo: {text}"
    sums = await asyncio.gather(*(client.call_tool("get-sum", {"a": n, "b": 1}) for n in range(50)))
    assert [each.text for each in sums] == [f"The sum of {n} and 1 is {n + 1}." for n in range(50)]


@pytest.mark.parametrize(("way", "era"), [*((way, "auto") for way in WAYS), (WAYS[1], "2025-03-26")])
def test_everything(way: str, era: str) -> None:
    """Over stdio its timers run on after the end of input, so it is also one that must be told to stop."""
    first = (meet, lists, results, resources, a_resource_that_a_tool_makes, prompts, failures, progress)
    converse(way, era, *first, questions, roots, logs, changes, giving_up, much, Talk.called_all)


@pytest.mark.parametrize("kind", ["streamableHttp", "sse"])
def test_a_server_that_is_killed_and_comes_back(kind: str) -> None:
    """Over streamable HTTP it says of a session that it does not know 400, not 404 as it should."""

    async def main(server: Peer) -> None:
        talk = Talk(f"everything-{kind}", server.url)
        async with asyncio.timeout(2 * PATIENCE), talk.client as client:
            async with client.watch(uris=[TEXT]) as watch:
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
                assert await anext(watch) == Change("resource", TEXT)  # without anybody's asking for anything
            assert (await client.call_tool("echo", {"message": "again"})).text == "Echo: again"
            assert "Name: Ann" in (await client.call_tool("trigger-elicitation-request")).text

    with serving("everything", kind) as server:
        asyncio.run(main(server))
