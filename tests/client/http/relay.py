"""A wire between a client and a server that can be cut, taken away, and led to another server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Relay:
    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.port = 0
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def open(self) -> int:
        """Connections that are open now."""
        return len(self._tasks)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Break every connection."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def stop(self) -> None:
        """Nobody is there any more."""
        if self._server is not None:
            self._server.close()
            await self.cut()
            await self._server.wait_closed()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        there: asyncio.StreamWriter | None = None
        try:
            back, there = await asyncio.open_connection("127.0.0.1", self.upstream)
            await asyncio.wait(
                [asyncio.ensure_future(_pump(reader, there)), asyncio.ensure_future(_pump(back, writer))],
                return_when=asyncio.FIRST_COMPLETED,
            )
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()
            if there is not None:
                there.transport.abort()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()


@asynccontextmanager
async def relay(upstream: int) -> AsyncIterator[Relay]:
    made = Relay(upstream)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
        for _ in range(3):
            await asyncio.sleep(0)
