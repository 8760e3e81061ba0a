"""The settings of one tool or toolset: a tool's own table over its toolset's."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Literal

from longshore.config.sections import ENV_MARK, Config, ToolConfig, ToolsetConfig, dotted, env_form, quote, variable_of
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


def tool_scopes(config: Config, tool: str, toolset: str | None) -> frozenset[str]:
    """The configured scopes that a caller needs: those of the tool's table, else of its toolset's."""
    own = tool_config(config, tool).scopes
    return frozenset((toolset_config(config, toolset).scopes or ()) if own is None else own)


def tool_enabled(
    config: Config,
    tool: str,
    toolset: str | None,
    group: str | None = None,
    *,
    declared: bool = True,
    whole: bool | None = None,
    tags: Collection[str] = (),
) -> bool:
    """Whether the tool is offered. Its own table wins, so one tool of a disabled toolset can stay enabled.

    `declared` is what the toolset says of itself, `whole` what overrides its table. A tool with a group is offered if
    the table names the group; then its tags decide.
    """
    own = tool_config(config, tool).enabled
    if own is not None:
        return own
    only, without = config.server.tags, config.server.exclude_tags
    if (only is not None and not any(tag in only for tag in tags)) or any(tag in without for tag in tags):
        return False
    enabled = toolset_enabled(config, toolset, declared) if whole is None else whole
    return enabled and (group is None or group in toolset_config(config, toolset).groups)


def toolset_enabled(config: Config, toolset: str | None, declared: bool = True) -> bool:
    """Whether the toolset is offered: `server.toolsets` says which are, else its own table, else itself."""
    only, own = config.server.toolsets, toolset_config(config, toolset).enabled
    if toolset is not None and only is not None:
        return toolset in only
    return declared if own is None else own


def toolset_options(config: Config, toolset: str, record: type[Struct]) -> Struct:
    """The toolset's options. Raises ConfigError for those that have to be set and are not."""
    given = toolset_config(config, toolset).options
    try:
        return record(**given)
    except TypeError as problem:
        from msgspec.structs import fields

        missing = [field.name for field in fields(record) if field.required and field.name not in given]
        table = dotted(("toolsets", toolset))
        variables = [variable_of(("toolsets", toolset, name)) for name in missing]
        lines = [f"{table}.{n}: has to be set, in [{table}] or by {v}" for n, v in zip(missing, variables, strict=True)]
        raise ConfigError("\n".join(lines) or f"{table}: {problem}") from None
    except ValueError as problem:  # of the author's __post_init__
        raise ConfigError(f"{dotted(('toolsets', toolset))}: {problem}") from None


def unmatched(
    config: Config,
    tools: Iterable[str],
    toolsets: Iterable[str],
    groups: Iterable[tuple[str, str]] = (),
    pinned: Iterable[str] = (),
    tags: Collection[str] = (),
) -> list[str]:
    """A warning for each table without a tool or toolset, and each group or tag that no tool has, with the nearest.

    `groups` are those that tools have, each with its toolset, and `tags` theirs; `pinned` are names of tools, which may
    be unknown too.
    """
    from longshore.nearest import did_you_mean

    found: list[tuple[str, str]] = []
    present = {"tools": list(tools), "toolsets": list(toolsets)}
    for section, names in present.items():
        known = {*names, *(ENV_MARK + env_form(name) for name in names)}
        for name in getattr(config, section):
            if name not in known:
                near = did_you_mean(name, names) or did_you_mean(name.removeprefix(ENV_MARK).lower(), names)
                found.append((dotted((section, name)), f"no such {section[:-1]}{near}"))
    for toolset in present["toolsets"]:
        declared = [group for owner, group in groups if owner == toolset]
        table = toolset if toolset in config.toolsets else ENV_MARK + env_form(toolset)
        for group in toolset_config(config, toolset).groups:
            if group not in declared:
                near = did_you_mean(group, declared)
                found.append((dotted(("toolsets", table, "groups")), f"no tool has the group {quote(group)}{near}"))
    absent = [name for name in pinned if name not in present["tools"]]
    found += [("server.pinned", f"no tool {quote(name)}{did_you_mean(name, present['tools'])}") for name in absent]
    for key, named in (("server.tags", config.server.tags or ()), ("server.exclude_tags", config.server.exclude_tags)):
        unknown = [tag for tag in named if tag not in tags]
        found += [(key, f"no tool has the tag {quote(tag)}{did_you_mean(tag, tags)}") for tag in unknown]
    return [f"{_where(config, key)}: {key}: {text}" for key, text in found]


def _where(config: Config, key: str) -> str:
    """The source of the first value in a table, or of one key."""
    found = (o.where for path, o in config.origins.items() if path == key or path.startswith(key + "."))
    return next(found, "the server's author")
