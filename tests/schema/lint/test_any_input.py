"""Rules never raise: a tool may be any JSON value, with texts of any length."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from counts import count
from longshore.schema.lint.rule import MESSAGE_CHARS, PROFILES
from longshore.schema.lint.rules import RULES
from longshore.schema.lint.run import lint
from longshore.schema.lint.tool_list import ToolList

KEYS = (
    *("name", "description", "inputSchema", "outputSchema", "annotations", "_meta", "longshore/category"),
    *("type", "properties", "required", "items", "anyOf", "allOf", "oneOf", "not", "if", "$ref", "$defs", "enum"),
    *("minimum", "maximum", "pattern", "format", "default", "additionalProperties", "patternProperties", "const"),
    *("prefixItems", "$id", "id", "$anchor", "$schema", "definitions", "dependencies", "exclusiveMinimum", "title"),
    *("browserId", "target", "timeout", "mode", "a", "b", "destructiveHint", "maxLength", "examples"),
)
TEXTS = (
    *("object", "string", "number", "array", "any", "#/$defs/a", "#", "Either 'a' or 'b'", "one of a, b, c"),
    *("delete_all", "list_things", "Returns it", "(a|b)", "optional if b provided", "\ud800", "", "at most 5"),
    *("null", "#/properties/a", "(?P<x>", "x\n\x1b[31m"),
)
texts = st.sampled_from(TEXTS) | st.text(max_size=5)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner), max_leaves=25
)
schemas = st.dictionaries(st.sampled_from(KEYS), anything) | anything
tools = st.fixed_dictionaries(
    {},
    optional={
        "name": texts | anything,
        "description": anything,
        "inputSchema": schemas,
        "outputSchema": schemas,
        "annotations": anything,
        "_meta": anything,
    },
)


@settings(max_examples=count(60), suppress_health_check=list(HealthCheck))
@given(st.lists(tools | anything, max_size=3), st.text(max_size=80), st.none() | texts)
def test_linting_and_mending_any_json_value_raises_nothing(
    listed: list[Any], name: str, instructions: str | None
) -> None:
    for found in lint(ToolList(name=name, tools=tuple(listed), instructions=instructions), profiles=PROFILES):
        assert found.message and len(found.message) <= MESSAGE_CHARS and found.message.isprintable() and found.fix
    for tool in listed:
        for rule in RULES:
            if rule.mend is not None and isinstance(tool, dict):
                rule.mend(tool)


MEGABYTE = 1_000_000
HOSTILE = ("either a or b, ", "1,234 ", "'a', ", "one of a, ", "(a|", "_")


@pytest.mark.parametrize("bit", HOSTILE)
def test_a_megabyte_of_text_is_linted_in_linear_time(bit: str) -> None:
    """A rule with quadratic time would exceed the time limit."""
    text = bit * (MEGABYTE // len(bit))
    of_text = {"type": "string", "description": text}
    number = {"type": "integer", "description": text, "maximum": 7, "default": text, "pattern": text, "format": text}
    schema = {"type": "object", "properties": {"a": of_text, "b": number, "mode": of_text}}
    tool = {"name": "list_all", "description": text, "inputSchema": schema, "_meta": {"longshore/category": text}}
    found = lint(ToolList(tools=(tool,), instructions=text), profiles=PROFILES)
    assert found and all(len(finding.fix) < 1_000 for finding in found)
