"""BR-7, C-26 and quotas: kills of a browser's parts, the end of the server, two principals, idle browsers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import eventually

from counts import count
from longshore import Client, Server
from longshore.protocol.peer import Principal
from longshore.toolsets.browser.options import BrowserOptions
from longshore.toolsets.browser.tools import BrowserTools
from talk import Client as Peer
from talk import until

from .attacking import answer, ask, assert_alive, attacked, kill_browser, processes_of
from .browsing import Site, serve
from .test_launch import assert_nothing_left, processes

KILLS = min(100, count(10))
PARTS = ("browser", "--type=renderer", "--type=gpu-process", "network.mojom.NetworkService")


def folders() -> set[str]:
    """The folders of the browsers that run below us."""
    found = set()
    for pid in processes_of("--user-data-dir="):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        found |= set(re.findall(r"--user-data-dir=(\S+?)/profile", line.replace("\0", " ")))
    return found


def kill(part: str) -> None:
    if part == "browser":
        kill_browser()
        return
    for pid in processes_of(part):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


async def during_a_call(client: Client, site: Site, part: str) -> None:
    """Kill a part while a page loads: the answer is the page, or an error that says what happened."""
    site.asked.clear()
    call = asyncio.create_task(answer(client, "navigate", url=site.url("/slow"), timeout_ms=10_000))
    await until(lambda: "/slow" in site.asked or call.done())
    kill(part)
    said = await call
    assert any(word in said for word in ("slowly", "gone", "net::", "no page came", "opened no tab")), said


async def test_br_7_killed_parts_are_replaced_and_ids_are_kept() -> None:
    seen: set[str] = set()
    async with attacked({"/slow": "<p>slowly"}) as (client, site):
        site.delays["/slow"] = 0.3
        await assert_alive(client, site)
        await ask(client, "tabs", action="new", url=site.url("/fine"))
        for number in range(KILLS):
            seen |= folders()
            part = PARTS[number % len(PARTS)]
            if number // len(PARTS) % 2:
                kill(part)
            else:
                await during_a_call(client, site, part)
            for tab in ("t2", "t1", "t2"):
                said = await answer(client, "snapshot", tab_id=tab)
                assert said.startswith(f"[b1 {tab}") or "gone" in said or "try again" in said, said
                await assert_alive(client, site, tab)
            assert [line.split()[0] for line in (await ask(client, "tabs")).splitlines()[1:-1]] == ["b1", "t1", "t2"]
        assert len(folders()) == 1
    for folder in seen:
        await asyncio.to_thread(assert_nothing_left, folder)


async def test_a_ref_of_a_page_that_was_lost_never_means_another_element() -> None:
    pages = {"/one": "<button>Harmless</button>", "/two": "<button>Delete all</button><button>Save</button>"}
    async with attacked(pages) as (client, site):
        await ask(client, "navigate", url=site.url("/one"))
        shown = await ask(client, "navigate", url=site.url("/two"))
        assert "e2 button Delete all" in shown
        kill("browser")
        said = await answer(client, "read") + await answer(client, "read")  # the first may be told that it ended
        assert "! the page was gone" in said
        said = await answer(client, "click", ref="e1") + await answer(client, "click", ref="e3")
        assert "Clicked" not in said and "is not known on this page" in said
        assert "e4 button Delete all" in await ask(client, "snapshot")


async def test_an_idle_browser_is_closed_and_the_next_call_opens_another() -> None:
    async with attacked({}, idle_seconds=1) as (client, site):
        await ask(client, "open")
        await until(lambda: not folders())
        assert "no browser is open" in await ask(client, "tabs")
        await assert_alive(client, site)


async def test_browsers_and_tabs_have_quotas() -> None:
    async with attacked({}, most_browsers=2, most_tabs=2) as (client, site):
        await assert_alive(client, site)
        await ask(client, "tabs", action="new")
        assert "at most 2 tabs; close one of t1, t2" in await answer(client, "tabs", action="new")
        await ask(client, "open")
        assert "the most that you may have: b1, b2" in await answer(client, "open")
        await ask(client, "close", browserId="b1", target="byId")
        assert "b3 is open" in await ask(client, "open")


async def test_c_26_no_principal_sees_the_browser_of_another() -> None:
    tools, app = BrowserTools(BrowserOptions()), Server("browser")
    app.add_toolset(tools)
    peers = []
    async with serve({"/": "<title>mine</title><p>hers alone"}) as site:
        for name in ("ann", "bob"):
            peer = Peer(app)
            peer._memory.principal = Principal(name)
            await peer.open()
            peers.append(peer)
        ann, bob = peers

        async def say(peer: Peer, tool: str, **arguments: Any) -> str:
            return str((await peer.call_tool(f"browser_{tool}", **arguments))["content"][0]["text"])

        try:
            assert "hers alone" in await say(ann, "navigate", url=site.url("/"))
            await say(ann, "evaluate", script="document.cookie = 'secret=1'")
            assert "no browser is open" in await say(bob, "tabs")
            for tool in ("snapshot", "close", "console"):
                said = await say(bob, tool, browserId="b1", target="byId")
                assert "hers" not in said and "yours are" not in said, said
            shown = await say(bob, "snapshot", browserId="b1", tab_id=None)
            assert "hers" not in shown, shown
            await say(bob, "navigate", url=site.url("/"))
            assert '""' in await say(bob, "evaluate", script="document.cookie")
            assert "hers alone" in await say(ann, "snapshot", browserId="b1", target="byId")
            assert len(folders()) == 2
        finally:
            await tools.stop()
            for peer in peers:
                peer.close()


def request(server: subprocess.Popen[bytes], id: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    assert server.stdin is not None and server.stdout is not None
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()
    while True:
        line = server.stdout.readline()
        assert line, "the server has ended"
        told: dict[str, Any] = json.loads(line)
        if told.get("id") == id:
            return told


def pending(pid: int) -> bool:
    """Whether a signal has not reached the process yet."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return any(int(mask, 16) for mask in re.findall(r"^(?:SigPnd|ShdPnd):\s*(\w+)", text, re.MULTILINE))


@pytest.mark.parametrize("end", ["EOF", "SIGTERM", "SIGINT", "SIGINT twice", "SIGKILL"])
def test_no_browser_and_no_profile_is_left_of_a_server_that_ended(
    end: str, browser_path: str, tmp_path: Path, serve_pages: Any
) -> None:
    argv = [sys.executable, "-m", "longshore", "serve", "--root", str(tmp_path)]
    environment = {**os.environ, "CHROME_PATH": browser_path}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdin is not None
        client = {"name": "tests", "version": "1"}
        request(server, 1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        server.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        url = serve_pages({"/": "<p>served"})
        told = request(server, 2, "tools/call", {"name": "browser_navigate", "arguments": {"url": f"{url}/"}})
        assert "served" in told["result"]["content"][0]["text"], told
        (folder,) = folders()
        assert len(processes(folder)) > 2
        if end == "EOF":
            server.stdin.close()
        else:
            for _ in range(2 if "twice" in end else 1):
                server.send_signal(getattr(signal, end.split()[0]))
                eventually("the signal is taken", lambda: server.poll() is not None or not pending(server.pid))
        server.wait(30)
    assert_nothing_left(folder)
    eventually("no folder", lambda: not folders())
