"""Surfaces: read from lists in each form, written to a file, compared."""

from __future__ import annotations

from typing import Any

import pytest

from longshore.schema.diff import (
    MOST_LINES,
    NOTHING,
    NotASurface,
    Renamed,
    compare,
    is_surface,
    make_surface,
    read_offers,
    read_surface_file,
    write_surface_file,
)

TOOL: dict[str, Any] = {"name": "f", "inputSchema": {"type": "object", "required": ["b", "a"]}}
SETTLED: dict[str, Any] = {"name": "f", "inputSchema": {"type": "object", "required": ["a", "b"]}}
FORMS: dict[str, tuple[Any, Any]] = {
    "an array": ([TOOL], {"tools": [SETTLED]}),
    "a result": ({"tools": [TOOL], "nextCursor": "x"}, {"tools": [SETTLED]}),
    "an answer": ({"jsonrpc": "2.0", "result": {"tools": [TOOL]}}, {"tools": [SETTLED]}),
    "what longshore list prints": (
        {"server": {"name": "x", "instructions": "Read."}, "tools": [], "resourceTemplates": []},
        {"tools": [], "templates": [], "instructions": "Read."},
    ),
    "only prompts": ({"prompts": [{"name": "p"}]}, {"prompts": [{"name": "p"}]}),
    "entries that are none": ([TOOL, 3, None, "x"], {"tools": [SETTLED]}),
    "nothing": ({}, None),
    "no list": ({"tools": 3}, None),
    "a text": ("tools", None),
    "null": (None, None),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_list_is_read_in_every_form(form: str) -> None:
    value, expected = FORMS[form]
    assert read_offers(value) == expected


def test_a_surface_survives_being_written_and_read() -> None:
    surface = make_surface({"tools": [{**TOOL, "name": "z"}, TOOL], "prompts": [{"name": "é"}]}, "Read.")
    assert [each["name"] for each in surface["tools"]] == ["f", "z"]
    assert read_surface_file(write_surface_file(surface)) == surface == read_offers(surface)
    assert is_surface(surface) and not is_surface({"tools": []})


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b'{"tools": []}', b"[" * 10_000])
def test_a_file_that_is_no_surface_is_refused(text: bytes) -> None:
    with pytest.raises(NotASurface):
        read_surface_file(text)


def tool(name: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return {"name": name, "inputSchema": schema}


TEXT, INT = {"type": "string"}, {"type": "integer"}
OLD = make_surface({"tools": [tool("forecast", town=TEXT)]}, None)


@pytest.mark.parametrize(
    ("new", "renamed", "broken"),
    [
        (tool("get_forecast", town=TEXT), NOTHING, ["it was removed"]),
        (tool("get_forecast", town=TEXT), Renamed({"forecast": "get_forecast"}), []),
        (tool("get_forecast", town=TEXT), Renamed({"forecast": "another"}), ["it was removed"]),
        (
            tool("get_forecast", city=TEXT),
            Renamed({"forecast": "get_forecast"}),
            ["parameter 'city' is new and required", "parameter 'town' was removed"],
        ),
        (
            tool("get_forecast", city=TEXT),
            Renamed({"forecast": "get_forecast"}, {"get_forecast": {"town": "city"}}),
            [],
        ),
        (tool("forecast", city=TEXT), Renamed({}, {"forecast": {"town": "city"}}), []),
        (
            tool("forecast", city=INT),
            Renamed({}, {"forecast": {"town": "city"}}),
            ['parameter \'city\': type was "string" and is "integer"'],
        ),
        (
            tool("forecast", city=TEXT, days=INT),
            Renamed({}, {"forecast": {"town": "city"}}),
            ["parameter 'days' is new and required"],
        ),
    ],
)
def test_a_rename_with_an_alias_breaks_no_caller(new: dict[str, Any], renamed: Renamed, broken: list[str]) -> None:
    changes = compare(OLD, make_surface({"tools": [new]}, None), renamed)
    assert [line for change in changes for line in change.broken] == broken


HINTS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "it only reads now": (
        {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True},
        {"readOnlyHint": True},
        [],
    ),
    "it writes now": (
        {"readOnlyHint": True},
        {"readOnlyHint": False},
        ["it does not promise readOnlyHint: true any more"],
    ),
    "it may destroy": (
        {"destructiveHint": False},
        {"destructiveHint": True},
        ["it does not promise destructiveHint: false any more"],
    ),
}


@pytest.mark.parametrize("case", HINTS)
def test_a_read_only_tool_still_promises_the_other_hints(case: str) -> None:
    before, now, broken = HINTS[case]
    sides = [read_offers([{**TOOL, "annotations": each}]) or {} for each in (before, now)]
    assert [each.broken for each in compare(*sides)] == [broken]


@pytest.mark.parametrize(
    ("before", "now", "breaks"),
    [
        (None, "optional", False),
        ("required", "optional", False),
        (None, "required", True),
        ("optional", "required", True),
        ("optional", None, True),
        ({}, [], True),
    ],
)
def test_a_tool_that_no_longer_runs_as_it_was_called_breaks_callers(before: Any, now: Any, breaks: bool) -> None:
    sides = [
        read_offers([TOOL if each is None else {**TOOL, "execution": {"taskSupport": each}}]) or {}
        for each in (before, now)
    ]
    assert [each.breaks for each in compare(*sides)] == [breaks]


def test_long_values_are_compared_from_the_first_difference_on() -> None:
    """The time for it grows with the square of the lines: 8,000 parameters of another type took a minute."""
    many = [tool("f", **{f"p{n:05}": {"type": kind} for n in range(1_000)}) for kind in ("string", "integer")]
    late = tool("f", **{f"p{n:05}": {"type": "string" if n < 900 else "null"} for n in range(1_000)})
    for new in (many[1], late):
        (change,) = compare({"tools": [many[0]]}, {"tools": [new]})
        assert [line for line in change.diff if line.startswith("+ ")]
        assert len(change.diff) <= 2 * MOST_LINES + 10
    assert "… and" in compare({"tools": [many[0]]}, {"tools": [many[1]]})[0].diff[-1]
