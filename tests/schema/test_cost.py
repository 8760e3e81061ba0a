"""The schemas whose checks are bounded, and those whose checks might never end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.schema.cost import compile_bounded, is_unbounded
from longshore.schema.walk import MAX_NODES

from .schemas import DOUBLING, doubling


def leftovers(levels: int) -> dict[str, Any]:
    """Each level asks what the one inside it has left over, for which that is checked again."""
    schema: dict[str, Any] = {"properties": {"x": {}}}
    for _ in range(levels):
        schema = {"anyOf": [schema], "unevaluatedProperties": False}
    return schema


def long_name(levels: int) -> dict[str, Any]:
    """A name of 20,000 letters, in percent, that is looked up 2 to the power of `levels` times."""
    schema = doubling(levels)
    schema["$defs"] |= {f"d{levels}": {"$ref": "#/$defs/" + "a%20" * 10_000}, "a " * 10_000: {"type": "object"}}
    return schema


REF = {"$ref": "#/$defs/node"}
LIGHT: dict[str, dict[str, Any]] = {
    "nothing": {},
    "flat": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"anyOf": [{"type": "null"}, {}]}}},
    "used twice": {
        "properties": {"a": {"$ref": "#/$defs/d"}, "b": {"$ref": "#/$defs/d"}},
        "$defs": {"d": {"type": "string"}},
    },
    "a tree": {**REF, "$defs": {"node": {"properties": {"children": {"items": REF}}}}},
    "a binary tree": {**REF, "$defs": {"node": {"properties": {"left": REF, "right": REF}}}},
    "any JSON": {
        **REF,
        "$defs": {"node": {"anyOf": [{"type": "string"}, {"items": REF}, {"additionalProperties": REF}]}},
    },
    "itself": {"properties": {"next": {"$ref": "#"}}},
    "escaped names": {"$ref": "#/$defs/a~1b~0c", "$defs": {"a/b~c": {"type": "string"}}},
    "a name in percent": {"$ref": "#/$defs/a%20b", "$defs": {"a b": {"type": "string"}}},
    "a name of its own": {"$id": "https://example.test/x", "properties": {"next": {"$ref": "#"}}},
    "in a list": {"anyOf": [{"type": "string"}, {"items": {"$ref": "#/anyOf/0"}}]},
    "a little doubling": doubling(8),
    "a few leftovers": leftovers(7),
    "a plain tree without leftovers": {"properties": {"next": {"$ref": "#"}}, "unevaluatedProperties": False},
    "a long name": long_name(8),
    "look-around on one member": {"properties": {"a": {"pattern": "(?=a)b"}}},
    "a linear pattern of items": {"items": {"pattern": "^(a+)+$"}},
    "what only looks like look-around": {"items": {"pattern": r"\(?=a"}, "propertyNames": {"pattern": r"\\1"}},
    "a member that is called id": {"properties": {"a": {"properties": {"id": {"type": "string"}}}}},
    "an address inside, to which nothing refers": {"properties": {"a": {"$id": "https://example.test/x"}}},
}
HEAVY: dict[str, dict[str, Any]] = {
    "much doubling": doubling(40),
    "itself at once": {"$ref": "#"},
    "itself in place": {**REF, "$defs": {"node": {"anyOf": [{"type": "string"}, {"not": REF}]}}},
    "twice through one member": {
        **REF,
        "$defs": {"node": {"allOf": [{"properties": {"a": REF}}, {"properties": {"a": REF}}]}},
    },
    "a member and any member": {**REF, "$defs": {"node": {"properties": {"a": REF}, "patternProperties": {"a": REF}}}},
    "items and contains": {**REF, "$defs": {"node": {"items": REF, "contains": REF}}},
    "by a way round": {
        **REF,
        "$defs": {
            "node": {"allOf": [{"$ref": "#/$defs/way"}, {"$ref": "#/$defs/way"}]},
            "way": {"properties": {"a": REF}},
        },
    },
    "nowhere": {"$ref": "#/$defs/none"},
    "an anchor": {"$ref": "#here", "$defs": {"d": {"$anchor": "here"}}},
    "outside": {"$ref": "https://example.test/schema"},
    "another's names": {"properties": {"a": {"$id": "https://example.test/x", "$ref": "#/$defs/d"}}},
    "dynamic": {"$dynamicRef": "#node"},
    "many leftovers": leftovers(16),
    "many leftovers of items": {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}", "unevaluatedItems": False} for n in range(16)} | {"d16": {}},
    },
    "a long name over and over": long_name(12),
    "look-around on items": {"items": {"pattern": "(?=a)b"}},
    "look-around on any member": {"additionalProperties": {"properties": {"a": {"pattern": "(?<!a)b"}}}},
    "look-around on names": {"patternProperties": {"(?!a)": {}}},
    "a back reference on names": {"propertyNames": {"pattern": r"(a)\1"}},
    "a back reference on what items refer to": {
        "items": {"$ref": "#/$defs/d"},
        "$defs": {"d": {"pattern": r"(?<n>a)\k<n>"}},
    },
    "look-around on a member that items refer to": {
        "properties": {"a": {"pattern": "(?=a)b"}, "all": {"items": {"$ref": "#/properties/a"}}},
    },
    "a place of 5,000 digits": {"anyOf": [{}, {"$ref": "#/anyOf/" + "1" * 5_000}]},
    "another's names, as draft 4 spells it": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"id": "https://example.test/x", "allOf": [{"$ref": "#/definitions/d"}]}},
        "definitions": {"d": {}},
    },
}


@pytest.mark.parametrize("name", LIGHT)
def test_a_schema_with_a_bounded_check_is_accepted(name: str) -> None:
    assert not is_unbounded(LIGHT[name])


@pytest.mark.parametrize("name", HEAVY)
def test_a_schema_whose_check_might_never_end_is_found(name: str) -> None:
    assert is_unbounded(HEAVY[name])


def test_a_schema_may_expand_to_the_maximum_of_nodes() -> None:
    assert not is_unbounded({"allOf": [{}] * (MAX_NODES - 1)})
    assert is_unbounded({"allOf": [{}] * MAX_NODES})


@given(
    st.recursive(
        st.one_of(st.booleans(), st.integers(), st.text(), st.none(), st.sampled_from(["#", "#/$defs/a"])),
        lambda inner: st.one_of(
            st.lists(inner),
            st.dictionaries(st.sampled_from(["$ref", "$defs", "a", "properties", "items", "allOf", "not"]), inner),
        ),
    )
)
def test_the_cost_of_any_value_as_a_schema_is_decided(value: Any) -> None:
    assert is_unbounded({"properties": {"x": value}, "$defs": {"a": value}}) in (True, False)


@pytest.mark.parametrize(
    "schema", [DOUBLING, {"type": "any"}, {"enum": ["x" * 70_000]}, {"$ref": "https://example.com"}]
)
def test_a_schema_that_can_not_be_used_has_no_validator(schema: dict[str, Any]) -> None:
    assert compile_bounded(schema) is None


def test_the_caller_decides_about_references_that_can_not_be_followed() -> None:
    schema = {"$dynamicAnchor": "a", "properties": {"x": {"$dynamicRef": "#a"}}}
    assert compile_bounded(schema) is None
    assert compile_bounded(schema, if_unknown=False) is not None
