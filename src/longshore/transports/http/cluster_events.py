"""What this process does with what the others tell it, and what it has them know."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, final

from longshore.errors import StoreError
from longshore.limits import Limits
from longshore.server.engine import Engine
from longshore.server.link import Link
from longshore.server.subscriptions import PARTS
from longshore.stores import Store
from longshore.transports.http.cluster import Cluster, ClusterMessage, Kind
from longshore.transports.http.loaded_session import LoadedSession
from longshore.transports.http.streams import Origin, Stream, home_key
from longshore.wire.codec import read
from longshore.wire.messages import Batch, Message

if TYPE_CHECKING:
    from longshore.transports.http.app import HttpApp


@final
class ClusterEvents:
    """The messages between the processes of one app."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app

    def attend(self) -> None:
        """Have changes go over the bus from now on, if there is one."""
        engine = self._app.engine
        if self._app.store.shared:
            engine.relay_changes(self._announce)

    def rest(self) -> None:
        """Have them stay in this process: it takes its leave of the bus, and what ends with it is no news to others."""
        engine = self._app.engine
        engine.relay_changes(None)

    def _announce(self, kind: Kind, name: str) -> None:
        """Have all processes tell their clients of a change, this one too, when it comes back from the bus."""
        self._app.workers.run(self._announce_now(kind, name))

    async def _announce_now(self, kind: Kind, name: str) -> None:
        try:
            await self._app.workers.post(kind, name)
        except StoreError as problem:
            self._app.problem("the other processes could not be told", problem)
            self.hear(ClusterMessage(self._app.workers.id, kind, name))

    async def relay(self, live: LoadedSession, message: Any, body: bytes) -> None:
        """Pass on what may be meant for a call that runs in another process. Raises StoreError."""
        if not self._app.store.shared:
            return
        if isinstance(message, Batch):
            for item in message.items:
                await self.relay(live, read(bytes(item), self._app.limits.depth, 0), bytes(item))
            return
        if not isinstance(message, Message):
            return
        ours = message.method == "" and str(message.id).startswith(f"{live.session.name}-")
        if message.method in ("", "notifications/cancelled") and not ours:
            await self._app.workers.post("frame", live.id, body)

    def hear(self, notice: ClusterMessage) -> Awaitable[None] | None:
        """Deal with one. What is returned takes longer, and goes on beside."""
        app = self._app
        live = app.sessions.loaded.get(notice.name)
        match notice.kind:
            case "frame" if live is not None:
                app.engine.handle(notice.data, live.notifications)
            case "stale" if live is not None:
                live.load(notice.data)
            case "gone":
                app.sessions.forget(notice.name)
            case "home" if live is not None:
                return app.sessions.ownership.moved(live, notice.data.decode(), notice.sender == app.workers.id)
            case "follow":
                self._let_follow(notice.name)
            case "list":
                app.engine.notify_list_changed(notice.name)
            case "resource":
                app.engine.notify_resource_changed(notice.name)
            case "old":
                return app.routes.sse.hear(notice)
            case _:
                pass
        return None

    def _let_follow(self, name: str) -> None:
        for live in self._app.sessions.loaded.values():
            stream = live.streams.get(name)
            if stream is not None:
                stream.nudge = lambda id: self._app.workers.tell("more", id)

    async def catch_up(self) -> None:
        """Messages of others were missed. Who listens here is told that everything may have changed."""
        await self._app.sessions.catch_up()
        subscriptions = self._app.engine.subscriptions
        for part in PARTS:
            subscriptions.list_changed(part)
        for uri in subscriptions.watched():
            subscriptions.resource_changed(uri)


_CLAIM_SECONDS = 2.0
"""How long a message to all processes may take to come back to its sender. It takes milliseconds."""


@final
class StreamOwnership:
    """The homes of the sessions of one server, as one process sees them."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        limits: Limits,
        workers: Cluster,
        problem: Callable[[str, Exception], None],
    ) -> None:
        self._engine, self._store, self._limits = engine, store, limits
        self._workers = workers
        self._problem = problem

    @property
    def _links(self) -> set[Link]:
        return self._engine.subscriptions.links

    async def claim(self, live: LoadedSession) -> None:
        """Tell this session of changes from now on, in place of whichever process did.

        All processes hear the claim in the same order with the changes: up to it the other one tells, then this one,
        so that nothing is told twice, and nothing by nobody. Raises StoreError.
        """
        home = live.notifications
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

    def moved(self, live: LoadedSession, stream: str, ours: bool) -> Awaitable[None] | None:
        """A process has the session's GET and tells it of changes, on this stream, after all that was heard before."""
        home = live.notifications
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

    def send(self, live: LoadedSession, frame: bytes) -> None:
        """Send something on the session's own stream, which this process does not have."""
        if self._store.shared and live.notifications not in self._links:
            self._workers.run(self._send_elsewhere(live, frame))
        else:
            live.notifications.keep(frame)

    async def _send_elsewhere(self, live: LoadedSession, frame: bytes) -> None:
        try:
            name = await self._store.get(home_key(live.id))
        except StoreError as problem:
            self._problem("something could not be sent on a session's stream", problem)
            name = None
        if name is None or live.notifications.stream is not None:
            live.notifications.keep(frame)
        else:
            await self._write_to(live, name.decode(), [frame])

    async def _hand_over(self, live: LoadedSession, before: Stream | None, name: str, early: list[bytes]) -> None:
        """Another process goes on with the stream `name`: let it have all that belongs there."""
        if before is not None and before.id != name:
            await before.forget()
            before.end()
        elif before is not None:
            await before.settled()
        await self._write_to(live, name, early)

    async def _write_to(self, live: LoadedSession, name: str, frames: list[bytes]) -> None:
        """Write to a stream that another process has, and let it know."""
        if frames:
            writer = Stream(self._store, live.id, self._limits, Origin(self._workers.id), self._problem, name)
            for frame in frames:
                writer.put(frame)
            await writer.settled()
        await self._workers.tell("more", name)
