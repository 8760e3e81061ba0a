"""All who watch one server for changes, and keeping them informed while connections come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, final

from longshore.client.line import WAITS, Line
from longshore.client.records import ServerInfo
from longshore.client.session import Session
from longshore.client.watching import Watch
from longshore.errors import ClientError, ConnectionLost


@final
class Watches:
    """`everything`: somebody wants to know of all changes, whether or not a watch is on."""

    def __init__(self, line: Line, *, everything: bool) -> None:
        self._line = line
        self._everything = everything
        self._all: set[Watch] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator[Watch]:
        return iter(list(self._all))

    def make(self, kinds: Sequence[str], uris: Sequence[str]) -> Watch:
        return Watch(self, kinds, uris)

    async def begin(self, watch: Watch) -> None:
        session = await self._line.session()
        self._all.add(watch)
        try:
            await watch.start(session)
        except BaseException:
            self._all.discard(watch)
            raise

    async def end(self, watch: Watch) -> None:
        self._all.discard(watch)
        if self._line.connected:
            await watch.stop(await self._line.session())

    def interrupted(self, watch: Watch) -> None:
        """The server ended its subscription, or the stream broke."""
        if watch in self._all and not self._line.closed and self._line.connected:
            self._spawn(self._begin_again(watch))

    async def _begin_again(self, watch: Watch) -> None:
        problem: ClientError | None = None
        for seconds in WAITS:
            await asyncio.sleep(seconds)
            try:
                await watch.start(await self._line.session())
                watch.missed()
                return
            except ClientError as again:
                problem = again
        watch.end(problem or ConnectionLost("the subscription ended", self._line.name))

    # -- the connection

    async def opened(self, session: Session, server: ServerInfo, again: bool) -> None:
        """There is a connection. If there was one before, nobody knows what has happened in between."""
        if again:
            for watch in self:
                await watch.start(session)
                watch.missed()
        elif self._everything and session.envelope is not None:
            kinds = [kind for kind in ("tools", "resources", "prompts") if server.can(kind, "listChanged")]
            if kinds:
                self._spawn(self._keep(self.make(kinds, ())))

    def lost(self, _: Session) -> None:
        """The connection is gone. Whoever watches would never ask for another, so one is made for them."""
        if self._all and self._line.reconnect and not self._line.closed:
            self._spawn(self._revive())

    async def _revive(self) -> None:
        try:
            await self._line.session()
        except ClientError as problem:
            for watch in self:
                watch.end(problem)

    async def _keep(self, watch: Watch) -> None:
        """Watch for ever. What is heard goes to `on_change` by itself."""
        try:
            async with watch:
                async for _ in watch:
                    pass
        except ClientError:
            return

    async def close(self) -> None:
        for watch in self:
            watch.end(ConnectionLost("the client was closed", self._line.name))
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
