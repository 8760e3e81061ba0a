"""Configuration: files, environment and flags → one checked record that knows where each value came from.

On the stdio path: importing this package and calling `load` with nothing configured loads msgspec, `os` and four
modules. `keys`, `sources` and `toml_file` load when something is configured; `reference` is for the command line.
"""

from longshore.config.load import fingerprint, load
from longshore.config.sections import (
    DEFAULT,
    Config,
    Origin,
    ServerConfig,
    TelemetryConfig,
    Timeout,
    ToolConfig,
    ToolsetConfig,
    fixed_part,
    limits_of,
    origin,
)
from longshore.config.tools import tool_config, tool_enabled, tool_timeout, toolset_config, unmatched

__all__ = [
    "load",
    "fingerprint",
    "DEFAULT",
    "Config",
    "fixed_part",
    "limits_of",
    "Origin",
    "origin",
    "ServerConfig",
    "TelemetryConfig",
    "Timeout",
    "ToolConfig",
    "ToolsetConfig",
    "tool_config",
    "toolset_config",
    "tool_timeout",
    "tool_enabled",
    "unmatched",
]
