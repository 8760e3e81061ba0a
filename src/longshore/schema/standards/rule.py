"""A rule about tools: what must hold, for whom, since when that is known, and what it looks like kept and broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from longshore.schema.standards.subject import Subject, Surface

Level = Literal["error", "warning", "info"]
Profile = Literal["mcp", "claude", "openai", "openai-strict", "gemini", "vscode", "cursor", "brooklyn"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
PROFILES: Final[tuple[Profile, ...]] = get_args(Profile)
COMMON: Final[tuple[Profile, ...]] = ("mcp", "claude", "openai", "gemini", "vscode", "cursor")
"""What is looked at unless somebody says otherwise. The other two are standards that a team chooses for itself."""

MESSAGE_CHARS: Final = 160
"""A message is one line of a terminal that is wide."""


class Fault(Struct, frozen=True):
    """One place where a rule is broken. What is left out is the rule's own."""

    message: str
    path: str = ""
    """Where in the tool: `inputSchema.properties.city`; empty for the tool itself."""
    fix: str = ""
    level: Level | None = None
    profiles: tuple[Profile, ...] = ()
    """Whom this one concerns, where that is not everybody whom the rule concerns."""
    tool: str = ""
    """Which tool, where the rule looks at the whole server."""


def fault(
    message: str,
    path: str = "",
    *,
    fix: str = "",
    level: Level | None = None,
    profiles: tuple[Profile, ...] = (),
    tool: str = "",
) -> Fault:
    """A fault whose message is short: names and values in it come from strangers."""
    if len(message) > MESSAGE_CHARS:
        message = message[: MESSAGE_CHARS - 1] + "…"
    return Fault(message, path, fix, level, profiles, tool)


class Rule(Struct, frozen=True, kw_only=True):
    """`check` looks at one tool, `whole` at the server; a rule has one of them, or both.

    `mend` gives a tool that keeps the rule and means the same, or the tool as it is where that can't be done.
    """

    id: str
    title: str
    """What must hold: a short sentence."""
    level: Level
    profiles: tuple[Profile, ...]
    why: str
    """What happens to one who breaks it."""
    evidence: str
    """Where that was seen or is written: a client and its version, a revision of MCP, an issue's number."""
    fix: str
    good: Surface
    bad: Surface
    check: Callable[[Subject], Iterable[Fault]] | None = None
    whole: Callable[[Surface], Iterable[Fault]] | None = None
    mend: Callable[[dict[str, Any]], dict[str, Any]] | None = None
