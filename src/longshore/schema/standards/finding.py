"""One broken rule, as it is told."""

from __future__ import annotations

from msgspec import Struct

from longshore.schema.standards.rule import Level, Profile


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`tool` is empty for what is wrong with the server as a whole."""

    tool: str
    level: Level
    rule: str
    message: str
    fix: str
    path: str = ""
    profiles: tuple[Profile, ...] = ()
    where: str = ""
    waived: str = ""
    """Why it does not count, where somebody said so."""
