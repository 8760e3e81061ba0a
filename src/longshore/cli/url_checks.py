"""The checks of `longshore doctor TARGET` for a server over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import Any

from longshore.cli.auth_option import choose, source
from longshore.cli.check import Check
from longshore.cli.options import SessionOptions
from longshore.cli.server_checks import judge_start
from longshore.cli.session import SPELLED, pair
from longshore.cli.target import Destination
from longshore.cli.tool_checks import check_tools
from longshore.client.client import Client
from longshore.errors import AuthorizationError, ClientError
from longshore.protocol.revisions import NAMES
from longshore.schema.lint.tool_list import ToolList

SECONDS = 30.0
"""As long as Claude Code waits."""


def check_url(place: Destination, header: tuple[str, ...], auth: str | None) -> Iterator[Check]:
    """All checks; the first one alone if there is no connection."""
    given = SessionOptions(auth=auth)
    headers = dict(pair(each, ":", "--header") for each in header)
    options: dict[str, Any] = {"headers": headers, "timeout": SECONDS, "reconnect": False}
    if auth is not None or not any(name.lower() == "authorization" for name in (*headers, *place.headers)):
        options["auth"] = choose(source(place, given), person=False)
    yield from asyncio.run(_check(place, options))


async def _check(place: Destination, options: dict[str, Any]) -> list[Check]:
    start = monotonic()
    try:
        async with Client(place.target, **options) as client:
            seconds = monotonic() - start
            server = client.server
            said = f"{server.name} {server.version}".strip() or "a server"
            found = [Check("connect", "ok", f"{said} answered after {seconds:.2f} s"), *judge_start(seconds)]
            tools: list[Any] = []
            if server.can("tools"):
                tools = [entry async for page in client.pages("tools/list") for entry in page]
            found += check_tools(ToolList(name=server.name, tools=tuple(tools), instructions=server.instructions))
    except AuthorizationError as problem:
        fix = "give a token by --auth env:NAME, or log in once: longshore list URL"
        return [Check("connect", "failed", problem.what, _advice(problem, fix))]
    except ClientError as problem:
        fix = "see that the server runs, and that the address has its path, such as /mcp"
        return [Check("connect", "failed", problem.what, _advice(problem, fix))]
    return found + [await _check_revision(place, name, options) for name in NAMES]


def _advice(problem: ClientError, usual: str) -> str:
    """The fix of a failure, with the options of `longshore doctor`, which has no --timeout."""
    return usual if "timeout" in problem.options else problem.advice(SPELLED) or usual


async def _check_revision(place: Destination, name: str, options: dict[str, Any]) -> Check:
    try:
        async with Client(place.target, era=name, **options):
            return Check(f"MCP {name}", "ok", "spoken")
    except ClientError as problem:
        return Check(f"MCP {name}", "missing", f"not spoken: {problem.what}")
