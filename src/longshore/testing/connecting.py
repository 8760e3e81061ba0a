"""Connections for the length of one test.

A server object outlives the tests that use it, but the event loops of tests do not outlive them. So whatever toolsets
a test opens are closed with its last connection, on its loop; the next test opens them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, final
from weakref import WeakKeyDictionary

from msgspec import Struct

from longshore.app import Server
from longshore.client.client import Client
from longshore.client.memory import MemoryChannel
from longshore.client.targets import Target
from longshore.registry.toolset import ToolsetHandle
from longshore.testing.passing import PassingChannel


@asynccontextmanager
async def connect(target: Any, **options: Any) -> AsyncGenerator[Client]:
    """`async with connect(app) as client: …`, under whatever runs asyncio. `options` are those of `Client`."""
    async with Client(in_memory(target), **options) as client:
        yield client


class _InMemory(Target, frozen=True):
    """A server of this process. `engine` is what a `SyncClient` looks at before it waits for it."""

    engine: Any = None


def in_memory(target: Any) -> Any:
    """A `Server` as a target whose toolsets are closed with its last connection. Any other target as it is."""
    if not isinstance(target, Server):
        return target
    return _InMemory(target.name, (lambda: _TestChannel(target),), engine=target.engine)


def renew(target: Any) -> None:
    """Have a server forget every call, subscription and rate of earlier tests: its next connection gets a new engine.

    What it declares, and what its author keeps in variables and toolsets, stays.
    """
    if isinstance(target, Server):
        target.renew()


class _Stay(Struct):
    """The connections to a server on the loop that it lives on, and the toolsets that were open before them."""

    loop: asyncio.AbstractEventLoop
    were_open: set[ToolsetHandle]
    connections: int = 0


_STAYS: Final[WeakKeyDictionary[Server, _Stay]] = WeakKeyDictionary()


@final
class _TestChannel(PassingChannel):
    def __init__(self, server: Server) -> None:
        super().__init__(MemoryChannel(server))
        self._server, self._executor = server, server.engine.executor
        self._stay: _Stay | None = None

    async def open(self) -> None:
        were_open = {holder for holder in self._server.catalog.toolsets.values() if holder.ready}
        await super().open()
        loop = asyncio.get_running_loop()
        if self._executor.loop is not loop:
            return  # it lives with another connection, which closes what there is to close
        stay = _STAYS.get(self._server)
        if stay is None or stay.loop is not loop or not stay.connections:
            stay = _STAYS[self._server] = _Stay(loop, were_open)
        stay.connections += 1
        self._stay = stay

    async def close(self) -> None:
        await super().close()
        stay, self._stay = self._stay, None
        if stay is None:
            return
        stay.connections -= 1
        if not stay.connections:
            for holder in list(self._server.catalog.toolsets.values()):
                if holder not in stay.were_open and not holder.removed:
                    await holder.close()
                    holder.ready = holder.stateless
