"""Writes the listings of real servers into `catalog/`, a file each, as a gateway shows them: names with a prefix.

    python -m benchmarks.catalog_capture

The servers are those whose versions the lock files have; they are installed first. Each runs over stdio in an empty
folder, is asked for its tools, and is ended. No browser is started.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.browser_agents import DEVTOOLS, PLAYWRIGHT, DevTools, Playwright
from benchmarks.browser_agents import PINS as BROWSER_PINS
from benchmarks.catalog_corpus import FOLDER, write_tools
from benchmarks.desktop_commander import COMMANDER_PACKAGE, DesktopCommander
from benchmarks.desktop_commander import PINS as COMMANDER_PINS
from benchmarks.environment import ROOT, TEST_PINS, node_server, pinned
from benchmarks.stdio_server import StdioServer
from longshore.client import Client, ElicitQuestion
from longshore.mounting.entries import mounted_name

SECONDS = 60


@dataclass(frozen=True)
class Source:
    prefix: str
    package: str
    start: Callable[[Path], StdioServer]
    pins: Path = TEST_PINS


def _official(name: str, *arguments: str) -> Source:
    package = f"@modelcontextprotocol/server-{name}"
    return Source(
        name,
        package,
        lambda folder: StdioServer([*node_server(package), *arguments], folder=folder, home=folder),
    )


SOURCES = (
    _official("filesystem", "."),
    _official("memory"),
    _official("everything", "stdio"),
    Source("playwright", PLAYWRIGHT, lambda folder: Playwright(folder).server, BROWSER_PINS),
    Source("devtools", DEVTOOLS, lambda folder: DevTools(folder).server, BROWSER_PINS),
    Source("commander", COMMANDER_PACKAGE, lambda folder: DesktopCommander(folder=folder, home=folder), COMMANDER_PINS),
)


async def capture(source: Source, folder: Path) -> list[dict[str, Any]]:
    """Its tools as it lists them, with prefixed names. Raises ValueError if one names a path of this machine."""
    server = source.start(folder)
    # Which tools are listed depends on what the client can be asked; only a call could ask.
    client = Client(
        list(server.command),
        cwd=str(folder),
        env=server.environment,
        timeout=SECONDS,
        on_elicit=_decline,
        on_sample=_decline,
        roots=[str(folder)],
    )
    async with client:
        tools = [tool.record for tool in await client.list_tools()]
    text = json.dumps(tools)
    for path in (folder, ROOT, Path.home()):
        if str(path) in text:
            raise ValueError(f"{source.package} names {path} in its listing")
    return [{**tool, "name": mounted_name(source.prefix, tool["name"])} for tool in tools]


def _decline(question: ElicitQuestion) -> None:
    """Answer nothing."""


async def main() -> None:
    for source in SOURCES:
        with TemporaryDirectory() as folder:
            tools = await capture(source, Path(folder).resolve())
        name = f"{source.package} {pinned(source.package, source.pins)}"
        write_tools(FOLDER / f"{source.prefix}.json", name, tools)
        print(f"{name}: {len(tools)} tools", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main())
