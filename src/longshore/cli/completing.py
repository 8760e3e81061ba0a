"""What a shell is told when somebody presses Tab: servers, tools, their arguments, resources.

The server is asked, for a moment and without a word, unless it was asked lately. What a project's file or a command
line names is started or connected to only if a person has visited it before: Tab is no decision to run something, nor
to send what a file takes from the environment to where that file says.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from longshore.cli.destination import Destination
    from longshore.cli.memory import Offers, Tool

ASK_SECONDS = 2.5
CLOSE_SECONDS = 0.2
"""A server that does not end at once is killed: somebody waits for a word, for 3 seconds at most."""
MOST_ITEMS = 200
"""What is offered: no shell shows more at a time."""

Items = list[CompletionItem]


def _quiet(complete: Callable[[click.Context, str], Items]) -> Callable[[click.Context, click.Parameter, str], Items]:
    """A Tab that fails completes nothing."""

    def run(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG001 - click's
        try:
            with redirect_stderr(StringIO()):
                return complete(ctx, incomplete)[:MOST_ITEMS]
        except Exception:
            return []

    return run


@_quiet
def complete_target(ctx: click.Context, incomplete: str) -> Items:
    from longshore.cli.destination import BUILTIN
    from longshore.client.servers import read_servers

    names = {name: each.file.path for name, each in read_servers(_config(ctx)).items()}
    found = [_item(name, path) for name, path in {**names, BUILTIN: "the built-in server"}.items()]
    return [CompletionItem(incomplete, type="file"), *_starting(found, incomplete)]


@_quiet
def complete_tool(ctx: click.Context, incomplete: str) -> Items:
    return _starting([_item(tool.name, tool.about) for tool in _offers(ctx, "tools").tools or []], incomplete)


@_quiet
def complete_uri(ctx: click.Context, incomplete: str) -> Items:
    return _starting([_item(uri, "") for uri in _offers(ctx, "resources").resources or []], incomplete)


@_quiet
def complete_word(ctx: click.Context, incomplete: str) -> Items:
    """`key=`, and after it the values that the schema lists."""
    wanted = ctx.params.get("tool")
    tool = next((each for each in _offers(ctx, "tools").tools or [] if each.name == wanted), None)
    if tool is None:
        return []
    key, equals, _ = incomplete.partition("=")
    items = _values(tool, key) if equals else _keys(tool, ctx.params.get("words") or ())
    return _starting(items, incomplete)


@_quiet
def complete_rule(ctx: click.Context, incomplete: str) -> Items:  # noqa: ARG001 - what every completion is given
    from longshore.schema.standards.rules import RULES

    found = [_item(rule.id, rule.title) for rule in RULES]
    return _starting([*found, _item("all", "a list of them")], incomplete)


@_quiet
def complete_waiver(ctx: click.Context, incomplete: str) -> Items:  # noqa: ARG001
    """`E04=`, or behind a tool's name; the reason is for its author to say."""
    from longshore.schema.standards.rules import RULES

    tool, colon, _ = incomplete.rpartition(":")
    return _starting([_item(f"{tool}{colon}{rule.id}=", rule.title) for rule in RULES], incomplete)


def _keys(tool: Tool, given: tuple[str, ...]) -> Items:
    from longshore.cli.schemas import child, keys_of, kinds, part

    schema = tool.schema
    taken = {word.partition("=")[0].removesuffix(":") for word in given}
    found: Items = []
    for key in keys_of(schema, schema):
        inner = part(child(schema, schema, key), schema)
        if key not in taken or "array" in kinds(inner, schema):
            found.append(_item(f"{key}=", " ".join(str(inner.get("description", "")).split())[:80]))
    return found


def _values(tool: Tool, key: str) -> Items:
    from msgspec import json

    from longshore.cli.schemas import child, choices, kinds, options

    inner = child(tool.schema, tool.schema, key)
    values = [value for option in options(inner, tool.schema) for value in choices(option)]
    if not values and kinds(inner, tool.schema) == {"boolean"}:
        values = [True, False]
    return [_item(f"{key}={each if isinstance(each, str) else json.encode(each).decode()}", "") for each in values]


def _item(value: str, about: str) -> CompletionItem:
    from longshore.cli.screen import one_line

    return CompletionItem(value, help=one_line(about) or None)


def _starting(items: Items, incomplete: str) -> Items:
    """Those that begin so, and can stand in a shell's word: a name with blanks or escapes is not worth its quotes."""
    return [item for item in items if item.value.startswith(incomplete) and _is_plain(item.value)]


def _is_plain(value: str) -> bool:
    return value.isprintable() and not set(value) & set(" \t\"'\\`$;&|<>(){}[]*?!#~^,")


# -- asking


def _config(ctx: click.Context) -> str | None:
    """The file of --config. Tab does not wait for a pipe that nobody fills yet."""
    path: str | None = ctx.params.get("config")
    if path is not None and not os.path.isfile(os.path.expanduser(path)):
        raise FileNotFoundError(path)
    return path


def _offers(ctx: click.Context, kind: str) -> Offers:
    from longshore.cli.destination import locate
    from longshore.cli.memory import FAILED, Offers, recall

    place = locate(ctx.params["target"], _config(ctx))
    known = recall(place.target)
    if known is None and not place.ours:
        return Offers()
    if known is not None and (known.is_fresh(kind) or known.is_fresh(FAILED)):
        return known
    _ask(place, ctx.params, kind)
    return recall(place.target) or Offers()


def _ask(place: Destination, params: dict[str, Any], kind: str) -> None:
    """Ask the server and remember what it says, or that it said nothing. Bounded, whatever it does."""
    import asyncio

    from longshore.cli.memory import keep
    from longshore.cli.options import Options
    from longshore.cli.screen import Screen
    from longshore.cli.visit import client_options
    from longshore.client.client import Client

    names = ("config", "era", "header", "auth", "env", "cwd")
    options = Options(**{name: params[name] for name in names if params.get(name)}, timeout=ASK_SECONDS)
    screen = Screen()
    screen.person = False
    made: dict[str, Any] = client_options(place, options, screen)
    client = Client(place.target, **made)

    async def learn() -> None:
        await client.open()
        if kind == "tools":
            keep(place.target, tools=await client.list_tools())
        else:
            keep(place.target, resources=await client.list_resources())

    async def bounded() -> None:
        task = asyncio.ensure_future(learn())
        await asyncio.wait((task,), timeout=ASK_SECONDS)
        if task.done() and task.exception() is None:
            task = asyncio.ensure_future(client.close())
            await asyncio.wait((task,), timeout=CLOSE_SECONDS)
        else:
            keep(place.target, failed=True)
        for _ in range(2):  # the first ends what it does, the second its way to end that
            task.cancel()
            await asyncio.wait((task,), timeout=CLOSE_SECONDS)

    asyncio.run(bounded())
