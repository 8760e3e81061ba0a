"""The sections of `longshore.toml`, one Struct each.

The rest of the room derives from these: checks, variable names, the JSON Schema, the page in docs. To add a section,
write its Struct and name it in `Sections`; to add a key, add a field with its reason below it. What the rooms know
about types: `bool`, `int` (a count or bytes), `float` (always seconds), `Timeout`, `str`, `Literal[...]` and
`dict[str, Any]` (free-form, files only). `| None` means that the key may stay unset.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from longshore.limits import DEFAULT_LIMITS, Limits

Timeout: TypeAlias = float | Literal[False]
"""Seconds, or False for no limit. Zero is read as False."""

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error"]
LogFormat: TypeAlias = Literal["auto", "pretty", "json"]


class ServerConfig(Struct, frozen=True, kw_only=True):
    """How the server behaves."""

    timeout: Timeout = DEFAULT_LIMITS.timeout_seconds
    """A tool that says nothing else is stopped after this many seconds; false or 0: never."""

    eof_grace: float = DEFAULT_LIMITS.eof_grace_seconds
    """After end of input, calls in flight may finish for this many seconds."""

    expose_errors: bool = False
    """Show the model the text of unexpected exceptions. Masked by default: they may hold paths and secrets."""

    instructions: str | None = None
    """What the server tells the model about itself, in place of the author's own text."""

    log_level: LogLevel = "warning"
    """The least severe record that is written to stderr."""

    log_format: LogFormat = "auto"
    """How records look on stderr; auto: pretty on a terminal, JSON lines otherwise."""


class ToolsetConfig(Struct, frozen=True, kw_only=True):
    """One toolset, by its name."""

    enabled: bool | None = None
    """Offer the tools of this toolset. Unset: yes."""

    timeout: Timeout | None = None
    """Seconds that each of its tools may run; false or 0: no limit. Unset: as the tool declares."""

    options: dict[str, Any] = {}
    """The toolset's own options; it checks them itself."""


class ToolConfig(Struct, frozen=True, kw_only=True):
    """One tool, by its name."""

    enabled: bool | None = None
    """Offer this tool. Unset: as its toolset says."""

    timeout: Timeout | None = None
    """Seconds that the tool may run; false or 0: no limit. Unset: as its toolset says."""

    result_bytes: int | None = None
    """The longest result text in bytes; a longer one is cut, with a note. Unset: not cut."""


class TelemetryConfig(Struct, frozen=True, kw_only=True):
    """What is recorded about the server's work."""

    records: bool = True
    """Make a record of each request and call. Off, nothing is logged about them."""


class Sections(Struct, frozen=True, kw_only=True):
    """Every section by its name; a dict holds tables that the user names, as in `[tools.NAME]`."""

    server: ServerConfig = ServerConfig()
    limits: Limits = DEFAULT_LIMITS
    toolsets: dict[str, ToolsetConfig] = {}
    tools: dict[str, ToolConfig] = {}
    telemetry: TelemetryConfig = TelemetryConfig()
