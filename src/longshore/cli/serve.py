"""`longshore serve`. `longshore.__main__` parses plain command lines itself, without click."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from longshore.config.keys import sections, show
from longshore.config.sections import CONFIG_OPTION, FLAGS, HTTP_FLAGS, HTTP_OPTION, Flag


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each flag. Values stay texts: the configuration validates them."""
    for flag in reversed(FLAGS + HTTP_FLAGS):
        form: dict[str, Any] = {"metavar": flag.metavar} if flag.metavar else {"flag_value": "true", "is_flag": True}
        command = click.option(flag.option, _parameter(flag), default=None, help=_help(flag), **form)(command)
    return command


def _parameter(flag: Flag) -> str:
    """The name of the option's parameter in Python."""
    return flag.option.removeprefix("--").replace("-", "_")


def _help(flag: Flag) -> str:
    section, _, name = flag.key.partition(".")
    default = sections()[section].keys[name].default
    shown = "none" if default is None else show(default)
    return f"{flag.help}  [{flag.key}; default: {shown}]"


@click.command(epilog="Options win over LONGSHORE_* variables, these over longshore.toml: see `longshore config show`.")
@click.argument("target", required=False)
@click.option(HTTP_OPTION, "http", is_flag=True, help="Serve over HTTP. The options from --host on are for HTTP.")
@click.option(
    CONFIG_OPTION, "config_path", metavar="PATH", help="Read this file in place of the project's longshore.toml."
)
@_options
def serve(target: str | None, http: bool, config_path: str | None, **flags: str | None) -> None:
    """Serve MCP, on stdio or over HTTP.

    TARGET is your server: path/to/server.py, path/to/server.py:name or module:name. The default is the built-in
    server.
    """
    _check_transport(http, flags)
    entry_point = import_module("longshore.__main__")  # it is outside the layers of packages, so no import statement
    given = {flag.key: flags[_parameter(flag)] for flag in FLAGS + HTTP_FLAGS if flags[_parameter(flag)] is not None}
    run = entry_point.serve_http if http else entry_point.serve
    run(target, flags=given, config_path=config_path)


def _check_transport(http: bool, flags: dict[str, str | None]) -> None:
    stray = next((flag.option for flag in HTTP_FLAGS if flags[_parameter(flag)] is not None), None)
    if stray and not http:
        raise click.UsageError(f"{stray} is for HTTP; add {HTTP_OPTION}")
