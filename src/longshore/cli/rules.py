"""Rules on the command line: --explain, --waive and --profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import click

from longshore.cli.screen import Line, Screen, json_text
from longshore.config import Config, origin
from longshore.config.sections import dotted
from longshore.errors import ConfigError
from longshore.nearest import nearest
from longshore.schema.lint.rule import PROFILES, Profile, Rule
from longshore.schema.lint.rules import RULES
from longshore.schema.lint.run import find_rule
from longshore.schema.lint.tool_list import ToolList

ALL: Final = "all"
SHOWN_CHARS: Final = 120
"""Characters of a description in an example."""
SHOWN_TOOLS: Final = 2
"""Tools of an example."""


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


def _known(id: str) -> Rule:
    """The rule with this id. Raises ValueError, which names the nearest id."""
    rule = find_rule(id)
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


def print_rules(id: str, form: str, screen: Screen) -> None:
    """Print the rule with this id, or `all`: one rule whole, or a line for each. Raises click.UsageError."""
    try:
        rules = list(RULES) if id.strip().lower() == ALL else [_known(id)]
    except ValueError as problem:
        raise click.UsageError(f"--explain: {problem}") from None
    if form == "json":
        screen.json([_as_json(rule) for rule in rules])
    elif form != "text":
        raise click.UsageError(f"a rule is explained as text or json, not as {form}; docs/lint-rules.md has them all")
    elif len(rules) == 1:
        screen.lines(_lines(rules[0]))
    else:
        titles = ([(f"{rule.id}  ", "bold"), (f"{rule.level:<7}  ", ""), (rule.title, "")] for rule in rules)
        screen.lines((0, line) for line in titles)


def _lines(rule: Rule) -> Iterator[Line]:
    yield 0, [(f"{rule.id}  {rule.title}", "bold")]
    yield 0, [(f"{rule.level}, for {', '.join(rule.profiles)}", "dim")]
    for name, text in {"why": rule.why, "evidence": rule.evidence, "fix": rule.fix}.items():
        yield 0, [(f"{name}: ", "bold"), (text, "")]
    if rule.mend is not None:
        yield 0, [("--fix mends it.", "")]
    for name, server in {"bad": rule.bad, "good": rule.good}.items():
        if server.tools:
            yield 0, []
            yield 0, [(f"{name}:", "bold")]
            yield from ((2, [(line, "")]) for line in json_text(show_example(server)).splitlines())


def _as_json(rule: Rule) -> dict[str, Any]:
    texts = ("id", "title", "level", "profiles", "why", "evidence", "fix")
    examples = {"bad": show_example(rule.bad), "good": show_example(rule.good)}
    return {**{key: getattr(rule, key) for key in texts}, "mends": rule.mend is not None, **examples}


def show_example(server: ToolList) -> Any:
    """An example as JSON: its tools as listed, and their declarations. Long texts are cut."""
    shown: dict[str, Any] = {} if server.name == "example" else {"server": server.name}
    for declared in server.declared.values():
        shown |= {"category": declared.category, "examples": declared.examples, "errors": declared.errors}
    tools: list[Any] = [_shorten(tool) for tool in server.tools[:SHOWN_TOOLS]]
    if len(server.tools) > SHOWN_TOOLS:
        tools.append(f"… {len(server.tools) - SHOWN_TOOLS} more")
    return tools[0] if not shown and len(tools) == 1 else {**shown, "tools": tools}


def _shorten(tool: dict[str, Any]) -> dict[str, Any]:
    text = tool["description"]
    long = isinstance(text, str) and len(text) > SHOWN_CHARS
    return {**tool, "description": f"{text[:SHOWN_CHARS]}… ({len(text):,} characters)"} if long else tool
