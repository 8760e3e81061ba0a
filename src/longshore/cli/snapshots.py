"""From a TARGET to the surface of that server: out of a file, or as it lists itself now."""

from __future__ import annotations

import shlex
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from longshore.cli.destination import BUILTIN, Destination, locate
from longshore.cli.visit import INTERRUPTED, USAGE, visit
from longshore.client.channel import CLIENT_LIMITS
from longshore.errors import TargetError
from longshore.files import read_bounded
from longshore.schema.evolution.changes import NOTHING, Renamed
from longshore.schema.evolution.surface import Surface, read_offers
from longshore.testing.surface import read_surface

if TYPE_CHECKING:
    from longshore.app import Server
    from longshore.cli.options import Options
    from longshore.cli.screen import Screen
    from longshore.client.client import Client

STDIN: Final = "-"
_FORMS = "expected what `longshore schema snapshot` wrote, a tools/list result, or an array of tools"


class Snapshot(Struct, frozen=True):
    """What a server offers, and what it understands besides, where that is known."""

    name: str
    surface: Surface
    renamed: Renamed = NOTHING


def take(target: str | None, options: Options, screen: Screen, command: tuple[str, ...] = ()) -> Snapshot:
    """Look at a target. Raises click.UsageError, LongshoreError, or Exit once it has said what is wrong."""
    if command:
        return _visited(Destination([*command], shlex.join(command), ours=False), options, screen)
    if options.config is None and (target is None or target == BUILTIN):
        return _loaded("", BUILTIN, options, screen)
    if target is None:
        raise click.UsageError("--config is a file in which TARGET is looked up by its name; name one")
    if options.config is None and (target == STDIN or target.lower().endswith(".json")):
        return _read(target)
    place = locate(target, options.config)
    return _loaded(place.source, place.name, options, screen) if place.source else _visited(place, options, screen)


def _visited(place: Destination, options: Options, screen: Screen) -> Snapshot:
    found: list[Surface] = []

    async def work(client: Client, place: Destination) -> int:  # noqa: ARG001 - a visit's
        found.append(await read_surface(client))
        return 0

    code = visit(place, options, screen, work)
    if not found:
        raise click.exceptions.Exit(code if code >= INTERRUPTED - 2 else USAGE)
    return Snapshot(place.name, found[0])


def _loaded(source: str, name: str, options: Options, screen: Screen) -> Snapshot:
    """Of a server in Python, asked in memory."""
    from longshore.__main__ import find
    from longshore.testing.connecting import in_memory

    with redirect_stdout(sys.stderr):  # what its code prints is no part of it
        app: Server = find(source or None)
    found = _visited(Destination(in_memory(app), name), options, screen)
    return Snapshot(found.name, found.surface, _renamed(app))


def _renamed(app: Server) -> Renamed:
    from longshore.registry.earlier import Earlier

    tools = app.engine.tools.values()
    return Renamed(
        {alias: entry.name for entry in tools for alias in entry.aliases},
        {entry.name: entry.explain.renames for entry in tools if isinstance(entry.explain, Earlier)},
    )


def _read(path: str) -> Snapshot:
    what = "stdin" if path == STDIN else path
    surface = read_offers(_json(path, what))
    if surface is None:
        raise TargetError(f"{what} has no list of tools; {_FORMS}")
    return Snapshot(what, surface)


def _json(path: str, what: str) -> Any:
    from longshore.testing.patterns import read_json
    from longshore.wire.codec import BROKEN

    most = CLIENT_LIMITS.frame_bytes
    try:
        data = sys.stdin.buffer.read(most + 1) if path == STDIN else read_bounded(path, most)
        if len(data) > most:
            raise TargetError(f"{what} is longer than {most >> 20} MiB; {_FORMS}")
        return read_json(data.removeprefix(b"\xef\xbb\xbf"))
    except FileNotFoundError:
        raise TargetError(f"{what}: there is no such file; longshore schema snapshot --output {what}") from None
    except OSError as problem:
        raise TargetError(f"{what} can't be read: {problem.strerror or problem}") from None
    except BROKEN as problem:
        raise TargetError(f"{what} holds no JSON: {problem}; {_FORMS}") from None
