"""Running one rule on one tool."""

from __future__ import annotations

from typing import Any

from longshore.schema.lint.rule import Rule, RuleFault
from longshore.schema.lint.run import find_rule
from longshore.schema.lint.tool_list import Declaration, LintedTool, example


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
