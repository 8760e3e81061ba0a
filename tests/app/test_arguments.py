"""Arguments of a typed tool, end to end: what is refused, in words that a model can act on, and what is mended."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from longshore import Server
from talk import Client, Refused, call, converse, talk, text


class Size(enum.Enum):
    S = "small"
    L = "large"


@dataclass
class Item:
    name: str
    count: int = 1


def shop() -> tuple[Server, list[Any]]:
    app = Server("t")
    seen: list[Any] = []

    @app.tool(run="inline")
    def order(
        item: Item,
        address: str,
        tags: list[str] = [],  # noqa: B006
        size: Size = Size.S,
        count: Annotated[int, Meta(ge=1, le=10)] = 1,
        note: str | None = None,
        extras: dict[str, int] | None = None,
        mode: Literal["fast", "slow"] = "fast",
    ) -> str:
        seen.append((item, address, tags, size, count, note, extras, mode))
        return "ordered"

    @app.tool(run="inline")
    def nothing() -> str:
        return "nothing"

    return app, seen


GOOD = {"item": {"name": "tea"}, "address": "here"}
BAD: list[tuple[Any, list[str]]] = [
    ({}, ["item: missing", "address: missing"]),
    ({"item": {"name": "tea"}}, ["address: missing (a string, required)"]),
    (GOOD | {"adress": "x"}, ["adress: unknown argument; did you mean address? (takes: item, address,"]),
    (GOOD | {"zzz": 1}, ["zzz: unknown argument (takes: item, address,"]),
    (GOOD | {"address": 5}, ["address: "]),
    (GOOD | {"address": None}, ["address: "]),
    (GOOD | {"count": "many"}, ["count: "]),
    (GOOD | {"count": 0}, ["count: "]),
    (GOOD | {"count": 11}, ["count: "]),
    (GOOD | {"count": 1.5}, ["count: "]),
    (GOOD | {"count": True}, ["count: "]),
    (GOOD | {"size": "medium"}, ["size: ", "small", "large"]),
    (GOOD | {"mode": "fst"}, ["mode: ", "fast", "slow"]),
    (GOOD | {"tags": "a,b"}, ["tags: "]),
    (GOOD | {"tags": [1]}, ["tags[0]: "]),
    (GOOD | {"extras": {"a": "b"}}, ["extras.a: "]),
    ({"item": {}, "address": "x"}, ["item"]),
    ({"item": {"name": "tea", "count": "x"}, "address": "x"}, ["item.count: "]),
    ({"item": "tea", "address": 5, "zzz": 1}, ["item: ", "address: ", "zzz: "]),
    ([], ["expected an object with the arguments of order"]),
    ("x", ["expected an object with the arguments of order"]),
    (5, ["expected an object with the arguments of order"]),
]


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_wrong_arguments_are_an_error_result_with_a_line_for_each_fault(arguments: Any, words: list[str]) -> None:
    app, seen = shop()
    answer = call(app, "order", arguments)
    assert answer["isError"] is True
    first, *lines = text(answer).splitlines()
    assert first == "order: invalid arguments"
    assert all(any(word in line for line in lines) for word in words)
    assert seen == []
    assert not any(word in text(answer) for word in ("msgspec", "pydantic", "http", "$", "`"))


@pytest.mark.parametrize(
    ("arguments", "index", "value"),
    [
        (GOOD, 0, Item("tea")),
        (GOOD | {"item": '{"name": "tea", "count": 2}'}, 0, Item("tea", 2)),
        (GOOD | {"tags": '["a", "b"]'}, 2, ["a", "b"]),
        (GOOD | {"extras": '{"a": 1}'}, 6, {"a": 1}),
        (GOOD | {"count": 3.0}, 4, 3),
        (GOOD | {"address": "[1]"}, 1, "[1]"),
        (GOOD | {"note": '{"a": 1}'}, 5, '{"a": 1}'),
        (GOOD | {"note": None}, 5, None),
        (GOOD | {"size": "large"}, 3, Size.L),
    ],
)
def test_arguments_with_an_obvious_meaning_are_repaired(arguments: Any, index: int, value: Any) -> None:
    app, seen = shop()
    assert text(call(app, "order", arguments)) == "ordered"
    assert seen[0][index] == value


def test_repeated_calls_give_the_same_answers() -> None:
    app, _ = shop()

    async def script(client: Client) -> None:
        async def faults() -> list[str]:
            return [text(await client.request("tools/call", {"name": "order", "arguments": bad})) for bad, _ in BAD]

        before = await faults()
        for _ in range(10):
            await client.call_tool("order", **GOOD)
        assert await faults() == before

    converse(app, script)


@pytest.mark.parametrize("params", [{}, {"arguments": None}, {"arguments": {}}])
def test_no_arguments_may_be_left_out_null_or_empty(params: dict[str, Any]) -> None:
    app, _ = shop()
    answers = talk(app, *[("tools/call", {"name": "nothing"} | params)] * 8)
    assert [text(answer["result"]) for answer in answers] == ["nothing"] * 8
    assert text(call(app, "order", None)).count("missing") == 2


def test_a_tool_without_parameters_says_so() -> None:
    answer = call(shop()[0], "nothing", {"x": 1})
    assert "x: unknown argument (nothing takes no arguments)" in text(answer)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"name": "oder", "arguments": GOOD}, "no tool 'oder'; did you mean 'order'?"),
        ({"name": "zzzzzz"}, "no tool 'zzzzzz'"),
        ({"name": "x" * 500}, "no tool 'xxx"),
        ({"arguments": {}}, "name"),
        ({"name": 5}, "name"),
        ({"name": None}, "name"),
    ],
)
def test_an_unknown_tool_or_a_malformed_call_is_an_invalid_parameter(params: dict[str, Any], words: str) -> None:
    app, _ = shop()
    [answer] = talk(app, ("tools/call", params))
    assert answer["error"]["code"] == -32602
    assert words in answer["error"]["message"] and len(answer["error"]["message"]) < 300


def test_defaults_are_fresh_for_every_call() -> None:
    app = Server("t")

    @app.tool
    def gather(item: str, into: list[str] = []) -> list[str]:  # noqa: B006
        into.append(item)
        return into

    for item in "abcdefg":
        assert call(app, "gather", {"item": item})["structuredContent"] == {"result": [item]}


def test_exceptions_are_masked_except_tool_errors() -> None:
    from longshore import ToolError

    app = Server("t")

    @app.tool
    def say() -> str:
        raise ToolError("the shop is closed; try tomorrow")

    @app.tool
    def leak() -> str:
        raise RuntimeError("password=hunter2")

    assert call(app, "say") == {
        "content": [{"type": "text", "text": "the shop is closed; try tomorrow"}],
        "isError": True,
    }
    assert "hunter2" not in str(call(app, "leak"))
    with pytest.raises(Refused):
        call(app, "lek")
