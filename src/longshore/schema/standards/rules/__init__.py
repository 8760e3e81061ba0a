"""The rules, one module for each kind of thing that they look at."""

from __future__ import annotations

from typing import Final

from longshore.schema.standards.rule import Rule
from longshore.schema.standards.rules import brooklyn, keywords, leftovers, names, schemas, server, strict, words

_KINDS: Final = (names, schemas, keywords, leftovers, words, server, strict, brooklyn)

RULES: Final[tuple[Rule, ...]] = tuple(
    sorted(
        (rule for kind in _KINDS for rule in kind.RULES),
        key=lambda rule: ("EWIB".index(rule.id[0]), rule.id),
    )
)
