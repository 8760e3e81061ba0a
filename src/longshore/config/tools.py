"""The settings of one tool: its own table over its toolset's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from longshore.config.sections import ENV_MARK, Config, ToolConfig, ToolsetConfig, dotted, env_form

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
    for enabled in (tool_config(config, tool).enabled, toolset_config(config, toolset).enabled):
        if enabled is not None:
            return enabled
    return True


def unmatched(config: Config, tools: Iterable[str], toolsets: Iterable[str]) -> list[str]:
    """A warning for each table without a tool or toolset, with the nearest name."""
    there = list(toolsets)
    return [
        *_unmatched(config, "tools", config.tools, tools),
        *_unmatched(config, "toolsets", config.toolsets, there),
        *_unread_options(config, there),
    ]


def _unread_options(config: Config, toolsets: list[str]) -> list[str]:
    """No toolset takes options yet, so each that is set gets a warning."""
    keys = [dotted(("toolsets", name, "options")) for name in toolsets if toolset_config(config, name).options]
    return [f"{_where(config, key)}: {key}: this toolset takes no options" for key in keys]


def _unmatched(config: Config, section: str, tables: Iterable[str], present: Iterable[str]) -> list[str]:
    there = list(present)
    known = {*there, *(ENV_MARK + env_form(name) for name in there)}
    return [_missing(config, section, name, there) for name in tables if name not in known]


def _missing(config: Config, section: str, name: str, present: list[str]) -> str:
    key = dotted((section, name))
    from longshore.nearest import nearest

    near = nearest(name, present) or nearest(name.removeprefix(ENV_MARK).lower(), present)
    return f"{_where(config, key)}: {key}: no such {section[:-1]}" + (f"; did you mean {near}?" if near else "")


def _where(config: Config, key: str) -> str:
    """The source of the first key of a table."""
    return next(origin.where for path, origin in config.origins.items() if path.startswith(key + "."))
