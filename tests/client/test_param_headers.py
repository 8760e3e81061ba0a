"""Arguments that the headers of a modern HTTP call repeat, and tools whose marks for that are wrong."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from client.http.scripted import Got, Wire, result, run, scripted
from longshore.client import Client
from longshore.errors import ServerError
from longshore.protocol.http_headers import read_value

MODERN = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}


def marked(name: str, **properties: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def mark(header: Any, type: Any = "string") -> dict[str, Any]:
    return {"type": type, "x-mcp-header": header}


GOOD = marked(
    "good", a=mark("Region"), n=mark("Count", "integer"), b=mark("Dry-Run", "boolean"), plain={"type": "string"}
)
NESTED = marked("nested", where={"type": "object", "properties": {"city": mark("City")}})
WRONG = [
    marked("empty", a=mark("")),
    marked("space", a=mark("a b")),
    marked("colon", a=mark("a:b")),
    marked("line", a=mark("a\r\nX-Evil: 1")),
    marked("number", a=mark(5)),
    marked("null", a=mark(None)),
    marked("non-ascii", a=mark("Größe")),
    marked("twice", a=mark("Same"), b=mark("same")),
    marked("object", a=mark("Region", "object")),
    marked("list", a=mark("Region", "array")),
    marked("fraction", a=mark("Region", "number")),
]


class Calls:
    def __init__(self, tools: list[Any]) -> None:
        self.tools = tools
        self.made: list[Got] = []
        self.refuse = 0

    async def __call__(self, got: Got, wire: Wire) -> None:
        message = got.message
        match message.get("method"):
            case "server/discover":
                await wire.answer(200, result(message, **MODERN))
            case "tools/list":
                await wire.answer(200, result(message, tools=self.tools))
            case "tools/call":
                self.made.append(got)
                if len(self.made) <= self.refuse:
                    fault = {"code": -32020, "message": "headers and body differ"}
                    await wire.answer(400, {"jsonrpc": "2.0", "id": message["id"], "error": fault})
                else:
                    await wire.answer(200, result(message, content=[]))
            case _:
                await wire.answer(202)


def params(got: Got) -> dict[str, str | None]:
    found = {name: value for name, value in got.headers.items() if name.startswith("mcp-param-")}
    return {name.removeprefix("mcp-param-"): read_value(value.encode("latin-1")) for name, value in found.items()}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda tool: tool["name"])
async def test_a_tool_with_wrong_header_marks_is_left_out_and_reported(wrong: Any) -> None:
    async with scripted(Calls([GOOD, wrong, NESTED])) as server, Client(server.url) as client:
        assert [tool.name for tool in await client.list_tools()] == ["good", "nested"]
        [problem] = client.problems
        assert repr(wrong["name"]) in problem
        assert "\n" not in problem and "\r" not in problem


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"a": "eu"}, {"region": "eu"}),
        ({"a": "eu", "n": 5, "b": True}, {"region": "eu", "count": "5", "dry-run": "true"}),
        ({"b": False, "n": 0}, {"dry-run": "false", "count": "0"}),
        ({"n": 5.0}, {"count": "5"}),
        ({"a": None}, {}),
        ({}, {}),
        ({"a": ""}, {"region": ""}),
        ({"a": " padded "}, {"region": " padded "}),
        ({"a": "ü ☃"}, {"region": "ü ☃"}),
        ({"a": "a\r\nX-Evil: 1"}, {"region": "a\r\nX-Evil: 1"}),
        ({"a": "=?base64?aGk=?="}, {"region": "=?base64?aGk=?="}),
        ({"a": ["no", "text"]}, {}),
        ({"plain": "x"}, {}),
    ],
)
async def test_arguments_go_into_headers_as_they_are_marked(arguments: dict[str, Any], headers: dict[str, str]) -> None:
    calls = Calls([GOOD])
    async with scripted(calls) as server, Client(server.url) as client:
        await client.list_tools()
        await client.call_tool("good", arguments)
        [got] = calls.made
        assert params(got) == headers
        assert "x-evil" not in got.headers
        assert got.message["params"]["arguments"] == arguments


class Color(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("given", "body", "header"),
    [
        (Color.RED, "red", "red"),
        (date(2026, 1, 2), "2026-01-02", "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00Z", "2026-01-02T03:04:00Z"),
        (Decimal("1.50"), "1.50", "1.50"),
        (UUID(int=5), str(UUID(int=5)), str(UUID(int=5))),
        (b"\x00", "AA==", "AA=="),
        (("x",), ["x"], None),
        (float("nan"), None, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_header_repeats_the_argument_of_the_body(given: Any, body: Any, header: str | None) -> None:
    """Not what Python would print."""

    async def test() -> None:
        calls = Calls([GOOD])
        async with scripted(calls) as server, Client(server.url) as client:
            await client.list_tools()
            await client.call_tool("good", {"a": given})
            [got] = calls.made
            assert got.message["params"]["arguments"] == {"a": body}
            assert params(got).get("region") == header

    run(test)


async def test_marks_below_the_top() -> None:
    calls = Calls([NESTED])
    async with scripted(calls) as server, Client(server.url) as client:
        await client.list_tools()
        for given in ({"where": {"city": "Rome"}}, {"where": "Rome"}, {"where": None}):
            await client.call_tool("nested", given)
        assert [params(got) for got in calls.made] == [{"city": "Rome"}, {}, {}]


async def test_a_call_that_is_refused_for_its_headers_is_made_once_more_with_the_tools_of_now() -> None:
    calls = Calls([GOOD])
    calls.refuse = 1
    async with scripted(calls) as server, Client(server.url) as client:
        await client.call_tool("good", {"a": "eu"})
        assert [params(got) for got in calls.made] == [{}, {"region": "eu"}]


async def test_and_no_more_than_once() -> None:
    calls = Calls([GOOD])
    calls.refuse = 100
    async with scripted(calls) as server, Client(server.url) as client:
        with pytest.raises(ServerError, match="differ"):
            await client.call_tool("good", {"a": "eu"})
        assert len(calls.made) == 2
