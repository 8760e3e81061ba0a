"""Make the picture of the console in the README, from a real run: `python scripts/console_picture.py [PICTURE]`.

It starts `longshore serve --http` in a folder of its own, has a client use the files, a terminal, a browser and the
project memory, and takes a picture of the console while calls run.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from longshore import Client
from longshore.toolsets.browser.browser import Browser, BrowserEngine
from longshore.toolsets.browser.launch import LaunchOptions, launch

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "console.png"
WIDTH, HEIGHT = 1280, 1120
WAIT_SECONDS = 60.0
BOOK = """# Voyages
## Fram
She drifts with the ice since 1893; the crew counts 13.
"""
PAGE = """<!doctype html><meta charset=utf-8><title>Ice chart</title>
<body style="font:22px sans-serif;margin:40px;background:#dff0f7">
<h1>Ice chart, 28 July</h1><p>Open water as far as 78° N, drift ice beyond.</p><button>Order a pilot</button>"""
BUILD = 'for n in $(seq 1 400); do echo "step $n: compiling part $((n * 7 % 97))"; sleep 0.2; done'
ADDRESS = re.compile(rb"http://127\.0\.0\.1:\d+/console#token=\S+")


async def take_picture(path: Path) -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = await start_server(folder, stack)
        url, token = address.split("/console#token=")
        client = await stack.enter_async_context(Client(f"{url}/mcp", auth=token, name="agent"))
        reader = await stack.enter_async_context(Client(f"{url}/mcp", auth=token, era="2025-11-25"))
        running = await use_tools(client, reader, await start_site(stack))
        stack.callback(lambda: [task.cancel() for task in running])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(await photograph(address))


async def start_server(folder: Path, stack: AsyncExitStack) -> str:
    """Serve a small project; the address of its console, with the token."""
    project = folder / "voyage"
    project.mkdir()
    (project / "voyages.md").write_text(BOOK)
    (project / "drift.py").write_text("def drift(days: int) -> float:\n    return days * 3.5\n")
    homes = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "CACHE", "DATA", "STATE")}
    argv = [sys.executable, "-m", "longshore", "serve", "--http", "--port", "0", "--root", str(project)]
    server = await asyncio.create_subprocess_exec(
        *argv, cwd=project, env={**os.environ, **homes}, stderr=asyncio.subprocess.PIPE
    )

    async def stop() -> None:
        server.terminate()
        await server.wait()

    stack.push_async_callback(stop)
    assert server.stderr is not None
    while line := await asyncio.wait_for(server.stderr.readline(), WAIT_SECONDS):
        if found := ADDRESS.search(line):
            return found[0].decode()
    raise SystemExit("the server did not start")


async def start_site(stack: AsyncExitStack) -> str:
    """Serve the page that the browser looks at; its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = PAGE.encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    site = await asyncio.start_server(answer, "127.0.0.1", 0)
    stack.callback(site.close)
    return f"http://127.0.0.1:{site.sockets[0].getsockname()[1]}/"


async def use_tools(client: Client, reader: Client, site: str) -> list[asyncio.Task[Any]]:
    """Calls that have ended, and two that run until the picture is taken."""
    await client.call_tool("ingest_path", {"path": "."})
    await client.call_tool("browser_open", {"url": site})
    running = [
        asyncio.create_task(client.call_tool("terminal_run", {"command": BUILD, "timeout_ms": 110_000})),
        asyncio.create_task(client.call_tool("browser_wait", {"text": "Pilot on board", "timeout_ms": 60_000})),
    ]
    for number in range(24):
        await reader.call_tool("fs_read", {"path": "voyages.md"})
        await client.call_tool("query_context", {"query": "drift of the Fram"})
        if number % 3 == 0:
            await reader.call_tool("fs_search", {"pattern": "drift"})
        if number % 8 == 0:
            await reader.call_tool("fs_read", {"path": "no-such-file.md"}, check=False)
            await client.call_tool("terminal_run", {"command": "python3 -c 'print(28 * 3.5)'"}, check=False)
        await asyncio.sleep(0.4)
    return running


async def photograph(address: str) -> bytes:
    """The console's live view, as a PNG."""

    async def start() -> BrowserEngine:
        return await launch(LaunchOptions())

    browser = Browser(await start(), start, viewport=(WIDTH, HEIGHT))
    await browser.open()
    try:
        tab = await browser.new_tab()
        await tab.navigate(address)
        await wait_for(tab, "document.getElementById('status') !== null")
        await tab.evaluate("location.hash = '#/live'")
        await wait_for(tab, "document.querySelectorAll('.screen').length >= 2")
        await wait_for(tab, "document.querySelectorAll('[aria-label=\"Calls in flight\"] tbody tr').length >= 2")
        await wait_for(tab, "document.querySelector('.screen img')?.naturalWidth > 0")
        page = tab.page
        assert page is not None
        return base64.b64decode((await page.call("Page.captureScreenshot", {"format": "png"}))["data"])
    finally:
        await browser.close()


async def wait_for(tab: Any, condition: str) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while await tab.evaluate(f"Boolean({condition})") != "true":
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(take_picture(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE))
