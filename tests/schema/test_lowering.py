"""A tool in the form of one kind of client. What could be called before can be called after."""

import copy
from random import Random
from typing import Any

import jsonschema_rs
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from longshore.schema.lowering import FORMS, Form, lower, lower_schema
from longshore.schema.rewriting.everywhere import change_everywhere, schemas_in

from .schemas import Schema, Schemas, anything, arguments

quick = settings(max_examples=60, deadline=None)
randoms = st.randoms(use_true_random=True)
LOOSE: list[Form] = [form for form in FORMS if form != "openai-strict"]


def takes(schema: Schema, value: Any) -> bool:
    """The value is valid, by JSON Schema with Gemini's one word more."""
    written: Any = change_everywhere(schema, read_nullable)
    return jsonschema_rs.Draft202012Validator(written).is_valid(value)


def read_nullable(schema: Schema) -> Schema:
    if not schema.get("nullable"):
        return schema
    return {"anyOf": [{key: value for key, value in schema.items() if key != "nullable"}, {"type": "null"}]}


def tool(schema: Any, **more: Any) -> dict[str, Any]:
    return {"name": "find", "description": "Find a thing.", "inputSchema": schema, **more}


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


def is_strict(schema: Schema) -> bool:
    objects = [each for each in schemas_in(schema) if "object" in str(each.get("type"))]
    return all(
        each.get("additionalProperties") is False and each.get("required") == [*each.get("properties", {})]
        for each in objects
    )


@quick
@given(randoms)
def test_whatever_stands_there_is_lowered_to_an_object(random: Random) -> None:
    odd = tool(anything(random), outputSchema=anything(random), description=anything(random))
    before = copy.deepcopy(odd)
    for form in FORMS:
        lowered = lower(odd, form)
        assert lowered["inputSchema"]["type"] == "object"
        assert lowered.get("outputSchema", {"type": "object"})["type"] == "object"
        msgspec.json.encode(lowered)
    assert odd == before
