"""What the author of a tool declared that does not go over the wire, as the standards want to know it."""

from __future__ import annotations

from collections.abc import Mapping

from longshore.registry.tool import Entry, category_of
from longshore.schema.standards.subject import Facts


def facts_of(entry: Entry, waived: Mapping[str, str]) -> Facts:
    """The facts of one tool; `waived` is what its server waives for all. Of a mounted tool only its place is known."""
    if entry.toolset is not None and entry.toolset.rank:
        return Facts(where=str(entry.where), waived=waived, foreign=True)
    return Facts(
        category=category_of(entry),
        examples=entry.examples,
        errors=entry.errors,
        waived={**waived, **entry.waived},
        where=str(entry.where),
        typed=not entry.raw,
        checks=entry.checks,
    )
