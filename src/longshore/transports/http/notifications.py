"""A session's notification stream, and which process writes it: the one that has the session's GET, or had it last.

A client may come back to any process, and each change must be told once. So a process that gets the GET claims the
stream over the bus, on which all processes see claims and changes in the same order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, final
from weakref import ref

from longshore.errors import StoreError
from longshore.limits import Limits
from longshore.protocol.peer import Principal
from longshore.server.engine import Engine
from longshore.server.link import Link
from longshore.stores import Store
from longshore.transports.http.cluster import Cluster
from longshore.transports.http.streams import Follower, Stream, StreamOrigin, notifications_key

if TYPE_CHECKING:
    from longshore.transports.http.loaded_session import LoadedSession

_EARLY: Final = 100
"""Notifications stored for a client that has not opened its stream yet."""
_CLAIM_SECONDS: Final = 2.0
"""How long a message to all processes may take to come back to its sender. It takes milliseconds."""


@final
class NotificationStream(Link):
    """The link for messages that belong to no request: the stream that the session's GET follows."""

    __slots__ = ("_live", "claims", "early", "follower", "stream")

    def __init__(self, live: LoadedSession, principal: Principal) -> None:
        super().__init__(live.session, principal)
        self._live = ref(live)  # a strong reference would leave an unloaded session to the garbage collector
        self.early: list[bytes] = []
        self.claims: list[asyncio.Future[None]] = []
        """Claims of this process that have not come back from the bus yet."""
        self.stream: Stream | None = None
        self.follower: Follower | None = None

    def send(self, frame: bytes) -> None:
        live = self._live()
        if self.stream is not None:
            self.stream.put(frame)
        elif live is not None:
            live.notify(frame)

    def keep(self, frame: bytes) -> None:
        """Put a frame into the stream, or store it until there is one."""
        if self.stream is None:
            self.early.append(frame)
            del self.early[:-_EARLY]
        else:
            self.stream.put(frame)

    def open(self, name: str = "") -> Stream:
        """The stream, with the messages that came before it was opened. A named one is continued."""
        if self.stream is not None and name not in ("", self.stream.id):
            self.stream.end()
            self.stream = None
        if self.stream is None:
            live = self._live()
            assert live is not None
            self.stream = live.open_stream(standalone=True, id=name)
            for frame in self.early:
                self.stream.put(frame)
            self.early.clear()
        return self.stream

    def attach(self, name: str = "") -> tuple[Stream, Follower]:
        """A new connection for the stream. An older one ends: it may be dead without being noticed."""
        stream = self.open(name)
        if self.follower is not None:
            self.follower.close()
        self.follower = follower = Follower()
        stream.followers.add(follower)
        return stream, follower


@final
class StreamOwnership:
    """Which sessions this process sends notifications to."""

    def __init__(self, engine: Engine, store: Store, limits: Limits, cluster: Cluster) -> None:
        self._engine, self._store, self._limits = engine, store, limits
        self._cluster = cluster

    @property
    def _links(self) -> set[Link]:
        return self._engine.subscriptions.links

    async def claim(self, live: LoadedSession) -> None:
        """Send this session its notifications from now on, in place of the process that did before.

        All processes see the claim in the same order with the changes: the other one tells those before it, this one
        those after it. Raises StoreError.
        """
        own = live.notifications
        if not self._store.shared:
            self._links.add(own)
            return
        assert own.stream is not None
        returned = asyncio.get_running_loop().create_future()
        own.claims.append(returned)  # before anything is awaited: a claim of another process that comes now is older
        try:
            await own.stream.announce()
            await self._cluster.post("home", live.id, own.stream.id.encode())
            async with asyncio.timeout(_CLAIM_SECONDS):
                await returned
        except BaseException as problem:
            self._links.discard(own)
            if isinstance(problem, TimeoutError):
                raise StoreError("bus", "a message does not come back", "see if the store is healthy") from None
            raise
        finally:
            if returned in own.claims:
                own.claims.remove(returned)

    def claimed(self, live: LoadedSession, stream: str, by_us: bool) -> Awaitable[None] | None:
        """A process has claimed the session, and continues this stream after everything that came before."""
        own = live.notifications
        if by_us:
            self._links.add(own)
            if own.claims and not (returned := own.claims.pop(0)).done():
                returned.set_result(None)
            return None
        self._links.discard(own)
        if own.claims:
            return None  # a claim of ours is on its way and comes after this one
        if own.follower is not None:
            own.follower.close()
        before, own.stream = own.stream, None
        if before is not None:
            live.streams.pop(before.id, None)
        early = list(own.early)
        own.early.clear()
        return self._hand_over(live, before, stream, early)

    def send(self, live: LoadedSession, frame: bytes) -> None:
        """Send a frame on the session's notification stream, which this process does not have open."""
        if self._store.shared and live.notifications not in self._links:
            self._cluster.run(self._send_elsewhere(live, frame))
        else:
            live.notifications.keep(frame)

    async def _send_elsewhere(self, live: LoadedSession, frame: bytes) -> None:
        try:
            name = await self._store.get(notifications_key(live.id))
        except StoreError as problem:
            self._cluster.report("a notification could not be sent on a session's stream", problem)
            name = None
        if name is None or live.notifications.stream is not None:
            live.notifications.keep(frame)
        else:
            await self._write_to(live, name.decode(), [frame])

    async def _hand_over(self, live: LoadedSession, before: Stream | None, name: str, early: list[bytes]) -> None:
        """Give the process that continues the stream `name` everything that belongs there."""
        if before is not None and before.id != name:
            await before.forget()
            before.end()
        elif before is not None:
            await before.flush()
        await self._write_to(live, name, early)

    async def _write_to(self, live: LoadedSession, name: str, frames: list[bytes]) -> None:
        """Write to a stream that another process has, and tell that process."""
        if frames:
            stream = Stream(self._store, self._cluster, self._limits, live.id, StreamOrigin(self._cluster.id), name)
            for frame in frames:
                stream.put(frame)
            await stream.flush()
        await self._cluster.tell("more", name)
