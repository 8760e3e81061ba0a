"""`longshore config`: show values and their origins, check a file, print the schema."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click
from msgspec import json

from longshore import config as configuration
from longshore.cli.screen import aligned, print_table
from longshore.config.keys import HIDDEN
from longshore.config.reference import ConfigValue, Toolsets, list_values, tree
from longshore.config.sections import PROFILE_OPTION

UNSET = "unset"


@click.group()
def config() -> None:
    """Show and check the configuration."""


_FOR = "The server whose toolsets' options are meant, as for `longshore serve`.  [default: the built-in server]"


@config.command()
@click.argument("target", required=False)
@click.option("--origin", "with_origin", is_flag=True, help="Say where each value came from.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--config", "path", metavar="PATH", help="Read this file in place of the project's longshore.toml.")
@click.option(
    PROFILE_OPTION,
    "profile",
    metavar="NAME",
    help="The profile of the built-in server that is meant: bb, brooklyn, browseros, ghost.",
)
def show(target: str | None, with_origin: bool, as_json: bool, path: str | None, profile: str | None) -> None:
    """Show every value.

    The values are those of `longshore serve TARGET` in this folder, with the server's own defaults and the options of
    its toolsets. The default is the built-in server.
    """
    app = _server(target, profile)
    toolsets: Toolsets = app.catalog.toolsets
    found = app.load_config(path)
    for text in found.untrusted.values():
        click.echo(f"warning: {text}", err=True)
    listed = list_values(found, toolsets)
    if as_json:
        with_origins = {e.key: {"value": e.value, "kind": e.origin.kind, "where": e.origin.where} for e in listed}
        click.echo(json.format(json.encode(with_origins if with_origin else tree(listed)), indent=2).decode())
    elif sys.stdout.isatty():
        print_table(rows(listed, with_origin), ["key", "value", *(["origin"] if with_origin else [])])
    else:
        click.echo(aligned(rows(listed, with_origin)))


@config.command()
@click.argument("path", required=False)
@click.option("--for", "target", metavar="TARGET", help=_FOR)
def check(path: str | None, target: str | None) -> None:
    """Check one file, or all.

    With PATH, only that file; without, every file that `longshore serve` reads in this folder.
    """
    # An empty environment leaves out the user's file and the variables: only the named file is checked.
    found = configuration.load(path=path, environ={} if path else None, toolsets=_toolsets(target))
    click.echo("\n".join(f"{file}: ok" for file in found.files) or "no longshore.toml here; nothing to check")


@config.command()
@click.argument("target", required=False)
@click.option("--markdown", is_flag=True, help="Print the table of keys that docs/configuration.md holds instead.")
def schema(target: str | None, markdown: bool) -> None:
    """Print the JSON Schema of longshore.toml.

    The options of TARGET's toolsets are in it. The default is the built-in server.
    """
    from longshore.config import reference as source

    toolsets = _toolsets(target)
    click.echo(source.markdown(toolsets) if markdown else source.schema_text(toolsets), nl=False)


def _server(target: str | None, profile: str | None = None) -> Any:
    """The server of a target or a profile, or the built-in one."""
    return import_module("longshore.__main__").find(target, profile)  # it is outside the layers


def _toolsets(target: str | None) -> Toolsets:
    found: Toolsets = _server(target).catalog.toolsets
    return found


def rows(listed: list[ConfigValue], with_origin: bool) -> list[list[str]]:
    """The columns: key, value and, with `with_origin`, origin."""
    return [[each.key, spell(each.value), *([str(each.origin)] if with_origin else [])] for each in listed]


def spell(value: Any) -> str:
    """A value on one line, as TOML or near it."""
    if value is None or value == HIDDEN:
        return value or UNSET
    return json.encode(value).decode()
