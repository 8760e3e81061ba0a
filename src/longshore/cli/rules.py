"""Rules on the command line: --explain, --waive and --profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import click

from longshore.cli.screen import Line, json_text
from longshore.config import Config, origin
from longshore.config.sections import dotted
from longshore.errors import ConfigError
from longshore.nearest import nearest
from longshore.schema.lint.page import show_example
from longshore.schema.lint.rule import PROFILES, Profile, Rule
from longshore.schema.lint.rules import RULES
from longshore.schema.lint.run import find_rule
from longshore.schema.lint.tool_list import ToolList, example

ALL: Final = "all"
OFFERED: Final = Rule(
    id="E00",
    title="What is declared can be offered",
    level="error",
    profiles=("mcp",),
    why="The server does not start: Python or MCP itself forbids the declaration. Entries of a mounted server that "
    "can't be read are left out of the list, which is a warning.",
    evidence="Longshore refuses it at registration. The linter goes on, and reports all refusals at once.",
    fix="as the finding says",
    good=example({}),
    bad=ToolList(),
)
"""The rule about tools that were refused at registration, so no list has them."""


def read_waivers(given: Iterable[str], config: Config) -> dict[str, str]:
    """Rule, or `tool:rule`, → reason. Raises ConfigError and click.UsageError."""
    found: dict[str, str] = {}
    for key, reason in config.lint.waive.items():
        path = dotted(("lint", "waive", key))
        try:
            found |= _waiver(key, reason)
        except ValueError as problem:
            raise ConfigError(f"{origin(config, path).where}: {path}: {problem}") from None
    for each in given:
        key, _, reason = each.partition("=")
        try:
            found |= _waiver(key, reason)
        except ValueError as problem:
            raise click.UsageError(f"--waive {each}: {problem}") from None
    return found


def _waiver(key: str, reason: Any) -> dict[str, str]:
    tool, colon, id = key.rpartition(":")
    if not isinstance(reason, str) or not reason.strip():
        raise ValueError(f"a waiver says why: {key.strip() or 'E04'}=REASON")
    return {tool + colon + _known(id).id: reason.strip()}


def find(id: str) -> Rule | None:
    """The rule of a finding."""
    return OFFERED if id.strip().upper() == OFFERED.id else find_rule(id)


def _known(id: str) -> Rule:
    """The rule with this id. Raises ValueError, which names the nearest id."""
    rule = find(id)
    if rule is None:
        near = nearest(id.strip().upper(), [each.id for each in RULES])
        hint = f"did you mean {near}?" if near else "`longshore lint --explain all` lists them"
        raise ValueError(f"there is no rule {id.strip()[:40]!r}; {hint}")
    return rule


def read_profiles(given: Iterable[str], config: Config) -> tuple[Profile, ...]:
    """The profiles of the options, else of the configuration, else none. Raises ConfigError."""
    named = tuple(given) or tuple(config.lint.profiles)
    for each in named:
        if each not in PROFILES:
            where = origin(config, "lint.profiles").where
            raise ConfigError(f"{where}: lint.profiles: no profile {each[:40]!r}; there are {', '.join(PROFILES)}")
    return tuple(profile for profile in PROFILES if profile in named)


# -- explained


def explain(id: str) -> list[Rule]:
    """The rules that --explain names. Raises click.UsageError."""
    if id.strip().lower() == ALL:
        return [OFFERED, *RULES]
    try:
        return [_known(id)]
    except ValueError as problem:
        raise click.UsageError(f"--explain: {problem}") from None


def lines(rules: list[Rule]) -> Iterator[Line]:
    """One rule whole, or a line for each of several."""
    if len(rules) > 1:
        for rule in rules:
            yield 0, [(f"{rule.id}  ", "bold"), (f"{rule.level:<7}  ", ""), (rule.title, "")]
        return
    for rule in rules:
        yield from _whole(rule)


def _whole(rule: Rule) -> Iterator[Line]:
    yield 0, [(f"{rule.id}  {rule.title}", "bold")]
    yield 0, [(f"{rule.level}, for {', '.join(rule.profiles)}", "dim")]
    for name, text in {"why": rule.why, "evidence": rule.evidence, "fix": rule.fix}.items():
        yield 0, [(f"{name}: ", "bold"), (text, "")]
    if rule.mend is not None:
        yield 0, [("--fix mends it.", "")]
    for name, surface in {"bad": rule.bad, "good": rule.good}.items():
        if surface.tools:
            yield 0, []
            yield 0, [(f"{name}:", "bold")]
            yield from ((2, [(line, "")]) for line in json_text(show_example(surface)).splitlines())


def as_json(rules: list[Rule]) -> list[dict[str, Any]]:
    return [
        {
            "id": rule.id,
            "title": rule.title,
            "level": rule.level,
            "profiles": list(rule.profiles),
            "why": rule.why,
            "evidence": rule.evidence,
            "fix": rule.fix,
            "mends": rule.mend is not None,
            "bad": show_example(rule.bad),
            "good": show_example(rule.good),
        }
        for rule in rules
    ]
