"""Which process tells a session of changes: the one that has its GET, or had it last.

A client may come back to any process, and what changes meanwhile must be told once. So a process that gets the GET
claims the session, over the bus, on which all hear claims and changes in the same order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import final

from longshore.errors import StoreError
from longshore.limits import Limits
from longshore.server.dispatch import Engine
from longshore.server.link import Link
from longshore.stores import Store
from longshore.transports.http.live import Live
from longshore.transports.http.streams import Origin, Stream, home_key
from longshore.transports.http.workers import Workers

_CLAIM_SECONDS = 2.0
"""How long a message to all processes may take to come back to its sender. It takes milliseconds."""


@final
class Homes:
    """The homes of the sessions of one server, as one process sees them."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        limits: Limits,
        workers: Workers,
        problem: Callable[[str, Exception], None],
    ) -> None:
        self._engine, self._store, self._limits = engine, store, limits
        self._workers = workers
        self._problem = problem

    @property
    def _links(self) -> set[Link]:
        return self._engine.subscriptions.links

    async def claim(self, live: Live) -> None:
        """Tell this session of changes from now on, in place of whichever process did.

        All processes hear the claim in the same order with the changes: up to it the other one tells, then this one,
        so that nothing is told twice, and nothing by nobody. Raises StoreError.
        """
        home = live.home
        if not self._store.shared:
            self._links.add(home)
            return
        assert home.stream is not None
        heard = asyncio.get_running_loop().create_future()
        home.claims.append(heard)  # before anything is awaited: whoever else claims it meanwhile comes before us
        try:
            await home.stream.announce()
            await self._workers.post("home", live.id, home.stream.id.encode())
            async with asyncio.timeout(_CLAIM_SECONDS):
                await heard
        except BaseException as problem:
            self._links.discard(home)
            if isinstance(problem, TimeoutError):
                raise StoreError("bus", "a message does not come back", "see if the store is healthy") from None
            raise
        finally:
            if heard in home.claims:
                home.claims.remove(heard)

    def moved(self, live: Live, stream: str, ours: bool) -> Awaitable[None] | None:
        """A process has the session's GET and tells it of changes, on this stream, after all that was heard before."""
        home = live.home
        if ours:
            self._links.add(home)
            if home.claims and not (heard := home.claims.pop(0)).done():
                heard.set_result(None)
            return None
        self._links.discard(home)
        if home.claims:
            return None  # one of ours is on its way and comes after this: from then on it is us again
        if home.follower is not None:
            home.follower.close()
        before, home.stream = home.stream, None
        if before is not None:
            live.streams.pop(before.id, None)
        early = list(home.early)
        home.early.clear()
        return self._hand_over(live, before, stream, early)

    def send(self, live: Live, frame: bytes) -> None:
        """Send something on the session's own stream, which this process does not have."""
        if self._store.shared and live.home not in self._links:
            self._workers.run(self._send_elsewhere(live, frame))
        else:
            live.home.keep(frame)

    async def _send_elsewhere(self, live: Live, frame: bytes) -> None:
        try:
            name = await self._store.get(home_key(live.id))
        except StoreError as problem:
            self._problem("something could not be sent on a session's stream", problem)
            name = None
        if name is None or live.home.stream is not None:
            live.home.keep(frame)
        else:
            await self._write_to(live, name.decode(), [frame])

    async def _hand_over(self, live: Live, before: Stream | None, name: str, early: list[bytes]) -> None:
        """Another process goes on with the stream `name`: let it have all that belongs there."""
        if before is not None and before.id != name:
            await before.forget()
            before.end()
        elif before is not None:
            await before.settled()
        await self._write_to(live, name, early)

    async def _write_to(self, live: Live, name: str, frames: list[bytes]) -> None:
        """Write to a stream that another process has, and let it know."""
        if frames:
            writer = Stream(self._store, live.id, self._limits, Origin(self._workers.id), self._problem, name)
            for frame in frames:
                writer.put(frame)
            await writer.settled()
        await self._workers.tell("more", name)
