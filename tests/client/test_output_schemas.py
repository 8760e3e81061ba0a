"""A tool's output schema holds until its list changes, and is compiled once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from client.scripted import script, until
from longshore.client import Client
from longshore.errors import BadAnswer, ConnectionLost
from longshore.schema import validate

SERVER = """
CAPABILITIES["tools"] = dict(listChanged=True)
here = os.path.dirname(__file__)
def lines(): return len(open(os.path.join(here, "lists")).read())
mark("starts")
def promising(key):
    schema = dict(type="object", required=[key])
    return dict(TOOL, outputSchema=schema, annotations=dict(readOnlyHint=True))
tool = promising("a")
for m in asks():
    name = m.get("params", {}).get("name")
    if m.get("method") == "tools/list":
        mark("lists")
        BEFORE
        reply(m, dict(tools=[tool]))
    elif usual(m): pass
    elif m["params"].get("arguments", {}).get("die"): mark("calls"); os._exit(1)
    elif m["params"].get("arguments", {}).get("change"):
        notify("notifications/" + m["params"]["arguments"]["change"] + "/list_changed")
        reply(m, dict(DONE, structuredContent=dict(a=1)))
    else: reply(m, dict(DONE, structuredContent=dict(b=1)))
"""


def connect_to(folder: Path, before: str = "pass", **options: Any) -> Client:
    return Client(script(folder, SERVER.replace("BEFORE", before)), **{"era": "legacy", "timeout": 10.0, **options})


def lines(folder: Path, name: str) -> int:
    path = folder / name
    return len(path.read_text()) if path.exists() else 0


async def is_held(client: Client) -> bool:
    """Whether a result that breaks the promise is refused."""
    try:
        await client.call_tool("x")
    except BadAnswer:
        return True
    return False


async def test_a_promise_ends_with_its_listing(tmp_path: Path) -> None:
    async with connect_to(tmp_path) as client:
        await client.list_tools()
        assert await is_held(client)
        await client.call_tool("x", {"change": "prompts"})
        assert await is_held(client), "that was something else"
        await client.call_tool("x", {"change": "tools"})
        assert not await is_held(client), "it may promise something else by now"
        await client.list_tools()
        assert await is_held(client)


async def test_a_listing_that_a_change_has_overtaken_promises_nothing(tmp_path: Path) -> None:
    async with connect_to(tmp_path, "notify('notifications/tools/list_changed')") as client:
        assert len(await client.list_tools()) == 1
        assert not await is_held(client)


@pytest.mark.parametrize("again", ["lost", "closed"])
async def test_a_promise_ends_with_its_connection(tmp_path: Path, again: str) -> None:
    client = connect_to(tmp_path)
    async with client:
        await client.list_tools()
        assert await is_held(client)
        if again == "lost":
            with pytest.raises(ConnectionLost):
                await client.call_tool("x", {"die": True})
            await until("it is noticed", lambda: not client.connected)
            assert not await is_held(client)
    if again == "closed":
        async with client:
            assert not await is_held(client)


@pytest.mark.parametrize(("change", "calls"), [("prompts", 2), ("tools", 1)])
async def test_only_a_promise_that_holds_lets_a_call_be_sent_again(tmp_path: Path, change: str, calls: int) -> None:
    async with connect_to(tmp_path) as client:
        await client.list_tools()
        await client.call_tool("x", {"change": change})
        with pytest.raises(ConnectionLost):
            await client.call_tool("x", {"die": True})
        assert lines(tmp_path, "calls") == calls


async def test_a_promise_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    real = validate.compile

    def compile(schema: Any) -> Any:
        compiled.append(schema["required"])
        return real(schema)

    monkeypatch.setattr(validate, "compile", compile)
    async with connect_to(tmp_path, "if lines() == 4: tool = promising('c')") as client:
        for _ in range(3):
            await client.list_tools(fresh=True)
            assert await is_held(client)
        assert compiled == [["a"]]
        await client.list_tools(fresh=True)
        assert await is_held(client)
        assert compiled == [["a"], ["c"]], "another promise is another"
