"""One rule held against one tool."""

from __future__ import annotations

from typing import Any

from longshore.schema.standards.linting import find_rule
from longshore.schema.standards.rule import Fault, Rule
from longshore.schema.standards.subject import Facts, Subject, example


def rule_of(id: str) -> Rule:
    rule = find_rule(id)
    assert rule is not None
    return rule


def faults(id: str, tool: dict[str, Any], facts: Facts | None = None, **more: Any) -> list[Fault]:
    """What the rule finds in the tool; what is left out of it is filled."""
    surface = example(tool, facts=facts, **more)
    check = rule_of(id).check
    assert check is not None
    return list(check(Subject(surface.tools[0], surface)))


def takes(*required: str, **properties: Any) -> dict[str, Any]:
    return {"inputSchema": {"type": "object", "properties": properties, "required": list(required)}}
