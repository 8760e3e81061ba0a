"""A tool in the form of one kind of client. A call that was possible before is possible after."""

import copy
from random import Random
from typing import Any, get_args

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counts import count
from longshore.config.sections import SchemaForm
from longshore.schema.client_forms import FORMS, Form, lower
from longshore.schema.lint.run import lint
from longshore.schema.lint.tool_list import ToolList
from longshore.schema.repair import repair
from longshore.schema.validate import compile
from longshore.schema.walk import rewrite, walk_objects

from .schemas import Closed, Schema, Schemas, anything, arguments, fitting

quick = settings(max_examples=count(60), deadline=None)
randoms = st.randoms(use_true_random=True)
LOOSE: list[Form] = [form for form in FORMS if form != "openai-strict"]


def takes(schema: Schema, value: Any) -> bool:
    """The value is valid, by JSON Schema with Gemini's one word more."""
    written: Any = rewrite(schema, read_nullable)
    return jsonschema_rs.Draft202012Validator(written).is_valid(value)


def read_nullable(schema: Schema) -> Schema:
    if not schema.get("nullable"):
        return schema
    return {"anyOf": [{key: value for key, value in schema.items() if key != "nullable"}, {"type": "null"}]}


def tool(schema: Any, **more: Any) -> dict[str, Any]:
    return {"name": "find", "description": "Find a thing.", "inputSchema": schema, **more}


def lower_schema(schema: Any, form: Form) -> Any:
    return lower(tool(schema), form)["inputSchema"]


def calls(schema: Schema, random: Random) -> list[dict[str, Any]]:
    """Some that are valid."""
    return [call for call in (arguments(random) for _ in range(30)) if takes(schema, call)]


@quick
@given(randoms)
def test_lowering_only_loosens(random: Random) -> None:
    schema = Schemas(random).root()
    before = copy.deepcopy(schema)
    lowered = {form: lower_schema(schema, form) for form in LOOSE}
    assert schema == before
    for call in calls(schema, random):
        assert [form for form in LOOSE if not takes(lowered[form], call)] == [], (schema, call)


@quick
@given(randoms)
def test_relations_are_loosened_but_for_what_only_some_alternatives_describe(random: Random) -> None:
    schema = Schemas(random).related()
    lowered = lower_schema(schema, "claude")
    assert not {"anyOf", "oneOf", "allOf", "not"}.intersection(lowered)
    for call in calls(schema, random):
        if is_as_described(schema, call):
            assert takes(lowered, call), (schema, lowered, call)


def is_as_described(schema: Schema, call: dict[str, Any]) -> bool:
    """Each member is as one of the alternatives describes it that speak of it."""
    branches = [*schema.get("anyOf", []), *schema.get("oneOf", [])]
    for name, member in call.items():
        said = [branch["properties"][name] for branch in branches if name in branch.get("properties", {})]
        if said and not takes({"anyOf": said, "$defs": schema["$defs"]}, member):
            return False
    return True


@quick
@given(randoms)
def test_the_strict_form_loses_no_call_but_what_is_not_named(random: Random) -> None:
    schema = Schemas(random).root()
    lowered = lower_schema(schema, "openai-strict")
    for call in calls(schema, random) if is_strict(lowered) else []:
        named = schema.get("properties", {})
        if call.keys() <= named.keys() and not any(isinstance(member, dict) for member in call.values()):
            filled = {name: call.get(name) for name in named}
            assert takes(lowered, filled), (schema, lowered, filled)


@quick
@given(randoms)
def test_a_call_that_is_valid_in_the_strict_form_is_valid_after_its_nulls_are_removed(random: Random) -> None:
    schema = Closed(random).root()
    lowered = lower_schema(schema, "openai-strict")
    assert is_strict(lowered), schema
    check = compile(schema)
    for call in [fitting(lowered, lowered, random) for _ in range(20)]:
        if takes(lowered, call):
            repaired = copy.deepcopy(call)
            assert repair(repaired, check.finder("find"))[0] == [] and check.is_valid(repaired), (schema, call)


SIDE: Schema = {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]}
RADIUS: Schema = {"properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind"]}


@pytest.mark.parametrize(
    ("inner", "calls"),
    [
        (
            {"type": "object", "oneOf": [SIDE, RADIUS]},
            [{"kind": "square", "side": 1}, {"kind": "circle", "radius": None}],
        ),
        (
            {
                "type": "object",
                "properties": {"kind": {"type": "string"}, "name": {"type": "string"}},
                "anyOf": [SIDE, RADIUS],
            },
            [{"kind": "square", "side": 1, "name": None, "radius": None}],
        ),
        (
            {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "anyOf": [{"required": ["a"]}]},
            [{"a": 1, "b": None}],
        ),
        ({"type": "string", "anyOf": [{"const": "x"}, {"type": "null"}]}, ["x", None]),
        ({"type": ["string", "null"], "const": "x"}, ["x", None]),
    ],
)
def test_strict_mode_loses_no_alternative_and_no_null(inner: Schema, calls: list[Any]) -> None:
    lowered = lower_schema({"type": "object", "properties": {"a": inner}}, "openai-strict")
    assert is_strict(lowered)
    assert [call for call in calls if not takes(lowered, {"a": call})] == []


def is_strict(schema: Schema) -> bool:
    objects = [each for each in walk_objects(schema) if "object" in str(each.get("type"))]
    return all(
        each.get("additionalProperties") is False and each.get("required") == [*each.get("properties", {})]
        for each in objects
    )


@quick
@given(randoms)
def test_any_value_in_the_place_of_a_schema_is_lowered_to_an_object_schema(random: Random) -> None:
    odd = tool(anything(random), outputSchema=anything(random), description=anything(random))
    before = copy.deepcopy(odd)
    for form in FORMS:
        lowered = lower(odd, form)
        assert lowered["inputSchema"]["type"] == "object"
        assert lowered.get("outputSchema", {"type": "object"})["type"] == "object"
        msgspec.json.encode(lowered)
    assert odd == before


# -- what each form is

TREE: Schema = {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}}
SEARCH: Schema = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "title": "Query"},
        "unit": {"$ref": "#/$defs/unit"},
        "limit": {"type": ["integer", "null"], "exclusiveMinimum": 0, "default": 10},
        "tags": {"type": "array"},
        "extra": True,
    },
    "required": ["query"],
    "anyOf": [{"required": ["unit"]}, {"required": ["limit"]}],
    "additionalProperties": False,
    "$defs": {"unit": {"const": "km"}},
}
SAID = "Find a thing. At least one of these must be given: unit; limit."


def test_claude_gets_no_relations_at_the_root_and_no_booleans() -> None:
    lowered = lower(tool(SEARCH), "claude")
    schema = lowered["inputSchema"]
    assert lowered["description"] == SAID
    assert "anyOf" not in schema and schema["properties"]["extra"] == {}
    assert schema["properties"]["unit"] == {"$ref": "#/$defs/unit"}
    assert schema["properties"]["query"] == {"type": "string", "title": "Query"}


def test_openai_gets_items_and_properties() -> None:
    schema = lower_schema({**SEARCH, "properties": {"tags": {"type": "array"}, "map": {"type": "object"}}}, "openai")
    assert schema["properties"] == {
        "tags": {"type": "array", "items": {}},
        "map": {"type": "object", "properties": {}},
    }


@pytest.mark.parametrize("form", ["vscode", "cursor"])
def test_editors_get_no_references_but_to_what_holds_itself(form: Form) -> None:
    schema = lower_schema(SEARCH, form)
    assert schema["properties"]["unit"] == {"const": "km"} and "$defs" not in schema
    assert schema["properties"]["tags"] == {"type": "array", "items": {}}
    tree = lower_schema({"properties": {"t": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": TREE}}, form)
    assert tree["$defs"] == {"tree": TREE}


def test_gemini_gets_one_type_and_nothing_that_it_has_no_field_for() -> None:
    assert lower_schema(SEARCH, "gemini") == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "title": "Query"},
            "unit": {"type": "string", "enum": ["km"]},
            "limit": {"type": "integer", "nullable": True, "minimum": 0, "default": 10},
            "tags": {"type": "array", "items": {}},
            "extra": {},
        },
        "required": ["query"],
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"nullable": True, "type": "string"}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer", "description": "One of 1, 2."}),
        ({"allOf": [{"type": "string"}], "description": "d"}, {"description": "d", "type": "string"}),
        ({"oneOf": [{"type": "string"}, {"type": "boolean"}]}, {"anyOf": [{"type": "string"}, {"type": "boolean"}]}),
        (
            {"type": ["string", "integer", "null"], "description": "d", "default": 1},
            {
                "anyOf": [
                    {"description": "d Default: 1.", "nullable": True, "type": "string"},
                    {"description": "d Default: 1.", "nullable": True, "type": "integer"},
                ]
            },
        ),
        (
            {
                "type": "object",
                "properties": {"b": {}, "c": {}},
                "required": ["c"],
                "anyOf": [{"required": ["b"]}, {"properties": {"c": {"type": "null"}}}],
            },
            {
                "anyOf": [
                    {"type": "object", "properties": {"b": {}, "c": {}}, "required": ["c", "b"]},
                    {"type": "object", "properties": {"b": {}, "c": {"type": "null"}}, "required": ["c"]},
                ]
            },
        ),
        ({"$ref": "#/$defs/tree"}, {"type": "object"}),
        ({"type": "string", "x-mcp-header": "A"}, {"type": "string", "x-mcp-header": "A"}),
        ({"prefixItems": [{}], "items": {"type": "string"}, "type": "array"}, {"type": "array", "items": {}}),
    ],
)
def test_how_gemini_reads_it(before: Schema, after: Schema) -> None:
    schema = lower_schema({"type": "object", "properties": {"a": before}, "$defs": {"tree": TREE}}, "gemini")
    assert schema["properties"]["a"] == after


def test_strict_mode_requires_all_and_takes_null_for_what_may_be_left_out() -> None:
    properties = {name: schema for name, schema in SEARCH["properties"].items() if name not in ("tags", "extra")}
    assert lower_schema({**SEARCH, "properties": properties}, "openai-strict") == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "unit": {"anyOf": [{"const": "km"}, {"type": "null"}]},
            "limit": {"type": ["integer", "null"], "exclusiveMinimum": 0, "description": "Default: 10."},
        },
        "required": ["query", "unit", "limit"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "unfit",
    [
        {},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "array"},
        {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}},
        {"type": "string", "x-mcp-header": "Region"},
    ],
)
def test_a_schema_that_would_lose_calls_is_sent_without_strict_mode(unfit: Schema) -> None:
    schema = {"type": "object", "properties": {"a": unfit}}
    assert lower_schema(schema, "openai-strict") == lower_schema(schema, "openai")


def test_brooklyn_has_the_schema_under_both_keys() -> None:
    lowered = lower(tool(SEARCH), "brooklyn")
    assert lowered["input_schema"] == lowered["inputSchema"] == lower_schema(SEARCH, "claude")


def test_an_output_that_is_no_object_is_not_declared() -> None:
    for schema, kept in (
        ({"type": "object", "properties": {"a": True}}, True),
        ({"$ref": "#/$defs/tree", "$defs": {"tree": TREE}}, True),
        ({"$ref": "#/$defs/gone", "$defs": {"tree": TREE}}, False),
        ({"type": "array"}, False),
        ({}, False),
    ):
        lowered = lower(tool({"type": "object"}, outputSchema=schema), "claude")
        assert ("outputSchema" in lowered) is kept
    lowered = lower(tool({}, outputSchema={"type": "object", "properties": {"a": True}, "anyOf": [{}]}), "gemini")
    assert lowered["outputSchema"] == {"type": "object", "properties": {"a": {}}, "anyOf": [{}]}


def test_the_configuration_knows_the_same_forms() -> None:
    assert get_args(SchemaForm) == FORMS


@quick
@given(randoms)
def test_each_form_keeps_the_rules_of_its_own_client(random: Random) -> None:
    """But E11: a schema that contradicts itself does so in any form."""
    schemas = Schemas(random)
    for schema in (schemas.root(), schemas.related()):
        for form in FORMS:
            surface = ToolList(tools=(lower(tool(schema), form),))
            found = lint(surface, profiles=(form,), levels=["error"])
            assert [each for each in found if each.path.startswith("inputSchema") and each.rule != "E11"] == []
