"""`longshore prompt`: get one prompt of any server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from longshore.cli.arguments import BadArguments, build, read_words
from longshore.cli.completion import complete_target
from longshore.cli.options import CODES, USAGE, SessionOptions, TargetCommand, utf8, with_options
from longshore.cli.screen import Screen
from longshore.cli.unknown import explain_unknown

if TYPE_CHECKING:
    from longshore.cli.target import Destination
    from longshore.client.client import Client
    from longshore.client.models import PromptInfo


@click.command(cls=TargetCommand, epilog=CODES)
@click.argument("target", shell_complete=complete_target)
@click.argument("name")
@click.argument("words", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
@click.option("--save", type=click.Path(), metavar="DIR", help="Write images, audio and other bytes into this folder.")
@with_options
def prompt(target: str, name: str, words: tuple[str, ...], as_json: bool, save: str | None, **given: Any) -> int:
    """Get a prompt of a server, filled in.

    TARGET is what `longshore call` takes: a URL, a file, a configured server's name, or a command line in quotes.
    `longshore list TARGET --prompts` names the prompts and their arguments.

    KEY=VALUE is an argument, KEY=@FILE reads it from a file. The arguments of prompts are texts.

    A single message is printed as it is, for a pipe into another program. Of several, each begins with a line that
    names its role.
    """
    from longshore.cli.printer import open_folder, show_prompt
    from longshore.cli.session import run_session

    screen, name = Screen(), utf8(name)
    try:
        read = read_words([utf8(word) for word in words])
    except BadArguments as problem:
        screen.fail(str(problem))
        return USAGE
    folder = open_folder(save, name)

    async def work(client: Client, place: Destination) -> int:
        prompts = await client.list_prompts()
        found = next((each for each in prompts if each.name == name), None)
        if found is None:
            screen.fail(explain_unknown("prompt", name, [each.name for each in prompts], place, client.problems))
            return USAGE
        try:
            arguments = build(_schema(found), read, {})
        except BadArguments as problem:
            screen.fail("\n".join([f"{name} was not asked for:", *(f"  {line}" for line in problem.lines)]))
            return USAGE
        result = await client.get_prompt(name, arguments)
        if as_json:
            screen.json(result.record)
        else:
            show_prompt(screen, result, folder)
        return 0

    return run_session(target, SessionOptions(**given), screen, work)


def _schema(found: PromptInfo) -> dict[str, Any]:
    """The arguments of a prompt as a JSON Schema, so that they are read and checked like a tool's."""
    named = {str(each.get("name")): each for each in found.arguments}
    return {
        "type": "object",
        "properties": {
            key: {"type": "string", "description": str(each.get("description") or "")} for key, each in named.items()
        },
        "required": [key for key, each in named.items() if each.get("required") is True],
        "additionalProperties": False,
    }
