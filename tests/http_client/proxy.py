"""A real HTTP proxy on loopback. It resolves every name that ends with .test to 127.0.0.1."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Proxy:
    """Forwards CONNECT tunnels and absolute-form requests. `heads` are the requests that it got."""

    def __init__(self, *, authorization: str = "", refuse: str = "") -> None:
        self.heads: list[str] = []
        self.port = 0
        self._authorization = authorization
        self._refuse = refuse
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def targets(self) -> list[str]:
        """Method and target of each request."""
        return [" ".join(head.split("\r\n")[0].split(" ")[:2]) for head in self.heads]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._forward(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        if self._refuse:
            writer.write(self._refuse.encode())
            await writer.drain()
            return
        if self._authorization and f"Proxy-Authorization: {self._authorization}\r\n" not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return
        method, target, _ = head.split("\r\n")[0].split(" ")
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host = parts.hostname or ""
        assert host.endswith(".test"), target
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", parts.port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
        else:
            lines = [line for line in head.split("\r\n") if not line.startswith("Proxy-Authorization:")]
            lines[0] = f"{method} {parts.path} HTTP/1.1"
            up_writer.write("\r\n".join(lines).encode())
        try:
            await asyncio.gather(_copy(reader, up_writer), _copy(up_reader, writer))
        finally:
            up_writer.close()

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def proxying(proxy: Proxy) -> AsyncIterator[Proxy]:
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.stop()
        await server.wait_closed()
