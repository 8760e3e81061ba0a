"""`longshore install`: write a server into a client's configuration file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from longshore.cli.completion import complete_target
from longshore.cli.options import FAILED, TargetOrCommand, command_of
from longshore.cli.screen import Screen, aligned, many, one_line
from longshore.errors import ClientError, ConfigError
from longshore.install.clients import BY_NAME, CLIENTS, ClientRecord
from longshore.install.server_entry import Address, Program, ServerEntry
from longshore.schema.kinds import as_object

if TYPE_CHECKING:
    from longshore.client.config_places import UserFolders
    from longshore.client.configs import ConfigFile
    from longshore.install.change import Change, Slot

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""What every client accepts. Cursor counts the server's name and the tool's as one, of 60 characters."""
_LAST: Final = ("/uv/archive-v", "/uv/builds-v")
"""In the path of an interpreter that uv has made for one run."""
_CODES = (
    "Exit codes: 0 done, or nothing to do; 1 it was written, but does not connect; 2 wrong arguments, or a file that "
    "can't be changed; 130 interrupted."
)


@click.command(cls=TargetOrCommand, epilog=_CODES)
@click.argument("client", required=False, type=click.Choice(list(BY_NAME)), metavar="CLIENT")
@click.argument("target", required=False, shell_complete=complete_target)
@click.option("--list", "listing", is_flag=True, help="List the clients, their files, and the servers in them.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.option(
    "--name", metavar="NAME", help="The server's name in the file.  [default: longshore, or the server's own]"
)
@click.option("--project", is_flag=True, help="Write the project's file, not the user's.")
@click.option("--root", multiple=True, metavar="DIR", help="A folder that the built-in tools may touch. Repeatable.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Set this for the program. Repeatable.")
@click.option("--header", multiple=True, metavar="'NAME: VALUE'", help="Send this to the URL. Repeatable.")
@click.option(
    "--auth",
    metavar="TOKEN",
    help="A bearer token for the URL: env:NAME lets the client read the variable, @FILE reads a file now.",
)
@click.option("--dry-run", is_flag=True, help="Show the change and write nothing.")
@click.option("--yes", is_flag=True, help="Write without a question.")
@click.option("--force", is_flag=True, help="Replace an entry that Longshore did not write.")
@click.pass_context
def install(ctx: click.Context, /, client: str | None, target: str | None, **given: Any) -> int:
    """Write a server into the configuration file of a client.

    CLIENT is claude-code, claude-desktop, cursor, vscode, windsurf, gemini, codex, zed or goose.

    TARGET is a URL, a server file (path/to/server.py), a module (package.module:app) or builtin, the default. Or it is
    a command after --, as in longshore install cursor --name github -- npx -y some-server.

    The change is shown first. The file keeps its comments, its formatting and everything else in it, and a copy of it
    as it was is left beside it. Then the server is started as the client will start it, to see that it answers.
    `longshore uninstall` takes it out again.
    """
    screen = Screen()
    folders = find_folders()
    if given.pop("listing"):
        show_list(screen, folders, as_json=given["as_json"])
        return 0
    if client is None:
        raise click.UsageError(f"CLIENT is needed: {', '.join(BY_NAME)}; --list shows what is here")
    record, command = BY_NAME[client], command_of(ctx)
    if command and target is not None:
        raise click.UsageError(f"either TARGET or a command after --, not both: {target}")
    server, usual = _read_server(target, command, given, screen)
    name = given["name"] or usual
    if not _NAME.fullmatch(name):
        raise click.UsageError(f"--name {name}: expected letters, digits, - and _, at most 40, as every client accepts")
    slot = make_slot(record, name, folders, project=given["project"])
    if isinstance(server, Address) and server.headers and given["project"]:
        screen.note("the project's file will hold the headers' values; --auth env:NAME keeps a token out of it")
    if any(part in sys.executable for part in _LAST):
        screen.note(
            f"{sys.executable} is of uv's cache and may vanish; `uv tool install longshore` makes one that stays"
        )
    return _install(slot, server, screen, dry=given["dry_run"], yes=given["yes"], force=given["force"])


def _install(slot: Slot, server: ServerEntry, screen: Screen, *, dry: bool, yes: bool, force: bool) -> int:
    from longshore.install.change import apply, plan_install
    from longshore.install.written import written_entries

    known = written_entries()
    change = plan_install(slot, slot.client.entry(slot.name, server), known, force=force)
    if change is None:
        screen.text(f"{slot.path} has {slot.name} already, just so")
        return 0 if dry else _verify(slot, screen)
    if not confirm(change, screen, dry=dry, yes=yes):
        return 0
    backup = apply(change, slot, known)
    screen.text(f"wrote {slot.name} to {slot.path}" + (f"; before: {backup}" if backup else ""))
    code = _verify(slot, screen)
    after = slot.client.after_project if slot.file.project else ""
    screen.text(f"{slot.client.title}: {after or slot.client.after}")
    return code


def _verify(slot: Slot, screen: Screen) -> int:
    from longshore.install.verify import verify

    try:
        found = verify(slot)
    except (ClientError, ConfigError) as problem:
        screen.fail(f"{slot.name} does not connect: {problem}\n`longshore doctor {slot.name}` says more")
        return FAILED
    about = f"{one_line(found.name)} {one_line(found.version)}".strip() or "a server"
    screen.text(f"connected to {about}: MCP {found.revision}, {many(found.tools, 'tool')}, {found.seconds:.2f} s")
    return 0


def confirm(change: Change, screen: Screen, *, dry: bool, yes: bool) -> bool:
    """Show a change; whether to write it. Raises click.UsageError where nobody can be asked."""
    from longshore.install.change import diff

    styles = {"+": "green", "-": "red", "@": "cyan"}
    screen.lines((0, [(line, styles.get(line[:1], ""))]) for line in diff(change))
    if dry or yes:
        return not dry
    if not screen.person:
        raise click.UsageError("nobody can be asked here; --yes writes it, --dry-run only shows it")
    screen.ask("Write it? [Y/n] ")
    answer = sys.stdin.readline()
    return bool(answer) and answer.strip().lower() in ("", "y", "yes")


# -- where


def find_folders() -> UserFolders:
    """The user's folders. Raises ConfigError."""
    from longshore.client.config_places import user_folders

    folders = user_folders(os.environ, sys.platform)
    if folders is None:
        raise ConfigError("no home folder is known, so there are no clients' files; set HOME")
    return folders


def make_slot(record: ClientRecord, name: str, folders: UserFolders, *, project: bool) -> Slot:
    from longshore.install.change import Slot

    return Slot(record, _file(record, folders, project=project), name)


def _file(record: ClientRecord, folders: UserFolders, *, project: bool) -> ConfigFile:
    from longshore.client.config_places import project_folder

    return record.project_file(project_folder(os.getcwd())) if project else record.user_file(folders)


# -- what


def _read_server(
    target: str | None, command: tuple[str, ...], given: dict[str, Any], screen: Screen
) -> tuple[ServerEntry, str]:
    """The server and its usual name. Raises click.UsageError, ConfigError and TargetError."""
    from longshore.cli.target import BUILTIN, is_url

    is_address = target is not None and is_url(target) and not command
    is_builtin = not command and target in (None, BUILTIN)
    for option, value, fits, what in (
        ("--env", given["env"], not is_address, "a program"),
        ("--header", given["header"], is_address, "a URL"),
        ("--auth", given["auth"], is_address, "a URL"),
        ("--root", given["root"], is_builtin, "the built-in server"),
    ):
        if value and not fits:
            raise click.UsageError(f"{option} is for {what}")
    if is_address:
        assert target is not None
        return _address(target, given), _needed(given, "a URL")
    env = dict(_pair(each, "=", "--env") for each in given["env"])
    if command:
        return _program(command, env), _needed(given, "a command")
    return _own_server(target, given, env, screen)


def _needed(given: dict[str, Any], what: str) -> str:
    if not given["name"]:
        raise click.UsageError(f"{what} needs a name in the client: --name weather")
    return str(given["name"])


def _own_server(
    target: str | None, given: dict[str, Any], env: dict[str, str], screen: Screen
) -> tuple[ServerEntry, str]:
    from longshore.cli.target import BUILTIN, load, locate
    from longshore.client.targets import serve_command
    from longshore.transports.greeting import client_name

    if target in (None, BUILTIN):
        roots = [os.path.abspath(os.path.expanduser(root)) for root in given["root"] or _ask_roots(given, screen)]
        for root in roots:
            if not os.path.isdir(root):
                raise click.UsageError(f"--root {root}: there is no such folder")
        words = serve_command(None, *(word for root in roots for word in ("--root", root)))
        return Program(words[0], tuple(words[1:]), env), "longshore"
    assert target is not None
    place = locate(target)
    if not place.source:
        raise click.UsageError(f"{target} is no server file and no module; a command comes after --: -- {target}")
    source = _absolute(place.source)
    name = given["name"] or client_name(load(source)[0].name)
    words = serve_command(source)
    return Program(words[0], tuple(words[1:]), env), name


def _ask_roots(given: dict[str, Any], screen: Screen) -> list[str]:
    """The folder that a person names. Nothing: the server takes the folder that the client starts it in."""
    if not screen.person or given["yes"]:
        return []
    screen.ask("Which folder may its tools touch? [Enter: the one that the client starts it in] ")
    answer = sys.stdin.readline().strip()
    return [answer] if answer else []


def _absolute(source: str) -> str:
    """A module as the path of its file: the client starts the server in another folder, where it may not be found."""
    from importlib.util import find_spec

    module, colon, name = source.rpartition(":")
    if not colon or os.sep in source:
        return source
    sys.path.insert(0, os.getcwd())
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        raise click.UsageError(f"{module}: there is no such module here; a file is given as path/to/server.py")
    return f"{spec.origin}:{name}"


def _program(command: tuple[str, ...], env: dict[str, str]) -> Program:
    """The command with absolute paths of its program and of files in it."""
    from shutil import which

    program = which(command[0])
    if program is None:
        raise click.UsageError(f"{command[0]}: there is no such program; install it, or give its full path")
    return Program(os.path.abspath(program), tuple(map(_absolute_file, command[1:])), env)


def _absolute_file(word: str) -> str:
    is_path = (os.sep in word or "." in word) and not word.startswith("-") and os.path.isfile(word)
    return os.path.abspath(word) if is_path else word


def _address(url: str, given: dict[str, Any]) -> Address:
    headers = dict(_pair(each, ":", "--header") for each in given["header"])
    auth: str | None = given["auth"]
    if auth is None:
        return Address(url, headers)
    if any(name.lower() == "authorization" for name in headers):
        raise click.UsageError("--auth and --header 'Authorization: …' are two ways to say the same; take one")
    if auth.startswith("env:"):
        return Address(url, headers, auth.removeprefix("env:"))
    from longshore.cli.auth_option import read_token

    return Address(url, {**headers, "Authorization": f"Bearer {read_token(auth).strip()}"})


def _pair(text: str, mark: str, option: str) -> tuple[str, str]:
    from longshore.cli.session import pair

    return pair(text, mark, option)


# -- the list


def show_list(screen: Screen, folders: UserFolders, *, as_json: bool) -> None:
    """Every client: whether it is here, its files, and the servers in them."""
    rows = list(list_clients(folders))
    if as_json:
        return screen.json(rows)
    titles, cells = ["client", "here", "file", "servers"], [_cells(row) for row in rows]
    if screen.out_is_terminal:
        screen.table(cells, titles)
    else:
        screen.data(aligned([titles, *(list(map(one_line, row)) for row in cells)]) + "\n")
    screen.note(
        "here: this machine has the client; *: written by longshore install, and removed by longshore uninstall"
    )
    return None


def _cells(row: dict[str, Any]) -> list[str]:
    servers = ", ".join(f"{name}*" if name in row["written"] else name for name in row["servers"])
    return [row["client"], "yes" if row["here"] else "no", row["file"], row["problem"] or servers]


def list_clients(folders: UserFolders) -> Iterator[dict[str, Any]]:
    """One record a file: all clients' files of the user, and those of this project that exist."""
    from longshore.client.config_places import project_folder
    from longshore.install.change import read_entries
    from longshore.install.written import written_entries

    known = written_entries().read()
    for client in CLIENTS:
        files = [client.user_file(folders)]
        if client.place.project:
            files.append(client.project_file(project_folder(os.getcwd())))
        for file in files:
            if file.project and not os.path.exists(file.path):
                continue
            servers, problem = dict[str, Any](), ""
            try:
                servers = read_entries(client, file)
            except ConfigError as error:
                problem = str(error)
            gone = [name for name, entry in servers.items() if _is_gone(_program_of(entry))]
            ours = {each.keys[1] for each in known if each.path == os.path.realpath(file.path)}
            yield {
                "client": client.name,
                "title": client.title,
                "here": client.is_here(folders),
                "scope": "project" if file.project else "user",
                "file": file.path,
                "servers": list(servers),
                "written": [name for name in servers if name in ours],
                "gone": gone,
                "programs": [_program_of(servers[name]) for name in gone],
                "problem": problem,
            }


def _program_of(entry: Any) -> str:
    """The program that an entry starts; empty if it is a URL."""
    found = as_object(entry)
    return str(found.get("command") or found.get("cmd") or "")


def _is_gone(program: str) -> bool:
    """Whether a program is an absolute path that is not there. Others depend on the client's PATH."""
    return os.path.isabs(program) and not os.path.exists(program)
