"""The rule about OpenAI's strict mode: its reasons and limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.schema.lint.checking import faults

from longshore.schema.client_forms import lower
from longshore.schema.lint.rules.portability import (
    STRICT_CHARACTERS,
    STRICT_DEPTH,
    STRICT_ENUM_VALUES,
    STRICT_PROPERTIES,
)

Json = dict[str, Any]
TEXT = {"type": "string"}
LISTS = Path(__file__).parents[2] / "interop/lint/lists"


def root(**more: Any) -> Json:
    return {"inputSchema": {"type": "object", "properties": {}, **more}}


def holds(schema: Any) -> Json:
    return root(properties={"a": schema})


@pytest.mark.parametrize(
    ("tool", "reasons"),
    [
        (root(), []),
        ({"inputSchema": {"type": "object"}}, []),
        (holds(TEXT), []),  # optional is no hindrance
        (root(properties={"a": TEXT}, additionalProperties=True), []),
        (root(anyOf=[TEXT]), ["anyOf stands at the root"]),
        (root(oneOf=[TEXT]), ["oneOf stands at the root"]),
        (holds({"anyOf": [TEXT, {"type": "null"}]}), []),
        (holds({"type": "object"}), ["objects with names of their own"]),
        (holds({"type": "object", "additionalProperties": False}), []),
        (holds({"type": "object", "properties": {}, "additionalProperties": {}}), ["objects with names of their own"]),
        (root(additionalProperties=TEXT), ["objects with names of their own"]),
        (holds({}), ["values of any kind"]),
        (holds({"type": "array", "items": {}}), ["values of any kind"]),
        (holds({"enum": [1]}), []),
        (holds({"$ref": "#/$defs/A"}), []),
        (holds({"type": "string", "not": {"enum": ["x"]}}), ["strict mode has no not"]),
        (root(**{"if": TEXT, "then": TEXT, "else": TEXT}), ["has no if", "has no then", "has no else"]),
        (root(dependentRequired={"a": ["b"]}), ["dependentRequired"]),
        (root(patternProperties={"a": TEXT}), ["patternProperties"]),
        (holds({"allOf": [{"type": "string"}]}), []),  # written beside it
        (holds({"type": "string", "allOf": [{"minLength": 1}, {"maxLength": 2}]}), []),
        (holds({"allOf": 7}), ["allOf"]),
        ({"inputSchema": True}, []),
        ({"inputSchema": None}, []),
    ],
)
def test_strict_mode_gives_the_exact_reason(tool: Json, reasons: list[str]) -> None:
    found = [fault.message for fault in faults("W29", tool)]
    assert len(found) == len(reasons), found
    assert all(reason in message for reason, message in zip(reasons, found, strict=True))


def nested(levels: int) -> Json:
    schema: Json = {"type": "object", "properties": {"a": TEXT}}
    for _ in range(levels - 1):
        schema = {"type": "object", "properties": {"a": schema}}
    return {"inputSchema": schema}


def of_characters(count: int) -> Json:
    return holds({"enum": ["x" * (count - 1)]})  # and the name


@pytest.mark.parametrize(
    ("make", "most", "what"),
    [
        (lambda n: root(properties={str(i): TEXT for i in range(n)}), STRICT_PROPERTIES, "properties"),
        (nested, STRICT_DEPTH, "levels"),
        (lambda n: holds({"enum": list(range(n))}), STRICT_ENUM_VALUES, "enum values"),
        (of_characters, STRICT_CHARACTERS, "characters of names and values"),
    ],
)
def test_strict_mode_has_limits(make: Any, most: int, what: str) -> None:
    assert faults("W29", make(most - 1)) == faults("W29", make(most)) == []
    [fault] = faults("W29", make(most + 1))
    assert fault.message == f"{most + 1:,} {what}; strict mode takes {most:,}"


@pytest.mark.parametrize("server", ["everything", "filesystem", "memory", "playwright"])
def test_a_tool_fits_strict_mode_exactly_if_it_can_be_lowered_to_it(server: str) -> None:
    listed = json.loads((LISTS / f"{server}.json").read_text())
    for tool in listed["tools"]:
        lowered = lower(tool, "openai-strict")["inputSchema"]
        strict = lowered.get("additionalProperties") is False and lowered["required"] == [*lowered["properties"]]
        assert strict is (faults("W29", tool) == []), tool["name"]
