"""Python stubs from input schemas: they can be parsed, and say what a call needs."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from benchmarks.catalog_corpus import read_tools

from longshore import Server, Tool
from longshore.builtin import make
from longshore.registry.tool import Entry
from longshore.toolsets.catalog.stubs import parameter_order, python_name, write_line, write_stub

TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    "required": ["name"],
}


def entry(name: str = "t", schema: Any = None, output: Any = None, description: str = "") -> Entry:
    app = Server("t", standards="off")
    whole = {"type": "object", **(schema or {})}
    app.add_tool(
        Tool(name=name, description=description, input_schema=whole, output_schema=output),
        lambda arguments, ctx: {"content": []},
    )
    return app.catalog.tools[name]


def typed(schema: Any, **more: Any) -> str:
    """The type of one required parameter with this schema."""
    stub = write_stub(entry(schema={"properties": {"x": schema}, "required": ["x"], **more}))
    return stub.removeprefix("def t(x: ").removesuffix(") -> str: ...")


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, "str"),
        ({"type": "integer"}, "int"),
        ({"type": "number"}, "float"),
        ({"type": "boolean"}, "bool"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "str | list[str]"),
        ({"enum": ["a", 1]}, "Literal['a', 1]"),
        ({"const": "a"}, "Literal['a']"),
        ({"type": "array"}, "list[Any]"),
        ({"type": "object"}, "dict"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]},
            '{"a": str, "b"?: int}',
        ),
        ({}, "Any"),
        (True, "Any"),
        ({"$ref": "#/$defs/none"}, "Any"),
    ],
)
def test_a_schema_is_a_type(schema: Any, kind: str) -> None:
    assert typed(schema) == kind


def test_references_are_followed_and_recursion_ends() -> None:
    assert typed({"$ref": "#/$defs/tree"}, **{"$defs": {"tree": TREE}}) == '{"name": str, "children"?: list[Any]}'


def test_required_parameters_come_first_in_the_order_of_the_schema() -> None:
    names = ["limit", "path", "offset", "text"]
    schema = {"properties": {name: {"type": "string"} for name in names}, "required": ["text", "path"]}
    assert parameter_order(schema) == ["path", "text", "limit", "offset"]
    assert write_stub(entry(schema=schema)) == (
        "def t(path: str, text: str, *, limit: str = ..., offset: str = ...) -> str: ..."
    )
    assert parameter_order({}) == []


def test_defaults_are_shown_and_long_ones_left_out() -> None:
    schema = {"properties": {"a": {"type": "integer", "default": 5}, "b": {"type": "string", "default": "x" * 99}}}
    assert write_stub(entry(schema=schema)) == "def t(*, a: int = 5, b: str = ...) -> str: ..."


def test_a_stub_is_one_line_however_long() -> None:
    schema = {"properties": {f"parameter_{n}": {"type": "string"} for n in range(9)}, "required": ["parameter_0"]}
    stub = write_stub(entry(schema=schema, description="Do it,\ntwice."))
    assert stub.startswith("def t(parameter_0: str, *, parameter_1: str = ..., ")
    assert stub.endswith(") -> str: ...  # Do it, twice.") and "\n" not in stub


def test_a_result_that_is_no_object_is_shown_as_code_gets_it() -> None:
    output = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
    assert write_stub(entry(output=output)) == "def t() -> int: ..."


def test_the_result_is_that_of_the_output_schema_and_the_comment_the_first_sentence() -> None:
    output = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}
    stub = write_stub(entry("get-sum", output=output, description='Add "numbers". And more.'))
    assert stub == '# get-sum\ndef get_sum() -> {"sum": float}: ...  # Add "numbers".'


@pytest.mark.parametrize(
    ("name", "made"),
    [("fs_read", "fs_read"), ("get-sum", "get_sum"), ("a.b", "a_b"), ("import", "import_"), ("2d", "_2d")],
)
def test_names_are_those_that_python_can_write(name: str, made: str) -> None:
    assert python_name(name) == made


def test_a_line_names_the_parameters() -> None:
    schema = {"properties": {"a": {}, "b": {}}, "required": ["b"]}
    assert write_line(entry(schema=schema, description="Do it. Twice.")) == "t(b, a?): Do it."
    assert write_line(entry()) == "t()"


def test_every_stub_of_300_tools_and_of_ours_is_python() -> None:
    """But for the question marks of fields that may be left out, which no Python type has inline."""
    entries = [
        entry(each["name"], each["inputSchema"], each.get("outputSchema"), each["description"]) for each in read_tools()
    ]
    for each in [*entries, *make().catalog.tools.values()]:
        stub = write_stub(each)
        ast.parse(stub.replace('"?: ', '": '))
        arguments = ast.parse(stub.replace('"?: ', '": ')).body[0].args  # type: ignore[attr-defined]
        written = [found.arg for found in (*arguments.args, *arguments.kwonlyargs)]
        assert written == [python_name(name) for name in parameter_order(each.describe()["inputSchema"])]
