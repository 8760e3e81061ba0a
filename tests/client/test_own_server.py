"""Everything that a client does, against a server of ours, in memory and over pipes, in both eras."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from client.scripted import SERVERS, run, until
from client.servers.own import PIXEL, make
from longshore import Audio, ElicitAnswer, EmbeddedResource, Image, ResourceLink, Root, SampleAnswer, Text
from longshore.client import Client, ElicitQuestion, LogMessage
from longshore.errors import BadAnswer, CallTimeout, ClientError, ServerError, ToolFailed

Open = Callable[..., Client]


@pytest.fixture(params=["memory", "stdio"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["modern", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def open_own(place: str, era: str) -> Open:
    def open(**options: Any) -> Client:
        target = make() if place == "memory" else [sys.executable, str(SERVERS / "own.py")]
        return Client(target, **{"era": era, "timeout": 20.0, **options})

    return open


@dataclass
class Box:
    width: float
    height: float
    area: float


class Tight(msgspec.Struct, forbid_unknown_fields=True):
    width: float
    height: float
    area: float


class Small(msgspec.Struct):
    area: float


# -- results


async def test_typed_results(open_own: Open) -> None:
    async with open_own() as client:
        await client.list_tools()
        given = {"width": 2, "height": 3}
        assert await client.call_tool("measure", given, returns=Box) == Box(2, 3, 6)
        assert await client.call_tool("measure", given, returns=Tight) == Tight(2, 3, 6)
        assert await client.call_tool("measure", given, returns=Small) == Small(6)
        assert await client.call_tool("measure", given, returns=dict[str, float]) == {
            "width": 2,
            "height": 3,
            "area": 6,
        }
        assert await client.call_tool("numbers", {"to": 3}, returns=list[int]) == [0, 1, 2]
        assert await client.call_tool("numbers", {"to": 3}, returns=tuple[int, ...]) == (0, 1, 2)
        assert await client.call_tool("numbers", {"to": 0}, returns=list[int]) == []
        assert await client.call_tool("echo", {"text": "5"}, returns=str) == "5"
        assert await client.call_tool("echo", {"text": ""}, returns=str) == ""
        with pytest.raises(BadAnswer, match=r"no list\[str\]|no list"):
            await client.call_tool("numbers", {"to": 3}, returns=list[str])
        with pytest.raises(BadAnswer, match="no Box"):
            await client.call_tool("numbers", {"to": 3}, returns=Box)
        with pytest.raises(BadAnswer):
            await client.call_tool("echo", {"text": "no number"}, returns=int)


async def test_all_kinds_of_content(open_own: Open) -> None:
    async with open_own() as client:
        result = await client.call_tool("everything")
        assert [type(block) for block in result.content] == [Text, Image, Audio, ResourceLink, EmbeddedResource]
        assert result.text == "look:"
        assert not result.is_error
        image = result.content[1]
        assert isinstance(image, Image)
        assert result.record["content"][0]["text"] == "look:"


async def test_failures(open_own: Open) -> None:
    async with open_own() as client:
        with pytest.raises(ToolFailed, match="the printer is on fire") as caught:
            await client.call_tool("fail")
        assert caught.value.result.is_error
        assert "own" in str(caught.value)
        result = await client.call_tool("fail", check=False)
        assert result.is_error and result.text == "the printer is on fire"
        with pytest.raises(ToolFailed) as crashed:
            await client.call_tool("crash")
        assert "secret detail" not in crashed.value.what
        with pytest.raises(ToolFailed, match="width"):
            await client.call_tool("measure", {"height": 1})
        with pytest.raises(ServerError, match="nothing"):
            await client.call_tool("nothing")
        with pytest.raises(ServerError) as unknown:
            await client.request("no/such/method")
        assert unknown.value.code == -32601
        long = "x" * 100_000
        with pytest.raises(ToolFailed) as lengthy:
            await client.call_tool("fail", {"words": long})
        assert lengthy.value.result.text == long
        assert len(str(lengthy.value)) < 10_000


# -- calls


async def test_progress(open_own: Open) -> None:
    async with open_own() as client:
        seen: list[Any] = []
        assert (await client.call_tool("steps", on_progress=lambda *step: seen.append(step))).text == "done"
        assert seen == [(n, 3.0, f"{n} of 3") for n in (1, 2, 3)]

        def broken(*_: Any) -> None:
            raise RuntimeError("no")

        assert (await client.call_tool("steps", on_progress=broken)).text == "done", "a handler's fault is its own"
        assert any("on_progress raised" in problem for problem in client.problems)


@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_a_cancelled_call_ends_the_handler_of_its_question(open_own: Open, how: str) -> None:
    async with open_own() as client:
        begun = asyncio.Event()
        seconds = None if how == "cancel" else 0.3
        call = asyncio.ensure_future(client.call_tool("wait", on_progress=lambda *_: begun.set(), timeout=seconds))
        await asyncio.wait_for(begun.wait(), 10)
        if how == "cancel":
            call.cancel()
        with pytest.raises(asyncio.CancelledError if how == "cancel" else CallTimeout):
            await asyncio.wait_for(call, 10)

        async def seen() -> bool:
            return await client.call_tool("events", returns=list[str]) == ["cancelled"]

        async with asyncio.timeout(10):
            while not await seen():
                await asyncio.sleep(0.01)
        assert client.problems == []


async def test_a_thousand_calls_at_once(open_own: Open) -> None:
    async with open_own() as client:
        results = await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(1000)))
        assert [result.text for result in results] == [str(n) for n in range(1000)]


async def test_log_messages(open_own: Open) -> None:
    heard: list[LogMessage] = []
    async with open_own(on_log=heard.append, log_level="info") as client:
        await client.call_tool("chat")
        await until("two", lambda: len(heard) == 2)
        assert [(each.level, each.data) for each in heard] == [("info", {"step": 1}), ("warning", "careful")]
        assert heard[0].logger == "chatty"
        await client.set_log_level("debug")
        await client.call_tool("chat")
        await until("three more", lambda: len(heard) == 5)
        assert heard[2].data == "fine print"
        await client.set_log_level("error")
        await client.call_tool("chat")
        await client.ping()
        assert len(heard) == 5


# -- questions


async def test_elicitation(open_own: Open) -> None:
    asked: list[str] = []
    answers: list[Any] = [
        True,
        {"ok": True},
        {"value": True},
        False,
        None,
        ElicitAnswer("decline"),
        ElicitAnswer("cancel"),
    ]

    def elicit(question: ElicitQuestion) -> Any:
        asked.append(question.message)
        [field] = (question.schema or {})["properties"]
        given = answers.pop(0)
        return {field: True} if isinstance(given, dict) or given is True else given

    async with open_own(on_elicit=elicit) as client:
        results = [await client.call_tool("refund", {"order": str(n)}, check=False) for n in range(7)]
        assert [result.text for result in results[:3]] == ["refunded"] * 3
        assert all(result.text != "refunded" for result in results[3:])
        assert asked == [f"Refund {n}?" for n in range(7)]
        events = await client.call_tool("events", returns=list[str])
        assert [event for event in events if event.endswith("True")] == [f"refund {n} True" for n in range(3)]


async def test_a_raising_handler_fails_the_call_with_its_text(open_own: Open) -> None:
    async def elicit(_: Any) -> Any:
        raise RuntimeError("the person has left")

    async with open_own(on_elicit=elicit) as client:
        with pytest.raises(ClientError, match="RuntimeError"):
            await client.call_tool("refund", {"order": "1"})
        assert any("the person has left" in problem for problem in client.problems)
        assert (await client.call_tool("echo", {"text": "x"})).text == "x"
        assert await client.call_tool("events", returns=list[str]) == []


async def test_a_question_without_a_handler_is_refused(open_own: Open) -> None:
    async with open_own() as client:
        for name, arguments in (("refund", {"order": "1"}), ("title", {"topic": "x"}), ("where", {})):
            with pytest.raises(ClientError):
                await client.call_tool(name, arguments)
        assert await client.call_tool("events", returns=list[str]) == []


SAID = {"type": "text", "text": "a text"}


@pytest.mark.parametrize(
    "given",
    ["a text", SampleAnswer("assistant", SAID, "m", "endTurn"), {"role": "assistant", "content": SAID, "model": "m"}],
    ids=["text", "answer", "dict"],
)
def test_sampling(open_own: Open, given: Any) -> None:
    async def test() -> None:
        asked: list[dict[str, Any]] = []

        async def sample(params: dict[str, Any]) -> Any:
            asked.append(params)
            return given

        async with open_own(on_sample=sample) as client:
            assert (await client.call_tool("title", {"topic": "ships"})).text == "a text"
            assert asked[0]["maxTokens"] == 30
            assert "A title for ships" in str(asked[0]["messages"])

    run(test)


async def test_roots(open_own: Open, tmp_path: Path) -> None:
    async with open_own(roots=[str(tmp_path), Root("file:///other", "Other")]) as client:
        assert (await client.call_tool("where")).text == f"{tmp_path.as_uri()} file:///other"
        await client.set_roots(["file:///new"])
        assert (await client.call_tool("where")).text == "file:///new"


async def test_several_rounds_of_questions(open_own: Open) -> None:
    asked: list[str] = []

    async def elicit(question: ElicitQuestion) -> Any:
        asked.append(question.message)
        [field] = (question.schema or {})["properties"]
        return {field: "tonight" if question.message == "When?" else True}

    async with open_own(on_elicit=elicit, on_sample=lambda _: "fish") as client:
        assert (await client.call_tool("book", {"guests": 4})).text == "4 tonight True fish"
        assert asked == ["When?", "At the window?"]
        assert await client.call_tool("events", returns=list[str]) == ["charged"], "once, however often the body ran"


# -- resources, prompts, completion


async def test_resources(open_own: Open) -> None:
    async with open_own() as client:
        assert sorted(each.uri for each in await client.list_resources()) == ["blob://logo", "note://welcome"]
        assert [each.uri_template for each in await client.list_templates()] == ["item://{sku}"]
        [welcome] = await client.read_resource("note://welcome")
        assert (welcome.text, welcome.mime_type) == ("hello", "text/plain")
        [logo] = await client.read_resource("blob://logo")
        assert not logo.text
        assert logo.blob == PIXEL
        [item] = await client.read_resource("item://cup")
        assert msgspec.json.decode(item.text or "") == {"sku": "cup", "stock": 3}
        for uri in ("item://none", "note://none", "", "not a uri"):
            with pytest.raises(ServerError):
                await client.read_resource(uri)


async def test_prompts_and_completion(open_own: Open) -> None:
    async with open_own() as client:
        [review] = await client.list_prompts()
        assert (review.name, review.title) == ("review", "Review")
        assert [each["name"] for each in review.arguments] == ["code", "tone"]
        filled = await client.get_prompt("review", {"code": "x = 1", "tone": "strict"})
        assert [message.role for message in filled.messages] == ["user", "assistant"]
        first = filled.messages[0].content
        assert isinstance(first, Text) and first.text == "Review in a strict tone: x = 1"
        with pytest.raises(ServerError):
            await client.get_prompt("review")
        with pytest.raises(ServerError):
            await client.get_prompt("nothing")
        assert (await client.complete("item://{sku}", "sku", "c")).values == ["cup", "cap"]
        assert (await client.complete("review", "code", "x")).values == ["x-any"]
        assert (await client.complete("review", "code", "x", {"tone": "kind"})).values == ["x-kind"]
        assert (await client.complete("review", "tone", "s")).values == ["strict"]
