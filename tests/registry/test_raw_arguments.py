"""Arguments that an author's own schema refuses: repairs, violations, and the bounds of both."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jsonschema_rs
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Meta

from counts import count
from longshore import CallResult, RegistrationError, Server, Text, Tool, ToolError
from longshore.registry.raw import raw_entry
from longshore.schema.repair import MAX_PARSED_BYTES, MAX_ROUNDS, RepairResult
from longshore.schema.validate import compile
from longshore.schema.violations import COUNTED_LINES, MAX_COPIES, MAX_NODES, SHOWN_LINES
from longshore.telemetry.records import ArgumentsMended
from talk import call, result

FILTER = {
    "type": "object",
    "properties": {"field": {"type": "string"}, "values": {"type": "array", "items": {"type": "integer"}}},
    "required": ["field"],
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "filters": {"type": "array", "items": FILTER},
        "options": {"anyOf": [FILTER, {"type": "null"}]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "order": {"enum": ["newest", "oldest"]},
        "either": {"type": ["array", "string"]},
        "shape": {
            "oneOf": [
                {"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}}
                | {"required": ["kind", "radius"]},
                {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}}
                | {"required": ["kind", "side"]},
            ]
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}


def handler(arguments: dict[str, Any], _: Any) -> CallResult:
    return CallResult([Text("done")], structured=arguments)


def read(value: Any, schema: dict[str, Any] = SCHEMA) -> RepairResult:
    """The arguments that the handler gets, or the faults."""
    entry = raw_entry(Tool(name="find", input_schema=schema), handler)
    raw = msgspec.json.encode(value)
    try:
        return RepairResult(entry.decode(raw))
    except RegistrationError:
        raise
    except Exception as problem:
        return entry.explain(raw, problem)


@pytest.mark.parametrize(
    ("given", "taken", "notes"),
    [
        ({"filters": "[]"}, {"filters": []}, ["`filters` came as a JSON string; it was parsed"]),
        (
            {"filters": ['{"field":"a"}']},
            {"filters": [{"field": "a"}]},
            ["`filters[0]` came as a JSON string; it was parsed"],
        ),
        (
            {"filters": '["{\\"field\\":\\"a\\",\\"values\\":\\"[1]\\"}"]'},
            {"filters": [{"field": "a", "values": [1]}]},
            [f"`{at}` came as a JSON string; it was parsed" for at in ("filters", "filters[0]", "filters[0].values")],
        ),
        ({"options": '{"field":"a"}'}, {"options": {"field": "a"}}, ["`options` came as a JSON string; it was parsed"]),
        ({"limit": None}, {}, ["`limit` came as null; it was left out"]),
        ({"order": None}, {}, ["`order` came as null; it was left out"]),
        (
            {"filters": [{"field": "a", "values": None}]},
            {"filters": [{"field": "a"}]},
            ["`filters[0].values` came as null; it was left out"],
        ),
        ({"options": None}, {"options": None}, []),
        ({"either": "[1]"}, {"either": "[1]"}, []),
        ({"limit": 3.0}, {"limit": 3.0}, []),
    ],
)  # fmt: skip
def test_arguments_with_a_plain_meaning_are_repaired_and_noted(
    given: dict[str, Any], taken: dict[str, Any], notes: list[str]
) -> None:
    reading = read({"query": "q", **given})
    assert (reading.faults, reading.arguments) == ((), {"query": "q", **taken})
    assert list(reading.notes) == notes


def test_the_arguments_as_a_whole_may_be_a_string() -> None:
    reading = read('{"query":"q","limit":null}')
    assert reading.arguments == {"query": "q"}
    assert reading.notes == (
        "the arguments came as a JSON string; it was parsed",
        "`limit` came as null; it was left out",
    )


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        ({"query": None}, ["query: expected a string, got null"]),
        ({}, ["query: missing (a string, required)"]),
        ({"query": "q", "limit": "3"}, ["limit: expected an integer, got a string"]),
        ({"query": "q", "limit": 0}, ["limit: must be >= 1; got 0"]),
        ({"query": "q", "filters": "[1"}, ["filters: expected an array, got a string"]),
        ({"query": "q", "filters": "[1]"}, ["filters[0]: expected an object, got a number"]),
        ({"query": "q", "filters": '[{"feild":"a"}]'}, ["filters[0].field: missing (a string, required)"]),
        (
            {"query": "q", "order": "newst"},
            ['order: must be one of "newest", "oldest"; got "newst"; did you mean "newest"?'],
        ),
        ({"query": "q", "shape": {"kind": "circle"}}, ["shape.radius: missing (a number, required)"]),
        ({"query": "q", "shape": {"kind": "square", "side": "x"}}, ["shape.side: expected a number, got a string"]),
        (
            {"query": "q", "shape": {"kind": "squar"}},
            ['shape.kind: must be one of "circle", "square"; got "squar"; did you mean "square"?'],
        ),
        ({"query": "q", "shape": 3}, ["shape: expected an object, got a number"]),
        (
            {"qurey": "q", "limit": "x"},
            [
                "limit: expected an integer, got a string",
                "query: missing (a string, required)",
                "qurey: unknown argument; did you mean query? "
                "(takes: query, filters, options, limit, order, either, shape)",
            ],
        ),
        ([1], ["arguments: expected an object with the arguments of find, got an array"]),
        ("[1]", ["arguments: expected an object with the arguments of find, got a string"]),
    ],
)
def test_other_violations_are_listed_at_once_one_line_each(given: Any, faults: list[str]) -> None:
    assert list(read(given).faults) == faults


def find(
    query: str,
    filters: list[dict[str, int]] | None = None,
    limit: Annotated[int, Meta(ge=1, le=100)] = 3,
    order: Literal["newest", "oldest"] = "newest",
) -> str:
    """Find something."""
    return f"{query} {filters} {limit} {order}"


FIND: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "filters": {
            "anyOf": [
                {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}},
                {"type": "null"},
            ]
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "order": {"enum": ["newest", "oldest"]},
    },
    "required": ["query"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"query": 1, "limit": 0, "order": "old", "filters": 3, "qery": 1},
        {"query": "q", "filters": [{"a": "b"}, 3]},
        {"query": "q", "filters": ['{"a": "b"}']},
        {"query": None, "limit": 101.5},
    ],
)
def test_typed_and_raw_tools_list_the_same_violations(given: Any) -> None:
    app = Server("both")
    app.tool(find)
    told = call(app, "find", given)["content"][0]["text"]
    assert told.splitlines()[1:] == list(read(given, FIND).faults) != []


def serving() -> Server:
    app = Server("notes")
    app.add_tool(Tool(name="raw", input_schema=SCHEMA, description="Find"), handler)

    @app.tool
    def typed(tags: list[str], limit: int = 3) -> str:
        """Find by tags."""
        if limit == 13:
            raise ToolError("bad luck")
        return ",".join(tags) + str(limit)

    return app


def test_repairs_are_in_the_result_and_in_the_log() -> None:
    app, heard = serving(), list[Any]()
    app.listen(heard.append)
    parsed = "`tags` came as a JSON string; it was parsed"
    done = call(app, "typed", {"tags": '["a"]', "limit": None})
    assert done["content"][0]["text"] == "a3"
    assert done["_meta"]["longshore/notes"] == [parsed, "`limit` came as null; it was left out"]
    failed = call(app, "typed", {"tags": '["a"]', "limit": 13})
    assert (failed["isError"], failed["_meta"]["longshore/notes"]) == (True, [parsed])
    found = call(app, "raw", {"query": "q", "limit": None})
    assert found["structuredContent"] == {"query": "q"}
    assert found["_meta"]["longshore/notes"] == ["`limit` came as null; it was left out"]
    assert "longshore/notes" not in call(app, "typed", {"tags": ["a"]}).get("_meta", {})
    assert [(each.tool, len(each.notes)) for each in heard if isinstance(each, ArgumentsMended)] == [
        ("typed", 2),
        ("typed", 1),
        ("raw", 1),
    ]


# -- bounds


TOO_LARGE = "is not valid; it is too large to say where"


@pytest.mark.parametrize(
    ("schema", "value", "first", "lines"),
    [
        ({"items": {"type": "string"}}, [1] * (MAX_NODES - 1), "[0]: expected a string, got a number", SHOWN_LINES + 1),
        ({"items": {"type": "string"}}, [1] * MAX_NODES, "[0]: expected a string, got a number", 1),
        ({"items": {"type": "null"}}, [None] * 9_000 + ["a"], "[9000]: expected null, got a string", 1),
        ({"items": {"required": ["a"]}}, [{"a": 1}] * 9_000 + [{}], "[9000].a: missing", 1),
        ({"items": {"type": "string"}}, [1] * (MAX_COPIES // 2), TOO_LARGE, 1),
        ({"items": {"type": "string"}}, [1] * 1_000_000, TOO_LARGE, 1),
        ({"items": {"required": [f"k{i}" for i in range(1000)]}}, [{}] * 90, "[0].k0: missing", SHOWN_LINES + 1),
        ({"items": {"required": [f"k{i}" for i in range(1000)]}}, [{}] * 100, "[0].k0: missing", 1),
    ],
)  # fmt: skip
def test_all_violations_of_an_ordinary_value_are_listed_and_one_of_a_large_one(
    schema: dict[str, Any], value: Any, first: str, lines: int
) -> None:
    """The validator's own list of errors takes a quarter of a minute for a million wrong items, and 2.5 GB for 1,900
    objects that lack 1,000 names each."""
    found = compile(schema).errors(value)
    assert (found[0], len(found)) == (first, lines)


def test_more_violations_than_are_counted_are_at_least_so_many() -> None:
    lines = compile({"items": {"type": "string"}}).errors([1] * (COUNTED_LINES + 1))
    assert lines[-1] == f"… and at least {COUNTED_LINES - SHOWN_LINES} more"


NODE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        "data": {"type": "array", "items": {"type": "integer"}},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("levels", "items", "last"),
    [
        (50, 100, f"{'next.' * 50}data[100]: expected an integer, got a string"),
        (50, 40_000, "is not valid; it is too large to say where"),
    ],
)
def test_a_deep_and_large_value_is_not_copied_for_each_of_its_levels(levels: int, items: int, last: str) -> None:
    """The validator's first error of 8 MB at 110 levels has some 60 GB."""
    value: Any = {"data": [*range(items), "x"]}
    for _ in range(levels):
        value = {"next": value}
    assert compile(NODE).errors(value) == [last]


@pytest.mark.parametrize(
    ("schema", "value", "line"),
    [
        (NODE, {"next": 3}, "next: expected an object or null, got a number"),
        (
            {"properties": {"kids": {"items": {"$ref": "#"}}, "x": {"type": "null"}}},
            {"kids": [{}] * 200 + [{"x": 1}]},
            "kids[200].x: expected null, got a number",
        ),
        (
            {"properties": {"a": {"type": "string"}, "b": {"oneOf": [{"$ref": "#/properties/a"}, {"type": "null"}]}}},
            {"b": 1},
            "b: expected a string or null, got a number",
        ),
    ],
)
def test_references_may_lead_anywhere_in_the_schema(schema: dict[str, Any], value: Any, line: str) -> None:
    assert compile(schema).errors(value) == [line]


def test_unknown_fields_that_depend_on_other_keywords_are_listed() -> None:
    schema = {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}
    assert compile(schema).errors({"b": 1, "c": 2}) == ["b: unknown field", "c: unknown field"]
    lines = compile(schema).errors(dict.fromkeys(map(str, range(MAX_NODES)), 1))
    assert lines[-1] == f"… and at least {COUNTED_LINES - SHOWN_LINES} more"


def test_nulls_beyond_those_that_are_repaired_are_listed() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"properties": {"x": {"const": 1}}}}}}
    faults = read({"a": [{"x": None}] * MAX_NODES}, schema).faults
    assert faults == (f"a[{MAX_ROUNDS}].x: must be 1; got null",)


def test_a_line_names_some_of_many_forms() -> None:
    forms = [{"type": "object", "required": [f"f{n}"]} for n in range(300)]
    [fault] = read({"a": {}}, {"type": "object", "properties": {"a": {"anyOf": forms}}}).faults
    assert fault.endswith("f19 missing or others") and len(fault) < 1000


def test_strings_within_strings_are_opened_so_often_and_no_more() -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/nest"}}, "$defs": {}}
    schema["$defs"]["nest"] = {"type": "array", "items": {"$ref": "#/$defs/nest"}}  # type: ignore[index]
    for levels, taken in ((MAX_ROUNDS - 1, True), (MAX_ROUNDS, True), (MAX_ROUNDS + 1, False)):
        value: Any = []
        for _ in range(levels - 1):
            value = [msgspec.json.encode(value).decode()]
        assert (read({"x": msgspec.json.encode(value).decode()}, schema).faults == ()) is taken


def test_a_string_is_opened_up_to_its_limit() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "array"}}}
    for size, taken in ((MAX_PARSED_BYTES - 1, True), (MAX_PARSED_BYTES, True), (MAX_PARSED_BYTES + 1, False)):
        text = "[" + " " * (size - 2) + "]"
        assert (read({"x": text}, schema).faults == ()) is taken


DOUBLING: dict[str, Any] = {
    "type": "object",
    "properties": {"x": {"$ref": "#/$defs/d0"}},
    "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)} | {"d30": {}},
}


def test_a_schema_that_would_take_for_ever_is_refused_unless_that_is_waived() -> None:
    entry = raw_entry(Tool(name="slow", input_schema=DOUBLING), handler)
    with pytest.raises(RegistrationError, match="busy for ever"):
        entry.decode(b"{}")
    waived = raw_entry(Tool(name="slow", input_schema=DOUBLING, waive={"E13": "only we call it"}), handler)
    assert waived.decode(b"{}") == {}


def test_a_tool_that_validates_nothing_takes_any_object() -> None:
    app = Server("open")
    app.add_tool(Tool(name="open", input_schema=SCHEMA, validate=False, description="Take anything"), handler)
    assert result(app, "tools/call", {"name": "open", "arguments": {"a": 1}})["structuredContent"] == {"a": 1}


# -- for any schema and any value

KEYS = ("a", "b")
scalars = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 2.0, "", "a", "xy", "[1]", '{"a":1}', "[{"])
)
values = st.recursive(
    scalars,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(KEYS), each, max_size=2),
    max_leaves=6,
)
leaves = st.sampled_from(
    [
        {"type": "string"}, {"type": "integer"}, {"type": "number", "minimum": 1}, {"type": "null"},
        {"type": "boolean"}, {"enum": ["a", 1, None]}, {"const": "xy"}, {"type": ["string", "null"]},
        {"type": "string", "minLength": 1},
        {}, {"type": "array"}, {"type": "object"}, {"pattern": "^a"}, {"not": {"type": "string"}},
    ]
)  # fmt: skip


def compound(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    objects = st.builds(
        lambda properties, required, rest: {"type": "object", "properties": properties, "required": required, **rest},
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=2),
        st.lists(st.sampled_from(KEYS), unique=True, max_size=2),
        st.sampled_from([{}, {"additionalProperties": False}, {"unevaluatedProperties": False}, {"minProperties": 1}]),
    )
    pairs = st.lists(inner, min_size=1, max_size=2)
    return st.one_of(
        objects,
        inner.map(lambda each: {"type": "array", "items": each}),
        pairs.map(lambda each: {"prefixItems": each, "items": {"type": "integer"}}),
        pairs.map(lambda each: {"anyOf": each}),
        pairs.map(lambda each: {"oneOf": each}),
        pairs.map(lambda each: {"allOf": each}),
        st.tuples(inner, inner).map(lambda each: {"if": each[0], "then": each[1], "else": {"type": "array"}}),
        inner.map(lambda each: {"contains": each}),
    )


schemas = st.recursive(leaves, compound, max_leaves=5)
quick = settings(max_examples=count(60), deadline=None, suppress_health_check=list(HealthCheck))


@quick
@given(schemas, values)
def test_an_invalid_value_always_has_a_line(schema: dict[str, Any], value: Any) -> None:
    validator = compile(schema)
    lines = validator.errors(value)
    assert validator.is_valid(value) is jsonschema_rs.Draft202012Validator(schema).is_valid(value)
    assert validator.is_valid(value) is not bool(lines)
    assert all(line.isprintable() for line in lines)


@quick
@given(schemas, schemas, values, values)
def test_a_repair_accepts_nothing_that_the_schema_forbids(
    one: dict[str, Any], other: dict[str, Any], a: Any, b: Any
) -> None:
    schema = {"type": "object", "properties": {"a": one, "b": other}}
    given = {"a": a, "b": b}
    reading = read(given, schema)
    judge = jsonschema_rs.Draft202012Validator(schema)
    if reading.faults:
        assert reading.arguments is None
        assert not judge.is_valid(given)
    else:
        assert judge.is_valid(reading.arguments)
        assert bool(reading.notes) is not judge.is_valid(given)
