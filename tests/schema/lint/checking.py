"""Tools to lint, and running one rule on one of them."""

from __future__ import annotations

from typing import Any

from longshore.schema.lint.rule import Rule, RuleFault
from longshore.schema.lint.run import find_rule
from longshore.schema.lint.tool_list import Declaration, LintedTool, ToolList


def example(tool: dict[str, Any], *, declared: Declaration | None = None, **more: Any) -> ToolList:
    """A server with one tool, in which missing members are filled in."""
    filled: dict[str, Any] = {
        "name": "get_weather",
        "description": "Get the weather of a city",
        "inputSchema": {"type": "object", "properties": {}},
    }
    whole = {**filled, **tool}
    known = {} if declared is None else {str(whole["name"]): declared}
    return ToolList(tools=(whole,), declared=known, **more)


def rule_of(id: str) -> Rule:
    rule = find_rule(id)
    assert rule is not None
    return rule


def faults(id: str, tool: dict[str, Any], declared: Declaration | None = None, **more: Any) -> list[RuleFault]:
    """The faults that the rule finds in the tool; members that are left out are filled in."""
    surface = example(tool, declared=declared, **more)
    check = rule_of(id).check
    assert check is not None
    return list(check(LintedTool(surface.tools[0], surface)))


def takes(*required: str, **properties: Any) -> dict[str, Any]:
    return {"inputSchema": {"type": "object", "properties": properties, "required": list(required)}}
