"""Holding a server's tools against the rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from longshore.schema.standards.finding import Finding
from longshore.schema.standards.rule import COMMON, LEVELS, Fault, Level, Profile, Rule
from longshore.schema.standards.rules import RULES
from longshore.schema.standards.subject import Subject, Surface

_RANK: Final = {level: rank for rank, level in enumerate(LEVELS)}

MOST_FAULTS: Final = 20
"""Places of one tool at which one rule is told. Who mends these will have seen how."""
MOST_SOUGHT: Final = 20_000
"""Places that are found, of which the worst are told: no error may hide behind warnings."""


def lint(
    surface: Surface,
    *,
    profiles: Collection[Profile] = COMMON,
    waived: Mapping[str, str] | None = None,
    levels: Collection[Level] = LEVELS,
) -> list[Finding]:
    """What breaks a rule of these profiles, the worst first, tools in their order.

    `waived` are rules, or `tool:rule`, and why they don't hold here. What is waived is told too, with the reason.
    """
    rules = [rule for rule in RULES if not set(profiles).isdisjoint(rule.profiles)]
    found = [*_of_server(surface, rules)]
    for tool in surface.tools:
        found += lint_tool(tool, surface, rules)
    told = (
        _waive(finding, surface, waived or {})
        for finding in found
        if finding.level in levels and not set(profiles).isdisjoint(finding.profiles)
    )
    return sorted(told, key=lambda finding: _RANK[finding.level])


def lint_tool(tool: Any, surface: Surface, rules: Iterable[Rule] = RULES) -> Iterator[Finding]:
    """What one tool breaks."""
    subject = Subject(tool, surface)
    for rule in rules:
        yield from lint_subject(subject, rule)


def lint_subject(subject: Subject, rule: Rule) -> Iterator[Finding]:
    """What one tool breaks of one rule."""
    where = "" if subject.facts is None else subject.facts.where
    if rule.check is not None:
        for fault in _worst(rule, rule.check(subject)):
            yield _finding(rule, fault, subject.name or "(no name)", where)


def find_rule(id: str) -> Rule | None:
    """The rule of this id, however it is written."""
    return next((rule for rule in RULES if rule.id == id.strip().upper()), None)


def _of_server(surface: Surface, rules: Iterable[Rule]) -> Iterator[Finding]:
    for rule in rules:
        if rule.whole is not None:
            for fault in _worst(rule, rule.whole(surface)):
                facts = surface.facts.get(fault.tool)
                yield _finding(rule, fault, fault.tool, "" if facts is None else facts.where)


def _worst(rule: Rule, faults: Iterable[Fault]) -> list[Fault]:
    return sorted(islice(faults, MOST_SOUGHT), key=lambda fault: _RANK[fault.level or rule.level])[:MOST_FAULTS]


def _finding(rule: Rule, fault: Fault, tool: str, where: str) -> Finding:
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


def _waive(finding: Finding, surface: Surface, waived: Mapping[str, str]) -> Finding:
    from msgspec.structs import replace

    facts = surface.facts.get(finding.tool)
    own: Mapping[str, str] = {} if facts is None else facts.waived
    reason = own.get(finding.rule) or waived.get(f"{finding.tool}:{finding.rule}") or waived.get(finding.rule)
    return replace(finding, waived=reason) if reason else finding
