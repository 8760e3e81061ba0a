"""Configuration: files, environment and flags → one checked record that knows where each value came from.

On the stdio path: importing this package and calling `load` with nothing configured loads msgspec, `os` and four
modules. `keys`, `sources` and `toml_file` load when something is configured; `reference` is for the command line.
"""

from longshore.config.load import ForeignConfig as ForeignConfig
from longshore.config.load import fingerprint as fingerprint
from longshore.config.load import load as load
from longshore.config.load import project_file as project_file
from longshore.config.load import trust_file as trust_file
from longshore.config.sections import DEFAULT as DEFAULT
from longshore.config.sections import Config as Config
from longshore.config.sections import Origin as Origin
from longshore.config.sections import ServerConfig as ServerConfig
from longshore.config.sections import ToolConfig as ToolConfig
from longshore.config.sections import ToolsetConfig as ToolsetConfig
from longshore.config.sections import fixed_part as fixed_part
from longshore.config.sections import is_fixed as is_fixed
from longshore.config.sections import limits_of as limits_of
from longshore.config.sections import origin as origin
from longshore.config.tools import tool_config as tool_config
from longshore.config.tools import tool_enabled as tool_enabled
from longshore.config.tools import tool_scopes as tool_scopes
from longshore.config.tools import tool_timeout as tool_timeout
from longshore.config.tools import toolset_config as toolset_config
from longshore.config.tools import toolset_enabled as toolset_enabled
from longshore.config.tools import toolset_options as toolset_options
from longshore.config.tools import unmatched as unmatched
