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
    # No toolset takes options yet, so each that is set gets a warning.
    given = [name for name in present["toolsets"] if toolset_config(config, name).options]
    found += [(dotted(("toolsets", name, "options")), "this toolset takes no options") for name in given]
    first = {key: next(o.where for path, o in config.origins.items() if path.startswith(key + ".")) for key, _ in found}
    return [f"{first[key]}: {key}: {text}" for key, text in found]
