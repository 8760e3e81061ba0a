"""From a TARGET to the surface of that server: out of a file, or as it lists itself now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from longshore.cli.destination import Destination
from longshore.cli.targets import FORMS, STDIN, aim, ask, called, load, read
from longshore.errors import TargetError
from longshore.schema.evolution.changes import NOTHING, Renamed
from longshore.schema.evolution.surface import Surface, read_offers
from longshore.testing.surface import read_surface

if TYPE_CHECKING:
    from longshore.app import Server
    from longshore.cli.options import Options
    from longshore.cli.screen import Screen
    from longshore.client.client import Client

__all__ = ["STDIN", "Snapshot", "take"]


class Snapshot(Struct, frozen=True):
    """What a server offers, and what it understands besides, where that is known."""

    name: str
    surface: Surface
    renamed: Renamed = NOTHING


def take(target: str | None, options: Options, screen: Screen, command: tuple[str, ...] = ()) -> Snapshot:
    """Look at a target. Raises click.UsageError, LongshoreError, or Exit once it has said what is wrong."""
    place = aim(target, command, options)
    if isinstance(place, str):
        return _read(place)
    return _loaded(place, options, screen) if place.source else _visited(place, options, screen)


def _visited(place: Destination, options: Options, screen: Screen) -> Snapshot:
    async def look(client: Client, place: Destination) -> Surface:  # noqa: ARG001 - a visit's
        return await read_surface(client)

    return Snapshot(place.name, ask(place, options, screen, look))


def _loaded(place: Destination, options: Options, screen: Screen) -> Snapshot:
    """Of a server in Python, asked in memory. One that refuses something would not run."""
    from longshore.testing.connecting import in_memory

    app, refused = load(place.source)
    if refused:
        raise refused[0]
    found = _visited(Destination(in_memory(app), place.name), options, screen)
    return Snapshot(found.name, found.surface, _renamed(app))


def _renamed(app: Server) -> Renamed:
    from longshore.registry.migrations import Migrations

    tools = app.engine.tools.values()
    return Renamed(
        {alias: entry.name for entry in tools for alias in entry.aliases},
        {entry.name: entry.explain.renames for entry in tools if isinstance(entry.explain, Migrations)},
    )


def _read(path: str) -> Snapshot:
    surface = read_offers(read(path))
    if surface is None:
        raise TargetError(f"{called(path)} has no list of tools; {FORMS}")
    return Snapshot(called(path), surface)
