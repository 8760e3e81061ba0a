"""The Brooklyn standard: its good examples pass, its bad ones do not, and there are few false alarms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.schema.lint.checking import example, faults, rule_of, takes
from tests.schema.schemas import DOUBLING

from longshore.schema.lint.run import lint
from longshore.schema.lint.tool_list import Declaration, ToolList

LISTS = Path(__file__).parents[2] / "interop/lint/lists"


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


# -- categories


@pytest.mark.parametrize(
    ("category", "declared", "level", "fix"),
    [
        ("browser-lifecycle", None, None, ""),
        ("v2-api", None, None, ""),
        ("Browser_Lifecycle", None, "error", "Call it 'browser-lifecycle'."),
        ("content capture", None, "error", "Call it 'content-capture'."),
        ("contentCapture", None, "error", "Call it 'content-capture'."),
        ("content--capture", None, "error", "Call it 'content-capture'."),
        ("2fa", None, None, ""),
        ("!", None, "error", ""),
        ("größe", None, "error", ""),  # no letters are left out to make a name
        ("nav", None, "warning", "Call it 'navigation'."),
        ("page-nav", None, "warning", "Call it 'page-navigation'."),
        ("nav", ("nav",), None, ""),
        ("disc-golf", None, None, ""),
        ("navigatoin", ("navigation", "discovery"), "error", "Use navigation, or declare it."),
        ("xyz", ("navigation", "discovery"), "error", "Use navigation, discovery, or declare it."),
        ("xyz", (), "error", "Declare it."),
        ("Navigation", ("navigation",), "error", "Call it 'navigation'."),
    ],
)
def test_a_category_is_kebab_case_and_declared(
    category: str, declared: tuple[str, ...] | None, level: str | None, fix: str
) -> None:
    found = faults("I40", {}, Declaration(category=category), categories=declared)
    assert [(fault.level or "error", fault.fix) for fault in found] == ([(level, fix)] if level else [])
    on_the_wire = faults("I40", {"_meta": {"longshore/category": category}}, categories=declared)
    assert on_the_wire == found


@pytest.mark.parametrize("meta", [None, [], {"longshore/category": 7}, {"longshore/category": ""}, {"other": "X Y"}])
def test_a_category_that_is_no_string_is_ignored(meta: Any) -> None:
    tool = example({"_meta": meta}).tools[0]
    assert faults("I40", tool) == []
    mend = rule_of("I40").mend
    assert mend is not None and mend(tool) == tool


# -- descriptions


@pytest.mark.parametrize(
    "description",
    [
        "Navigate browser to a specific URL and wait for page load",
        "Capture a screenshot and store as file to avoid MCP token limits",
        "Extract text content from an element using CSS selector",
        "Recursively search for files",
        "List, create, close, or select a browser tab.",
        "Search files",
        "**Get** the weather",
        "Gzip-compress a file",
        "Re-run tests",
        "[DEPRECATED] Read a file",
        "(beta) Read a file",
        "OCR an image",
        "Balance accounts",
        "Frobnicate widgets",  # nothing says that it is no verb
        "Process the file",
        "Focus the window",
        "Point to the same picture",
        "Query",
        "Получить погоду",
        "Über die Stadt",
        "42",
        "",
    ],
)
def test_a_description_that_begins_with_an_action_is_accepted(description: str) -> None:
    assert faults("B51", {"description": description}) == []


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        ("URL navigation functionality", "'url navigation functionality' names a thing"),
        ("URL of the page", "'URL' is no action"),
        ("Screenshot utility", "'screenshot utility' names a thing"),
        ("Text extraction", "'text extraction' names a thing"),
        ("Returns documentation", "'Returns' is no action"),
        ("Queries the index", "'Queries' tells about the tool; write it as an order"),
        ("Fetches a page", "'Fetches' tells about the tool; write it as an order"),
        ("Browser automation", "'browser automation' names a thing"),
        ("Weather of a city", "'Weather' is no action"),
        ("Monitoring of hosts and of services", "'Monitoring' is no action"),
        ("A tool that lists files", "'A' is no action"),
        ("This tool lists files", "'This' is no action"),
        ("You can read files with it", "'You' is no action"),
        ("[beta] Weather of a city", "'Weather' is no action"),
        ("Does something with browser", "'does something with browser' leaves open what"),
    ],
)
def test_a_description_that_does_not_is_reported_with_the_reason(description: str, reason: str) -> None:
    [fault] = faults("B51", {"description": description})
    assert fault.message == f"the description does not begin with an action: {reason}"


# -- what single parameters say


@pytest.mark.parametrize(
    ("name", "schema", "message"),
    [
        ("browserId", text("Browser ID"), "is described by its name again"),
        ("browser_id", text("The browser's ID (optional)"), None),
        ("file_names", text("The file name."), "is described by its name again"),
        ("city", text("which city to report on, if any"), None),
        ("city", text("which city to report on"), "is optional and doesn't say so"),
        ("city", text("which city to report on", default="Paris"), None),
        ("all", {"type": "boolean", "description": "report on every city"}, None),
        ("timeout", {"type": "number", "description": "Timeout in milliseconds", "default": 5000}, None),
        ("timeout", {"type": "number", "description": "give up after this long", "default": 5}, "without a unit"),
        ("timeout_ms", {"type": "number", "description": "give up after this long", "default": 5}, None),
        ("timeout", {"type": ["integer", "null"], "description": "give up after this long"}, "without a unit"),
        ("timeout", text("give up after this long, as in 5s or none"), None),
        ("page_size", {"type": "integer", "description": "how many at once", "default": 5}, None),
        ("width", {"type": "number", "description": "50 % unless given"}, None),
        ("age", {"type": "number", "description": "the person's age", "default": 5}, "without a unit"),
        ("city", text("город (или страна)", default=""), None),  # nothing is known of its words
        ("город", text("город"), "is described by its name again"),
        ("city", text(""), None),  # told by another rule
    ],
)
def test_a_parameter_says_more_than_its_name_and_its_unit_and_that_it_is_optional(
    name: str, schema: dict[str, Any], message: str | None
) -> None:
    found = [fault.message for fault in faults("B52", takes(**{name: schema}))]
    assert len(found) == (message is not None)
    assert message is None or message in found[0]


def test_a_required_parameter_need_not_say_whether_it_is_optional() -> None:
    assert faults("B52", takes("city", city=text("which city to report on"))) == []


@pytest.mark.parametrize(
    ("name", "schema", "fix"),
    [
        ("engine", text("one of chromium, firefox, webkit"), 'Add "enum": ["chromium","firefox","webkit"].'),
        ("engine", text("Values: chromium, firefox or webkit"), 'Add "enum": ["chromium","firefox","webkit"].'),
        ("order", text("the order (asc|desc)"), 'Add "enum": ["asc","desc"].'),
        ("order", text("'up', 'down' or 'none'"), 'Add "enum": ["up","down","none"].'),
        ("engine", text("One of chromium, firefox, webkit."), 'Add "enum": ["chromium","firefox","webkit"].'),
        ("when", text("values: now, later, or an ISO date"), ""),
        ("fields", text("comma-separated, one of id, name, or both"), ""),
        ("cursor", text("the 'endCursor' of 'pageInfo', or of the 'previous' answer"), ""),
        ("order", text("'up' or 'down'"), ""),  # two quoted words may be anything
        ("order", text("such as 'up', 'down' or 'none'"), ""),
        ("order", text("'up', 'down' or 'none'", enum=["up", "down", "none"]), ""),
        ("order", text("'up', 'down' or 'none'", pattern="^(up|down|none)$"), ""),
        ("browserType", text("Browser type"), ""),
        ("mime_type", text("the type"), ""),
        ("mode", text("any mode of the plugin"), ""),
        ("mode", {"type": "integer", "description": "the mode"}, ""),
        ("model", text("the model"), ""),
    ],
)
def test_values_listed_in_words_become_an_enum(name: str, schema: dict[str, Any], fix: str) -> None:
    found = faults("B55", takes(**{name: schema}))
    assert len(found) == bool(fix)
    assert all(fix in f"{fault.fix} {fault.message}" for fault in found)


@pytest.mark.parametrize(
    ("schema", "missing"),
    [
        ({"type": "number"}, "minimum and no maximum"),
        ({"type": "integer", "minimum": 0}, "maximum"),
        ({"type": "integer", "exclusiveMaximum": 9}, "minimum"),
        ({"type": "integer", "exclusiveMinimum": 0, "maximum": 9}, ""),
        ({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 2}, {"type": "null"}]}, ""),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "minimum and no maximum"),
        ({"type": ["number", "string"]}, ""),
        ({"type": "integer", "enum": [1, 2]}, ""),
        ({"enum": [1, 2]}, ""),
        ({"type": "object", "properties": {"width": {"type": "number"}}}, ""),
    ],
)
def test_a_number_without_bounds_is_reported(schema: dict[str, Any], missing: str) -> None:
    assert [fault.message for fault in faults("B56", takes(n=schema))] == ([f"'n' has no {missing}"] if missing else [])


@pytest.mark.parametrize(
    ("rule", "schema", "broken"),
    [
        ("B57", {"type": "object"}, True),
        ("B57", {"type": ["object", "null"]}, True),
        ("B57", {"type": "array", "items": {"type": "object"}}, True),
        ("B57", {"type": "object", "properties": {}}, False),
        ("B57", {"type": "object", "additionalProperties": {"type": "string"}}, False),
        ("B57", {"type": "object", "anyOf": []}, False),
        ("B57", {}, False),
        ("B60", {}, True),
        ("B60", {"type": "any"}, True),
        ("B60", {"type": ["string", "any"]}, True),
        ("B60", {"enum": [1]}, False),
        ("B60", {"oneOf": [{"enum": ["latest"]}, {"pattern": "^b"}]}, False),
        ("B60", {"type": "object", "properties": {"inner": {"title": "x"}}}, True),
        ("B60", True, False),
    ],
)
def test_an_object_without_properties_and_a_parameter_without_type_are_reported(
    rule: str, schema: Any, broken: bool
) -> None:
    assert bool(faults(rule, takes(it=schema))) is broken


# -- parameters that depend on one another

A, B = text("Field A (optional if b provided)"), text("Field B (optional if a provided)")
EITHER = "Do it. Either 'a' or 'b' must be provided."


@pytest.mark.parametrize(
    ("tool", "found"),
    [
        ({"description": EITHER, **takes(a=A, b=B)}, []),
        ({"description": EITHER, **takes("a", a=A, b=B)}, ["inputSchema.properties.a"]),
        ({"description": EITHER, **takes(a=text("Field A"), b=B)}, []),
        ({"description": "Do it. Either a or b.", **takes(a=A, b=B)}, []),
        ({"description": 'Do it. At least one of "a" or "b".', **takes(a=A, b=B)}, []),
        ({"description": "Do it. A or b must be provided.", **takes(a=A, b=B)}, []),
        ({"description": "Read either a or b values", **takes("a", a=text("A"), b=text("B"))}, []),
        ({"description": "Do it. Either a or slow.", **takes("a", a=text("A"))}, []),
        ({"description": "Do it. Either fast or slow.", **takes(a=text("A"), b=text("B"))}, []),
        ({"description": "Do it.", **takes(a=A, b=B)}, [""]),
        ({"description": "Do it.", **takes("b", a=A, b=B)}, ["inputSchema.properties.b", ""]),
        ({"description": "Do it.", **takes(a=text("A (optional if c provided)"))}, []),
        (
            {
                "description": "Do it.",
                "inputSchema": {
                    "properties": {"a": text("A"), "b": text("B")},
                    "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
                },
            },
            [""],
        ),
        ({"inputSchema": {"anyOf": [{"required": ["a"]}, 7]}}, []),
        ({"inputSchema": {"properties": {"a": A}, "anyOf": [{"required": ["a"]}, {"required": [["b"]]}]}}, []),
    ],
)
def test_a_choice_of_two_parameters_is_in_the_description_and_neither_is_required(
    tool: dict[str, Any], found: list[str]
) -> None:
    assert [fault.path for fault in faults("B53", tool)] == found


def test_the_fix_has_the_sentence_to_write() -> None:
    [fault] = faults("B53", takes(a=A, b=B))
    assert "\"Either 'a' or 'b' must be provided.\"" in fault.fix


TARGET = text("which", enum=["latest", "current", "byId"], default="latest")


@pytest.mark.parametrize(
    ("tool", "count"),
    [
        (takes(browserId=text("id"), target=TARGET), 0),
        (takes("browserId", browserId=text("id"), target=TARGET), 1),
        (takes(browser_id=text("id")), 1),
        (takes("browserId", browserId=text("id")), 2),
        (takes(browserId=text("id"), target={**TARGET, "default": "current"}), 1),
        (takes(browserId=text("id"), target={**TARGET, "enum": ["latest"]}), 1),
        (takes(browserId=text("id"), target={**TARGET, "enum": ["byId", "current", "latest"]}), 0),
        (takes(browserId=text("id"), target={**TARGET, "enum": "latest"}), 1),
        (takes(browserId=text("id"), target=text("which")), 1),
        (takes(target=text("an element on the page")), 0),
    ],
)
def test_a_browser_tool_takes_browser_id_and_target(tool: dict[str, Any], count: int) -> None:
    assert len(faults("B54", tool)) == count


# -- what authors declare

FOUR = takes("a", **{name: text("x") for name in "abcd"})
THREE = takes("a", **{name: text("x") for name in "abc"})


@pytest.mark.parametrize(
    ("tool", "declared", "levels"),
    [
        (FOUR, None, []),
        (FOUR, Declaration(foreign=True), []),
        (FOUR, Declaration(), [None]),
        (THREE, Declaration(), []),
        (FOUR, Declaration(examples=({"a": "x"},)), []),
        (THREE, Declaration(examples=({"a": "x"}, {"a": 1}, {}, "a", {"a": object()})), ["error"] * 4),
        ({"inputSchema": {"type": 7}}, Declaration(examples=({"a": "x"},)), []),  # told by another rule
        ({"inputSchema": DOUBLING}, Declaration(examples=({"x": 1},)), []),  # it might take for ever, which E13 tells
    ],
)
def test_a_tool_with_many_parameters_has_valid_examples(
    tool: dict[str, Any], declared: Declaration | None, levels: list[str | None]
) -> None:
    assert [fault.level for fault in faults("B58", tool, declared)] == levels


@pytest.mark.parametrize(
    ("tool", "declared", "count"),
    [
        (THREE, None, 0),
        (THREE, Declaration(foreign=True), 0),
        (THREE, Declaration(), 1),
        (THREE, Declaration(errors={"gone": "look again"}), 0),
        ({}, Declaration(), 0),
    ],
)
def test_a_tool_with_required_parameters_declares_errors(
    tool: dict[str, Any], declared: Declaration | None, count: int
) -> None:
    assert len(faults("B59", tool, declared)) == count


@pytest.mark.parametrize(
    ("tool", "declared", "count"),
    [
        ({}, None, 0),
        ({}, Declaration(category="x"), 0),
        ({}, Declaration(), 1),
        ({}, Declaration(foreign=True), 0),
        ({"description": " "}, None, 1),
        ({"name": "", "description": None}, None, 2),
    ],
)
def test_a_tool_has_a_name_a_description_and_a_category(
    tool: dict[str, Any], declared: Declaration | None, count: int
) -> None:
    assert len(faults("B61", tool, declared)) == count


@pytest.mark.parametrize("name", ["everything", "filesystem", "memory", "playwright"])
def test_real_servers_break_only_a_few_of_these_rules(name: str) -> None:
    """Few false alarms: no finding about declarations, enums or objects."""
    listed = json.loads((LISTS / f"{name}.json").read_text())
    found = lint(ToolList(name=name, tools=tuple(listed["tools"])), profiles=("brooklyn",))
    assert {finding.rule for finding in found} <= {"W22", "B51", "B52", "B53", "B56"}
    assert all(finding.level != "error" for finding in found)
