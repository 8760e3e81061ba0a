"""A stream of server-sent events to one reader that may be slow or disconnected.

`send` waits until the reader has received the earlier events, and the writer composes the next event only then. So a
slow reader gets larger changes, and no queue grows.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from types import TracebackType
from typing import final

from longshore.transports.http.pending import hung_up
from longshore.transports.http.responses import KEEP_ALIVE, HeaderPairs, Receive, Send, finish, start_stream, write


@final
class EventStream:
    """`async with EventStream(…) as stream:` begins the response, and ends it if the reader is still connected."""

    def __init__(self, receive: Receive, send: Send, headers: HeaderPairs, keep_alive: float) -> None:
        """`keep_alive` is how many seconds may pass without an event before a comment is sent."""
        self._receive, self._send, self._headers = receive, send, headers
        self._keep_alive = keep_alive
        self._sent = monotonic()
        self.closed = asyncio.Event()
        """Set when the reader is gone, or the stream is to end."""
        self._gone = False
        self._watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> EventStream:
        await start_stream(self._send, self._headers)
        await write(self._send, KEEP_ALIVE)  # so that the reader knows at once that it is connected
        self._watcher = asyncio.get_running_loop().create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
        if kind is None and not self._gone:
            await finish(self._send)

    async def _watch(self) -> None:
        await hung_up(self._receive)
        self._gone = True
        self.closed.set()

    def end(self) -> None:
        """End the stream after the event in transmission."""
        self.closed.set()

    async def send(self, name: str, data: bytes) -> None:
        """Send one event after the reader has received the earlier ones. The data has no line break."""
        self._sent = monotonic()
        await write(self._send, b"event: %s\r\ndata: %s\r\n\r\n" % (name.encode(), data))

    async def pause(self, seconds: float) -> None:
        """Wait for this time, or until the stream is closed. Keeps the connection alive."""
        if monotonic() - self._sent >= self._keep_alive:
            self._sent = monotonic()
            await write(self._send, KEEP_ALIVE)
        try:
            await asyncio.wait_for(self.closed.wait(), seconds)
        except TimeoutError:
            pass
