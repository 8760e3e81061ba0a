"""The transport of a browser that the server started: two pipes, with a NUL after each message."""

from __future__ import annotations

import asyncio
import os
from typing import Final, final

from longshore.toolsets.browser.connection import CdpConnection

MOST_MESSAGE_BYTES: Final = 256 << 20
"""A screenshot of a long page has some 50 MB. A page can log a longer text: then only both ends are kept."""
END_BYTES: Final = 200
"""Of a longer message: enough for the id or the method at its start, and the session at its end."""


@final
class PipeTransport(asyncio.Protocol):
    """Reads the browser's messages from one descriptor and writes ours to the other. It owns both."""

    def __init__(self, connection: CdpConnection) -> None:
        self._connection = connection
        self._unfinished = bytearray()
        self._is_cut = False
        self._reading: asyncio.BaseTransport | None = None
        self._writing: asyncio.WriteTransport | None = None

    async def open(self, read_fd: int, write_fd: int) -> None:
        """Use these descriptors. They are closed if that fails."""
        loop = asyncio.get_running_loop()
        reader, writer = os.fdopen(read_fd, "rb", 0), os.fdopen(write_fd, "wb", 0)
        try:
            self._reading, _ = await loop.connect_read_pipe(lambda: self, reader)
            self._writing, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, writer)
        except BaseException:
            self.close()
            reader.close()
            writer.close()
            raise
        self._connection.open(self)

    def write(self, message: bytes) -> None:
        if self._writing is not None:
            self._writing.write(message + b"\0")

    def close(self) -> None:
        for each in (self._reading, self._writing):
            if each is not None:
                each.close()

    def data_received(self, data: bytes) -> None:
        *whole, rest = data.split(b"\0")
        for part in whole:
            self._add(part)
            message, self._unfinished = self._unfinished, bytearray()
            if self._is_cut:
                self._is_cut = False
                self._connection.receive_ends(message[:END_BYTES], message[-END_BYTES:])
            else:
                self._connection.receive(message)
        self._add(rest)

    def _add(self, data: bytes) -> None:
        self._unfinished += data
        if self._is_cut or len(self._unfinished) > MOST_MESSAGE_BYTES:
            self._is_cut = True
            del self._unfinished[END_BYTES:-END_BYTES]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's signature)
        self.close()
        self._connection.end()
