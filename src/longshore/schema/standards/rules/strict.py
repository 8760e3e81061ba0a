"""The rule about OpenAI's strict mode: whether a tool's input can be said in the part of JSON Schema that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.combinators import with_all_joined
from longshore.schema.kinds import is_array, is_object
from longshore.schema.standards.parameter import type_names
from longshore.schema.standards.rule import Fault, Rule, fault
from longshore.schema.standards.subject import Json, Node, Subject, example

PROPERTIES: Final = 5_000
"""Properties of all objects of a schema together."""
DEPTH: Final = 10
"""Objects and arrays inside one another, the root among them."""
ENUM_VALUES: Final = 1_000
"""Values of all enums together."""
CHARACTERS: Final = 120_000
"""Characters of all names and values together."""
JOINED: Final = 50
"""Parts of one allOf that we try to write as one schema. Nobody writes more by hand."""

_UNKNOWN: Final = (
    *("not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"),
    "patternProperties",
)
_OF_VALUES: Final = frozenset(("properties", "items", "prefixItems", "anyOf", "oneOf", "$defs", "definitions"))
"""Where a schema stands by itself; elsewhere it is only a part of one."""
_SAYS_KIND: Final = frozenset(("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"))
"""One of these says what kind of value is meant."""


def _check_strict(subject: Subject) -> Iterator[Fault]:
    for key in ("anyOf", "oneOf"):
        if key in subject.input:
            yield fault(f"{key} stands at the root, where strict mode takes an object only", "inputSchema")
    nodes = [node for node in subject.inputs() if is_object(node.schema)]
    for node in nodes:
        for reason in _find_reasons(node):
            yield fault(f"strict mode has no {reason}", node.path)
    yield from _check_totals(nodes)


def _find_reasons(node: Node) -> Iterator[str]:
    for keyword in _UNKNOWN:
        if keyword in node.schema:
            yield keyword
    if "allOf" in node.schema and not _can_join(node.schema):
        yield "allOf, and what stands in this one can't be written beside it"
    if _is_open(node):
        yield "objects with names of their own: it takes the properties that are listed, and no others"
    if node.inside in _OF_VALUES and _SAYS_KIND.isdisjoint(node.schema):
        yield "values of any kind: each schema has a type"


def _can_join(schema: Json) -> bool:
    parts = schema["allOf"]
    if not is_array(parts) or len(parts) > JOINED:
        return False
    joined = with_all_joined(schema)
    return all(is_object(part) and part.keys() <= joined.keys() for part in parts)


def _is_open(node: Node) -> bool:
    """An object that takes any name. Where nothing is said of other names, closing it takes nothing away."""
    schema = node.schema
    if "object" not in type_names(schema) or "$ref" in schema:
        return False
    rest = schema.get("additionalProperties")
    return is_object(rest) or (bool(node.inside) and "properties" not in schema and rest is not False)


def _check_totals(nodes: list[Node]) -> Iterator[Fault]:
    counts = (
        (sum(len(_names(node.schema)) for node in nodes), PROPERTIES, "properties"),
        (1 + max((node.depth for node in nodes if _holds(node.schema)), default=0), DEPTH, "levels"),
        (sum(len(_values(node.schema)) for node in nodes), ENUM_VALUES, "enum values"),
        (sum(_measure(node.schema) for node in nodes), CHARACTERS, "characters of names and values"),
    )
    for count, most, what in counts:
        if count > most:
            yield fault(f"{count:,} {what}; strict mode takes {most:,}", "inputSchema")


def _holds(schema: Json) -> bool:
    return not {"object", "array"}.isdisjoint(type_names(schema))


def _names(schema: Json) -> list[str]:
    return [str(name) for key in ("properties", "$defs", "definitions") for name in _keys(schema.get(key))]


def _keys(value: Any) -> list[str]:
    return list(value) if is_object(value) else []


def _values(schema: Json) -> list[Any]:
    found = schema.get("enum")
    return found if is_array(found) else []


def _measure(schema: Json) -> int:
    said = [each for each in (*_names(schema), *_values(schema), schema.get("const")) if isinstance(each, str)]
    return sum(len(text) for text in said)


_LABELS: Final[Json] = {"type": "object", "description": "label → text"}

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="W29",
        title="A tool's input can be said in OpenAI's strict mode",
        level="warning",
        profiles=("openai-strict",),
        why="A tool that strict mode can't say is sent without it, so the model's arguments may break the schema. "
        "Optional parameters are no hindrance: they become required and may be null.",
        evidence="OpenAI's Structured Outputs as of February 2026 (jsonschemaprofiles.unitvectorylabs.com): no allOf, "
        "not, if or dependent*, no open objects, 5,000 properties, 10 levels, 1,000 enum values, 120,000 characters",
        fix="Say it with listed properties, anyOf inside a property and enums, and check the rest in the tool.",
        good=example(
            {
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "labels": {
                            "type": "array",
                            "description": "labels and their texts",
                            "items": {
                                "type": "object",
                                "properties": {"label": {"type": "string"}, "text": {"type": "string"}},
                                "required": ["label", "text"],
                            },
                        }
                    },
                }
            }
        ),
        bad=example(
            {
                "inputSchema": {
                    "type": "object",
                    "properties": {"labels": {**_LABELS, "additionalProperties": {"type": "string"}}},
                }
            }
        ),
        check=_check_strict,
    ),
)
