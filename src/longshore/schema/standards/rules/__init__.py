"""The rules, one module for each kind of thing that they look at."""

from __future__ import annotations

from typing import Final

from longshore.schema.standards.rule import Rule
from longshore.schema.standards.rules import brooklyn, keywords, names, schemas, server, strict, words

RULES: Final[tuple[Rule, ...]] = tuple(
    sorted(
        (*names.RULES, *schemas.RULES, *keywords.RULES, *words.RULES, *server.RULES, *strict.RULES, *brooklyn.RULES),
        key=lambda rule: ("EWIB".index(rule.id[0]), rule.id),
    )
)
