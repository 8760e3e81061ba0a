"""The response to one request, while its body arrives."""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from typing import TYPE_CHECKING, Final, Self, final

from longshore.errors import ConnectError

if TYPE_CHECKING:
    from longshore.http_client.http1 import HttpConnection

Headers = list[tuple[str, str]]

BUFFERED_BYTES: Final = 1 << 20
"""Bytes of a body that may wait for their reader before the socket is no longer read."""
GUNZIP_BYTES: Final = 64 << 10
"""Decompressed bytes of one chunk. A reader counts chunks against its own limit, so a bomb ends there."""


class Unreachable(ConnectError):
    """No connection could be made, so nothing was sent."""


class ExchangeBroken(ConnectError):
    """The connection was lost, or the response is malformed or too large, after the request was sent."""


class ResponseTooLarge(ExchangeBroken):
    """The response is larger than the caller's limit. Repeating the request does not help."""


@final
class HttpResponse:
    """Status, headers (names in lower case) and a body to iterate over: `async for chunk in response`.

    A caller that does not read the body to its end must call `close`. `read` and `fetch` set `body`.
    """

    __slots__ = (
        "_buffered",
        "_chunks",
        "_connection",
        "_gunzip",
        "_problem",
        "_waiter",
        "body",
        "ended",
        "headers",
        "started",
        "status",
    )

    def __init__(self, connection: HttpConnection) -> None:
        self.status = 0
        self.headers: Headers = []
        self.body = b""
        self.started = False
        """Whether any byte of it has arrived."""
        self.ended = False
        """Whether the whole body has arrived."""
        self._connection = connection
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._gunzip: Gunzip | None = None
        self._problem: ExchangeBroken | None = None
        self._waiter: asyncio.Future[None] | None = None

    def header(self, name: str) -> str | None:
        """The first header of this name, given in lower case."""
        return next((value for each, value in self.headers if each == name), None)

    @property
    def peer(self) -> str:
        """The IP address that it came from; empty through a proxy."""
        return self._connection.peer

    async def wait_for_head(self) -> None:
        """Wait for status and headers. Raises ExchangeBroken."""
        try:
            while not self.status:
                if self._problem is not None:
                    raise self._problem
                await self._wait()
        except BaseException:
            self.close()
            raise

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk of the body, decompressed. Raises ExchangeBroken if the connection is lost."""
        gunzip = self._gunzip
        if gunzip is None:
            return await self._next_raw()
        while True:
            chunk = gunzip.next_chunk()
            if chunk:
                if len(chunk) == GUNZIP_BYTES:
                    await asyncio.sleep(0)  # 1 MB may become 1 GB: other tasks run in between
                return chunk
            try:
                gunzip.feed(await self._next_raw())
            except StopAsyncIteration:
                gunzip.check_end()
                raise

    async def _next_raw(self) -> bytes:
        while not self._chunks:
            if self._problem is not None:
                raise self._problem
            if self.ended:
                raise StopAsyncIteration
            await self._wait()
        chunk = self._chunks.popleft()
        if not self.ended and self._buffered > BUFFERED_BYTES >= self._buffered - len(chunk):
            self._connection.resume()
        self._buffered -= len(chunk)
        return chunk

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises ResponseTooLarge if it has more than `limit` bytes, decompressed."""
        chunks: list[bytes] = []
        size = 0
        try:
            async for chunk in self:
                chunks.append(chunk)
                size += len(chunk)
                if size > limit:
                    raise ResponseTooLarge(f"it answered with more than {limit:,} bytes")
        finally:
            self.close()
            self.body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        return self.body

    async def read_start(self, limit: int, seconds: float) -> bytes:
        """As much of the body as arrives within these bounds and before the connection breaks; never raises."""
        try:
            async with asyncio.timeout(seconds):
                await self.read(limit)
        except (TimeoutError, ExchangeBroken):
            self.body = self.body[:limit]
        return self.body

    def close(self) -> None:
        """Stop reading. The connection is reused only if the whole response has arrived."""
        if not self.ended and self._problem is None:
            self.fail(ExchangeBroken("the answer was not read to its end"))
            self._connection.abort()

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # -- called by the connection

    def start(self, status: int, headers: Headers, *, compressed: bool) -> None:
        self.status, self.headers = status, headers
        if compressed:
            self._gunzip = Gunzip()
        self._wake()

    def add(self, data: bytes) -> None:
        self._chunks.append(data)
        self._buffered += len(data)
        if self._buffered > BUFFERED_BYTES:
            self._connection.pause()
        self._wake()

    def end(self) -> None:
        self.ended = True
        self._wake()

    def fail(self, problem: ExchangeBroken) -> None:
        if self._problem is None and not self.ended:
            self._problem = problem
            self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


@final
class Gunzip:
    """Decompresses gzip in chunks of at most GUNZIP_BYTES, so that no input makes a large object."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(31)
        self._input = b""
        self._begun = False

    def feed(self, data: bytes) -> None:
        self._begun = True
        self._input += data

    def next_chunk(self) -> bytes:
        """Decompressed bytes of what was fed; empty if more input is needed. Raises ExchangeBroken."""
        while True:
            if self._stream.eof and self._input:  # a gzip file may have several members
                self._stream = zlib.decompressobj(31)
            try:
                chunk = self._stream.decompress(self._input, GUNZIP_BYTES)
            except zlib.error as problem:
                raise ExchangeBroken(
                    f"its answer says that it is gzip, and can't be decompressed ({problem})"
                ) from None
            self._input = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            if chunk or not (self._stream.eof and self._input):
                return chunk

    def check_end(self) -> None:
        """Raises ExchangeBroken if the compressed data ended too early."""
        if self._begun and not self._stream.eof:
            raise ExchangeBroken("its compressed answer ended in the middle")
