"""`longshore complete`: ask any server for the values of an argument (MCP's `completion/complete`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from longshore.cli.arguments import BadArguments, build, read_words
from longshore.cli.completion import complete_target
from longshore.cli.options import CODES, USAGE, SessionOptions, TargetCommand, utf8, with_options
from longshore.cli.screen import Screen, one_line

if TYPE_CHECKING:
    from longshore.cli.target import Destination
    from longshore.client.client import Client
    from longshore.client.models import Completion

_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}


@click.command(cls=TargetCommand, epilog=CODES)
@click.argument("target", shell_complete=complete_target)
@click.argument("ref")
@click.argument("argument")
@click.argument("value")
@click.argument("words", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--json", "as_json", is_flag=True, help="Print the completion as JSON.")
@with_options
def complete(
    target: str, ref: str, argument: str, value: str, words: tuple[str, ...], as_json: bool, **given: Any
) -> int:
    """Complete an argument of a prompt or a resource template.

    TARGET is what `longshore call` takes: a URL, a file, a configured server's name, or a command line in quotes.
    REF is the prompt's name or the template's URI, ARGUMENT the name of its argument, VALUE what was typed so far, in
    quotes if that is nothing: longshore complete server.py review language ''.

    KEY=VALUE is another argument that is known already: some servers suggest values that fit it.

    Each value is a line. (The words of your shell are completed by `longshore completion`.)
    """
    from longshore.cli.session import run_session

    screen, ref, argument, value = Screen(), utf8(ref), utf8(argument), utf8(value)
    try:
        others = build(_TEXTS, read_words([utf8(word) for word in words]), {})
    except BadArguments as problem:
        screen.fail(str(problem))
        return USAGE

    async def work(client: Client, place: Destination) -> int:  # noqa: ARG001
        found = await client.complete(ref, argument, value, others)
        if as_json:
            screen.json(found)
        else:
            _show(screen, found)
        return 0

    return run_session(target, SessionOptions(**given), screen, work)


def _show(screen: Screen, found: Completion) -> None:
    for value in found.values:
        screen.text(one_line(value))
    if found.has_more or (found.total or 0) > len(found.values):
        total = "" if found.total is None else f" of {found.total:,}"
        screen.note(f"[the first {len(found.values)}{total}; a longer VALUE leaves fewer]")
