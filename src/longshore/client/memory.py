"""The channel to a server in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, final

from longshore.client.channel import About, Channel
from longshore.errors import ConnectionLost
from longshore.server.engine import Engine
from longshore.server.link import Link
from longshore.telemetry.stderr import print_problem


@final
class MemoryChannel(Channel):
    """Frames go straight to the engine. What it sends at once comes a turn of the loop later, so that no caller
    starves another.

    A server lives on one event loop. If that is another than ours, of another thread, frames cross over.
    """

    def __init__(self, server: Any) -> None:
        super().__init__()
        self.where = f"{server.name} (in memory)"
        self._engine: Engine = server.engine
        self._link: _Back | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        """The loop that the server lives on, if that is not ours."""

    async def open(self) -> None:
        recorder = self._engine.recorder
        if recorder.fallback is None:  # nobody serves it, so whoever runs this process is its developer
            recorder.fallback = lambda: print_problem
        loop = asyncio.get_running_loop()
        home = self._engine.executor.loop
        if home is None or home is loop or not home.is_running():
            self._engine.executor.adopt_loop(loop)
            self._link = _Back(self, loop.call_soon)
        else:
            self._home = home
            self._link = _Back(self, loop.call_soon_threadsafe)

    def send(self, frame: bytes, about: About) -> None:
        link = self._link
        if link is None:
            if about.id is not None:
                self.fail(about.id, ConnectionLost("the connection is closed", self.where, unsent=True))
        elif self._home is None:
            self._handle(frame, link)
        elif not self._cross(self._handle, frame, link):
            self.lose(ConnectionLost("the loop that the server lived on has ended"))

    def _handle(self, frame: bytes, link: _Back) -> None:
        link.at_once = False
        try:
            reply = self._engine.handle(frame, link)
        finally:
            link.at_once = self._home is None
        if reply is not None:
            link.send(reply)

    def _cross(self, work: Callable[..., None], *arguments: Any) -> bool:
        """Have it done on the server's loop, unless that has ended."""
        assert self._home is not None
        if not self._home.is_running():
            return False
        try:
            self._home.call_soon_threadsafe(work, *arguments)
        except RuntimeError:
            return False
        return True

    async def close(self) -> None:
        link, self._link = self._link, None
        if link is None:
            return
        link.open = False
        if self._home is None:
            self._leave(link)
        else:
            self._cross(self._leave, link)

    def _leave(self, link: _Back) -> None:
        self._engine.detach(link)
        self._engine.cancel_all(link)


@final
class _Back(Link):
    __slots__ = ("_channel", "_soon", "_under_way", "at_once", "open")

    def __init__(self, channel: MemoryChannel, soon: Callable[..., Any]) -> None:
        super().__init__()
        self._channel = channel
        self._soon = soon
        self._under_way = 0
        """Frames that come in a later turn; nothing may overtake them."""
        self.at_once = False
        """Whether an answer may be handed over now: its request was sent in an earlier turn, and on this loop."""
        self.open = True

    def send(self, frame: bytes) -> None:
        if self.open:
            try:
                self._soon(self._hand_over, frame)
                self._under_way += 1
            except RuntimeError:  # the client's loop has ended, without a word
                self.open = False

    def answer(self, frame: bytes | None) -> None:
        if frame is not None and self.at_once and not self._under_way and self.open:
            self._channel.hear(frame)
        elif frame is not None:
            self.send(frame)

    def _hand_over(self, frame: bytes) -> None:
        self._under_way -= 1
        if self.open:
            self._channel.hear(frame)
