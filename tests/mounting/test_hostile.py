"""A hostile mounted server does little harm, and is logged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from longshore import Server, ToolFailed
from longshore.mounting.entries import ENTRIES, mounted_name, visible

from .gateway import hostile, problems, run, through, until


def offered(mode: str, *more: str) -> tuple[list[Any], list[str]]:
    """The tools that are listed, and what was told."""

    async def main() -> tuple[list[Any], list[str]]:
        gate = Server("gate")

        @gate.tool
        def h_own() -> str:
            """Ours, by a name that the other wants too."""
            return "ours"

        told = problems(gate)
        gate.mount(hostile(mode, *more), prefix="h")
        mount: Any = gate.catalog.toolsets["h"].toolset
        async with through(gate) as client:
            await client.list_tools()
            await until("what it offers", lambda: not mount.pending and mount.supervisor().state != "starting")
            tools = await client.list_tools(fresh=True)
            assert (await client.call_tool("h_own")).text == "ours"
        return [tool for tool in tools if tool.name != "h_own"], told

    return run(main)


def test_more_tools_than_anybody_could_use() -> None:
    tools, told = offered("many")
    assert len(tools) == ENTRIES
    assert "4000 more tools" in told[0]


def test_a_hundred_thousand_tools() -> None:
    tools, told = offered("many", "all")
    assert tools == []
    assert any("more than 100,000 entries" in text for text in told)


def test_pages_without_end() -> None:
    tools, told = offered("pages")
    assert tools == []
    assert "more than 1000 pages" in told[0]


def test_a_description_that_fills_the_memory() -> None:
    tools, told = offered("huge")
    assert [tool.name for tool in tools] == ["h_go"]
    assert "the tool 'long': its definition takes" in told[0]


def test_many_long_descriptions() -> None:
    tools, told = offered("heavy")
    assert 60 < len(tools) < 70
    assert "more tools" in told[0]


def test_a_definition_of_just_the_size() -> None:
    tools, told = offered("edges")
    assert [tool.name for tool in tools] == ["h_fits"]
    assert "the tool 'one_more': its definition takes 65,537 bytes, and may take 65,536" in told[0]


def test_definitions_that_just_fit_together() -> None:
    tools, told = offered("full")
    assert [tool.name for tool in tools] == [f"h_t{n:02}" for n in range(64)]
    assert "1 more tools: it may bring 1000 that take 4,194,304 bytes" in told[0]


def test_tools_that_require_tasks_are_left_out() -> None:
    tools, told = offered("tasks")
    assert [tool.name for tool in tools] == ["h_go"]
    assert "execution" not in tools[0].record
    assert "the tool 'long': it can only be called as a task" in told[0]


async def test_lists_that_it_does_not_have_take_no_others_with_them() -> None:
    gate = Server("gate")
    told = problems(gate)
    gate.mount(hostile("half"), prefix="h")
    async with through(gate) as client:
        assert [tool.name for tool in await client.list_tools()] == ["h_go"]
        assert {each.uri for each in await client.list_resources()} == {"test://good", "test://bad"}
        assert (await client.call_tool("h_go")).text == "went"
        everything = "\n".join(told)
        for kind in ("templates", "prompts"):
            assert f"left out: all {kind}: no such method (-32601)" in everything
        assert "gone" not in everything
        assert gate.catalog.toolsets["h"].toolset.status()["state"] == "ready"


def test_names_that_no_client_takes() -> None:
    tools, told = offered("names")
    names = [tool.name for tool in tools]
    assert len(set(names)) == len(names) == 9
    assert all(
        len(name) <= 64 and name.isascii() and name.replace("_", "").replace("-", "").isalnum() for name in names
    )
    assert names[:3] == ["h_go", mounted_name("h", "a b"), "h_a_b"]
    assert "it has no name" in told[0]
    assert "the tool 'go': another one has the same name" in told[0]
    assert "h_own: the name is taken" in told[0]


def test_malformed_definitions_are_left_out_alone() -> None:
    tools, told = offered("malformed")
    assert [tool.name for tool in tools] == ["h_go"]
    assert tools[0].description == "see[0m this"
    everything = "\n".join(told)
    for name in ("noschema", "notobject", "badtitle", "nonsense", "header"):
        assert name in everything


async def test_a_changed_definition_is_logged() -> None:
    gate = Server("gate")
    told = problems(gate)
    gate.mount(hostile("rug"), prefix="h")
    async with through(gate) as client:
        before = {tool.name: tool.description for tool in await client.list_tools()}
        assert before["h_go"] == "version 1"
        await client.call_tool("h_go")
        await until("the change", lambda: told)
        assert told == ["warning: mounted h: other tools under the same name: go"]
        after = {tool.name: tool.description for tool in await client.list_tools(fresh=True)}
        assert after["h_go"] != "version 1"


async def test_a_result_that_is_too_large() -> None:
    gate = Server("gate")
    gate.mount(hostile("result"), prefix="h")
    async with through(gate) as client:
        await client.list_tools()
        with pytest.raises(ToolFailed, match="the limit is"):
            await client.call_tool("h_go")


@pytest.mark.parametrize(
    ("mode", "text"),
    [("nonsense", "h answered with something that is no result"), ("fault", r"h: between us \(-32022\)")],
)
async def test_answers_that_are_none(mode: str, text: str) -> None:
    gate = Server("gate")
    gate.mount(hostile(mode), prefix="h")
    async with through(gate) as client:
        await client.list_tools()
        with pytest.raises(ToolFailed, match=text):
            await client.call_tool("h_go")


async def test_arguments_go_through_as_they_were_written() -> None:
    """Also what Python has no number for. What is no object is refused here."""
    from memory_link import Memory

    inner = Server("inner")
    from longshore.registry.tool import Tool

    def take(arguments: Any, _: Any) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": json.dumps(arguments)}]}

    inner.add_tool(Tool(name="take", input_schema={"type": "object"}, validate=False), take)
    gate = Server("gate")
    gate.mount(inner, prefix="i")
    async with through(gate, "legacy") as client:
        await client.list_tools()
        link = Memory(gate.engine)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
        link.put(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).encode())
        await link.get()
        for written, text in (
            (b'{"n": 12345678901234567890123, "f": 1.10}', '{"n": 12345678901234567890123, "f": 1.1}'),
            (b"null", "{}"),
            (b" { } ", "{}"),
            (b"[1]", "i_take: invalid arguments\narguments must be an object"),
        ):
            params = b'{"name":"i_take","arguments":%s}' % written
            link.put(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}' % params)
            answer = json.loads(await link.get())
            assert answer["result"]["content"][0]["text"] == text
        link.close()


@pytest.mark.parametrize("code", [0x200B, 0x2060, 0x2064, 0x206A, 0x206F, 0xE0001, 0xE0041, 0xE0100, 0xE01EF, 0xE0FFF])
def test_letters_that_only_models_see_are_taken_out(code: int) -> None:
    assert visible(f"a{chr(code)}b") == "ab"


@pytest.mark.parametrize(
    "text", ["\U0001f468\u200d\U0001f469", "\u2764\ufe0f", "\u0645\u200c\u06cc", "a\u00a0b", "a\u205fb"]
)
def test_joining_characters_stay_in_descriptions(text: str) -> None:
    assert visible(text) == text
