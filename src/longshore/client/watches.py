"""Changes that a server reports: `client.watch(…)`, and the subscriptions behind it.

In the modern era a watch is a `subscriptions/listen`; in the handshake era the server notifies without a request. A
change that is repeated before it is read is reported once, so a slow watcher costs nothing. After a reconnection
everything watched counts as changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Self, final

from longshore.backoff import Backoff
from longshore.client.models import Change
from longshore.client.server_lists import covers
from longshore.client.session import ClientSession, Sent
from longshore.client.tasks import Tasks, end
from longshore.errors import ClientError, ConnectError, ConnectionLost, ServerError
from longshore.schema.kinds import as_array, is_object
from longshore.wire.messages import Id

if TYPE_CHECKING:
    from longshore.client.reconnecting_session import ReconnectingSession

RETRIES = Backoff(0.05, 8.0).pauses(9)
"""Seconds before each new attempt to subscribe. A server may take seconds to start, and no request would start it."""
STABLE_SECONDS = 10.0
"""A subscription that is interrupted again within this time is renewed later each time."""
ACKNOWLEDGE_SECONDS = 30.0
_NAMED = 5
"""Names that a message lists of what the server does not report."""
_NAME_CHARS = 100
_FILTERS = {"tools": "toolsListChanged", "resources": "resourcesListChanged", "prompts": "promptsListChanged"}


@final
class Watch:
    """`async with client.watch(…) as changes: async for change in changes: …`

    A watch of `everything` takes all changes, subscribed or not.
    """

    def __init__(
        self, watches: Watches, kinds: Sequence[str], uris: Sequence[str], *, everything: bool = False
    ) -> None:
        self._watches = watches
        self._connection = watches.connection
        self._everything = everything
        self.kinds, self.uris = tuple(kinds), tuple(uris)
        self._changes: dict[Change, None] = {}
        self._woken = asyncio.Event()
        self._ended: ClientError | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._interrupted = asyncio.Event()
        self.session: ClientSession | None = None
        """The connection that the next three belong to."""
        self._listen: Sent | None = None
        self._acknowledged: asyncio.Future[Any] | None = None
        self._subscribed: list[str] = []

    async def __aenter__(self) -> Self:
        session = await self._connection.session()
        self._watches.active.add(self)
        try:
            await self._subscribe(session)
        except BaseException:
            self._watches.active.discard(self)
            self._watches.tasks.start(self._unsubscribe())
            raise
        self._renewing = self._watches.tasks.start(self._renew())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watches.active.discard(self)
        if self._renewing is not None:
            await end((self._renewing,))
        await self._unsubscribe()

    def __aiter__(self) -> AsyncIterator[Change]:
        return self

    async def __anext__(self) -> Change:
        while not self._changes:
            if self._ended is not None:
                raise self._ended
            self._woken.clear()
            await self._woken.wait()
        change = next(iter(self._changes))
        del self._changes[change]
        return change

    # -- notifications

    def _is_ours(self, session: ClientSession, subscription: Id | None) -> bool:
        """Whether a notification belongs to this watch. In the handshake era it names no subscription."""
        return session is self.session and subscription == (None if self._listen is None else self._listen.id)

    def on_change(self, session: ClientSession, change: Change, subscription: Id | None) -> None:
        """Take a change. A change that reaches this watch by its own subscription is not taken from another's."""
        unasked = subscription is None or change.kind not in self.kinds
        if self._is_ours(session, subscription) or (self._everything and unasked):
            self._put(change)

    def on_acknowledged(self, session: ClientSession, subscription: Id | None, honoured: Any) -> None:
        waiting = self._acknowledged
        if waiting is not None and not waiting.done() and self._is_ours(session, subscription):
            waiting.set_result(honoured)

    def on_cancelled(self, session: ClientSession, request: Id) -> None:
        """The server ends a subscription without an answer. Where it has requests of its own, it means those."""
        if self._listen is not None and self._is_ours(session, request):
            session.on_failure(request, ConnectionLost("the server has ended the subscription"))

    def on_lost(self, session: ClientSession) -> None:
        if session is self.session:
            self._interrupted.set()

    def _put(self, change: Change) -> None:
        uri = change.uri
        watched = uri is not None and any(covers(own, uri) for own in self.uris)
        if self._everything or change.kind in self.kinds or watched:
            self._changes[change] = None
            self._woken.set()

    def put_all(self) -> None:
        """Report everything watched as changed: notifications may be missing."""
        for kind in self.kinds:
            self._put(Change(kind))
        for uri in self.uris:
            self._put(Change("resource", uri))

    def end(self, problem: ClientError) -> None:
        """End it with an error; the first one holds."""
        self._ended = self._ended or problem
        self._woken.set()

    # -- subscribing

    async def _subscribe(self, session: ClientSession) -> None:
        """Subscribe at the server. Parts that it refuses are noted. Raises ClientError if it refuses all."""
        self._interrupted.clear()
        self.session, self._listen, self._acknowledged, self._subscribed = session, None, None, []
        server = self._connection.server
        if self._everything:
            self.kinds = tuple(kind for kind in _FILTERS if server.can(kind, "listChanged"))
        if not self.kinds and not self.uris:
            return
        if session.revision is not None and session.revision.modern:
            await self._start_listening(session)
            return
        # Notifications about lists need no subscription, even if undeclared, but exist only for lists that exist.
        if not self.uris and not any(server.can(kind) for kind in self.kinds):
            raise session.locate(ConnectError(f"the server has no {_named(self.kinds)} to tell of"))
        silent = [kind for kind in self.kinds if not server.can(kind, "listChanged")]
        if silent:
            session.note(f"it does not say that it tells of changes to {_named(silent)}: they may go unheard")
        for uri in self.uris:
            self._subscribed.append(uri)
            try:
                await session.request("resources/subscribe", {"uri": uri}, timeout=ACKNOWLEDGE_SECONDS)
            except ServerError:
                self._subscribed.remove(uri)
                raise

    async def _start_listening(self, session: ClientSession) -> None:
        wanted: dict[str, Any] = {_FILTERS[kind]: True for kind in self.kinds}
        if self.uris:
            wanted["resourceSubscriptions"] = list(self.uris)
        self._acknowledged = acknowledged = asyncio.get_running_loop().create_future()
        self._listen = listen = session.start("subscriptions/listen", {"notifications": wanted})
        try:
            done, _ = await asyncio.wait(
                (acknowledged, listen.answer), timeout=ACKNOWLEDGE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if listen.answer in done:
                listen.answer.result()  # raises what the server answered
                raise session.locate(ConnectError("the server ended the subscription at once"))
            if not done:
                raise session.locate(ConnectError("the server does not acknowledge the subscription"))
            self._check_honoured(session, acknowledged.result())
        except BaseException:
            session.cancel(listen.id, "nobody listens any more")
            raise
        listen.answer.add_done_callback(lambda _: self._interrupted.set())

    def _check_honoured(self, session: ClientSession, honoured: Any) -> None:
        """Compare what was subscribed to with what the server acknowledges."""
        if not is_object(honoured):
            session.note("its acknowledgement of a subscription does not say what it will tell of")
            return
        reported = as_array(honoured.get("resourceSubscriptions"))
        missing = [kind for kind in self.kinds if not honoured.get(_FILTERS[kind])]
        missing += [uri for uri in self.uris if uri not in reported]
        if len(missing) == len(self.kinds) + len(self.uris):
            raise session.locate(ConnectError(f"the server does not tell of changes to {_named(missing)}"))
        if missing:
            session.note(f"it does not tell of changes to {_named(missing)}, which are watched")

    async def _unsubscribe(self) -> None:
        """Unsubscribe, except from the URIs of other watches."""
        session, listen, uris = self.session, self._listen, self._subscribed
        self._listen, self._subscribed = None, []
        if session is None:
            return
        if listen is not None:
            session.cancel(listen.id, "nobody listens any more")
        others = {uri for each in self._watches.active for uri in each.uris}
        try:
            for uri in uris:
                if uri not in others:
                    await session.request("resources/unsubscribe", {"uri": uri}, timeout=ACKNOWLEDGE_SECONDS)
        except ClientError:
            pass  # the server has closed, or has no such subscription: no notification follows

    # -- renewing

    async def _renew(self) -> None:
        """Subscribe again whenever the server ends the subscription, its stream breaks or the connection is lost.

        A watch sends no request that would reconnect, so it reconnects by itself.
        """
        now = asyncio.get_running_loop().time
        last, times = -inf, 0
        problem: ClientError | None = None
        while problem is None:
            await self._interrupted.wait()
            times = times + 1 if now() - last < STABLE_SECONDS else 0
            last = now()
            least = RETRIES[min(times, len(RETRIES) - 1)]
            lost = self.session is None or self.session.closed is not None
            delays = (0.0, *RETRIES) if lost else [max(least, seconds) for seconds in RETRIES]
            problem = await self._subscribe_again(delays)
        self.end(problem)

    async def _subscribe_again(self, delays: Sequence[float]) -> ClientError | None:
        """Subscribe again after one of the delays. Returns the last problem if all attempts fail."""
        problem: ClientError | None = None
        for seconds in delays:
            await asyncio.sleep(seconds)
            if self.session is not None and self.session.closed is not None and not self._connection.reconnect:
                return self.session.loss()
            try:
                await self._subscribe(await self._connection.session())
                self.put_all()
                return None
            except ClientError as again:
                problem = again
        return problem


def _named(things: Sequence[str]) -> str:
    names = ", ".join(each[:_NAME_CHARS] for each in things[:_NAMED])
    return names if len(things) <= _NAMED else f"{names} and {len(things) - _NAMED} more"


@final
class Watches:
    """All watches of one client. `on_change` gets all changes, also without a watch: there is one for it."""

    def __init__(self, connection: ReconnectingSession, on_change: Callable[[Change], Any] | None) -> None:
        self.connection = connection
        self.active: set[Watch] = set()
        self.tasks = Tasks()
        self._on_change = on_change
        self._background: Watch | None = None

    def __iter__(self) -> Iterator[Watch]:
        return iter(list(self.active))

    def on_opened(self, session: ClientSession, again: bool) -> None:
        """A connection was opened. Changes since the last one, if there was one, are unknown."""
        if self._on_change is not None and self._background is None:
            self._background = Watch(self, (), (), everything=True)
            self.tasks.start(self._report(self._background, self._on_change, session, again))

    async def _report(
        self, watch: Watch, on_change: Callable[[Change], Any], session: ClientSession, again: bool
    ) -> None:
        try:
            async with watch:
                if again:
                    watch.put_all()
                async for change in watch:
                    (await self.connection.session()).call_handler("on_change", on_change, change)
        except ClientError as problem:
            (watch.session or session).note(f"on_change hears of nothing any more: {problem.what}")
        finally:
            self._background = None

    async def close(self) -> None:
        for watch in self:
            watch.end(ConnectionLost("the client was closed", self.connection.name))
        await self.tasks.end()
