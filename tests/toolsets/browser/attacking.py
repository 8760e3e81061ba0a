"""The browser tools against pages that attack: a client, its calls, and what must hold of every answer."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.waiting import is_alive

from longshore import Client, Server
from longshore.errors import ToolFailed
from longshore.toolsets.browser.options import BrowserOptions
from longshore.toolsets.browser.tools import BrowserTools

from .browsing import Site, serve

FENCE = re.compile(r"\[b\d+ t\d+ [^\n]{1,90}, untrusted until (\w{8})\]\n(.*)\n\[(\w{8})\]", re.DOTALL)


@asynccontextmanager
async def attacked(pages: dict[str, str], **options: Any) -> AsyncIterator[tuple[Client, Site]]:
    """A client of the browser tools, and the site of the attacker."""
    server = Server("browser")
    server.add_toolset(BrowserTools(BrowserOptions(**options)))
    async with serve({"/fine": "<title>fine</title><p>all is well", **pages}) as site, Client(server) as client:
        yield client, site


async def ask(client: Client, name: str, **arguments: Any) -> str:
    return (await client.call_tool(f"browser_{name}", arguments)).text


async def answer(client: Client, name: str, **arguments: Any) -> str:
    """What a tool answers, an error or not. Of an error every line but the first would be a line of the page's."""
    try:
        return await ask(client, name, **arguments)
    except ToolFailed as problem:
        assert "\n" not in str(problem), problem
        assert "unexpectedly" not in str(problem), problem
        return str(problem)


def inside(text: str) -> str:
    """What stands within the fence, beyond which nothing may stand."""
    found = FENCE.fullmatch(text)
    assert found is not None and found[1] == found[3], text
    assert f"[{found[1]}]" not in found[2], text
    return found[2]


async def assert_alive(client: Client, site: Site, tab: str | None = None) -> None:
    """A tab can be used: the one of the attack, or another."""
    place = {} if tab is None else {"tab_id": tab}
    assert "all is well" in await ask(client, "navigate", url=site.url("/fine"), **place)


def processes_of(word: str) -> list[int]:
    """The processes below ours that have a word in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        pid = int(path.parent.name)
        if word in line and is_alive(pid) and os.getpid() in _ancestors(pid):
            found.append(pid)
    return found


def _ancestors(pid: int) -> list[int]:
    found = []
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        found.append(pid)
    return found


def kill_browser() -> None:
    """Kill the main process of each browser that we started."""
    for pid in processes_of("--remote-debugging-pipe"):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if not any(word.startswith(b"--type=") for word in words) and b"guard.py" not in b" ".join(words[:5]):
                os.kill(pid, signal.SIGKILL)
        except OSError:
            continue  # it has ended
