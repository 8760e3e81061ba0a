"""Hearing of changes, in both eras: `subscriptions/listen` where there is one, else notices that come unasked.

Changes are told once however often they happen before somebody looks, so a slow watcher costs nothing. After a
reconnection everything that was watched counts as changed: what happened in between nobody can know.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Container, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, final

from longshore.client.cache import covers
from longshore.client.pending import Sent
from longshore.client.records import Change, ServerInfo
from longshore.client.session import Session
from longshore.errors import ClientError, ConnectError, ConnectionLost, ServerError
from longshore.schema.kinds import is_array, is_object
from longshore.wire.messages import Id

if TYPE_CHECKING:
    from longshore.client.watches import Watches

_ACKNOWLEDGE_SECONDS = 30.0
_NAMED = 5
"""Things that a message names, of those that nobody tells of."""
_NAME_CHARS = 100
_FILTERS = {"tools": "toolsListChanged", "resources": "resourcesListChanged", "prompts": "promptsListChanged"}


@final
class Watch:
    """`async with client.watch(…) as changes: async for change in changes: …`"""

    def __init__(
        self, watches: Watches, kinds: Sequence[str], uris: Sequence[str], *, everything: bool = False
    ) -> None:
        self._watches = watches
        self._everything = everything
        """Whether it takes whatever comes, asked for or not, by itself or by others."""
        self.kinds, self.uris = tuple(kinds), tuple(uris)
        self._news: dict[Change, None] = {}
        self._woken = asyncio.Event()
        self._ended: ClientError | None = None
        self.session: Session | None = None
        """The connection that it was begun on. What follows is true of that one only: the next has other ids."""
        self._listen: Sent | None = None
        self._acknowledged: asyncio.Future[Any] | None = None
        self._subscribed: list[str] = []

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
    def is_over(self) -> bool:
        """Whether nothing more will be heard, and why has been said."""
        return self._ended is not None

    def _is_told(self, session: Session, subscription: Id | None) -> bool:
        """Whether what has this subscription is for us; in the handshake era there is none."""
        return session is self.session and subscription == (None if self._listen is None else self._listen.id)

    def hear(self, session: Session, change: Change, subscription: Id | None) -> None:
        """Something changed, says the server. What others are told of that we are told of too, is not told twice."""
        unasked = subscription is None or change.kind not in self.kinds
        if self._is_told(session, subscription) or (self._everything and unasked):
            self.offer(change)

    def acknowledged(self, session: Session, subscription: Id | None, honoured: Any) -> None:
        """The server will tell, at least of some of it."""
        waiting = self._acknowledged
        if waiting is not None and not waiting.done() and self._is_told(session, subscription):
            waiting.set_result(honoured)

    def cancelled(self, session: Session, request: Id) -> None:
        """The server takes a subscription back without an answer. Where it asks for things itself, it means those."""
        if self._listen is not None and self._is_told(session, request):
            session.channel.fail(request, ConnectionLost("the server has ended the subscription"))

    def offer(self, change: Change) -> None:
        if self._everything or change.kind in self.kinds or self._covers(change.uri):
            self._news[change] = None
            self._woken.set()

    def _covers(self, uri: str | None) -> bool:
        return uri is not None and any(covers(own, uri) for own in self.uris)

    def missed(self) -> None:
        """There was a time in which nothing could be heard."""
        for kind in self.kinds:
            self.offer(Change(kind))
        for uri in self.uris:
            self.offer(Change("resource", uri))

    def end(self, problem: ClientError) -> None:
        if self._ended is None:  # the first is the reason
            self._ended = problem
        self._woken.set()

    # -- having the server tell

    async def start(self, session: Session, server: ServerInfo) -> None:
        """Have the server tell. Raises ClientError where it will not; what it leaves out of the rest is noted."""
        self.session, self._listen, self._acknowledged, self._subscribed = session, None, None, []
        if not self.kinds and not self.uris:
            return
        if session.revision is not None and session.revision.modern:
            await self._start_listening(session)
        else:
            await self._subscribe(session, server)

    async def _subscribe(self, session: Session, server: ServerInfo) -> None:
        """Lists are told of unasked. Servers do that even where they don't say so, but not of what they don't have."""
        if not self.uris and not any(server.can(kind) for kind in self.kinds):
            raise ConnectError(f"the server has no {_named(self.kinds)} to tell of", session.channel.where)
        silent = [kind for kind in self.kinds if not server.can(kind, "listChanged")]
        if silent:
            session.note(f"it does not say that it tells of changes to {_named(silent)}: they may go unheard")
        for uri in self.uris:
            self._subscribed.append(uri)
            try:
                await session.request("resources/subscribe", {"uri": uri}, timeout=_ACKNOWLEDGE_SECONDS)
            except ServerError:
                self._subscribed.remove(uri)
                raise

    async def _start_listening(self, session: Session) -> None:
        wanted: dict[str, Any] = {_FILTERS[kind]: True for kind in self.kinds}
        if self.uris:
            wanted["resourceSubscriptions"] = list(self.uris)
        self._acknowledged = acknowledged = asyncio.get_running_loop().create_future()
        self._listen = listen = session.start("subscriptions/listen", {"notifications": wanted})
        try:
            done, _ = await asyncio.wait(
                (acknowledged, listen.answer), timeout=_ACKNOWLEDGE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if listen.answer.cancelled():
                return  # it was left meanwhile
            if listen.answer in done:
                listen.answer.result()  # raises what the server answered
                raise ConnectError("the server ended the subscription at once", session.channel.where)
            if not done:
                raise ConnectError("the server does not acknowledge the subscription", session.channel.where)
            self._check(session, acknowledged.result())
        except BaseException:
            session.give_up(listen.id, "nobody listens any more")
            raise
        listen.answer.add_done_callback(self._listen_ended)  # a start that fails is its caller's to repeat

    def _check(self, session: Session, honoured: Any) -> None:
        """Hold what was asked for against what the server says it will tell of."""
        if not is_object(honoured):
            session.note("its acknowledgement of a subscription does not say what it will tell of")
            return
        uris = honoured.get("resourceSubscriptions")
        told = uris if is_array(uris) else []
        left_out = [kind for kind in self.kinds if not honoured.get(_FILTERS[kind])]
        left_out += [uri for uri in self.uris if uri not in told]
        if len(left_out) == len(self.kinds) + len(self.uris):
            raise ConnectError(f"the server does not tell of changes to {_named(left_out)}", session.channel.where)
        if left_out:
            session.note(f"it does not tell of changes to {_named(left_out)}, which are watched")

    def _listen_ended(self, answer: asyncio.Future[Any]) -> None:
        if answer.cancelled() or self._listen is None or answer is not self._listen.answer:
            return
        answer.exception()
        self._watches.interrupted(self)

    # -- having it stop

    async def stop(self, keep: Container[str]) -> None:
        """Have it stop telling, but for what others watch too."""
        for uri, session in self._leave(keep):
            try:
                await session.request("resources/unsubscribe", {"uri": uri}, timeout=_ACKNOWLEDGE_SECONDS)
            except ClientError:
                return  # it is gone, or has forgotten: either way nothing more comes

    def abandon(self, keep: Container[str]) -> None:
        """The same where nobody can wait for it."""
        for uri, session in self._leave(keep):
            if session.gone is None:
                session.start("resources/unsubscribe", {"uri": uri}, timeout=_ACKNOWLEDGE_SECONDS)

    def _leave(self, keep: Container[str]) -> list[tuple[str, Session]]:
        session, listen, uris = self.session, self._listen, self._subscribed
        self._listen, self._subscribed = None, []
        if session is None:
            return []
        if listen is not None:
            session.give_up(listen.id, "nobody listens any more")
        return [(uri, session) for uri in uris if uri not in keep]


def _named(things: Sequence[str]) -> str:
    names = ", ".join(each[:_NAME_CHARS] for each in things[:_NAMED])
    return names if len(things) <= _NAMED else f"{names} and {len(things) - _NAMED} more"
