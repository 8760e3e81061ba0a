"""`longshore serve`: the full command line of what `longshore.__main__` parses by hand when it can."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from longshore.config.flags import CONFIG_OPTION, FLAGS, Flag
from longshore.config.keys import sections
from longshore.config.kinds import show


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each flag. Their values stay texts: the configuration checks them, with its own words."""
    for flag in reversed(FLAGS):
        command = click.option(flag.option, metavar=flag.metavar, help=_help(flag))(command)
    return command


def _parameter(flag: Flag) -> str:
    """What click calls the option inside Python."""
    return flag.option.removeprefix("--").replace("-", "_")


def _help(flag: Flag) -> str:
    section, _, name = flag.key.partition(".")
    return f"{flag.help}  [{flag.key}; default: {show(sections()[section].keys[name].default)}]"


@click.command(epilog="Options win over LONGSHORE_* variables, these over longshore.toml: see `longshore config show`.")
@click.argument("target", required=False)
@click.option(
    CONFIG_OPTION, "config_path", metavar="PATH", help="Read this file in place of the project's longshore.toml."
)
@_options
def serve(target: str | None, config_path: str | None, **flags: str | None) -> int:
    """Serve MCP on stdio.

    TARGET is a server of yours: path/to/server.py, path/to/server.py:name or module:name. Without it, the built-in
    server runs.
    """
    # The front door stands outside the rooms; named like this, it is loaded only now.
    run = import_module("longshore.__main__").serve
    given = {flag.key: flags[_parameter(flag)] for flag in FLAGS if flags[_parameter(flag)] is not None}
    return int(run(target, flags=given, config_path=config_path) or 0)
