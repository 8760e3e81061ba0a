"""The rules, one module for each kind of thing that they check."""

from __future__ import annotations

from typing import Final

from longshore.schema.lint.rule import Rule
from longshore.schema.lint.rules import brooklyn, keywords, naming, portability, schemas, texts

_KINDS: Final = (naming, schemas, keywords, portability, texts, brooklyn)

RULES: Final[tuple[Rule, ...]] = tuple(
    sorted((rule for kind in _KINDS for rule in kind.RULES), key=lambda rule: ("EWIB".index(rule.id[0]), rule.id))
)
