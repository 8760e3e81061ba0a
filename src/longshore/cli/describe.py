"""Describing a server: its tools for `longshore lint`, everything that it offers for `longshore schema`.

A server in Python is loaded and not run, a JSON file is read, any other server is asked. Tools are taken as they are
listed, also those that our client would leave out: finding fault with them is the linter's job.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from longshore.app import Server
from longshore.cli.options import USAGE, SessionOptions
from longshore.cli.session import run_session
from longshore.cli.target import BUILTIN, LIST_FORMS, STDIN, Destination, load, name_of, read_list_file, resolve
from longshore.errors import TargetError, ToolError
from longshore.schema.diff import NOTHING, Renamed, Surface, read_lists, read_offers
from longshore.schema.kinds import is_object
from longshore.schema.lint.rule import COMMON, PROFILES, Finding, Level, Profile
from longshore.schema.lint.rules import NOT_OFFERED
from longshore.schema.lint.run import MOST_FAULTS
from longshore.schema.lint.tool_list import ToolList
from longshore.server.tool_list import list_tools
from longshore.testing.snapshot import read_surface

if TYPE_CHECKING:
    from longshore.cli.screen import Screen
    from longshore.client.client import Client
    from longshore.mounting.mount import Mount


# -- the tools, for the linter


class Described(Struct, frozen=True):
    """The tools of a server, and what is known beside them."""

    surface: ToolList
    refused: tuple[Finding, ...] = ()
    """Declarations that the server refused."""
    file: str = ""
    """The file with the list or the server's code, if known."""
    builtin: bool = False

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The default profiles for such a server."""
        if self.builtin:
            return PROFILES
        return COMMON if self.surface.categories is None else (*COMMON, "brooklyn")


def describe(target: str | None, command: tuple[str, ...], options: SessionOptions, screen: Screen) -> Described:
    """The tools of a target. Raises click.UsageError, LongshoreError, or Exit after an error was shown."""
    place = resolve(target, command, options.config)
    if isinstance(place, str):
        return _read_tools(place)
    if place.source:
        return _load_tools(place.source, options, screen)
    found = run_session(place, options, screen, lambda client, place: _ask_for_tools(client, place, screen), USAGE)
    return Described(found)


def tool_list_of(app: Server) -> ToolList:
    """The tools that a server offers under its configuration; of mounted servers, those that are connected."""
    return list_tools(app.engine, app.admission)


async def _ask_for_tools(client: Client, place: Destination, screen: Screen) -> ToolList:
    """Every entry of every page, unchecked."""
    server = client.server
    tools: list[Any] = []
    if not server.can("tools"):
        screen.note(f"{place.name} does not say that it has tools, so clients won't ask for them")
    else:
        tools = [entry async for page in client.pages("tools/list") for entry in page]
    for line in client.problems:
        screen.note(f"{place.name}: {line}")
    configured = is_object(place.target)  # clients know the server by the name of its entry
    name = place.name if configured else server.name or place.name
    return ToolList(name=name, tools=tuple(tools), instructions=server.instructions)


def _load_tools(source: str, options: SessionOptions, screen: Screen) -> Described:
    given = {"--header": options.header, "--auth": options.auth, "--env": options.env, "--cwd": options.cwd}
    for option, value in given.items():
        if value:
            raise click.UsageError(f"{option} is for a server that is run; one in Python is loaded only")
    app, refused = load(source)
    findings = [_not_offered("error", each.what, each.fix, each.where) for each in refused]
    if app.catalog.pending_mounts is None:
        surface = tool_list_of(app)
    else:
        surface, lost = _with_mounts(app, options, screen)
        findings += lost
    # The file of the server, relative to the working directory if it is inside.
    place = re.sub(r":\w+\Z", "", source)
    path: str = getattr(sys.modules.get(place), "__file__", None) or place
    shown = os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path
    return Described(surface, tuple(findings), shown if os.path.isfile(path) else "", builtin=source == BUILTIN)


def _not_offered(level: Level, message: str, fix: str, where: str) -> Finding:
    return Finding(tool="", level=level, rule=NOT_OFFERED, message=message, fix=fix, profiles=("mcp",), where=where)


def _with_mounts(app: Server, options: SessionOptions, screen: Screen) -> tuple[ToolList, list[Finding]]:
    """Connect the mounted servers too; the findings say which of their tools can't be passed on."""
    from longshore.mounting.mount import Mounts

    async def connect(client: Client, place: Destination) -> tuple[ToolList, list[Finding]]:  # noqa: ARG001
        from asyncio import gather

        assert isinstance(app.catalog.pending_mounts, Mounts)
        app.recorder.fallback = lambda: lambda _: None  # problems of mounted servers are reported below
        mounts = app.catalog.pending_mounts.all
        try:
            await gather(*(_wait_for(mount, options.timeout, screen) for mount in mounts))
            fix = "Look at that server by itself: longshore lint -- COMMAND, or its URL."
            lost: list[Finding] = []
            for mount in mounts:
                lines = [line for lines in mount.left_out.values() for line in lines]
                where = f"mounted {mount.prefix}"
                lost += [_not_offered("warning", f"left out: {line}", fix, where) for line in lines[:MOST_FAULTS]]
            return tool_list_of(app), lost
        finally:
            await gather(*(mount.stop() for mount in mounts))

    return run_session(Destination(app, app.name), options, screen, connect, USAGE)


async def _wait_for(mount: Mount, seconds: float, screen: Screen) -> None:
    """Wait until a mounted server is connected; note it if it is not."""
    supervisor = mount.supervisor()
    try:
        await supervisor.ready(seconds or float("inf"))
    except ToolError:
        more = "; give it more by --timeout" if supervisor.problem is None else ""
        screen.note(f"{supervisor.reason()}{more}; its tools are not looked at")


def _read_tools(path: str) -> Described:
    """The tools of a JSON file: an array, a result of `tools/list`, or what `longshore list --json` prints."""
    value, name = read_list_file(path), name_of(path)
    lists = read_lists(value)
    if lists is None or "tools" not in lists:
        has_servers = is_object(value) and ("mcpServers" in value or "servers" in value)
        fix = f"it names servers; look at one of them: longshore lint NAME --config {name}"
        raise TargetError(f"{name} has no list of tools; {fix if has_servers else LIST_FORMS}")
    instructions = lists.get("instructions")
    surface = ToolList(
        name=str(lists.get("name") or os.path.splitext(os.path.basename(name))[0]),
        tools=tuple(lists["tools"]),
        instructions=instructions if isinstance(instructions, str) else None,
    )
    return Described(surface, file="" if path == STDIN else path)


# -- everything, for comparing


class Snapshot(Struct, frozen=True):
    """Everything that a server offers, and which old names it still takes, if known."""

    name: str
    surface: Surface
    renamed: Renamed = NOTHING


def take_snapshot(
    target: str | None, options: SessionOptions, screen: Screen, command: tuple[str, ...] = ()
) -> Snapshot:
    """Everything that a target offers. Raises as `describe`."""
    place = resolve(target, command, options.config)
    if isinstance(place, str):
        surface = read_offers(read_list_file(place))
        if surface is None:
            raise TargetError(f"{name_of(place)} has no list of tools; {LIST_FORMS}")
        return Snapshot(name_of(place), surface)
    return _load_snapshot(place, options, screen) if place.source else _ask_for_snapshot(place, options, screen)


def _ask_for_snapshot(place: Destination, options: SessionOptions, screen: Screen) -> Snapshot:
    return Snapshot(place.name, run_session(place, options, screen, lambda client, _: read_surface(client), USAGE))


def _load_snapshot(place: Destination, options: SessionOptions, screen: Screen) -> Snapshot:
    """Ask a server in Python, in memory. Raises its first RegistrationError: such a server would not start."""
    from longshore.registry.migrations import Migrations

    app, refused = load(place.source)
    if refused:
        raise refused[0]
    found = _ask_for_snapshot(Destination(app, place.name), options, screen)
    tools = app.engine.tools.values()
    aliases = {alias: entry.name for entry in tools for alias in entry.aliases}
    renames = {entry.name: entry.explain.renames for entry in tools if isinstance(entry.explain, Migrations)}
    migrations = [each for entry in tools for each in entry.alias_migrations.items()]
    inputs = {alias: migration.describe()["inputSchema"] for alias, migration in migrations}
    return Snapshot(found.name, found.surface, Renamed(aliases, renames, inputs))
