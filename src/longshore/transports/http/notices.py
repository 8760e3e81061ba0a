"""What this process does with what the others tell it, and what it has them know."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, final

from longshore.errors import StoreError
from longshore.server.subscriptions import PARTS
from longshore.transports.http.live import Live
from longshore.transports.http.workers import Kind, Notice
from longshore.wire.codec import read
from longshore.wire.messages import Batch, Message

if TYPE_CHECKING:
    from longshore.transports.http.app import HttpApp


@final
class Notices:
    """The messages between the processes of one app."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app

    def attend(self) -> None:
        """Have changes go over the bus from now on, if there is one."""
        engine = self._app.engine
        if self._app.store.shared:
            engine.when_changed = lambda part: self._announce("list", part)
            engine.when_resource_changed = lambda uri: self._announce("resource", uri)

    def rest(self) -> None:
        """Have them stay in this process: it takes its leave of the bus, and what ends with it is no news to others."""
        engine = self._app.engine
        engine.when_changed, engine.when_resource_changed = engine.tell_list_changed, engine.tell_resource_changed

    def _announce(self, kind: Kind, name: str) -> None:
        """Have all processes tell their clients of a change, this one too, when it comes back from the bus."""
        self._app.workers.run(self._announce_now(kind, name))

    async def _announce_now(self, kind: Kind, name: str) -> None:
        try:
            await self._app.workers.post(kind, name)
        except StoreError as problem:
            self._app.problem("the other processes could not be told", problem)
            self.hear(Notice(self._app.workers.id, kind, name))

    async def relay(self, live: Live, message: Any, body: bytes) -> None:
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

    def hear(self, notice: Notice) -> Awaitable[None] | None:
        """Deal with one. What is returned takes longer, and goes on beside."""
        app = self._app
        live = app.sessions.lives.get(notice.name)
        match notice.kind:
            case "frame" if live is not None:
                app.engine.handle(notice.data, live.home)
            case "stale" if live is not None:
                live.load(notice.data)
            case "gone":
                app.sessions.forget(notice.name)
            case "home" if live is not None:
                return app.sessions.homes.moved(live, notice.data.decode(), notice.sender == app.workers.id)
            case "follow":
                self._let_follow(notice.name)
            case "list":
                app.engine.tell_list_changed(notice.name)
            case "resource":
                app.engine.tell_resource_changed(notice.name)
            case "old":
                return app.routes.old.hear(notice)
            case _:
                pass
        return None

    def _let_follow(self, name: str) -> None:
        for live in self._app.sessions.lives.values():
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
