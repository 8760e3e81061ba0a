"""The messages between the processes of one app: handles those of others, and announces changes."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import final

from longshore.errors import StoreError
from longshore.server.content_methods import PARTS
from longshore.server.engine import Engine
from longshore.stores import Store
from longshore.transports.http.admin import Metrics
from longshore.transports.http.cluster import Cluster, ClusterMessage, Kind
from longshore.transports.http.sessions import Sessions
from longshore.transports.http.sse_2024 import SseSessions


@final
class ClusterEvents:
    """Handles the messages between the processes of one app."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        cluster: Cluster,
        sessions: Sessions,
        sse: SseSessions,
        metrics: Metrics,
    ) -> None:
        self._engine, self._store, self._cluster = engine, store, cluster
        self._sessions, self._sse, self._metrics = sessions, sse, metrics

    async def start(self) -> None:
        """Join the other processes. Changes of lists and resources go over the bus from now on, if there is one."""
        await self._cluster.start(self)
        if self._store.shared:
            self._engine.relay_changes(self._announce)

    async def stop(self) -> None:
        """Leave the other processes: what still changes here does not concern them."""
        self._engine.relay_changes(None)
        await self._cluster.stop()

    def _announce(self, kind: Kind, name: str) -> None:
        """Have all processes tell their clients of a change, this one too, when it comes back from the bus."""
        self._cluster.run(self._announce_now(kind, name))

    async def _announce_now(self, kind: Kind, name: str) -> None:
        try:
            await self._cluster.post(kind, name)
        except StoreError as problem:
            self._cluster.report("a change could not be sent to the other processes", problem)
            self.handle(ClusterMessage(self._cluster.id, kind, name))

    # -- the cluster's handler

    def handle(self, message: ClusterMessage) -> Awaitable[None] | None:
        """Handle a message. An awaitable is run in a task."""
        sessions, engine = self._sessions, self._engine
        live = sessions.loaded.get(message.name)
        match message.kind:
            case "frame" if live is not None:
                engine.handle(message.data, live.notifications)
            case "stale" if live is not None:
                live.load(message.data)
            case "gone":
                sessions.forget(message.name)
            case "home" if live is not None:
                return sessions.ownership.claimed(live, message.data.decode(), message.sender == self._cluster.id)
            case "follow":
                sessions.follow_elsewhere(message.name)
            case "list":
                engine.notify_list_changed(message.name)
            case "resource":
                engine.notify_resource_changed(message.name)
            case "old":
                self._sse.handle_relayed(message)
            case _:
                pass
        return None

    async def catch_up(self) -> None:
        """Read the loaded sessions again, and tell every listener that everything may have changed."""
        await self._sessions.catch_up()
        subscriptions = self._engine.subscriptions
        for part in PARTS:
            subscriptions.list_changed(part)
        for uri in subscriptions.watched():
            subscriptions.resource_changed(uri)

    def in_use(self) -> bool:
        """Whether another process may wait for a call, a stream or a session of this one."""
        if self._engine.executor.live or self._sse.open:
            return True
        return any(live.needed for live in self._sessions.loaded.values())

    def metrics(self) -> bytes:
        return self._metrics.encoded()
