"""From a TARGET to the tools of that server, as it lists them, whatever is wrong with them.

A server of ours in Python is loaded and not run, a JSON file is read, every other one is asked in its own language. Its
answer is taken as it came: what our client would leave out is what a linter is there for.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from longshore.cli.destination import BUILTIN, Destination
from longshore.cli.rules import OFFERED
from longshore.cli.targets import FORMS, STDIN, aim, ask, called, load, read
from longshore.errors import BadAnswer, TargetError, ToolError
from longshore.schema.kinds import is_array, is_object
from longshore.schema.standards.finding import Finding
from longshore.schema.standards.linting import MOST_FAULTS
from longshore.schema.standards.rule import COMMON, PROFILES, Level, Profile
from longshore.schema.standards.subject import Surface

if TYPE_CHECKING:
    from longshore.app import Server
    from longshore.cli.options import Options
    from longshore.cli.screen import Screen
    from longshore.client.client import Client
    from longshore.mounting.mount import Mount


class Survey(Struct, frozen=True):
    """What was found at a target."""

    surface: Surface
    refused: tuple[Finding, ...] = ()
    """What the author declared, and the server would not have."""
    file: str = ""
    """The file that the list, or the server's code, stands in, where one is known."""
    builtin: bool = False

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """Whose rules hold for such a server, unless somebody says otherwise."""
        if self.builtin:
            return PROFILES
        return COMMON if self.surface.categories is None else (*COMMON, "brooklyn")


def survey(target: str | None, command: tuple[str, ...], options: Options, screen: Screen) -> Survey:
    """Look at a target. Raises click.UsageError, LongshoreError, or Exit once it has said what is wrong."""
    place = aim(target, command, options)
    if isinstance(place, str):
        return _read(place)
    if place.source:
        return _loaded(place.source, options, screen)
    return Survey(ask(place, options, screen, lambda client, place: _ask(client, place, screen)))


# -- somebody's server, asked


async def _ask(client: Client, place: Destination, screen: Screen) -> Surface:
    server = client.server
    configured = is_object(place.target)  # its entry has the name that a client gives it
    tools = await _pages(client) if server.can("tools") else []
    if not server.can("tools"):
        screen.note(f"{place.name} does not say that it has tools, so clients won't ask for them")
    for line in client.problems:
        screen.note(f"{place.name}: {line}")
    name = place.name if configured else server.name or place.name
    return Surface(name=name, tools=tuple(tools), instructions=server.instructions)


async def _pages(client: Client) -> list[Any]:
    """Every entry of every page, as it came."""
    from longshore.client.cache import weigh
    from longshore.client.listing import ENTRIES, LIST_CHARS

    found: list[Any] = []
    chars = 0
    async for page in client.pages("tools/list"):
        found += page
        chars += weigh(page)
        if len(found) > ENTRIES or chars > LIST_CHARS:
            most = f"{ENTRIES:,} entries or {LIST_CHARS >> 20} MiB"
            raise BadAnswer(f"tools/list has more than {most}", client.name)
    return found


# -- a server in Python, loaded


def _loaded(source: str, options: Options, screen: Screen) -> Survey:
    from longshore.surveying import surface_of

    _refuse_stray(options)
    app, refused = load(source)
    told = [_unoffered("error", each.what, each.fix, each.where) for each in refused]
    surface, lost = (surface_of(app), []) if app.catalog.pending_mounts is None else _with_mounts(app, options, screen)
    return Survey(surface, (*told, *lost), _file_of(source), builtin=source == BUILTIN)


def _unoffered(level: Level, message: str, fix: str, where: str) -> Finding:
    return Finding(
        tool="", level=level, rule=OFFERED.id, message=message, fix=fix, profiles=OFFERED.profiles, where=where
    )


def _file_of(source: str) -> str:
    """The file of a server that was loaded, as seen from here."""
    place = re.sub(r":\w+\Z", "", source)
    path: str = getattr(sys.modules.get(place), "__file__", None) or place
    inside = path.startswith(os.getcwd() + os.sep)
    return (os.path.relpath(path) if inside else path) if os.path.isfile(path) else ""


def _refuse_stray(options: Options) -> None:
    given = {"--header": options.header, "--auth": options.auth, "--env": options.env, "--cwd": options.cwd}
    for option, value in given.items():
        if value:
            raise click.UsageError(f"{option} is for a server that is run; one in Python is loaded only")


def _with_mounts(app: Server, options: Options, screen: Screen) -> tuple[Surface, list[Finding]]:
    """The tools, those of mounted servers among them, and what of those is left out. They are connected to as they
    would be if it ran."""
    from longshore.mounting.mounts import Mounts
    from longshore.surveying import surface_of

    async def look(client: Client, place: Destination) -> tuple[Surface, list[Finding]]:  # noqa: ARG001 - a visit's
        from asyncio import gather

        assert isinstance(app.catalog.pending_mounts, Mounts)
        app.recorder.fallback = lambda: lambda _: None  # what is wrong with the mounted servers is told below
        mounts = app.catalog.pending_mounts.all
        try:
            await gather(*(_arrive(mount, options.timeout, screen) for mount in mounts))
            return surface_of(app), [each for mount in mounts for each in _left_out(mount)]
        finally:
            await gather(*(mount.stop() for mount in mounts))

    return ask(Destination(app, app.name), options, screen, look)


async def _arrive(mount: Mount, seconds: float, screen: Screen) -> None:
    """Wait for one. One that does not come hides the others' tools not."""
    keeper = mount.keeper()
    try:
        await keeper.ready(seconds or float("inf"))
    except ToolError:
        more = "; give it more by --timeout" if keeper.problem is None else ""
        screen.note(f"{keeper.reason()}{more}; its tools are not looked at")


def _left_out(mount: Mount) -> list[Finding]:
    """What the mounted server lists and nobody will see, since it can't be passed on."""
    lines = [line for lines in mount.left_out.values() for line in lines]
    fix = "Look at that server by itself: longshore lint -- COMMAND, or its URL."
    return [_unoffered("warning", f"left out: {line}", fix, f"mounted {mount.prefix}") for line in lines[:MOST_FAULTS]]


# -- a list in a file


def _read(path: str) -> Survey:
    entries, name, instructions = _parts(read(path), called(path))
    surface = Surface(name=name, tools=tuple(entries), instructions=instructions)
    return Survey(surface, file="" if path == STDIN else path)


def _parts(value: Any, what: str) -> tuple[list[Any], str, str | None]:
    """The tools, the server's name and its instructions, from any of the forms that such a list is kept in."""
    if is_array(value):
        return value, _stem(what), None
    whole = value if is_object(value) else {}
    inner = whole.get("result")
    if is_object(inner):  # the whole answer
        whole = inner
    tools = whole.get("tools")
    if not is_array(tools):
        listed = any(key in whole for key in ("mcpServers", "servers"))
        hint = f"it names servers; look at one of them: longshore lint NAME --config {what}" if listed else FORMS
        raise TargetError(f"{what} has no list of tools; {hint}")
    server = whole.get("server")  # as `longshore list --json` has it
    known: dict[str, Any] = server if is_object(server) else {}
    name, instructions = known.get("name"), whole.get("instructions", known.get("instructions"))
    return (
        tools,
        name if isinstance(name, str) and name else _stem(what),
        instructions if isinstance(instructions, str) else None,
    )


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]
