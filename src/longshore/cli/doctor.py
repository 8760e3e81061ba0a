"""`longshore doctor`: what works here, what does not, why, and the fix: of this machine, and of any server."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

import click
from msgspec import json

from longshore import __version__
from longshore.cli.check import Check, show
from longshore.cli.completion import complete_target
from longshore.cli.options import FAILED, TargetOrCommand, command_of
from longshore.cli.screen import Screen
from longshore.config.sections import PROFILE_OPTION
from longshore.errors import ConfigError, TargetError

if TYPE_CHECKING:
    from longshore.cli.target import Destination


@click.command(
    cls=TargetOrCommand,
    epilog="Exit codes: 0 nothing failed; 1 something failed; 2 TARGET could not be found, or wrong arguments.",
)
@click.argument("target", required=False, shell_complete=complete_target)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--config", "path", metavar="PATH", help="Read this file in place of the project's longshore.toml.")
@click.option(
    PROFILE_OPTION,
    "profile",
    metavar="NAME",
    help="The profile of the built-in server that is meant: bb, brooklyn, browseros, ghost.",
)
@click.option("--header", multiple=True, metavar="'NAME: VALUE'", help="Send this to a URL. Repeatable.")
@click.option("--auth", metavar="TOKEN", help="A bearer token for a URL, best as env:NAME or @FILE.")
@click.pass_context
def doctor(
    ctx: click.Context,
    /,
    target: str | None,
    as_json: bool,
    path: str | None,
    profile: str | None,
    header: tuple[str, ...],
    auth: str | None,
) -> int:
    """Say what works here, what does not, and the fix.

    Without TARGET, it looks at this machine: the configuration, folders, toolsets and sandbox of `longshore serve` in
    this folder, and the clients that are here with the servers in their files.

    TARGET is what `longshore call` takes: a URL, a server file, the name of a server in a client's configuration,
    builtin or a command line in quotes; or it is a command after --. That server is started as clients start it, four
    times, and watched: how long it takes, what it writes, which revisions it speaks, what clients make of its tools,
    and how it ends. For a server file and builtin, this machine is looked at, too.
    """
    from longshore.cli.target import Destination, locate

    command = command_of(ctx)
    if command and target is not None:
        raise click.UsageError(f"either TARGET or a command after --, not both: {target}")
    place = Destination([*command], " ".join(command)) if command else locate(target) if target is not None else None
    found = list[Check]()
    if place is None or place.source:
        found += _check_here(place, path, profile)
    if place is not None:
        found += _check_target(place, header, auth)
    if as_json:
        click.echo(json.format(json.encode(found), indent=2))
    else:
        Screen().lines(line for check in found for line in show(check))
    return FAILED if any(check.state == "failed" for check in found) else 0


def _check_here(place: Destination | None, path: str | None, profile: str | None) -> Iterator[Check]:
    """This machine, for the server of a file or module or for the built-in one."""
    from longshore.cli.machine_checks import check_clients, check_machine, check_mechanisms
    from longshore.cli.target import BUILTIN, stdout_to_stderr

    yield Check("longshore", "ok", f"{__version__}, Python {platform.python_version()}, {sys.platform}")
    source = None if place is None or place.source == BUILTIN else place.source
    entry_point = import_module("longshore.__main__")  # it is outside the layers
    try:
        with stdout_to_stderr():
            app = entry_point.find(source, profile)
    except TargetError as problem:
        first, *rest = str(problem).strip().splitlines()
        yield Check("server", "failed", " ".join([first, *rest[-1:]]), f"mend that; longshore serve {source} says more")
        yield from check_mechanisms()
        return
    try:
        config = app.load_config(path)
    except ConfigError as problem:
        yield Check("configuration", "failed", str(problem), "mend it; `longshore config check` tests it")
    else:
        app.config = config
        yield Check("configuration", "ok", ", ".join(map(str, config.files)) or "no file, so the defaults")
        for text in config.untrusted.values():
            yield Check("trust", "missing", *text.split("; ", 1))
        yield from check_machine(app, config)
    if place is None:
        yield from check_clients()
    yield from check_mechanisms()


def _check_target(place: Destination, header: tuple[str, ...], auth: str | None) -> Iterator[Check]:
    """A server, started by its command or reached by its URL."""
    from longshore.cli.server_checks import Patience, check_server, command_of_target

    command = command_of_target(place.target, place.name)
    if command is None:
        from longshore.cli.url_checks import check_url

        yield from check_url(place, header, auth)
        return
    if header or auth:
        raise click.UsageError(f"--header and --auth are for a URL, and {place.name} is a command")
    yield from check_server(command, Patience())
