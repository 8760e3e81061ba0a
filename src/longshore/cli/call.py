"""`longshore call`: call one tool of any server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET

from longshore.cli.arguments import BadArguments, Files, build, read_base, read_words
from longshore.cli.completion import complete_target
from longshore.cli.options import CODES, FAILED, USAGE, SessionOptions, TargetCommand, utf8, with_options
from longshore.cli.screen import Progress, Screen, json_text
from longshore.cli.unknown import explain_unknown

if TYPE_CHECKING:
    from longshore.cli.target import Destination
    from longshore.client.client import Client


@click.command(cls=TargetCommand, epilog=CODES)
@click.argument("target", shell_complete=complete_target)
@click.argument("tool")
@click.argument("words", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--args", "base", metavar="JSON", help="The arguments as a JSON object; @FILE reads one, - reads stdin.")
@click.option("--unchecked", is_flag=True, help="Send the call without checking it against the list of tools.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
@click.option("--save", type=click.Path(), metavar="DIR", help="Write images, audio and other bytes into this folder.")
@with_options
def call(
    target: str,
    tool: str,
    words: tuple[str, ...],
    base: str | None,
    unchecked: bool,
    as_json: bool,
    save: str | None,
    **given: Any,
) -> int:
    """Call a tool of a server.

    TARGET is a URL, a server file (path/to/server.py), the name of a server in a client's configuration (the project's
    files, such as .mcp.json, .cursor/mcp.json and .vscode/mcp.json, then the user's: `longshore install --list` names
    them), builtin, or a command line in quotes: longshore call 'npx -y some-server' TOOL key=value.

    KEY=VALUE is read by the tool's schema: a string stays a string, a list is JSON or the key once for each item.
    KEY:=JSON is always JSON, KEY=@FILE reads the file, and OUTER.INNER=VALUE sets a property of an object.

    Arguments that the tool's schema refuses are not sent. With --unchecked the server decides, and VALUE is read as
    JSON if it is some, else as a string.

    If the server asks a question, you answer it on the terminal. If stdin or stderr is not a terminal, the call fails,
    unless the tool has a default for the answer.
    """
    from longshore.cli.printer import open_folder, show_result
    from longshore.cli.session import run_session

    screen, files, tool = Screen(), Files(), utf8(tool)
    try:
        arguments = read_base(None if base is None else utf8(base), files)
        read = read_words([utf8(word) for word in words], files)
    except BadArguments as problem:
        screen.fail(str(problem))
        return USAGE
    folder = open_folder(save, tool)

    async def work(client: Client, place: Destination) -> int:
        tools = await client.list_tools()
        found = next((each for each in tools if each.name == tool), None)
        if found is None and not unchecked:
            down = next((why for prefix, why in client.absent.items() if tool.startswith(f"{prefix}_")), None)
            names = [each.name for each in tools]
            screen.fail(down or explain_unknown("tool", tool, names, place, client.problems))
            return FAILED if down else USAGE
        schema = {} if found is None or unchecked else found.input_schema
        try:
            complete = build(schema, read, arguments)
        except BadArguments as problem:
            screen.fail("\n".join([f"{tool} was not called:", *(f"  {line}" for line in problem.lines)]))
            return USAGE
        progress = Progress(screen) if screen.moves else None
        result = await client.call_tool(tool, complete, on_progress=progress, check=False)
        if as_json:
            screen.json(result.record)
        elif result.is_error:
            more = "without a word" if result.structured is UNSET else json_text(result.structured)
            screen.fail(f"{tool} failed: {result.text or more}")
        else:
            show_result(screen, result, folder)
        return FAILED if result.is_error else 0

    return run_session(target, SessionOptions(**given), screen, work)
