"""The answer to one request, as it comes."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, Self, final

from msgspec import Struct

from longshore.errors import ConnectError

if TYPE_CHECKING:
    from longshore.client.http.connection import Connection

Headers = list[tuple[str, str]]

WAITING_BYTES: Final = 1 << 20
"""How much of a body may wait for its reader before we stop to read."""


class Unreachable(ConnectError):
    """No connection could be made, so nothing was sent."""


class Broken(ConnectError):
    """The connection was lost, or what came is no HTTP, or too much, after the request was sent."""


class TooMuch(Broken):
    """The answer is longer than it may be. So it would be another time: asking again does not help."""


class Answer(Struct):
    """A whole answer. Names of headers are in lower case."""

    status: int
    headers: Headers
    body: bytes

    def header(self, name: str) -> str | None:
        """The first of this name."""
        return find(self.headers, name)


@final
class Streaming:
    """An answer whose body still comes: `async for chunk in it`. Whoever does not read it to its end closes it."""

    __slots__ = ("_chunks", "_connection", "_held", "_problem", "_waiter", "ended", "headers", "status", "touched")

    def __init__(self, connection: Connection) -> None:
        self.status = 0
        self.headers: Headers = []
        self.ended = False
        """Whether the whole body came."""
        self.touched = False
        """Whether anything came at all."""
        self._connection = connection
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._problem: Broken | None = None
        self._waiter: asyncio.Future[None] | None = None

    def header(self, name: str) -> str | None:
        return find(self.headers, name)

    async def head(self) -> None:
        """Wait for the status and the headers. Raises Broken."""
        while not self.status:
            if self._problem is not None:
                raise self._problem
            await self._wait()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """The next of its body. Raises Broken if it breaks off."""
        while not self._chunks:
            if self._problem is not None:
                raise self._problem
            if self.ended:
                raise StopAsyncIteration
            await self._wait()
        chunk = self._chunks.popleft()
        if not self.ended and self._held > WAITING_BYTES >= self._held - len(chunk):
            self._connection.resume()
        self._held -= len(chunk)
        return chunk

    async def read(self, most: int) -> bytes:
        """The whole body. Raises Broken if it breaks off, TooMuch if it is longer."""
        chunks: list[bytes] = []
        size = 0
        try:
            async for chunk in self:
                size += len(chunk)
                if size > most:
                    raise TooMuch(f"it answered with more than {most:,} bytes")
                chunks.append(chunk)
        finally:
            self.close()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def whole(self, most: int) -> Answer:
        return Answer(self.status, self.headers, await self.read(most))

    def close(self) -> None:
        """Have no more of it. The connection is used again only if the answer was whole."""
        if not self.ended and self._problem is None:
            self.fail(Broken("the answer was not read to its end"))
            self._connection.abort()

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # -- for the connection

    def start(self, status: int, headers: Headers) -> None:
        self.status, self.headers = status, headers
        self._wake()

    def take(self, data: bytes) -> None:
        self._chunks.append(data)
        self._held += len(data)
        if self._held > WAITING_BYTES:
            self._connection.pause()
        self._wake()

    def end(self) -> None:
        self.ended = True
        self._wake()

    def fail(self, problem: Broken) -> None:
        if self._problem is None and not self.ended:
            self._problem = problem
            self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def find(headers: Headers, name: str) -> str | None:
    """The first header of a name in lower case."""
    return next((value for each, value in headers if each == name), None)
