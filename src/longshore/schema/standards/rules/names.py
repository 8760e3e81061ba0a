"""To be written."""

from __future__ import annotations

from typing import Final

from longshore.schema.standards.rule import Rule

RULES: Final[tuple[Rule, ...]] = ()
