"""Schemas of servers are passed on unchanged, checked where they can be read, and can never block us."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from client.test_handshake import BOTH, connect_to
from longshore.errors import BadAnswer

OFFERING = """
    schema = json.loads({schema!r})
    for m in log():
        if m.get("method") == "tools/list":
            reply(m, {{"tools": [dict(TOOL, inputSchema={{**schema, "type": "object"}}, outputSchema=schema)]}})
        elif serve(m) and "id" in m:
            reply(m, dict(DONE, structuredContent=json.loads(m["params"]["arguments"]["give"])))
"""
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def offering(schema: Any) -> str:
    return OFFERING.format(schema=json.dumps(schema))


@BOTH
async def test_every_keyword_of_a_schema_is_passed_on_unchanged(tmp_path: Path, speaks: str) -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.test/x",
        "$anchor": "here",
        "$defs": {"a b": {"type": ["integer", "null"], "minimum": 1.5}},
        "properties": {"ä": {"$ref": "#/$defs/a%20b"}, "c": True, "d": {"x-mcp-own": {"deep": [None]}}},
        "unevaluatedProperties": False,
        "if": {},
        "x-unknown": [1, "two", {"three": 3}],
        "type": "object",
    }
    async with connect_to(tmp_path, speaks, offering(schema)) as client:
        [tool] = await client.list_tools()
        assert tool.input_schema == tool.output_schema == schema
        assert list(tool.record["outputSchema"]) == list(schema)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"properties": {"a": {"prefixItems": [{"type": "integer"}]}}}, {"a": [1]}, {"a": ["x"]}),
        ({"$schema": DRAFT_7, "properties": {"a": {"items": [{"type": "integer"}]}}}, {"a": [1]}, {"a": ["x"]}),
        ({"$schema": DRAFT_7, "properties": {"a": {"prefixItems": [{"type": "integer"}]}}}, {"a": ["x"]}, None),
        ({"$schema": "https://example.test/mine", "properties": {"a": {"type": "integer"}}}, {"a": "x"}, None),
        ({"$schema": 5, "properties": {"a": {"type": "integer"}}}, {"a": "x"}, None),
    ],
    ids=["2020-12 unless said otherwise", "draft 7", "draft 7 has no such word", "a dialect of its own", "none"],
)
async def test_a_schema_is_of_2020_12_unless_it_names_another_dialect(
    tmp_path: Path, schema: Any, good: Any, bad: Any
) -> None:
    """An unknown dialect checks nothing, and fails no call."""
    async with connect_to(tmp_path, "legacy", offering(schema)) as client:
        await client.list_tools()
        assert (await client.call_tool("x", {"give": json.dumps(good)})).structured == good
        if bad is not None:
            with pytest.raises(BadAnswer, match="breaks its own output schema"):
                await client.call_tool("x", {"give": json.dumps(bad)})


def nested(levels: int) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(levels):
        schema = {"anyOf": [schema]}
    return {"properties": {"a": schema}}


COSTLY = {
    "a pattern that never ends": {"properties": {"a": {"pattern": "^(a+)+$"}}},
    "many alternatives": {"properties": {"a": {"anyOf": [{"const": n} for n in range(20_000)]}}},
    "many levels": nested(30),
    "too many levels": nested(45),
    "references in a circle": {"$ref": "#/$defs/b", "$defs": {"b": {"$ref": "#/$defs/c"}, "c": {"$ref": "#/$defs/b"}}},
}


@pytest.mark.parametrize("schema", COSTLY.values(), ids=list(COSTLY))
async def test_the_cost_of_an_output_schema_is_bounded(tmp_path: Path, schema: Any) -> None:
    """The call ends, one way or the other, and so does the next."""
    async with connect_to(tmp_path, "legacy", offering(schema)) as client:
        await client.list_tools()
        for value in ("a" * 50 + "!", 1):
            try:
                assert (await client.call_tool("x", {"give": json.dumps({"a": value})})).structured == {"a": value}
            except BadAnswer as problem:
                assert "schema" in str(problem)


def doubling(levels: int, **last: Any) -> Any:
    twice = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**twice, f"d{levels}": {"type": "object"}, **last}}


def leftovers(levels: int) -> Any:
    schema: Any = {"properties": {"x": {}}}
    for _ in range(levels):
        schema = {"anyOf": [schema], "unevaluatedProperties": False}
    return schema


ENDLESS = {
    "references that double": doubling(40),
    "leftovers of leftovers": leftovers(28),
    "a long name over and over": doubling(10, d10={"$ref": "#/$defs/" + "a%20" * 250_000}, **{"a " * 250_000: {}}),
    "a place of 5,000 digits": {"anyOf": [{}, {"$ref": "#/anyOf/" + "1" * 5_000}]},
}


@pytest.mark.parametrize("schema", ENDLESS.values(), ids=list(ENDLESS))
async def test_a_schema_that_would_take_for_ever_is_not_checked_by(tmp_path: Path, schema: Any) -> None:
    async with connect_to(tmp_path, "legacy", offering(schema)) as client:
        await client.list_tools()
        assert (await client.call_tool("x", {"give": '{"x": 1}'})).structured == {"x": 1}
