"""A server on a real socket whose responses a test writes byte for byte.

async with scripted(handler) as server: …      # handler(got, wire) is called for each request

A handler that returns keeps the connection, unless it closed or cut it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

SECONDS = 10.0
"""The longest wait."""


class Got(NamedTuple):
    """One request. Names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def message(self) -> Any:
        return json.loads(self.body)


class Wire:
    """The server's end of a connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.over = False

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(
        self, status: int = 200, body: Any = b"", kind: str = "application/json", *headers: tuple[str, str]
    ) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}"]
        lines += [f"Content-Type: {kind}"] if data or kind != "text/plain" else []
        lines += [f"{name}: {value}" for name, value in headers]
        await self.send("\r\n".join([*lines, "", ""]).encode() + data)

    async def stream(self, *headers: tuple[str, str]) -> None:
        """Begin a stream that ends with the connection."""
        lines = ["HTTP/1.1 200 OK", "Content-Type: text/event-stream", *(f"{name}: {value}" for name, value in headers)]
        await self.send("\r\n".join([*lines, "", ""]).encode())

    async def event(self, message: Any, **fields: Any) -> None:
        data = message if isinstance(message, str) else json.dumps(message)
        lines = [*(f"{name}: {value}" for name, value in fields.items()), f"data: {data}", "", ""]
        await self.send("\n".join(lines).encode())

    def close(self) -> None:
        """End it as one should."""
        self.over = True
        self._writer.close()

    def cut(self) -> None:
        """Reset it."""
        self.over = True
        wire = self._writer.get_extra_info("socket")
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Handler = Callable[[Got, Wire], Awaitable[None]]


class ScriptedServer:
    """The server and the requests that it got."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.requests: list[Got] = []
        self.connections = 0
        self.problems: list[BaseException] = []
        self.port = 0
        self.news = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    async def until(self, condition: Callable[[ScriptedServer], Any]) -> None:
        """Wait for requests to have come."""
        async with asyncio.timeout(SECONDS), self.news:
            await self.news.wait_for(lambda: condition(self))

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        wire, number = Wire(writer), self.connections
        try:
            while not wire.over:
                got = await _read(reader, number)
                if got is None:
                    break
                self.requests.append(got)
                async with self.news:
                    self.news.notify_all()
                await self._handler(got, wire)
        except (ConnectionError, asyncio.CancelledError):
            pass
        except Exception as problem:
            self.problems.append(problem)
        finally:
            self._tasks.discard(task)
            writer.close()


async def _read(reader: asyncio.StreamReader, connection: int) -> Got | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head[:-4].split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    assert len(headers) == len(lines), f"a header came twice: {lines}"
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Got(method, path, headers, body, connection)


@asynccontextmanager
async def scripted(handler: Handler) -> AsyncIterator[ScriptedServer]:
    server = ScriptedServer(handler)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
    assert not server.problems, server.problems


def result(message: Any, **fields: Any) -> Any:
    return {"jsonrpc": "2.0", "id": message["id"], "result": fields}


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test, bounded, and see that it leaves no task behind."""

    async def bounded() -> None:
        complaints: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        async with asyncio.timeout(5 * SECONDS):
            await test()
        for _ in range(3):
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        assert not complaints, complaints

    asyncio.run(bounded())
