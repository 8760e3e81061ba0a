"""The channel to a server in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, final
from weakref import WeakKeyDictionary

from msgspec import Struct

from longshore.client.channel import Channel, ChannelEvents, FrameInfo
from longshore.errors import ConnectionLost
from longshore.registry.toolset import ToolsetCloser, ToolsetHandle
from longshore.server.engine import Engine
from longshore.server.lifespan import Lifespan
from longshore.server.link import Link
from longshore.telemetry.stderr import print_problem


class _LoopUse(Struct):
    """The connections to a server on one loop, where nothing else serves it."""

    loop: asyncio.AbstractEventLoop
    connections: int = 0


_USES: Final[WeakKeyDictionary[Engine, _LoopUse]] = WeakKeyDictionary()


@final
class MemoryChannel(Channel):
    """Passes frames straight to the engine. Its immediate answers come a turn of the loop later, so that no caller
    starves another.

    A server lives on one event loop. If that is another thread's, frames are passed between the two loops. If nothing
    else serves it, the last connection closes the toolsets: the loop that they were started on may end.
    """

    def __init__(self, server: Any, events: ChannelEvents) -> None:
        super().__init__(events)
        self.label = f"{server.name} (in memory)"
        self._engine: Engine = server.engine
        self._toolsets: Callable[[], list[ToolsetHandle]] = lambda: list(server.catalog.toolsets.values())
        self._use: _LoopUse | None = None
        self._link: _Back | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        """The loop of the server, if that is not ours."""

    async def open(self) -> None:
        recorder = self._engine.recorder
        if recorder.fallback is None:  # nothing serves it: this process belongs to its developer
            recorder.fallback = lambda: print_problem
        self._engine.policy.report_unavailable(recorder)
        loop = asyncio.get_running_loop()
        home = self._engine.executor.loop
        if home is None or home is loop or not home.is_running():
            use = _USES.get(self._engine)
            if home is not loop:
                use = _USES[self._engine] = _LoopUse(loop)
            if use is not None and use.loop is loop:
                use.connections += 1
                self._use = use
            self._engine.executor.adopt_loop(loop)
            self._link = _Back(self, loop.call_soon)
        else:
            self._home = home
            self._link = _Back(self, loop.call_soon_threadsafe)
        if self._use is not None and self._engine.policy.lifespan is not None:
            await self._open_lifespan(self._engine.policy.lifespan)

    async def _open_lifespan(self, lifespan: Lifespan) -> None:
        try:
            await lifespan.open()
        except BaseException:
            await self.close()
            raise

    def send(self, frame: bytes, info: FrameInfo) -> None:
        link = self._link
        if link is None:
            if info.id is not None:
                self.events.on_failure(info.id, ConnectionLost("the connection is closed", unsent=True))
        elif self._home is None:
            self._handle(frame, link)
        elif not self._cross(self._handle, frame, link):
            self.events.on_lost(ConnectionLost("the loop that the server lived on has ended"))

    def _handle(self, frame: bytes, link: _Back) -> None:
        link.at_once = False
        try:
            reply = self._engine.handle(frame, link)
        finally:
            link.at_once = self._home is None
        if reply is not None:
            link.send(reply)

    def _cross(self, work: Callable[..., None], *arguments: Any) -> bool:
        """Schedule work on the server's loop. False: that has ended."""
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
        use, self._use = self._use, None
        if use is not None:
            use.connections -= 1
            if not use.connections:
                await self._close_toolsets()

    async def _close_toolsets(self) -> None:
        handles = self._toolsets()
        closer = ToolsetCloser(self._engine.recorder.problem)
        await closer.close_all(handles, self._engine.limits.stop_seconds)
        for handle in handles:
            handle.ready = handle.stateless  # the next connection starts it again
        if self._engine.policy.lifespan is not None:
            await self._engine.policy.lifespan.close(self._engine.limits.stop_seconds)

    def _leave(self, link: _Back) -> None:
        self._engine.detach(link)
        self._engine.cancel_all(link)
        self._engine.recording.session_closed(link)


@final
class _Back(Link):
    __slots__ = ("_channel", "_scheduled", "_soon", "at_once", "open")

    def __init__(self, channel: MemoryChannel, soon: Callable[..., Any]) -> None:
        super().__init__()
        self._channel = channel
        self._soon = soon
        self._scheduled = 0
        """Frames scheduled for a later turn; no other may overtake them."""
        self.at_once = False
        """Whether an answer may be passed on now: its request was sent in an earlier turn, and on this loop."""
        self.open = True

    def send(self, frame: bytes) -> None:
        if self.open:
            try:
                self._soon(self._pass_on, frame)
                self._scheduled += 1
            except RuntimeError:  # the client's loop has ended
                self.open = False

    def answer(self, frame: bytes | None) -> None:
        if frame is not None and self.at_once and not self._scheduled and self.open:
            self._channel.events.on_frame(frame)
        elif frame is not None:
            self.send(frame)

    def _pass_on(self, frame: bytes) -> None:
        self._scheduled -= 1
        if self.open:
            self._channel.events.on_frame(frame)
