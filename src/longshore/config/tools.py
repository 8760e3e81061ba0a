"""The settings of one tool or toolset: a tool's own table over its toolset's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from longshore.config.sections import ENV_MARK, PREFIX, Config, ToolConfig, ToolsetConfig, dotted, env_form
from longshore.errors import ConfigError

if TYPE_CHECKING:
    from msgspec import Struct

_UNSET_TOOL = ToolConfig()
_UNSET_TOOLSET = ToolsetConfig()


def tool_config(config: Config, tool: str) -> ToolConfig:
    """The tool's table, also if a variable set it. Use this, not `config.tools[...]`."""
    tools = config.tools
    if not tools:
        return _UNSET_TOOL
    return tools.get(tool) or tools.get(ENV_MARK + env_form(tool)) or _UNSET_TOOL


def toolset_config(config: Config, toolset: str | None) -> ToolsetConfig:
    """The toolset's table, likewise; empty for a tool that belongs to none."""
    toolsets = config.toolsets
    if not toolsets or toolset is None:
        return _UNSET_TOOLSET
    return toolsets.get(toolset) or toolsets.get(ENV_MARK + env_form(toolset)) or _UNSET_TOOLSET


def tool_timeout(
    config: Config, tool: str, toolset: str | None, declared: float | Literal[False] | None
) -> float | None:
    """Seconds that the tool may run, None for no limit: its table, its toolset's, its declaration, the server's."""
    for seconds in (tool_config(config, tool).timeout, toolset_config(config, toolset).timeout, declared):
        if seconds is not None:
            return seconds or None
    return config.server.timeout or None


def tool_enabled(config: Config, tool: str, toolset: str | None) -> bool:
    """Whether the tool is offered. Its own table wins, so one tool of a disabled toolset can stay enabled."""
    enabled = tool_config(config, tool).enabled
    return toolset_enabled(config, toolset) if enabled is None else enabled


def toolset_enabled(config: Config, toolset: str | None) -> bool:
    """Whether the toolset is offered: `server.toolsets` says which are, else its own table."""
    only = config.server.toolsets
    if toolset is not None and only is not None:
        return toolset in only
    return toolset_config(config, toolset).enabled is not False


def toolset_options(config: Config, toolset: str, record: type[Struct]) -> Struct:
    """The toolset's options. Raises ConfigError for those that have to be set and are not."""
    given = toolset_config(config, toolset).options
    try:
        return record(**given)
    except TypeError as problem:
        from msgspec.structs import fields

        missing = [field.name for field in fields(record) if field.required and field.name not in given]
        table = dotted(("toolsets", toolset))
        prefix = f"{PREFIX}TOOLSETS_{env_form(toolset)}_"
        lines = [f"{table}.{name}: has to be set, in [{table}] or by {prefix}{name.upper()}" for name in missing]
        raise ConfigError("\n".join(lines) or f"{table}: {problem}") from None
    except ValueError as problem:  # of the author's __post_init__
        raise ConfigError(f"{dotted(('toolsets', toolset))}: {problem}") from None


def unmatched(config: Config, tools: Iterable[str], toolsets: Iterable[str]) -> list[str]:
    """A warning for each table without a tool or toolset, with the nearest name."""
    from longshore.nearest import nearest

    found: list[tuple[str, str]] = []
    present = {"tools": list(tools), "toolsets": list(toolsets)}
    for section, names in present.items():
        known = {*names, *(ENV_MARK + env_form(name) for name in names)}
        for name in getattr(config, section):
            if name not in known:
                near = nearest(name, names) or nearest(name.removeprefix(ENV_MARK).lower(), names)
                fix = f"; did you mean {near}?" if near else ""
                found.append((dotted((section, name)), f"no such {section[:-1]}{fix}"))
    first = {key: next(o.where for path, o in config.origins.items() if path.startswith(key + ".")) for key, _ in found}
    return [f"{first[key]}: {key}: {text}" for key, text in found]
