"""Config: every value, where each came from, and which files to watch."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from longshore.config.sections import Sections
from longshore.limits import Limits

MOVED = {
    "limits.timeout_seconds": "server.timeout",
    "limits.eof_grace_seconds": "server.eof_grace",
}
"""Fields of Limits that `[server]` sets under a friendlier name. One value, one key: `[limits]` refuses them."""

OriginKind: TypeAlias = Literal["flag", "env", "project", "user", "default"]


class Origin(Struct, frozen=True):
    """Who set a value: `where` is `path:line`, a variable's name, an option, or empty for a default."""

    kind: OriginKind
    where: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.where}".rstrip()


class Config(Sections, frozen=True, kw_only=True):
    """The checked configuration. `limits` already holds `server.timeout` and `server.eof_grace`."""

    origins: dict[str, Origin] = field(default_factory=dict[str, Origin])
    """Dotted key → who set it. A key that nobody set is not here: see `origin`."""

    files: tuple[str, ...] = ()
    """The files that were read."""

    watch: tuple[str, ...] = ()
    """Paths whose change, birth or death may change the configuration."""


DEFAULT = Config()
DEFAULT_ORIGIN = Origin("default")


def origin(config: Config, key: str) -> Origin:
    """Who set this dotted key."""
    return config.origins.get(key, DEFAULT_ORIGIN)


def limits_of(config: Config, authors: Limits | None) -> Limits:
    """The author's limits, and over them what whoever runs the server has set, even where that is the default."""
    if authors is None:
        return config.limits
    from msgspec.structs import replace

    keys = {name: f"limits.{name}" for name in Limits.__struct_fields__}
    given = [name for name, key in keys.items() if MOVED.get(key, key) in config.origins]
    return replace(authors, **{name: getattr(config.limits, name) for name in given})


def fixed_part(config: Config) -> Any:
    """What a running server has built in, so that a change waits for the next start."""
    from msgspec.structs import replace

    return (
        replace(config.limits, timeout_seconds=0),
        config.server.log_level,
        config.server.log_format,
        config.telemetry,
        config.http,
        config.auth,
        config.tokens,
    )
