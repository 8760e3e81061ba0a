"""The channel to a server in the same process."""

from __future__ import annotations

import asyncio
from typing import Any, final

from longshore.client.channel import About, Channel
from longshore.errors import ConnectionLost
from longshore.server.dispatch import Engine
from longshore.server.link import Link


@final
class MemoryChannel(Channel):
    """Frames go straight to the engine. Answers come a turn of the loop later, so that no caller starves another."""

    def __init__(self, server: Any) -> None:
        super().__init__()
        self.where = f"{server.name} (in memory)"
        self._engine: Engine = server.engine
        self._link: _Back | None = None

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._engine.executor.adopt_loop(loop)
        self._link = _Back(self, loop)

    def send(self, frame: bytes, about: About) -> None:
        link = self._link
        if link is None:
            if about.id is not None:
                self.fail(about.id, ConnectionLost("the connection is closed", self.where))
            return
        reply = self._engine.handle(frame, link)
        if reply is not None:
            link.send(reply)

    async def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.open = False
            self._engine.detach(link)
            self._engine.cancel_all(link)


@final
class _Back(Link):
    __slots__ = ("_channel", "_soon", "open")

    def __init__(self, channel: MemoryChannel, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._channel = channel
        self._soon = loop.call_soon
        self.open = True

    def send(self, frame: bytes) -> None:
        self._soon(self._hand_over, frame)

    def _hand_over(self, frame: bytes) -> None:
        if self.open:
            self._channel.hear(frame)
