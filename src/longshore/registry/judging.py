"""What the rules say of a tool that is being declared. Comes in only for a tool that nobody has looked at before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from longshore.errors import RegistrationError
from longshore.registry.facts import facts_of
from longshore.registry.standards import Standards, Stumble, check_examples
from longshore.registry.tool import Entry
from longshore.schema.standards.finding import Finding
from longshore.schema.standards.linting import find_rule, lint_subject
from longshore.schema.standards.rule import COMMON, Profile, Rule
from longshore.schema.standards.rules import RULES
from longshore.schema.standards.subject import Subject, Surface

MENDED: Final = frozenset({"E03"})
"""What a server of ours keeps whatever the author writes: a result that is no object goes out in one."""
RAISED: Final = frozenset({"W27", "B53", "B58"})
"""Rules that warn, but find errors in some places. All others that warn are left to the linter: they cost the most."""
_PROFILES: Final = frozenset[Profile](COMMON)
_HOUSE_PROFILES: Final = frozenset[Profile]((*COMMON, "brooklyn"))
TEXT_CHARACTERS: Final = 600
"""Of what is told in one line: it is read on a terminal, and names and values in it can be of any length."""


def judge(standards: Standards, entry: Entry, described: dict[str, Any]) -> list[str]:
    """What is to be told of a tool, one text for each rule that it breaks. Raises for what is to be refused."""
    judge_waivers(entry.waived, str(entry.where))
    if standards.policy == "refuse" and entry.raw:
        check_examples(entry)
    facts = facts_of(entry, standards.waived)
    shown, failed = _as_sent(described, facts.where), list[str]()
    surface = Surface(tools=(shown,), facts={entry.name: facts}, categories=standards.categories)
    found = _group(each for each in _errors(shown, surface, failed) if each.rule not in facts.waived)
    for same in found:
        if standards.policy == "refuse" or "mcp" in same[0].profiles:
            raise RegistrationError(facts.where, _what(same), _fix(same[0].fix, same[0].rule))
    told = [f"{_what(same)}; {_fix(same[0].fix, same[0].rule)}" for same in found]
    if failed:
        raise Stumble(*told, *(_fit(f"the tool {entry.name!r} could not be held against {each}") for each in failed))
    return told


def _as_sent(described: dict[str, Any], where: str) -> dict[str, Any]:
    """A tool as clients read it: a tuple is an array there, an icon an object. One that can't be sent is refused."""
    try:
        sent: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(described))
    except Exception as problem:  # with it the whole list could not be sent
        why = "it holds itself, or is too deep" if isinstance(problem, RecursionError) else problem
        what = _fit(f"the tool {described['name']!r} has no form in JSON: {why}")
        raise RegistrationError(where, what, "use only dicts, lists, strings, numbers, booleans and None") from None
    return sent


def _group(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Those of one rule together, what MCP itself forbids first."""
    found: dict[str, list[Finding]] = {}
    for finding in sorted(findings, key=lambda each: "mcp" not in each.profiles):
        found.setdefault(finding.rule, []).append(finding)
    return list(found.values())


def judge_twins(standards: Standards, entry: Entry, twin: str) -> list[str]:
    """What is to be told of a tool whose name is another's, too, for some clients."""
    rule, what = "E07", f"the tools {entry.name!r} and {twin!r} are one to clients that write a dot as _"
    if rule in standards.waived or rule in entry.waived:
        return []
    fix = f"give {entry.name!r} another name"
    if standards.policy == "refuse":
        raise RegistrationError(str(entry.where), f"{rule}: {what}", _fix(fix, rule))
    return [f"{rule}: {what}; {_fix(fix, rule)}"]


def judge_waivers(waived: Mapping[str, str], where: str) -> None:
    """Refuse a waiver of a rule that does not exist, or one that says no reason."""
    for rule, reason in waived.items():
        known = find_rule(str(rule))
        if known is None:
            raise RegistrationError(where, f"waive={{{rule!r}: …}}: there is no such rule", _suggest(str(rule)))
        if known.id != rule:
            raise RegistrationError(where, f"waive={{{rule!r}: …}}: that is no rule's id", repr(known.id))
        if not isinstance(reason, str) or not reason.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RegistrationError(where, f"{rule} is waived without a reason", f'waive={{{rule!r}: "why"}}')


def _suggest(rule: str) -> str:
    from longshore.nearest import nearest

    near = nearest(rule.upper(), [each.id for each in RULES])
    return f"did you mean {near!r}?" if near else "docs/lint-rules.md has all rules"


def _errors(shown: dict[str, Any], surface: Surface, failed: list[str]) -> Iterator[Finding]:
    """What is an error. A rule that fails itself is entered, and keeps neither others from looking nor a server."""
    profiles = _PROFILES if surface.categories is None else _HOUSE_PROFILES
    subject = Subject(shown, surface)
    for rule in _grave_rules(profiles):
        try:
            yield from (each for each in lint_subject(subject, rule) if _is_grave(each, profiles))
        except Exception as problem:
            failed.append(f"{rule.id}: {problem!r}")


def _is_grave(finding: Finding, profiles: frozenset[Profile]) -> bool:
    return finding.level == "error" and not profiles.isdisjoint(finding.profiles)


@cache
def _grave_rules(profiles: frozenset[Profile]) -> tuple[Rule, ...]:
    """Those that can find an error for one of these."""
    grave = (rule for rule in RULES if rule.level == "error" or rule.id in RAISED)
    return tuple(rule for rule in grave if rule.id not in MENDED and not profiles.isdisjoint(rule.profiles))


def _what(same: list[Finding]) -> str:
    """One rule and all the places where it is broken, the first of them in words."""
    more = f" (and {len(same) - 1} more)" if len(same) > 1 else ""
    return _fit(f"{same[0].rule}: the tool {same[0].tool!r}: {same[0].message}{more}")


def _fix(fix: str, rule: str) -> str:
    return f"{_fit(fix).rstrip('.')} (longshore lint --explain {rule})"


def _fit(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= TEXT_CHARACTERS else text[: TEXT_CHARACTERS - 1] + "…"
