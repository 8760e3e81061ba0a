"""Checking a server's tools against the rules, and fixing them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from longshore.schema.kinds import is_object
from longshore.schema.lint.rule import COMMON, LEVELS, Finding, Level, Profile, Rule, RuleFault
from longshore.schema.lint.rules import RULES
from longshore.schema.lint.tool_list import LintedTool, ToolList

MOST_FAULTS: Final = 20
"""Faults of one rule in one tool that are reported."""
MOST_SOUGHT: Final = 20_000
"""Faults that are looked for, so that the worst can be reported: no error may hide behind warnings."""
MEND_ROUNDS: Final = 3
"""Mending one rule may break another; after three rounds they only undo each other."""


def lint(
    server: ToolList,
    *,
    profiles: Collection[Profile] = COMMON,
    waived: Mapping[str, str] | None = None,
    levels: Collection[Level] = LEVELS,
) -> list[Finding]:
    """The findings of these profiles, the worst first, tools in their order.

    `waived` maps rules, or `tool:rule`, to the reason. Waived findings are included, with the reason.
    """
    wanted = frozenset(profiles)
    rules = [rule for rule in RULES if not wanted.isdisjoint(rule.profiles)]
    found: list[Finding] = []
    for rule in rules:
        found += _report(rule, rule.whole(server) if rule.whole else (), server)
    for tool in server.tools:
        linted = LintedTool(tool, server)
        found += [finding for rule in rules for finding in check_rule(linted, rule)]
    reported = (each for each in found if each.level in levels and not wanted.isdisjoint(each.profiles))
    return sorted((_waive(each, server, waived or {}) for each in reported), key=lambda each: LEVELS.index(each.level))


def check_rule(tool: LintedTool, rule: Rule) -> list[Finding]:
    """The findings of one rule in one tool."""
    return _report(rule, rule.check(tool) if rule.check else (), tool.server, tool.name or "(no name)")


def find_rule(id: str) -> Rule | None:
    """The rule with this id, in any case and with spaces around it."""
    return next((rule for rule in RULES if rule.id == id.strip().upper()), None)


def mend(
    server: ToolList, profiles: Collection[Profile], waived: Mapping[str, str]
) -> tuple[ToolList, dict[str, list[str]]]:
    """Fix the tools as far as their meaning stays the same; return them, and the rules by tool.

    Waived findings stay.
    """
    done: dict[str, list[str]] = {}

    def mend_once(tool: dict[str, Any]) -> dict[str, Any]:
        found = lint(replace(server, tools=(tool,)), profiles=profiles, waived=waived)
        broken = {each.rule for each in found if not each.waived}
        for rule in RULES:
            after = rule.mend(tool) if rule.id in broken and rule.mend is not None else tool
            if after != tool:
                done.setdefault(str(tool.get("name", "")), []).append(rule.id)
                tool = after
        return tool

    tools = list(server.tools)
    for place, tool in enumerate(tools):
        for _ in range(MEND_ROUNDS if is_object(tool) else 0):
            before, tools[place] = tools[place], mend_once(tools[place])
            if tools[place] == before:
                break
    return replace(server, tools=tuple(tools)), done


def _report(rule: Rule, faults: Iterable[RuleFault], server: ToolList, tool: str = "") -> list[Finding]:
    """The worst faults of one rule as findings."""
    found = sorted(islice(faults, MOST_SOUGHT), key=lambda fault: LEVELS.index(fault.level or rule.level))
    return [
        Finding(
            tool=tool or fault.tool,
            level=fault.level or rule.level,
            rule=rule.id,
            message=fault.message,
            fix=fault.fix or rule.fix,
            path=fault.path,
            profiles=fault.profiles or rule.profiles,
            where=known.where if (known := server.declared.get(tool or fault.tool)) else "",
        )
        for fault in found[:MOST_FAULTS]
    ]


def _waive(finding: Finding, server: ToolList, waived: Mapping[str, str]) -> Finding:
    declared = server.declared.get(finding.tool)
    own: Mapping[str, str] = {} if declared is None else declared.waived
    reason = own.get(finding.rule) or waived.get(f"{finding.tool}:{finding.rule}") or waived.get(finding.rule)
    return replace(finding, waived=reason) if reason else finding
