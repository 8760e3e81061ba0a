"""A lint rule: its condition, its clients, the evidence, a good and a bad example; and a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

from longshore.schema.lint.tool_list import LintedTool, ToolList

Level = Literal["error", "warning", "info"]
Profile = Literal["mcp", "claude", "openai", "openai-strict", "gemini", "vscode", "cursor", "brooklyn"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
PROFILES: Final[tuple[Profile, ...]] = get_args(Profile)
COMMON: Final[tuple[Profile, ...]] = ("mcp", "claude", "openai", "gemini", "vscode", "cursor")
"""The default profiles. The other two are standards that a team chooses for itself."""

MESSAGE_CHARS: Final = 160
"""The longest message: one line of a wide terminal. Names and values in it come from any server."""


class RuleFault(Struct, frozen=True):
    """One place where a rule is broken. Empty fields take the rule's value."""

    message: str
    path: str = ""
    """The place in the tool: `inputSchema.properties.city`; empty for the tool itself."""
    fix: str = ""
    level: Level | None = None
    profiles: tuple[Profile, ...] = ()
    """The clients that this fault concerns, if they are fewer than the rule's."""
    tool: str = ""
    """The tool's name, if the rule checks the whole server."""

    def __post_init__(self) -> None:
        if len(self.message) > MESSAGE_CHARS:
            force_setattr(self, "message", self.message[: MESSAGE_CHARS - 1] + "…")


Check = Callable[[LintedTool], Iterable[RuleFault]]
ServerCheck = Callable[[ToolList], Iterable[RuleFault]]
Mend = Callable[[dict[str, Any]], dict[str, Any]]


class RuleText(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The texts of a rule, and its examples."""

    title: str
    """The requirement: a short sentence."""
    level: Level
    profiles: tuple[Profile, ...]
    why: str
    """The effect on a tool that breaks it."""
    evidence: str
    """Where that was measured or is written: a client's version, a revision of MCP, an issue's number."""
    fix: str
    good: ToolList
    bad: ToolList


class Rule(RuleText, frozen=True, kw_only=True):
    """`check` looks at one tool, `whole` at the server; a rule has one of them, or both.

    `mend` returns an equivalent tool that follows the rule, or the same tool if there is none.
    """

    id: str
    check: Check | None = None
    whole: ServerCheck | None = None
    mend: Mend | None = None


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fault as it is reported. `tool` is empty for a fault of the whole server."""

    tool: str
    level: Level
    rule: str
    message: str
    fix: str
    path: str = ""
    profiles: tuple[Profile, ...] = ()
    where: str = ""
    waived: str = ""
    """The reason of the waiver, if the finding is waived."""
