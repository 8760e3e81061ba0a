"""Schema changes that break callers. A change that is not understood counts as breaking."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.schema.diff import incompatibilities
from longshore.schema.validate import compile


def holding(properties: dict[str, Any], *required: str, closed: bool = True) -> dict[str, Any]:
    more = {"additionalProperties": False} if closed else {}
    return {"type": "object", "properties": properties, "required": list(required), **more}


TEXT, NUMBER, INT = {"type": "string"}, {"type": "number"}, {"type": "integer"}
MAYBE = {"anyOf": [INT, {"type": "null"}]}
N_REF = {"$ref": "#/$defs/n"}
NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "v": INT}}
OTHER_NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "v": TEXT}}

DRAFT7 = "http://json-schema.org/draft-07/schema#"

BREAKING = {
    "a new required parameter": (holding({}), holding({"a": INT}, "a"), "parameter 'a' is new and required"),
    "one that is required now": (holding({"a": INT}), holding({"a": INT}, "a"), "parameter 'a' is required now"),
    "one that is gone": (holding({"a": INT}), holding({}), "parameter 'a' was removed"),
    "another type": (holding({"a": INT}), holding({"a": TEXT}), 'parameter \'a\': type was "integer" and is "string"'),
    "a narrower type": (NUMBER, INT, 'the whole: type was "number" and is "integer"'),
    "fewer types": ({"type": ["string", "null"]}, TEXT, "the whole: type was"),
    "a type where there was none": ({}, TEXT, 'the whole: type was not set and is "string"'),
    "one value less": ({"enum": [1, 2]}, {"enum": [1]}, "the whole: enum was [ 1, 2 ] and is [ 1 ]"),
    "true is not one": ({"enum": [True]}, {"enum": [1]}, "enum was [ true ] and is [ 1 ]"),
    "values where any would do": (TEXT, {"type": "string", "enum": ["a"]}, "enum was not set"),
    "nothing but null": (TEXT, {**TEXT, "const": None}, "const was not set and is null"),
    "one constant for another": ({"const": 1}, {"const": 2}, "const was 1 and is 2"),
    "a higher minimum": ({"minimum": 1}, {"minimum": 2}, "minimum was 1 and is 2"),
    "a lower maximum": ({"maxLength": 9}, {"maxLength": 8}, "maxLength was 9 and is 8"),
    "a maximum where there was none": (INT, {**INT, "maximum": 8}, "maximum was not set and is 8"),
    "a pattern": (TEXT, {**TEXT, "pattern": "^a"}, "pattern was not set"),
    "a keyword that nobody knows": (TEXT, {**TEXT, "zork": 1}, "zork was not set and is 1"),
    "one that nobody knows, less": ({**TEXT, "zork": 1}, TEXT, "zork was 1 and is not set"),
    "no null any more": (MAYBE, INT, "the whole: anyOf was"),
    "values instead of forms": (MAYBE, {"enum": [1]}, "the whole: anyOf was"),
    "a value instead of forms": (MAYBE, {"const": 1}, "the whole: anyOf was"),
    "a form more, of which one must hold": ({"oneOf": [INT]}, {"oneOf": [INT, NUMBER]}, "oneOf was"),
    "one of several forms has a member less": (
        {"anyOf": [holding({"a": INT}, closed=False), {"type": "null"}]},
        {"anyOf": [holding({}, closed=False), {"type": "null"}]},
        "the whole: anyOf was",
    ),
    "an alternative less": ({"anyOf": [INT, TEXT]}, {"anyOf": [INT]}, "the whole: anyOf was"),
    "closed": (holding({}, closed=False), holding({}), "parameter '.*': it was true and is false"),
    "a name that anything was taken under": (
        {**holding({}), "additionalProperties": True},
        {**holding({"a": INT}), "additionalProperties": True},
        "parameter 'a' is new, and anything was taken there",
    ),
    "a name that had to be there": (
        {"type": "object", "required": ["a"]},
        {"type": "object", "required": ["a"], "properties": {"a": INT}},
        "parameter 'a' is new, and anything was taken there",
    ),
    "a name that a pattern took": (
        {"patternProperties": {"^a": {}}, "additionalProperties": False},
        {"patternProperties": {"^a": {}}, "additionalProperties": False, "properties": {"a": INT}},
        "parameter 'a' is new, and anything was taken there",
    ),
    "no pattern of names any more": (
        {"patternProperties": {"^x": {}}, "additionalProperties": False},
        {"additionalProperties": False},
        "patternProperties was",
    ),
    "narrower further members": (
        {"type": "object", "additionalProperties": NUMBER},
        {"type": "object", "additionalProperties": INT},
        "parameter '.*': type was",
    ),
    "deeper": (
        holding({"a": {"type": "array", "items": holding({"b": NUMBER})}}),
        holding({"a": {"type": "array", "items": holding({"b": INT})}}),
        "parameter 'a[].b': type was",
    ),
    "a list for a tuple": (
        {"type": "array", "prefixItems": [TEXT, INT], "items": False},
        {"type": "array", "items": INT},
        "prefixItems was",
    ),
    "behind a reference": (
        {"$ref": "#/$defs/n", "$defs": {"n": INT}},
        {"$ref": "#/$defs/n", "$defs": {"n": TEXT}},
        'the whole: type was "integer" and is "string"',
    ),
    "behind a reference, deep down": (
        {"properties": {"a": {"$ref": "#/$defs/node"}}, "$defs": {"node": NODE}},
        {"properties": {"a": {"$ref": "#/$defs/node"}}, "$defs": {"node": OTHER_NODE}},
        'parameter \'a.v\': type was "integer" and is "string"',
    ),
    "behind a reference that is compared by its words": (
        {"not": {"$ref": "#/$defs/n"}, "$defs": {"n": TEXT}},
        {"not": {"$ref": "#/$defs/n"}, "$defs": {"n": NUMBER}},
        "not was",
    ),
    "behind a reference that was compared before, in a form that did not fit": (
        holding({"a": {"anyOf": [holding({"x": N_REF})]}, "b": N_REF}) | {"$defs": {"n": NUMBER}},
        holding({"a": {"anyOf": [holding({"x": N_REF}), holding({"x": {}})]}, "b": N_REF}) | {"$defs": {"n": INT}},
        "parameter 'b': type was",
    ),
    "more beside a reference": (
        {"$ref": "#/$defs/n", "$defs": {"n": TEXT}},
        {"$ref": "#/$defs/n", "maxLength": 3, "$defs": {"n": TEXT}},
        "maxLength was not set and is 3",
    ),
    "a reference that leads to itself": (
        {"$ref": "#/$defs/n", "$defs": {"n": {"$ref": "#/$defs/n"}}},
        TEXT,
        "too involved to compare",
    ),
    "another reference": ({"$ref": "#/$defs/n"}, {"$ref": "#/$defs/m"}, "too involved to compare"),
    "another dialect, in which it means something else": (
        {"$schema": DRAFT7, "type": "array", "items": [INT]},
        {"type": "array", "prefixItems": [TEXT]},
        "prefixItems was",
    ),
    "a dialect that nobody knows": ({"$schema": "https://a", **INT}, INT, "$schema was"),
    "one of several types is narrower": (
        {"type": ["string", "null"], "maxLength": 3},
        {"type": ["string", "null"], "maxLength": 2},
        "maxLength was 3 and is 2",
    ),
    "a multiple of more": ({**INT, "multipleOf": 2}, {**INT, "multipleOf": 4}, "multipleOf was 2 and is 4"),
    "a constant among other values": ({"const": 1}, {"enum": [2, 3]}, "enum was"),
    "a reference elsewhere": ({"$ref": "https://a"}, {"$ref": "https://b"}, "too involved to compare"),
    "a reference to what words are": (
        {"default": INT, "properties": {"a": {"$ref": "#/default"}}},
        {"default": TEXT, "properties": {"a": {"$ref": "#/default"}}, "title": "x", "minLength": 0},
        "too involved to compare",
    ),
    "members that nobody looked at": (
        {"items": {}, "unevaluatedItems": False},
        {"unevaluatedItems": False},
        "too involved to compare",
    ),
    "nothing is taken": (TEXT, False, "the whole: it was"),
}
SAFE = {
    "the same": (holding({"a": INT}, "a"), holding({"a": INT}, "a")),
    "a new optional parameter": (holding({}), holding({"a": INT})),
    "not required any more": (holding({"a": INT}, "a"), holding({"a": INT})),
    "a wider type": (INT, NUMBER),
    "another dialect, in which it means the same": ({"$schema": DRAFT7, **holding({"a": INT})}, holding({"a": INT})),
    "another dialect, in other keywords": ({"$schema": DRAFT7, "items": [INT]}, {"prefixItems": [INT]}),
    "null too": (INT, MAYBE),
    "more types": (TEXT, {"type": ["string", "null"]}),
    "no type any more": (TEXT, {}),
    "one value more": ({"enum": [1]}, {"enum": [1, 2]}),
    "any value": ({"type": "string", "enum": ["a"]}, TEXT),
    "a lower minimum": ({"minimum": 2}, {"minimum": 1}),
    "no maximum": ({"maximum": 2}, {}),
    "other words": ({**TEXT, "description": "a", "default": 1}, {**TEXT, "description": "b", "title": "c"}),
    "other words deep down": (
        {"oneOf": [{**TEXT, "title": "a"}, {"not": {"items": {"title": "b"}}}]},
        {"oneOf": [TEXT, {"not": {"items": {}}}]},
    ),
    "open": (holding({}), holding({}, closed=False)),
    "another alternative": ({"anyOf": [INT]}, {"anyOf": [TEXT, INT]}),
    "a constant of another type's values": ({"const": "a"}, TEXT),
    "a constant among more": ({"const": 1}, {"enum": [1, 2]}),
    "values by their type": ({"enum": ["a", "b"]}, {"type": "string", "minLength": 1}),
    "null in another form": ({"type": ["integer", "null"]}, MAYBE),
    "a new optional member in one of several forms": (
        {"anyOf": [holding({"a": INT}, closed=False), {"type": "null"}]},
        {"anyOf": [holding({"a": INT, "b": INT}, closed=False), {"type": "null"}]},
    ),
    "null in another form, back": (MAYBE, {"type": ["integer", "null"]}),
    "a multiple of less": ({**INT, "multipleOf": 4}, {**INT, "multipleOf": 2}),
    "at least nothing": (TEXT, {**TEXT, "minLength": 0}),
    "repeats": ({"uniqueItems": True}, {"uniqueItems": False}),
    "the dialect that holds anyway": ({"$schema": "https://json-schema.org/draft/2020-12/schema", **INT}, INT),
    "a new optional parameter where nothing is said of others": (
        holding({}, closed=False),
        holding({"a": INT}, closed=False),
    ),
    "written out": ({"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": INT}}, {"properties": {"a": NUMBER}}),
    "what holds itself, wider": (
        {"properties": {"a": {"$ref": "#/$defs/node"}}, "$defs": {"node": NODE}},
        {
            "properties": {"a": {"$ref": "#/$defs/m"}},
            "$defs": {"m": {"type": "object", "properties": {"next": {"$ref": "#/$defs/m"}, "v": NUMBER}}},
        },
    ),
    "what holds itself, beside": (
        {"properties": {"a": {"$ref": "#/$defs/n"}, "b": INT}, "$defs": {"n": NODE}},
        {"properties": {"a": {"$ref": "#/$defs/n"}, "b": NUMBER}, "$defs": {"n": {**NODE, "description": "a node"}}},
    ),
}


@pytest.mark.parametrize("case", BREAKING)
def test_a_breaking_change_is_reported_with_its_reason(case: str) -> None:
    old, new, why = BREAKING[case]
    assert why in "\n".join(incompatibilities(old, new))


@pytest.mark.parametrize("case", SAFE)
def test_a_harmless_change_is_not_reported(case: str) -> None:
    assert incompatibilities(*SAFE[case]) == []


def test_comparing_nested_alternatives_ends() -> None:
    """Each level multiplies the work, and the schemas may come from any server."""

    def nest(leaf: dict[str, Any]) -> Any:
        for _ in range(10):
            leaf = {"anyOf": [{"type": "array", "items": leaf}, {"type": "array", "items": leaf, "maxItems": 1}]}
        return leaf

    assert len(incompatibilities(nest(INT), nest(TEXT))) == 1


def test_a_parameter_may_have_the_name_of_an_annotation() -> None:
    """`title` is an annotation as a keyword, but not as the name of a parameter."""
    assert incompatibilities(holding({"title": INT}), holding({"title": TEXT})) != []
    assert incompatibilities(holding({"title": INT}), holding({})) == ["parameter 'title' was removed"]


RESULTS = {
    "not always there": (
        holding({"a": INT}, "a"),
        holding({"a": INT}),
        "'a' of the result is not always there any more",
    ),
    "gone": (holding({"a": INT}, closed=False), holding({}, closed=False), "'a' of the result was removed"),
    "null too": (INT, MAYBE, "the result: anyOf was not set and is [ {"),
    "one value more": ({"enum": ["a"]}, {"enum": ["a", "b"]}, 'the result: enum was [ "a" ] and is [ "a", "b" ]'),
    "a bound less": ({"minimum": 0}, {}, "the result: minimum was 0 and is not set"),
    "of another type than all others": (
        {"additionalProperties": INT},
        {"additionalProperties": INT, "properties": {"a": TEXT}},
        '\'a\' of the result: type was "integer" and is "string"',
    ),
}


@pytest.mark.parametrize("case", RESULTS)
def test_a_wider_result_breaks_callers(case: str) -> None:
    """The message has the old value first."""
    old, new, why = RESULTS[case]
    assert why in "\n".join(incompatibilities(old, new, result=True))


def test_results_may_have_more_members_and_fewer_values() -> None:
    assert incompatibilities(holding({"a": INT}, "a"), holding({"a": INT, "b": INT}, "a", "b"), result=True) == []
    assert incompatibilities(holding({"a": MAYBE}), holding({"a": INT}, "a"), result=True) == []


leaves = st.one_of(
    st.just({}),
    st.sampled_from([TEXT, NUMBER, INT, {"type": "null"}, {"type": ["integer", "null"]}]),
    st.builds(
        lambda low, high: {"type": "integer", "minimum": low, "maximum": high}, st.integers(0, 3), st.integers(0, 3)
    ),
    st.just({"type": "array", "prefixItems": [TEXT], "items": INT}),
    st.builds(
        lambda values: {"enum": values}, st.lists(st.sampled_from([0, 1, "a", None, True]), min_size=1, unique=True)
    ),
)


Pair = tuple[Any, Any]


def _objects(members: dict[str, Pair], required: list[list[str]], others: list[bool | None], kept: list[str]) -> Pair:
    sides = [{name: pair[side] for name, pair in members.items() if side or name in kept} for side in (0, 1)]
    old, new = (
        {"type": "object", "properties": sides[n], "required": required[n]}
        | ({} if others[n] is None else {"additionalProperties": others[n]})
        for n in (0, 1)
    )
    return old, new


def _referred(pair: Pair, sides: list[bool]) -> Pair:
    """The same, behind references."""
    old, new = (
        {"type": "array", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": each}}
        if far
        else {"type": "array", "items": each}
        for each, far in zip(pair, sides, strict=True)
    )
    return old, new


def _forms(kind: str, choices: list[Pair], kept: int) -> Pair:
    return {kind: [one for one, _ in choices[:kept]]}, {kind: [other for _, other in choices]}


def twice(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, min_size=2, max_size=2)


names = st.lists(st.sampled_from("ab"), unique=True)
others = st.sampled_from([None, True, False])
# An old and a new schema of much the same form: two that have nothing to do with each other say nothing.
pairs: st.SearchStrategy[Pair] = st.recursive(
    st.one_of(st.tuples(leaves, leaves), leaves.map(lambda leaf: (leaf, leaf))),
    lambda inner: st.one_of(
        st.builds(
            _forms, st.sampled_from(["anyOf", "oneOf"]), st.lists(inner, min_size=1, max_size=3), st.integers(1, 3)
        ),
        inner.map(lambda pair: ({"type": "array", "items": pair[0]}, {"type": "array", "items": pair[1]})),
        inner.map(lambda pair: (pair[0], {"anyOf": [{"type": "null"}, pair[1]]})),
        st.builds(_objects, st.dictionaries(st.sampled_from("ab"), inner), twice(names), twice(others), names),
    ),
    max_leaves=4,
)
either_way = st.one_of(
    pairs, pairs.map(lambda pair: (pair[1], pair[0])), st.builds(_referred, pairs, twice(st.booleans()))
)
values = st.recursive(
    st.sampled_from([0, 1, 2.5, "a", "b", None, True]),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("abc"), inner)),
    max_leaves=4,
)


@given(either_way, st.lists(values, max_size=20))
def test_without_a_reported_change_every_old_value_is_still_valid(pair: Pair, tried: list[Any]) -> None:
    """It may report too much, never too little, for callers that send known parameters only."""
    old, new = pair
    if incompatibilities(old, new):
        return
    before, known, after = compile(old), compile(_closed(old)), compile(new)
    for value in tried:
        assert not (before.is_valid(value) and known.is_valid(value)) or after.is_valid(value), value


@given(either_way, st.lists(values, max_size=20))
def test_without_a_reported_change_every_new_result_was_valid_before(pair: Pair, tried: list[Any]) -> None:
    """New members are removed: an old caller does not read them."""
    old, new = pair
    if incompatibilities(old, new, result=True):
        return
    before, after = compile(_opened(old)), compile(new)
    for value in tried:
        assert after.errors(value) or not before.errors(value), value


def _closed(schema: Any) -> Any:
    """The value without properties that the schema does not name."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _closed(each) for key, each in schema.items()}
    return {"additionalProperties": False, **found} if isinstance(schema.get("properties"), dict) else found


def _opened(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_opened(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _opened(each) for key, each in schema.items() if key != "additionalProperties" or each is not False}


@given(pairs)
def test_a_schema_is_compatible_with_itself(pair: Pair) -> None:
    assert incompatibilities(pair[0], pair[0]) == incompatibilities(pair[1], pair[1], result=True) == []
