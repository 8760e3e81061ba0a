"""The raw level: an author's schema and handler, with nothing inferred and nothing wrapped."""

from __future__ import annotations

import asyncio
import functools
import socket
from typing import Any

import pytest

from longshore import CallResult, Context, Image, RegistrationError, Server, Text, Tool
from longshore.protocol.revisions import NAMES
from longshore.telemetry.records import Problem
from talk import ERAS, NEWEST, NEWEST_LEGACY, Refused, call, listed, result, text

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.com/order",
    "$comment": "kept",
    "title": "Order",
    "type": "object",
    "properties": {
        "kind": {"type": "string", "enum": ["book", "car"], "x-mcp-header": "Kind"},
        "pages": {"$ref": "#/$defs/count"},
        "weight": {"$ref": "#weight"},
        "when": {"type": "string", "format": "date", "examples": ["2026-07-28"]},
        "tags": {"type": "array", "prefixItems": [{"type": "string"}], "items": False, "uniqueItems": True},
    },
    "patternProperties": {"^x-": {"type": "string"}},
    "required": ["kind"],
    "dependentRequired": {"pages": ["kind"]},
    "if": {"properties": {"kind": {"const": "book"}}},
    "then": {"required": ["pages"]},
    "else": {"not": {"required": ["pages"]}},
    "allOf": [{"minProperties": 1}],
    "unevaluatedProperties": False,
    "$defs": {"count": {"type": "integer", "minimum": 1}, "w": {"$anchor": "weight", "type": "number"}},
}


def echo(arguments: dict[str, Any], ctx: Context) -> CallResult:
    return CallResult([Text("done")], structured={"given": arguments, "tool": ctx.name})


async def echo_async(arguments: dict[str, Any], ctx: Context) -> CallResult:
    await asyncio.sleep(0)
    return echo(arguments, ctx)


class Handler:
    def __call__(self, arguments: dict[str, Any], ctx: Context) -> CallResult:
        return echo(arguments, ctx)

    def method(self, arguments: dict[str, Any], ctx: Context) -> CallResult:
        return echo(arguments, ctx)

    async def coroutine(self, arguments: dict[str, Any], ctx: Context) -> CallResult:
        return echo(arguments, ctx)


async def _bound(shop: str, arguments: dict[str, Any], ctx: Context) -> CallResult:
    return echo(arguments, ctx)


def app_with(handler: Any = echo, **options: Any) -> Server:
    app = Server("t")
    app.add_tool(Tool(**{"name": "order", "input_schema": SCHEMA} | options), handler)
    return app


@pytest.mark.parametrize("revision", NAMES)
def test_every_keyword_of_the_schema_stands_in_the_list_as_it_was_written(revision: str) -> None:
    shown = listed(app_with(), "order", revision)
    assert shown == {"name": "order", "inputSchema": SCHEMA}
    assert list(shown["inputSchema"]) == list(SCHEMA)


@pytest.mark.parametrize(
    "handler",
    [
        echo,
        echo_async,
        Handler(),
        Handler().method,
        Handler().coroutine,
        functools.partial(_bound, "shop"),
        functools.wraps(echo_async)(lambda *args: echo_async(*args)),
        lambda arguments, ctx: echo(arguments, ctx),
        lambda *args: echo(*args),
    ],
)
def test_a_handler_gets_the_arguments_as_they_came_and_the_context(handler: Any) -> None:
    arguments = {"kind": "book", "pages": 3, "x-more": "1"}
    answer = call(app_with(handler), "order", arguments)
    assert answer["structuredContent"] == {"given": arguments, "tool": "order"}
    assert text(answer) == "done"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "kind"),
        ({"kind": "boat"}, "kind"),
        ({"kind": "book"}, "pages"),
        ({"kind": "car", "pages": 3}, "forbidden"),
        ({"kind": "book", "pages": 0}, "pages"),
        ({"kind": "car", "weight": "heavy"}, "weight"),
        ({"kind": "car", "zzz": 1}, "zzz"),
        ({"kind": "car", "tags": ["a", "b"]}, "tags"),
        ([], "object"),
        ("x", "object"),
        (7, "object"),
    ],
)
def test_arguments_that_break_the_schema_never_reach_the_handler(arguments: Any, words: str) -> None:
    calls: list[Any] = []

    def handler(arguments: dict[str, Any], ctx: Context) -> CallResult:
        calls.append(arguments)
        return CallResult([])

    answer = call(app_with(handler), "order", arguments)
    assert answer["isError"] is True
    assert text(answer).startswith("order: invalid arguments\n") and words in text(answer)
    assert calls == []


def test_arguments_are_as_they_came_where_validation_is_off() -> None:
    app = app_with(validate=False)
    assert call(app, "order", {"kind": 5, "zzz": [None]})["structuredContent"]["given"] == {"kind": 5, "zzz": [None]}
    assert call(app, "order", [])["isError"] is True


def test_null_means_no_arguments() -> None:
    async def script(client: Any) -> Any:
        return await client.request("tools/call", {"name": "order", "arguments": None})

    from talk import converse

    app = app_with(input_schema={"type": "object"})
    assert converse(app, script)["structuredContent"]["given"] == {}


WHOLE = {
    "content": [{"type": "text", "text": "a", "x": 1}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}],
    "structuredContent": {"b": [1]},
    "isError": True,
    "_meta": {"example.com/k": {"deep": None}},
}


@pytest.mark.parametrize("revision", ["2025-06-18", *ERAS])
def test_a_whole_result_as_an_object_goes_out_untouched(revision: str) -> None:
    import copy

    mine = copy.deepcopy(WHOLE)
    answer = call(app_with(lambda a, c: mine), "order", {"kind": "car"}, revision)
    assert {key: answer[key] for key in ("content", "structuredContent", "isError")} == {
        key: WHOLE[key] for key in ("content", "structuredContent", "isError")
    }
    assert answer["_meta"]["example.com/k"] == {"deep": None}
    assert mine == WHOLE


@pytest.mark.parametrize("value", ["text", None, 5, [Text("a")], Image(b""), {"no": "content"}, {"content": "text"}])
@pytest.mark.parametrize("output", [None, {"type": "object"}])
def test_anything_but_a_whole_result_is_an_error(value: Any, output: Any) -> None:
    app = app_with(lambda a, c: value, output_schema=output)
    heard: list[Any] = []
    app.listen(heard.append)
    answer = call(app, "order", {"kind": "car"})
    assert answer["isError"] is True
    assert "a raw handler returns a CallResult or an object with `content`" in text(answer)
    assert [type(record) for record in heard].count(Problem) == 1


@pytest.mark.parametrize(
    ("schema", "structured", "fits"),
    [
        ({"type": "object", "required": ["n"]}, {"n": 1}, True),
        ({"type": "object", "required": ["n"]}, {}, False),
        ({"type": "object"}, None, False),
        ({"type": "array", "items": {"type": "integer"}}, [1], True),
        ({"type": "array", "items": {"type": "integer"}}, ["a"], False),
        ({"oneOf": [{"type": "object"}, {"type": "null"}]}, {"a": 1}, True),
    ],
)
@pytest.mark.parametrize("revision", ERAS)
def test_an_output_schema_is_enforced_and_wrapped_where_the_revision_knows_only_objects(
    schema: dict[str, Any], structured: Any, fits: bool, revision: str
) -> None:
    def handler(arguments: Any, ctx: Context) -> dict[str, Any]:
        return {"content": []} if structured is None else {"content": [], "structuredContent": structured}

    app = app_with(handler, output_schema=schema)
    answer = call(app, "order", {"kind": "car"}, revision)
    assert ("isError" not in answer) is fits
    if fits:
        wrap = revision != NEWEST and schema.get("type") != "object"
        assert answer["structuredContent"] == ({"result": structured} if wrap else structured)
        shown = listed(app, "order", revision)["outputSchema"]
        assert shown == (
            {"type": "object", "properties": {"result": schema}, "required": ["result"]} if wrap else schema
        )


def test_an_object_that_is_none_is_wrapped_for_an_older_peer_without_a_schema_too() -> None:
    app = app_with(lambda a, c: {"content": [], "structuredContent": [1]})
    assert call(app, "order", {"kind": "car"}, NEWEST_LEGACY)["structuredContent"] == {"result": [1]}
    assert call(app, "order", {"kind": "car"}, NEWEST)["structuredContent"] == [1]


@pytest.mark.parametrize("uri", ["https://127.0.0.1:9/s.json", "http://127.0.0.1:9/s", "file:///etc/passwd"])
def test_a_reference_to_elsewhere_is_never_fetched(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: Any, **__: Any) -> None:
        raise AssertionError("somebody called out")

    schema = {"type": "object", "properties": {"a": {"$ref": uri}}}
    with pytest.raises(RegistrationError, match="E09"):
        app_with(input_schema=schema)
    app = app_with(input_schema=schema, waive={"E09": "it is known there"})
    assert listed(app, "order")["inputSchema"] == schema
    heard: list[Any] = []
    app.listen(heard.append)
    monkeypatch.setattr(socket.socket, "connect", connect)
    answer = call(app, "order", {"a": 1})
    assert answer["isError"] is True and "failed unexpectedly" in text(answer)
    [problem] = [record for record in heard if isinstance(record, Problem)]
    assert "never fetched" in problem.trace


def test_an_unknown_raw_tool_is_refused_with_the_nearest() -> None:
    with pytest.raises(Refused) as caught:
        call(app_with(), "ordr")
    assert caught.value.code == -32602 and "did you mean 'order'?" in caught.value.message


def test_a_raw_tool_can_be_replaced_and_removed() -> None:
    app = app_with()
    app.add_tool(Tool(name="order", input_schema={"type": "object"}), echo, replace=True)
    assert listed(app, "order")["inputSchema"] == {"type": "object"}
    app.remove_tool("order")
    assert result(app, "tools/list")["tools"] == []
