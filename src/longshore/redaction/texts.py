"""Removing credentials from texts: each likely one is replaced by a marker before anything is stored.

In doubt it is removed: a literal that was no secret costs a search one word, a stored secret is read by every agent of
the project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from string import ascii_uppercase
from typing import Final

from longshore.redaction.rules import MARKER, RULES, RedactionRule

VERSION: Final = 2
"""Of the rules: files are read again with others."""
_LOWER: Final = {ord(letter): letter.lower() for letter in ascii_uppercase}
"""`lower` changes the length of some texts."""


def remove_secrets(text: str) -> tuple[str, int]:
    """A text without credentials, with as many lines as before, and how many were removed."""
    removed = 0
    lowered = text.translate(_LOWER)
    for rule in RULES:
        if any(needle in lowered for needle in rule.needles):
            text, count = _apply(rule, text, lowered)
            if count:
                lowered = text.translate(_LOWER)
                removed += count
    return text, removed


def _apply(rule: RedactionRule, text: str, lowered: str) -> tuple[str, int]:
    parts, count, done = list[str](), 0, 0
    for found in _matches(rule, text, lowered):
        groups = found.groupdict()
        group: str | int = next((name for name in ("secret", "quoted") if groups.get(name) is not None), 0)
        start, end = found.span(group)
        secret = found[group]
        if start < done or MARKER in secret or not rule.accept(secret):
            continue
        parts += (text[done:start], MARKER, "\n" * secret.count("\n"))
        count, done = count + 1, end
    return ("".join((*parts, text[done:])), count) if count else (text, 0)


def _matches(rule: RedactionRule, text: str, lowered: str) -> Iterator[re.Match[str]]:
    """Possible credentials. The search continues at needles within a match: a value can be the name of the next one."""
    pattern = _compile(rule.pattern)
    if rule.begins == "anywhere":
        yield from pattern.finditer(text)
        return
    starts = {at for needle in rule.needles for at in _find_all(lowered, needle)}
    if rule.begins == "at the line of the needle":
        starts = {lowered.rfind("\n", 0, at) + 1 for at in starts}
    for at in sorted(starts):
        if found := pattern.match(text, at):
            yield found


@cache
def _compile(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def _find_all(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)
