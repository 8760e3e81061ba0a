"""Hearing of changes, in both eras: `subscriptions/listen` where there is one, else notices that come unasked.

Changes are told once however often they happen before somebody looks, so a slow watcher costs nothing. After a
reconnection everything that was watched counts as changed: what happened in between nobody can know.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, final

from longshore.client.records import Change
from longshore.client.session import Sent, Session
from longshore.errors import ClientError, ConnectError

if TYPE_CHECKING:
    from longshore.client.watches import Watches

_ACKNOWLEDGE_SECONDS = 30.0
_FILTERS = {"tools": "toolsListChanged", "resources": "resourcesListChanged", "prompts": "promptsListChanged"}


@final
class Watch:
    """`async with client.watch(…) as changes: async for change in changes: …`"""

    def __init__(self, watches: Watches, kinds: Sequence[str], uris: Sequence[str]) -> None:
        self._watches = watches
        self.kinds, self.uris = tuple(kinds), tuple(uris)
        self._news: dict[Change, None] = {}
        self._woken = asyncio.Event()
        self._ended: ClientError | None = None
        self._listen: Sent | None = None
        self._acknowledged: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        await self._watches.begin(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._watches.end(self)

    def __aiter__(self) -> AsyncIterator[Change]:
        return self

    async def __anext__(self) -> Change:
        while not self._news:
            if self._ended is not None:
                raise self._ended
            self._woken.clear()
            await self._woken.wait()
        change = next(iter(self._news))
        del self._news[change]
        return change

    # -- for those who keep it informed

    @property
    def listen_id(self) -> Any:
        return None if self._listen is None else self._listen.id

    def offer(self, change: Change) -> None:
        if change.kind in self.kinds or (change.kind == "resource" and self._covers(change.uri)):
            self._news[change] = None
            self._woken.set()

    def _covers(self, uri: str | None) -> bool:
        """Whether it is one of ours, or within one: servers may tell of a part of what was subscribed to."""
        return uri is not None and any(uri == own or uri.startswith(own) for own in self.uris)

    def missed(self) -> None:
        """There was a time in which nothing could be heard."""
        for kind in self.kinds:
            self.offer(Change(kind))
        for uri in self.uris:
            self.offer(Change("resource", uri))

    def end(self, problem: ClientError) -> None:
        self._ended = problem
        self._woken.set()

    def acknowledged(self) -> None:
        if self._acknowledged is not None and not self._acknowledged.done():
            self._acknowledged.set_result(None)

    async def start(self, session: Session) -> None:
        """Have the server tell."""
        revision = session.revision
        if revision is not None and revision.modern:
            await self._start_listening(session)
        else:
            for uri in self.uris:
                await session.request("resources/subscribe", {"uri": uri}, timeout=_ACKNOWLEDGE_SECONDS)

    async def _start_listening(self, session: Session) -> None:
        wanted: dict[str, Any] = {_FILTERS[kind]: True for kind in self.kinds}
        if self.uris:
            wanted["resourceSubscriptions"] = list(self.uris)
        loop = asyncio.get_running_loop()
        self._acknowledged = loop.create_future()
        self._listen = listen = session.start("subscriptions/listen", {"notifications": wanted})
        listen.answer.add_done_callback(self._listen_ended)
        done, _ = await asyncio.wait(
            (self._acknowledged, listen.answer), timeout=_ACKNOWLEDGE_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        if listen.answer in done:
            self._acknowledged.cancel()
            listen.answer.result()  # raises what the server answered
            raise ConnectError("the server ended the subscription at once", session.channel.where)
        if not done:
            session.give_up(listen.id, "no acknowledgement")
            raise ConnectError("the server does not acknowledge the subscription", session.channel.where)

    def _listen_ended(self, answer: asyncio.Future[Any]) -> None:
        if answer.cancelled() or self._listen is None or answer is not self._listen.answer:
            return
        answer.exception()
        self._watches.interrupted(self)

    async def stop(self, session: Session) -> None:
        """Have it stop telling."""
        listen, self._listen = self._listen, None
        if listen is not None:
            session.give_up(listen.id, "nobody listens any more")
            return
        for uri in self.uris:
            try:
                await session.request("resources/unsubscribe", {"uri": uri}, timeout=_ACKNOWLEDGE_SECONDS)
            except ClientError:
                return  # it is gone, or has forgotten: either way nothing more comes
