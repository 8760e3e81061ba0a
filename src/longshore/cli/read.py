"""`longshore read`: read one resource of any server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from longshore.cli.completion import complete_target
from longshore.cli.options import CODES, SessionOptions, TargetCommand, utf8, with_options

if TYPE_CHECKING:
    from longshore.cli.target import Destination
    from longshore.client.client import Client


@click.command(cls=TargetCommand, epilog=CODES)
@click.argument("target", shell_complete=complete_target)
@click.argument("uri")
@click.option("--json", "as_json", is_flag=True, help="Print the contents as JSON, with bytes in base64.")
@click.option("--save", type=click.Path(), metavar="DIR", help="Write the contents into this folder.")
@with_options
def read(target: str, uri: str, as_json: bool, save: str | None, **given: Any) -> int:
    """Read a resource of a server.

    TARGET is what `longshore call` takes: a URL, a file, a configured server's name, or a command line in quotes.
    A pipe gets the exact text or bytes of the resource.
    """
    from longshore.cli.printer import open_folder, show_contents
    from longshore.cli.screen import Screen
    from longshore.cli.session import run_session

    screen, uri = Screen(), utf8(uri)
    folder = open_folder(save, uri.rstrip("/").rpartition("/")[2].partition(".")[0])

    async def work(client: Client, place: Destination) -> int:  # noqa: ARG001
        contents = await client.read_resource(uri)
        if as_json:
            screen.json({"contents": contents})
        else:
            show_contents(screen, contents, folder)
        return 0

    return run_session(target, SessionOptions(**given), screen, work)
