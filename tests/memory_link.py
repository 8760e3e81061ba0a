"""A link to a peer in the same process."""

from __future__ import annotations

import asyncio
from typing import final

from longshore.server.engine import Engine
from longshore.server.link import Link


@final
class Memory(Link):
    """Takes frames by `put` and gives frames by `get`, on the running event loop."""

    __slots__ = ("_engine", "_frames")

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine
        self._frames: asyncio.Queue[bytes] = asyncio.Queue()
        engine.executor.adopt_loop(asyncio.get_running_loop())

    def put(self, frame: bytes) -> None:
        """Send one frame to the server."""
        reply = self._engine.frames.handle(frame, self)
        if reply is not None:
            self._frames.put_nowait(reply)

    async def get(self) -> bytes:
        """The next frame that the server sends."""
        return await self._frames.get()

    def pending(self) -> int:
        """How many frames `get` can return at once."""
        return self._frames.qsize()

    def send(self, frame: bytes) -> None:
        self._frames.put_nowait(frame)

    def close(self) -> None:
        """Close the link: listens end, questions are declined, and calls are cancelled."""
        self._engine.detach(self)
        self._engine.cancel_all(self)
