"""A browser and pages on loopback for a test."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from longshore.toolsets.browser.browser import Browser, BrowserEngine
from longshore.toolsets.browser.launch import LaunchOptions, launch

WAIT_SECONDS = 120.0


class Site:
    """Pages by path. Headers, statuses, delays in seconds, and those that are never answered, are by path too."""

    def __init__(self, pages: dict[str, str]) -> None:
        self.pages = pages
        self.headers: dict[str, str] = {}
        self.statuses: dict[str, str] = {}
        self.delays: dict[str, float] = {}
        self.hanging: set[str] = set()
        self.endless: set[str] = set()
        """Paths whose page is sent again and again."""
        self.connections = 0
        self.asked: list[str] = []
        """The paths of all requests."""
        self.port = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            line = (await reader.readline()).decode()
            while (await reader.readline()).strip():
                pass
            if line:
                path = urlsplit(line.split()[1]).path
                self.asked.append(path)
                if path in self.hanging:
                    await asyncio.sleep(WAIT_SECONDS)
                await asyncio.sleep(self.delays.get(path, 0))
                found = path in self.pages
                body = self.pages.get(path, "nothing here").replace("PORT", str(self.port)).encode()
                status = self.statuses.get(path, "200 OK" if found else "404 Not Found")
                headers = self.headers.get(path, "content-type: text/html; charset=utf-8\r\n")
                length = "" if path in self.endless else f"content-length: {len(body)}\r\n"
                writer.write(f"HTTP/1.1 {status}\r\n{headers}connection: close\r\n{length}\r\n".encode() + body)
                await writer.drain()
                while path in self.endless and not writer.is_closing():
                    writer.write(body)
                    await writer.drain()
                    await asyncio.sleep(0.005)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serve(pages: dict[str, str]) -> AsyncIterator[Site]:
    site = Site(pages)
    server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()


def browse(pages: dict[str, str], work: Callable[[Browser, Site], Awaitable[None]]) -> None:
    """Run a test with a browser and a site."""

    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)  # the browser may run as another user
            async with serve(pages) as site:

                async def start() -> BrowserEngine:
                    return await launch(LaunchOptions())

                browser = Browser(await start(), start, downloads=folder, viewport=(1000, 700))
                await browser.open()
                try:
                    await work(browser, site)
                finally:
                    await browser.close()

    asyncio.run(asyncio.wait_for(run(), WAIT_SECONDS))
