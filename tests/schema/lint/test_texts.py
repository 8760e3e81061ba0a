"""The rules about descriptions, annotations and the size of a list."""

from __future__ import annotations

from typing import Any

import pytest
from tests.schema.lint.checking import example, faults, rule_of, takes

from longshore.schema.lint.rules.texts import DESCRIPTION_UNITS, LIST_TOKENS
from longshore.schema.lint.run import lint
from longshore.schema.lint.tool_list import ToolList
from longshore.schema.output import TOKEN_CHARACTERS, count_tokens


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("x" * (DESCRIPTION_UNITS - 1), False),
        ("x" * DESCRIPTION_UNITS, False),
        ("x" * (DESCRIPTION_UNITS + 1), True),
        ("😀" * (DESCRIPTION_UNITS // 2), False),  # two units each in JavaScript
        ("😀" * (DESCRIPTION_UNITS // 2) + "x", True),
        ("\ud800" * (DESCRIPTION_UNITS + 1), True),
    ],
)
def test_texts_that_claude_code_cuts_are_reported(text: str, cut: bool) -> None:
    assert bool(faults("W21", {"description": text})) is cut
    whole = rule_of("W21").whole
    assert whole is not None
    assert bool(list(whole(ToolList(instructions=text)))) is cut


@pytest.mark.parametrize(
    ("tool", "paths"),
    [
        ({"description": " \n"}, [""]),
        ({"description": 7}, [""]),
        (takes(a={"type": "string"}, b={"description": "b"}), ["inputSchema.properties.a"]),
        ({"inputSchema": {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"description": "a"}}}}, []),
        (takes(a={"anyOf": [{"type": "string", "description": "a"}, {"type": "null"}]}), []),
        (takes(a=True, b=None, c=[]), []),  # no schemas: told by another rule
    ],
)
def test_tools_and_parameters_without_a_description_are_reported(tool: dict[str, Any], paths: list[str]) -> None:
    assert [fault.path for fault in faults("W22", tool)] == paths


@pytest.mark.parametrize(
    ("schema", "unsaid"),
    [
        ({"description": "how many", "minimum": 1, "maximum": 100}, "at most 100"),
        ({"description": "how many, up to 100", "minimum": 1, "maximum": 100}, ""),
        ({"description": "how many, up to 1000", "maximum": 100}, "at most 100"),
        ({"description": "bytes, up to 5,000", "maximum": 5000}, ""),
        ({"description": "at most 30 seconds", "maximum": 30_000}, ""),
        ({"description": "at most 64 KiB", "maximum": 65_536}, ""),
        ({"description": "two to five", "minimum": 2, "maximum": 5}, ""),
        ({"description": "an index", "maximum": 2**53 - 1}, ""),  # what generators write
        ({"description": "an index", "maximum": 2**31 - 2}, "at most 2147483646"),
        ({"description": "how many", "minimum": 2}, "at least 2"),
        ({"description": "how many", "exclusiveMinimum": 5, "exclusiveMaximum": 7}, "more than 5, less than 7"),
        ({"description": "how many", "minimum": "2", "pattern": 3, "format": None}, ""),  # told by another rule
        ({"description": "how many", "maximum": 10**400}, ""),
        ({"description": "the name", "maxLength": 20}, "at most 20 characters"),
        ({"description": "a code", "pattern": "^[a-z]+$"}, "matching ^[a-z]+$"),
        ({"description": "a code such as abc", "pattern": "^[a-z]+$"}, ""),
        ({"description": "where it is", "format": "uri"}, "as uri"),
        ({"description": "the page's URL", "format": "uri"}, ""),
        ({"description": "a number", "format": "int64"}, ""),
        ({"description": "how many", "default": 20}, "default 20"),
        ({"description": "how many", "default": True}, "default true"),
        ({"description": "how many; 20 if left out", "default": 20}, ""),
        ({"description": "whether", "default": False}, ""),
        ({"description": "which", "default": None}, ""),
        ({"description": "which", "default": []}, ""),
        ({"description": "which", "default": ["a"]}, 'default ["a"]'),
        ({"description": "share, at most 7 %", "maximum": 0.07}, ""),
        ({"description": "how many", "exclusiveMinimum": 0}, ""),
        ({"description": "how many", "exclusiveMinimum": 1}, "more than 1"),
        ({"description": "which", "anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}]}, "at most 9"),
        ({"description": "which", "type": "array", "items": {"format": "email"}}, "as email"),
        ({"description": "where", "type": "array", "minItems": 2, "maxItems": 2}, "exactly 2 items"),
        ({"description": "where", "type": "array", "minItems": 2, "maxItems": 3}, "at least 2 items, at most 3 items"),
        ({"description": "which addresses of mail", "type": "array", "items": {"format": "email"}}, ""),
    ],
)
def test_constraints_that_codex_drops_and_no_description_says_are_reported_and_mended(
    schema: dict[str, Any], unsaid: str
) -> None:
    tool = example(takes(it=schema)).tools[0]
    found = faults("W25", tool)
    assert [fault.fix for fault in found] == ([f"Add to its description: ({unsaid})."] if unsaid else [])
    mend = rule_of("W25").mend
    assert mend is not None
    mended = mend(tool)
    assert faults("W25", mended) == []
    if unsaid:
        assert mended["inputSchema"]["properties"]["it"]["description"] == f"{schema['description']} ({unsaid})"
    else:
        assert mended == tool


COUNT = {"type": "integer", "description": "how many", "maximum": 9}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "object", "properties": {"n": COUNT}}, "properties.it.properties.n"),
        ({"type": "array", "items": {"properties": {"n": COUNT}}}, "properties.it.items.properties.n"),
        ({"anyOf": [{"properties": {"n": COUNT}}, {"type": "null"}]}, "properties.it.anyOf[0].properties.n"),
        ({"properties": {"not": COUNT}}, "properties.it.properties.not"),
        ({"not": {"properties": {"n": COUNT}}}, ""),
        ({"if": {"properties": {"n": COUNT}}}, ""),
    ],
)
def test_constraints_of_fields_inside_of_a_parameter_are_reported_and_mended(schema: dict[str, Any], path: str) -> None:
    tool = example(takes(it={"description": "what", **schema})).tools[0]
    assert [fault.path for fault in faults("W25", tool)] == ([f"inputSchema.{path}"] if path else [])
    mend = rule_of("W25").mend
    assert mend is not None
    mended = mend(tool)
    assert faults("W25", mended) == [] and (mended == tool) == (not path)
    assert path == "" or "how many (at most 9)" in str(mended)


def test_constraints_in_a_definition_are_reported_once() -> None:
    tool = takes(one={"$ref": "#/$defs/d"}, two={"$ref": "#/$defs/d"})
    tool["inputSchema"]["$defs"] = {"d": {"type": "object", "properties": {"n": COUNT}}}
    assert [fault.path for fault in faults("W25", tool)] == ["inputSchema.$defs.d.properties.n"]


def test_the_description_of_the_tool_and_the_name_of_a_parameter_count() -> None:
    assert faults("W25", {"description": "List 50 at a time", **takes(n={"maximum": 50})}) == []
    assert faults("W25", takes(url={"description": "where", "format": "uri"})) == []
    assert faults("W25", {"description": "Do it, otherwise not", **takes(n={"default": 3})}) != []


@pytest.mark.parametrize(
    ("tool", "guessed"),
    [
        ({"name": "list_cities"}, True),
        ({"name": "browser_find"}, True),
        ({"name": "simulate_research_query"}, False),
        ({"name": "get_city"}, False),
        ({"name": "list_cities", "description": "List 50 cities at a time"}, False),
        ({"name": "list_cities", **takes(page_size={"type": "integer"})}, False),
        ({"name": "listCities", **takes(maxResults={"type": "integer"})}, False),
        ({"name": "list_cities", "outputSchema": {"properties": {"n": {"type": "integer"}}}}, False),
        ({"name": "list_cities", "outputSchema": {"properties": {"all": {"type": "array"}}}}, True),
        ({"name": "list_cities", "outputSchema": {"properties": {"all": {"type": "array", "maxItems": 9}}}}, False),
        ({"name": "read_log", "outputSchema": {"properties": {"text": {"type": "string"}}}}, True),
        ({"name": "read_log", "outputSchema": {"properties": {"text": {"type": "string", "maxLength": 9}}}}, False),
        ({"name": "read_log", "outputSchema": {"properties": 7}}, False),
    ],
)
def test_a_tool_that_may_answer_much_without_paging_is_reported(tool: dict[str, Any], guessed: bool) -> None:
    assert bool(faults("W31", tool)) is guessed


@pytest.mark.parametrize(
    ("tool", "silent"),
    [
        ({"name": "delete_file"}, True),
        ({"name": "fileDelete"}, True),
        ({"name": "rm"}, True),
        ({"name": "list_drop_zones"}, False),
        ({"name": "get_removed"}, False),
        ({"name": "farm_term"}, False),
        ({"name": "drag_and_drop"}, False),
        ({"name": "delete_file", "annotations": {}}, True),
        ({"name": "delete_file", "annotations": {"destructiveHint": "yes"}}, True),
        ({"name": "delete_file", "annotations": {"destructiveHint": False}}, False),
        ({"name": "drop_in", "annotations": {"readOnlyHint": True}}, False),
        ({"name": "delete_file", "annotations": [1]}, True),
    ],
)
def test_a_tool_that_sounds_destructive_without_a_hint_is_reported(tool: dict[str, Any], silent: bool) -> None:
    assert bool(faults("W32", tool)) is silent
    mend = rule_of("W32").mend
    assert mend is not None
    assert faults("W32", mend(example(tool).tools[0])) == []


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (40, []),
        (41, ["older Cursor takes 40"]),
        (51, ["older Cursor takes 40, Windsurf takes 50"]),
        (81, ["older Cursor takes 40, Windsurf takes 50, Cursor takes 80"]),
        (128, ["older Cursor takes 40, Windsurf takes 50, Cursor takes 80"]),
        (129, ["older Cursor takes 40, Windsurf takes 50, Cursor takes 80", "VS Code takes 128 in a request"]),
    ],
)
def test_more_tools_than_a_client_accepts_are_reported(count: int, told: list[str]) -> None:
    tool = {"name": "t"}
    found = lint(ToolList(tools=(tool,) * count), profiles=("cursor", "vscode"))
    messages = [finding.message.split(": ", 1)[1] for finding in found if finding.rule == "W28"]
    assert [message.split(", of all")[0] for message in messages] == told
    assert [f for f in lint(ToolList(tools=(tool,) * count), profiles=("claude",)) if f.rule == "W28"] == []


def test_a_list_with_too_many_tokens_is_reported_for_every_client() -> None:
    framed = len('[{"d":""}]')
    fits = ({"d": "x" * (LIST_TOKENS * TOKEN_CHARACTERS - framed)},)
    over = ({"d": "x" * (LIST_TOKENS * TOKEN_CHARACTERS - framed + TOKEN_CHARACTERS)},)
    assert (count_tokens(fits), count_tokens(over)) == (LIST_TOKENS, LIST_TOKENS + 1)
    assert [
        bool([f for f in lint(ToolList(tools=t), profiles=("claude",)) if f.rule == "W28"]) for t in (fits, over)
    ] == [
        False,
        True,
    ]
