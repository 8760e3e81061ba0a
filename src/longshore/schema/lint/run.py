"""Checking a server's tools against the rules, and mending them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from longshore.schema.kinds import is_object
from longshore.schema.lint.rule import COMMON, LEVELS, Finding, Level, Profile, Rule, RuleFault
from longshore.schema.lint.rules import RULES
from longshore.schema.lint.tool_list import LintedTool, ToolList

_RANK: Final = {level: rank for rank, level in enumerate(LEVELS)}

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
    rules = [rule for rule in RULES if not set(profiles).isdisjoint(rule.profiles)]
    found = [*_lint_server(server, rules)]
    for tool in server.tools:
        found += lint_tool(tool, server, rules)
    reported = (
        _waive(finding, server, waived or {})
        for finding in found
        if finding.level in levels and not set(profiles).isdisjoint(finding.profiles)
    )
    return sorted(reported, key=lambda finding: _RANK[finding.level])


def lint_tool(tool: Any, server: ToolList, rules: Iterable[Rule] = RULES) -> Iterator[Finding]:
    """The findings in one tool."""
    linted = LintedTool(tool, server)
    for rule in rules:
        yield from check_rule(linted, rule)


def check_rule(tool: LintedTool, rule: Rule) -> Iterator[Finding]:
    """The findings of one rule in one tool."""
    where = "" if tool.declared is None else tool.declared.where
    if rule.check is not None:
        for fault in _worst(rule, rule.check(tool)):
            yield _finding(rule, fault, tool.name or "(no name)", where)


def find_rule(id: str) -> Rule | None:
    """The rule with this id, in any case and with spaces around it."""
    return next((rule for rule in RULES if rule.id == id.strip().upper()), None)


def mend(
    server: ToolList, profiles: Collection[Profile], waived: Mapping[str, str]
) -> tuple[ToolList, dict[str, list[str]]]:
    """The tools mended as far as their meaning stays the same, and tool → rules. Waived findings are left."""
    done: dict[str, list[str]] = {}
    mended = tuple(_mend_tool(tool, server, profiles, waived, done) for tool in server.tools)
    return replace(server, tools=mended), done


def _lint_server(server: ToolList, rules: Iterable[Rule]) -> Iterator[Finding]:
    for rule in rules:
        if rule.whole is not None:
            for fault in _worst(rule, rule.whole(server)):
                declared = server.declared.get(fault.tool)
                yield _finding(rule, fault, fault.tool, "" if declared is None else declared.where)


def _worst(rule: Rule, faults: Iterable[RuleFault]) -> list[RuleFault]:
    return sorted(islice(faults, MOST_SOUGHT), key=lambda fault: _RANK[fault.level or rule.level])[:MOST_FAULTS]


def _finding(rule: Rule, fault: RuleFault, tool: str, where: str) -> Finding:
    return Finding(
        tool=tool,
        level=fault.level or rule.level,
        rule=rule.id,
        message=fault.message,
        fix=fault.fix or rule.fix,
        path=fault.path,
        profiles=fault.profiles or rule.profiles,
        where=where,
    )


def _waive(finding: Finding, server: ToolList, waived: Mapping[str, str]) -> Finding:
    declared = server.declared.get(finding.tool)
    own: Mapping[str, str] = {} if declared is None else declared.waived
    reason = own.get(finding.rule) or waived.get(f"{finding.tool}:{finding.rule}") or waived.get(finding.rule)
    return replace(finding, waived=reason) if reason else finding


def _mend_tool(
    tool: Any,
    server: ToolList,
    profiles: Collection[Profile],
    waived: Mapping[str, str],
    done: dict[str, list[str]],
) -> Any:
    for _ in range(MEND_ROUNDS):
        before = tool
        for rule in _mendable(tool, server, profiles, waived) if is_object(tool) else ():
            assert rule.mend is not None
            after = rule.mend(tool)
            if after != tool:
                done.setdefault(str(tool.get("name", "")), []).append(rule.id)
                tool = after
        if tool == before:
            break
    return tool


def _mendable(tool: Any, server: ToolList, profiles: Collection[Profile], waived: Mapping[str, str]) -> list[Rule]:
    """The rules that this tool breaks and that can mend it."""
    found = lint(replace(server, tools=(tool,)), profiles=profiles, waived=waived)
    ids = {each.rule for each in found if not each.waived}
    return [rule for rule in RULES if rule.id in ids and rule.mend is not None]
