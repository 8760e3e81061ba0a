"""`longshore serve`. `longshore.__main__` parses plain command lines itself, without click."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal

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


Transport = Literal["stdio", "http"]


def _options(
    command: Callable[..., Any], flags: dict[str, str], defaults: Mapping[str, Any] = MappingProxyType({})
) -> Callable[..., Any]:
    """Add an option for each flag, with its key's own words. Values stay texts: the configuration validates them."""
    for option, dotted_key in reversed(flags.items()):
        section, _, name = dotted_key.partition(".")
        key = sections()[section].keys[name]
        takes = f"; {key.expected}" if key.kind == "choice" else ""
        value = defaults.get(dotted_key, key.default)
        default = show(value) if value else "none"
        words = f"{docs(sections()[section].record)[name]}  [{dotted_key}{takes}; default: {default}]"
        metavar = _TEXTS.get(option) or _METAVARS.get(key.kind)
        form: dict[str, Any] = {"metavar": metavar} if metavar else {"flag_value": "true", "is_flag": True}
        if option in REPEATABLE:
            form["multiple"] = True
        command = click.option(option, dotted_key.replace(".", "_"), default=None, help=words, **form)(command)
    return _set(command)


_EPILOG = "Options win over LONGSHORE_* variables, these over longshore.toml: see `longshore config show{}`."
_config = click.option(
    CONFIG_OPTION, "config_path", metavar="PATH", help="Read this file in place of the project's longshore.toml."
)
_set = click.option(
    SET_OPTION, "pairs", multiple=True, metavar="KEY=VALUE", help="Set any key: toolsets.notes.folder=x. Repeatable."
)
_http = click.option(
    HTTP_OPTION, "http", is_flag=True, help="Serve over HTTP. The options from --host on are for HTTP."
)
_profile = click.option(
    PROFILE_OPTION,
    "profile",
    metavar="NAME",
    help="Serve this profile of the built-in server: bb, brooklyn, browseros, ghost.",
)
_version = click.version_option(__version__, prog_name="longshore", message="%(prog)s %(version)s")


def _serve(
    target: str | None, http: bool, config_path: str | None, profile: str | None, pairs: tuple[str, ...], **flags: Any
) -> None:
    """Serve MCP, on stdio or over HTTP.

    TARGET is your server: path/to/server.py, path/to/server.py:name or module:name. The default is the built-in
    server.
    """
    repeated = {FLAGS[option]: list(flags[FLAGS[option].replace(".", "_")]) or None for option in REPEATABLE}
    options = {key: flags.get(key.replace(".", "_")) for key in (FLAGS | HTTP_FLAGS).values()}
    given = {key: value for key, value in (options | repeated).items() if value is not None}
    http_option = next((option for option, key in HTTP_FLAGS.items() if key in given), "")
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"{SET_OPTION} {pair}: expected KEY=VALUE, such as toolsets.notes.folder=x")
        given[key] = value
    entry_point = import_module("longshore.__main__")  # it is outside the layers of packages, so no import statement
    served: dict[str, Any] = {"flags": given, "config_path": config_path, "profile": profile}
    if http:
        entry_point.serve_http(target, **served)
    else:
        entry_point.serve(target, **served, http_option=http_option)


serve = click.command("serve", epilog=_EPILOG.format(""))(
    click.argument("target", required=False)(_version(_http(_config(_profile(_options(_serve, FLAGS | HTTP_FLAGS))))))
)


def make_profile_command(profile: str, transport: Transport | None = None) -> click.Command:
    """A command that serves one profile, over one transport if that is given. Its help has the profile's defaults."""
    from longshore.builtin import PROFILES

    def start(http: bool = False, **given: Any) -> None:
        if transport == "stdio":
            given["pairs"] = ("server.transport=stdio", *given["pairs"])  # whatever the project's configuration says
        _serve(None, http or transport == "http", profile=profile, **given)

    flags = FLAGS if transport == "stdio" else FLAGS | HTTP_FLAGS
    command = _version(_config(_options(start, flags, PROFILES[profile].defaults)))
    over = {"stdio": "on stdio", "http": "over HTTP", None: "on stdio or over HTTP"}[transport]
    make = click.command("start", epilog=_EPILOG.format(f" --profile {profile}"), help=f"Serve MCP {over}.")
    return make(command if transport else _http(command))
