"""`longshore list`: what any server offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from longshore.cli.arguments import keys_of
from longshore.cli.completion import complete_target
from longshore.cli.options import CODES, FAILED, SessionOptions, TargetCommand, with_options
from longshore.cli.screen import Screen, aligned, one_line
from longshore.errors import BadAnswer, ServerError
from longshore.schema.kinds import as_array

if TYPE_CHECKING:
    from longshore.cli.target import Destination
    from longshore.client.client import Client
    from longshore.client.models import ServerInfo

Lists = dict[str, list[Any]]

_TITLES = {
    "tools": ["tool", "arguments", ""],
    "resources": ["resource", "kind", ""],
    "resourceTemplates": ["template", "kind", ""],
    "prompts": ["prompt", "arguments", ""],
}


@click.command("list", cls=TargetCommand, epilog=CODES)
@click.argument("target", shell_complete=complete_target)
@click.option("--tools", is_flag=True, help="The tools.")
@click.option("--resources", is_flag=True, help="The resources and their templates.")
@click.option("--prompts", is_flag=True, help="The prompts.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with the server's own records.")
@with_options
def list_(target: str, tools: bool, resources: bool, prompts: bool, as_json: bool, **given: Any) -> int:
    """List what a server offers.

    TARGET is what `longshore call` takes: a URL, a file, a configured server's name, or a command line in quotes.
    Without --tools, --resources or --prompts, everything is listed.
    """
    flags = {"tools": tools, "resources": resources, "prompts": prompts}
    kinds = [kind for kind, wanted in flags.items() if wanted] or list(flags)
    from longshore.cli.session import run_session

    screen = Screen()

    async def work(client: Client, place: Destination) -> int:
        lists, refused = await _fetch(client, kinds)
        if as_json:
            server = client.server
            about = {"name": server.name, "version": server.version, "protocolVersion": server.revision}
            listed = {key: [each.record for each in found] for key, found in lists.items()}
            screen.json({"server": {**server.info, **about, "instructions": server.instructions}, **listed})
        else:
            _show(screen, client.server, lists)
        for line in (*refused, *client.problems):
            screen.fail(f"{place.name}: {line}")
        return FAILED if refused else 0

    return run_session(target, SessionOptions(**given), screen, work)


async def _fetch(client: Client, kinds: Sequence[str]) -> tuple[Lists, list[str]]:
    """The lists, and a message for each one that the server refuses."""
    asks = {
        "tools": (("tools", client.list_tools),),
        "resources": (("resources", client.list_resources), ("resourceTemplates", client.list_templates)),
        "prompts": (("prompts", client.list_prompts),),
    }
    lists: Lists = {}
    refused: list[str] = []
    for key, ask in (each for kind in kinds for each in asks[kind]):
        try:
            lists[key] = list(await ask())
        except (ServerError, BadAnswer) as problem:
            refused.append(f"its {key} can't be listed: {problem.what}")
    return lists, refused


def _show(screen: Screen, server: ServerInfo, lists: Lists) -> None:
    rows = {key: [_row(key, each) for each in found] for key, found in lists.items() if found}
    if not screen.out_is_terminal:
        plain = [[one_line(cell) for cell in (_TITLES[key][0], *row)] for key, found in rows.items() for row in found]
        screen.data(aligned(plain) + "\n" if plain else "")
        return
    screen.text(f"{server.name or 'a server'} {server.version}, MCP {server.revision}")
    for key, found in rows.items():
        screen.table(found, _TITLES[key])
    if lists and not rows:
        screen.text(f"It offers no {' and no '.join(lists)}.")


def _row(key: str, entry: Any) -> list[str]:
    """Name, arguments or kind, and first sentence of the description. Optional arguments have a question mark."""
    from longshore.toolsets.discovery.survey import first_sentence

    summary = first_sentence(entry.description or entry.title or "")
    if key == "tools":
        needed = as_array(entry.input_schema.get("required"))
        names = [name if name in needed else f"{name}?" for name in keys_of(entry.input_schema, entry.input_schema)]
        return [entry.name, " ".join(names), summary]
    if key == "prompts":
        names = [f"{each.get('name', '')}{'' if each.get('required') is True else '?'}" for each in entry.arguments]
        return [entry.name, " ".join(names), summary]
    address = entry.uri if key == "resources" else entry.uri_template
    return [address, entry.mime_type or "", summary or entry.name]
