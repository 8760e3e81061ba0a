"""The settings of one tool: its own table over its toolset's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from longshore.config.sections import ENV_MARK, Config, ToolConfig, ToolsetConfig, dotted, env_form, quote

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


def tool_enabled(
    config: Config,
    tool: str,
    toolset: str | None,
    group: str | None = None,
    *,
    declared: bool = True,
    whole: bool | None = None,
) -> bool:
    """Whether the tool is offered. Its own table wins, so one tool of a disabled toolset can stay enabled.

    `declared` is what the toolset says of itself, `whole` what overrides its table. A tool with a group is offered if
    the table names the group.
    """
    own, table = tool_config(config, tool).enabled, toolset_config(config, toolset)
    if own is not None:
        return own
    enabled = next(each for each in (whole, table.enabled, declared) if each is not None)
    return enabled and (group is None or group in table.groups)


def unmatched(
    config: Config, tools: Iterable[str], toolsets: Iterable[str], groups: Iterable[tuple[str, str]] = ()
) -> list[str]:
    """A warning for each table without a tool or toolset, and each group that no tool has, with the nearest name.

    `groups` are those that tools have, each with its toolset.
    """
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
    found += _unmatched_groups(config, present["toolsets"], groups)
    return [f"{_where(config, key)}: {key}: {text}" for key, text in found]


def _unmatched_groups(
    config: Config, toolsets: Iterable[str], groups: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    for toolset in toolsets:
        declared = [group for owner, group in groups if owner == toolset]
        for group in toolset_config(config, toolset).groups:
            if group not in declared:
                from longshore.nearest import nearest

                near = nearest(group, declared)
                fix = f"; did you mean {near}?" if near else ""
                table = toolset if toolset in config.toolsets else ENV_MARK + env_form(toolset)
                yield dotted(("toolsets", table, "groups")), f"no tool has the group {quote(group)}{fix}"


def _where(config: Config, key: str) -> str:
    """The source of the first value in a table, or of one key."""
    return next(o.where for path, o in config.origins.items() if path == key or path.startswith(key + "."))
