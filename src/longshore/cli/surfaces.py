"""From a TARGET to the tools of that server, as it lists them, whatever is wrong with them.

A server of ours in Python is loaded and not run, a JSON file is read, every other one is asked in its own language. Its
answer is taken as it came: what our client would leave out is what a linter is there for.
"""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from longshore.cli.destination import BUILTIN, Destination, locate
from longshore.cli.rules import OFFERED
from longshore.cli.visit import USAGE, visit
from longshore.client.channel import CLIENT_LIMITS
from longshore.errors import BadAnswer, TargetError, ToolError
from longshore.schema.kinds import is_array, is_object
from longshore.schema.standards.finding import Finding
from longshore.schema.standards.rule import COMMON, PROFILES, Profile
from longshore.schema.standards.subject import Surface

if TYPE_CHECKING:
    from longshore.app import Server
    from longshore.cli.options import Options
    from longshore.cli.screen import Screen
    from longshore.client.client import Client
    from longshore.mounting.mount import Mount

STDIN: Final = "-"
SIGNALLED: Final = 128
"""Exit codes above this tell which signal ended us."""
_FORMS = "expected a tools/list result, an array of tools, or what `longshore schema snapshot` wrote"


class Survey(Struct, frozen=True):
    """What was found at a target."""

    surface: Surface
    refused: tuple[Finding, ...] = ()
    """What the author declared, and the server would not have."""
    file: str = ""
    """The file that holds the list, where one does."""
    builtin: bool = False

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """Whose rules hold for such a server, unless somebody says otherwise."""
        if self.builtin:
            return PROFILES
        return COMMON if self.surface.categories is None else (*COMMON, "brooklyn")


def survey(target: str | None, command: tuple[str, ...], options: Options, screen: Screen) -> Survey:
    """Look at a target. Raises click.UsageError, LongshoreError, or Exit once it has said what is wrong."""
    if command:
        return _visited(Destination([*command], shlex.join(command), ours=False), options, screen)
    if options.config is None and (target is None or target == BUILTIN):
        return _loaded(None, options, screen)
    if target is None:
        raise click.UsageError("--config is a file in which TARGET is looked up by its name; name one")
    if options.config is None and (target == STDIN or target.lower().endswith(".json")):
        return _read(target)
    place = locate(target, options.config)
    return _loaded(place.source, options, screen) if place.source else _visited(place, options, screen)


# -- somebody's server, asked


def _visited(place: Destination, options: Options, screen: Screen) -> Survey:
    found: list[Surface] = []

    async def work(client: Client, place: Destination) -> int:
        found.append(await _ask(client, place, screen))
        return 0

    return Survey(_result(found, visit(place, options, screen, work)))


def _result(found: list[Surface], code: int) -> Surface:
    """What a visit found. One that found nothing has said why, and ends us: by a signal, or as what could not run."""
    if not found:
        raise click.exceptions.Exit(code if code > SIGNALLED else USAGE)
    return found[0]


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


def _loaded(source: str | None, options: Options, screen: Screen) -> Survey:
    from longshore.registry.standards import deferring
    from longshore.surveying import surface_of

    _refuse_stray(options)
    with redirect_stdout(sys.stderr), deferring() as refused:  # what its code prints is no finding
        app = _find(source)
    surface = surface_of(app) if app.catalog.arrivals is None else _with_mounts(app, options, screen)
    told = [
        Finding(
            tool="",
            level="error",
            rule=OFFERED.id,
            message=each.what,
            fix=each.fix,
            profiles=OFFERED.profiles,
            where=each.where,
        )
        for each in refused
    ]
    return Survey(surface, tuple(told), builtin=source is None)


def _refuse_stray(options: Options) -> None:
    given = {"--header": options.header, "--auth": options.auth, "--env": options.env, "--cwd": options.cwd}
    for option, value in given.items():
        if value:
            raise click.UsageError(f"{option} is for a server that is run; one in Python is loaded only")


def _find(source: str | None) -> Server:
    from longshore.__main__ import find

    try:
        app: Server = find(source)
    except TargetError as problem:
        if "no Server there" not in str(problem):
            raise
        fix = f"If it is a program that serves by itself: longshore lint -- {sys.executable} {source}"
        raise TargetError(f"{problem}\n{fix}") from None
    return app


def _with_mounts(app: Server, options: Options, screen: Screen) -> Surface:
    """The tools, those of mounted servers among them. They are connected to as they would be if it ran."""
    from longshore.mounting.mounts import Mounts
    from longshore.surveying import surface_of

    found: list[Surface] = []

    async def work(client: Client, place: Destination) -> int:  # noqa: ARG001 - a visit's
        from asyncio import gather

        assert isinstance(app.catalog.arrivals, Mounts)
        mounts = app.catalog.arrivals.all
        try:
            await gather(*(_arrive(mount, options.timeout, screen) for mount in mounts))
            found.append(surface_of(app))
        finally:
            await gather(*(mount.stop() for mount in mounts))
        return 0

    return _result(found, visit(Destination(app, app.name), options, screen, work))


async def _arrive(mount: Mount, seconds: float, screen: Screen) -> None:
    """Wait for one. One that does not come hides the others' tools not."""
    try:
        await mount.keeper().ready(seconds or float("inf"))
    except ToolError as problem:
        what = str(problem).partition("; it is ")[0]
        screen.note(f"{what}; its tools are not looked at")
    for line in (each for lines in mount.left_out.values() for each in lines):
        screen.note(f"mounted {mount.prefix}: {line}")


# -- a list in a file


def _read(path: str) -> Survey:
    what = "stdin" if path == STDIN else path
    entries, name, instructions = _parts(_json(path, what), what)
    surface = Surface(name=name, tools=tuple(entries), instructions=instructions)
    return Survey(surface, file="" if path == STDIN else path)


def _json(path: str, what: str) -> Any:
    from longshore.testing.patterns import read_json
    from longshore.wire.codec import BROKEN

    most = CLIENT_LIMITS.frame_bytes
    try:
        if path == STDIN:
            data = sys.stdin.buffer.read(most + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(most + 1)
        if len(data) > most:
            raise TargetError(f"{what} is longer than {most >> 20} MiB; {_FORMS}")
        return read_json(data.removeprefix(b"\xef\xbb\xbf"))
    except FileNotFoundError:
        raise TargetError(f"{what}: there is no such file; {_FORMS}") from None
    except OSError as problem:
        raise TargetError(f"{what} can't be read: {problem.strerror or problem}") from None
    except BROKEN as problem:
        raise TargetError(f"{what} holds no JSON: {problem}; {_FORMS}") from None


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
        raise TargetError(f"{what} has no list of tools; {_FORMS}")
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
