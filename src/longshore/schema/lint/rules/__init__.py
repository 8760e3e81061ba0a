"""The rules. Their texts and examples are in `rules.json`, their checks in one module for each kind of thing."""

from __future__ import annotations

import os
from typing import Final

import msgspec
from msgspec.structs import asdict

from longshore.schema.lint.rule import Check, Mend, Rule, RuleText
from longshore.schema.lint.rules import brooklyn, naming, portability, schemas, texts

NOT_OFFERED: Final = "E00"
"""The rule about tools that were refused at registration. No list has them, so it has no check."""
_CHECKS: Final[dict[str, Check]] = naming.CHECKS | schemas.CHECKS | portability.CHECKS | texts.CHECKS | brooklyn.CHECKS
_SERVER_CHECKS: Final = naming.SERVER_CHECKS | texts.SERVER_CHECKS
_MENDS: Final[dict[str, Mend]] = naming.MENDS | schemas.MENDS | portability.MENDS | texts.MENDS | brooklyn.MENDS

with open(os.path.join(os.path.dirname(__file__), "rules.json"), "rb") as _file:
    _TEXTS: Final = msgspec.json.decode(_file.read(), type=dict[str, RuleText])

RULES: Final = tuple(
    Rule(id=id, **asdict(text), check=_CHECKS.get(id), whole=_SERVER_CHECKS.get(id), mend=_MENDS.get(id))
    for id, text in _TEXTS.items()
)
