"""Rewrites of schemas. All but one keep the meaning."""

import copy
from collections.abc import Callable
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counts import count
from longshore.schema.combinators import MAX_BRANCHES, MAX_SENTENCE, with_all_joined, without_root_combinators
from longshore.schema.rewrite import (
    MAX_DEFINITIONS,
    MAX_INLINED,
    inlined,
    modernised,
    with_items,
    with_object_root,
    with_properties,
    without_booleans,
)
from longshore.schema.walk import MAX_DEPTH, list_null, rewrite, walk_objects

from .schemas import Schema, Schemas, anything, arguments

Change = Callable[[Any], Any]


def list_nulls(schema: Any) -> Any:
    return rewrite(schema, list_null)


SAME: list[Change] = [
    without_booleans,
    with_items,
    with_properties,
    inlined,
    modernised,
    list_nulls,
]
ALL: list[Change] = [*SAME, with_object_root, without_root_combinators]
randoms = st.randoms(use_true_random=True)
quick = settings(max_examples=count(60), deadline=None)

STRING: Schema = {"type": "string"}
NULL: Schema = {"type": "null"}
LEAF: Schema = {"$defs": {"leaf": STRING}}
TREE: Schema = {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}}

ROWS: list[tuple[Change, Any, Any]] = [
    (with_object_root, {"properties": {}}, {"type": "object", "properties": {}}),
    (with_object_root, {"type": ["object", "null"]}, {"type": "object"}),
    (with_object_root, True, {"type": "object"}),
    (without_booleans, {"properties": {"a": True, "b": False}}, {"properties": {"a": {}, "b": {"not": {}}}}),
    (without_booleans, {"additionalProperties": False}, {"additionalProperties": False}),
    (without_booleans, {"items": False, "enum": [True]}, {"items": {"not": {}}, "enum": [True]}),
    (with_items, {"type": "array"}, {"type": "array", "items": {}}),
    (with_items, {"type": ["array", "null"]}, {"type": ["array", "null"], "items": {}}),
    (with_items, {"type": "array", "unevaluatedItems": False}, {"type": "array", "unevaluatedItems": False}),
    (with_properties, {"items": {"type": "object"}}, {"items": {"type": "object", "properties": {}}}),
    (list_nulls, {"anyOf": [STRING, NULL], "default": None}, {"type": ["string", "null"], "default": None}),
    (list_nulls, {"oneOf": [NULL, STRING]}, {"type": ["string", "null"]}),
    (
        list_nulls,
        {"anyOf": [{"type": "string", "enum": ["a"]}, NULL]},
        {"type": ["string", "null"], "enum": ["a", None]},
    ),
    (list_nulls, {"anyOf": [STRING, NULL], "minLength": 1}, {"anyOf": [STRING, NULL], "minLength": 1}),
    (list_nulls, {"anyOf": [{"const": 1}, NULL]}, {"anyOf": [{"const": 1}, NULL]}),
    (inlined, {"items": {"$ref": "#/$defs/leaf"}, **LEAF}, {"items": STRING}),
    (
        inlined,
        {"items": {"$ref": "#/$defs/leaf", "description": "d"}, **LEAF},
        {"items": {**STRING, "description": "d"}},
    ),
    (
        inlined,
        {"items": {"$ref": "#/$defs/leaf", "minLength": 1}, **LEAF},
        {"items": {"minLength": 1, "allOf": [STRING]}},
    ),
    (inlined, {"$ref": "#/$defs/tree", "$defs": {"tree": TREE}}, {**TREE, "$defs": {"tree": TREE}}),
    (inlined, {"items": {"$ref": "#/$defs/a~1b"}, "$defs": {"a/b": STRING}}, {"items": STRING}),
    (inlined, {"items": {"$ref": "#/$defs/gone"}, **LEAF}, {"items": {"$ref": "#/$defs/gone"}, **LEAF}),
    (inlined, {"items": {"$ref": "x.json"}, **LEAF}, {"items": {"$ref": "x.json"}, **LEAF}),
    (
        modernised,
        {"definitions": {"a": STRING}, "items": {"$ref": "#/definitions/a"}},
        {"$defs": {"a": STRING}, "items": {"$ref": "#/$defs/a"}},
    ),
    (modernised, {"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
    (modernised, {"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
    (modernised, {"items": [STRING], "additionalItems": False}, {"prefixItems": [STRING], "items": False}),
    (modernised, {"id": "a"}, {"$id": "a"}),
    (
        modernised,
        {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"], "c": {"minLength": 1}}},
        {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"minLength": 1}}},
    ),
    (modernised, {"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["b"]}}),
]


@pytest.mark.parametrize(("change", "before", "after"), ROWS)
def test_a_rewrite_gives_the_expected_schema_and_is_idempotent(change: Change, before: Any, after: Any) -> None:
    assert change(before) == after
    assert change(after) == after


@quick
@given(randoms)
def test_a_rewritten_schema_accepts_the_same_values(random: Random) -> None:
    schema = Schemas(random).root()
    before = copy.deepcopy(schema)
    written = [jsonschema_rs.Draft202012Validator(change(schema)) for change in SAME]
    assert schema == before
    original = jsonschema_rs.Draft202012Validator(schema)
    for call in [arguments(random) for _ in range(20)]:
        assert {each.is_valid(call) for each in written} == {original.is_valid(call)}, (schema, call)


@quick
@given(randoms)
def test_any_value_survives_every_rewrite_unchanged(random: Random) -> None:
    odd = anything(random)
    before = copy.deepcopy(odd)
    for change in ALL:
        change(odd)
    assert odd == before


def deep(levels: int) -> Schema:
    schema: Schema = {"type": "object"}
    for _ in range(levels - 1):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(("levels", "changed"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False), (100_000, False)])
def test_a_schema_that_is_too_deep_is_not_rewritten(levels: int, changed: bool) -> None:
    schema = deep(levels)
    assert (with_properties(schema) is not schema) is changed


def test_a_schema_that_holds_itself_is_not_rewritten() -> None:
    schema: Schema = {"properties": {}}
    schema["properties"] |= {"a": schema, "b": schema}
    for change in ALL:
        change(schema)
    assert with_properties(schema) is schema


def doubling(levels: int) -> Schema:
    names = {
        f"d{n}": {"items": {"$ref": f"#/$defs/d{n + 1}"}, "not": {"$ref": f"#/$defs/d{n + 1}"}} for n in range(levels)
    }
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**names, f"d{levels}": {}}}


@pytest.mark.parametrize(("levels", "written"), [(9, True), (10, False), (40, False)])
def test_a_schema_that_would_grow_too_large_keeps_its_references(levels: int, written: bool) -> None:
    result = inlined(doubling(levels))
    assert ("$defs" not in result) is written
    assert len([*walk_objects(result)]) <= MAX_INLINED


def row(count: int, uses: int) -> Schema:
    """Many references to the first of a row of definitions, each of which is but the next."""
    names = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(count)}
    return {
        "properties": {f"p{n}": {"$ref": "#/$defs/d0"} for n in range(uses)},
        "$defs": {**names, f"d{count}": {"const": 1}},
    }


def test_a_chain_of_references_is_followed_within_the_budget() -> None:
    assert inlined(row(20, 50)) == {"properties": {f"p{n}": {"const": 1} for n in range(50)}}
    often = row(200, 200)
    assert inlined(often) is often


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_definitions_are_inlined_up_to_a_number(more: int) -> None:
    count = MAX_DEFINITIONS + more
    ring = {"$defs": {f"d{n}": {"items": {"$ref": f"#/$defs/d{(n + 1) % count}"}} for n in range(count)}}
    assert (inlined(ring) is not ring) is (more <= 0)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_parts_beyond_the_limit_are_left_out(more: int) -> None:
    parts = [{f"x-{n}": n} for n in range(MAX_BRANCHES + more)]
    assert len(with_all_joined({"allOf": parts})) == min(len(parts), MAX_BRANCHES)


# -- relations at the root

OBJECT: Schema = {"type": "object", "properties": {"a": STRING, "b": STRING}}
RELATIONS: list[tuple[Schema, Schema, str]] = [
    (OBJECT, OBJECT, ""),
    (
        {**OBJECT, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        OBJECT,
        "At least one of these must be given: a; b.",
    ),
    (
        {**OBJECT, "oneOf": [{"required": ["a"]}, {"required": ["a", "b"]}]},
        {**OBJECT, "required": ["a"]},
        "Exactly one of these must be given: a; a and b.",
    ),
    (
        {
            "type": "object",
            "oneOf": [
                {"properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}, "required": ["kind"]},
                {"properties": {"kind": {"const": "dog"}, "barks": True}, "required": ["kind", "barks"]},
            ],
        },
        {
            "type": "object",
            "properties": {"kind": {"enum": ["cat", "dog"]}, "lives": {"type": "integer"}, "barks": True},
            "required": ["kind"],
        },
        'Exactly one of these must be given: kind = "cat"; kind = "dog" and barks.',
    ),
    (
        {"type": "object", "allOf": [{"$ref": "#/$defs/x"}, {"required": ["a"]}], "$defs": {"x": OBJECT}},
        {**OBJECT, "required": ["a"], "$defs": {"x": OBJECT}},
        "",
    ),
    (
        {**OBJECT, "not": {"required": ["a", "b"]}},
        OBJECT,
        "Further conditions on the arguments are checked when it is called.",
    ),
    (
        {**OBJECT, "anyOf": [{"type": "array"}, {"type": "object", "required": ["a"]}]},
        {**OBJECT, "required": ["a"]},
        "Further conditions on the arguments are checked when it is called.",
    ),
]


@pytest.mark.parametrize(("before", "after", "said"), RELATIONS)
def test_a_relation_at_the_root(before: Schema, after: Schema, said: str) -> None:
    assert without_root_combinators(before) == (after, said)


def test_a_property_that_a_closed_root_does_not_name_is_left_out() -> None:
    schema = {**OBJECT, "additionalProperties": False, "anyOf": [{"properties": {"c": STRING}}]}
    assert without_root_combinators(schema)[0] == {**OBJECT, "additionalProperties": False}


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_alternatives_beyond_the_limit_may_be_anything(more: int) -> None:
    count = MAX_BRANCHES + more
    branches = [
        {"properties": {f"p{n}": STRING}, "required": ["a"], "additionalProperties": False} for n in range(count)
    ]
    schema, said = without_root_combinators({**OBJECT, "anyOf": branches})
    named = [name for name in schema["properties"] if name.startswith("p")]
    assert len(named) == min(count, MAX_BRANCHES)
    assert (schema.get("required") == ["a"]) is (schema.get("additionalProperties") is False) is (more <= 0)
    assert len(said) <= MAX_SENTENCE


def test_alternatives_that_are_too_deep_to_compare_are_alternatives() -> None:
    branches = [{"properties": {"a": deep(5_000)}} for _ in range(2)]
    schema, _ = without_root_combinators({"type": "object", "anyOf": branches, "allOf": branches})
    assert set(schema["properties"]) == {"a"}
