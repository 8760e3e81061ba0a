"""`longshore serve`. `longshore.__main__` parses plain command lines itself, without click."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from longshore import __version__
from longshore.config.keys import sections, show
from longshore.config.reference import docs
from longshore.config.sections import (
    CONFIG_OPTION,
    FLAGS,
    HTTP_FLAGS,
    HTTP_OPTION,
    PROFILE_OPTION,
    REPEATABLE,
    SET_OPTION,
)

_METAVARS = {
    "seconds": "SECONDS",
    "timeout": "SECONDS",
    "count": "NUMBER",
    "choice": "NAME",
    "text": "TEXT",
    "list": "NAME,NAME",
    "folders": "DIR",
}
_TEXTS = {"--host": "ADDRESS", "--public-url": "URL", "--store": "URL", "--tls-cert": "FILE", "--tls-key": "FILE"}


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each flag, with its key's own words. Values stay texts: the configuration validates them."""
    for option, dotted_key in reversed((FLAGS | HTTP_FLAGS).items()):
        section, _, name = dotted_key.partition(".")
        key = sections()[section].keys[name]
        takes = f"; {key.expected}" if key.kind == "choice" else ""
        default = show(key.default) if key.default else "none"
        words = f"{docs(sections()[section].record)[name]}  [{dotted_key}{takes}; default: {default}]"
        metavar = _TEXTS.get(option) or _METAVARS.get(key.kind)
        form: dict[str, Any] = {"metavar": metavar} if metavar else {"flag_value": "true", "is_flag": True}
        if option in REPEATABLE:
            form["multiple"] = True
        command = click.option(option, dotted_key.replace(".", "_"), default=None, help=words, **form)(command)
    return command


@click.command(epilog="Options win over LONGSHORE_* variables, these over longshore.toml: see `longshore config show`.")
@click.argument("target", required=False)
@click.option(HTTP_OPTION, "http", is_flag=True, help="Serve over HTTP. The options from --host on are for HTTP.")
@click.option(
    CONFIG_OPTION, "config_path", metavar="PATH", help="Read this file in place of the project's longshore.toml."
)
@click.option(
    PROFILE_OPTION,
    "profile",
    metavar="NAME",
    help="Serve this profile of the built-in server: bb, brooklyn, browseros, ghost.",
)
@click.option(
    SET_OPTION, "pairs", multiple=True, metavar="KEY=VALUE", help="Set any key: toolsets.notes.folder=x. Repeatable."
)
@click.version_option(__version__, prog_name="longshore", message="%(prog)s %(version)s")
@_options
def serve(
    target: str | None, http: bool, config_path: str | None, profile: str | None, pairs: tuple[str, ...], **flags: Any
) -> None:
    """Serve MCP, on stdio or over HTTP.

    TARGET is your server: path/to/server.py, path/to/server.py:name or module:name. The default is the built-in
    server.
    """
    options = {key: flags[key.replace(".", "_")] for key in (FLAGS | HTTP_FLAGS).values()}
    repeated = {FLAGS[option]: list(options[FLAGS[option]]) or None for option in REPEATABLE}
    given = {key: value for key, value in (options | repeated).items() if value is not None}
    stray = next((option for option, key in HTTP_FLAGS.items() if key in given), None)
    if stray and not http:
        raise click.UsageError(f"{stray} is for HTTP; add {HTTP_OPTION}")
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"{SET_OPTION} {pair}: expected KEY=VALUE, such as toolsets.notes.folder=x")
        given[key] = value
    entry_point = import_module("longshore.__main__")  # it is outside the layers of packages, so no import statement
    run = entry_point.serve_http if http else entry_point.serve
    run(target, flags=given, config_path=config_path, profile=profile)
