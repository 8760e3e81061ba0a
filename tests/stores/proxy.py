"""A wire to a server that can be made bad."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Proxy:
    """`there` and `back` are gates; `lose_answer` cuts the wire when one comes; `drip` lets single bytes through."""

    def __init__(self, url: str) -> None:
        self.target = urlsplit(url).port
        self.there, self.back = asyncio.Event(), asyncio.Event()
        self.there.set()
        self.back.set()
        self.lose_answer = False
        self.drip = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_server = await asyncio.open_connection("127.0.0.1", self.target)
        ways = (self._carry(reader, to_server[1], self.there), self._answer(to_server[0], writer))
        self._tasks |= {asyncio.create_task(way) for way in ways}

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event) -> None:
        try:
            while data := await reader.read(1 << 16):
                await gate.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                await self.back.wait()
                if self.lose_answer:
                    self.lose_answer = False
                    return
                for at in range(0, len(data), 1 if self.drip else len(data)):
                    writer.write(data[at : at + (1 if self.drip else len(data))])
                    await writer.drain()
                    await asyncio.sleep(self.drip)
        except OSError:
            pass
        finally:
            writer.close()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """The proxy, and the URL by which the server is reached through it."""
    proxy = Proxy(url)
    server = await asyncio.start_server(proxy.connect, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield proxy, f"redis://127.0.0.1:{port}/0"
    finally:
        server.close()
        await proxy.close()
