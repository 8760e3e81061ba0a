"""Changes that a server reports: `client.watch(…)`, the subscriptions behind it, and the routing of notifications.

In the modern era a watch is a `subscriptions/listen`; in the handshake era the server notifies unasked. A change that
comes several times before it is read is reported once, so a slow watcher costs nothing. After a reconnection everything
watched counts as changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Container, Iterator, Sequence
from copy import copy
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, final

import msgspec
from msgspec import Raw, Struct, field

from longshore.client.cache import Cache, covers
from longshore.client.handlers import RequestHandlers, UrlElicitations
from longshore.client.models import Change, LogMessage, ServerInfo
from longshore.client.session import ClientSession, Sent
from longshore.client.tasks import Tasks
from longshore.errors import ClientError, ConnectError, ConnectionLost, ServerError
from longshore.protocol.peer import SUBSCRIPTION_ID
from longshore.protocol.revisions import LOG_LEVELS
from longshore.retry import Backoff
from longshore.schema.kinds import is_array, is_object
from longshore.wire.codec import BROKEN
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
    """`async with client.watch(…) as changes: async for change in changes: …`"""

    def __init__(
        self, subscriptions: Watches, kinds: Sequence[str], uris: Sequence[str], *, everything: bool = False
    ) -> None:
        self._subscriptions = subscriptions
        self._everything = everything
        """Whether it takes every change, subscribed or not."""
        self.kinds, self.uris = tuple(kinds), tuple(uris)
        self._changes: dict[Change, None] = {}
        self._woken = asyncio.Event()
        self.ended: ClientError | None = None
        self.session: ClientSession | None = None
        """The connection that the next three belong to."""
        self._listen: Sent | None = None
        self._acknowledged: asyncio.Future[Any] | None = None
        self._subscribed: list[str] = []

    async def __aenter__(self) -> Self:
        await self._subscriptions.begin(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._subscriptions.end(self)

    def __aiter__(self) -> AsyncIterator[Change]:
        return self

    async def __anext__(self) -> Change:
        while not self._changes:
            if self.ended is not None:
                raise self.ended
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
            self.put(change)

    def on_acknowledged(self, session: ClientSession, subscription: Id | None, honoured: Any) -> None:
        waiting = self._acknowledged
        if waiting is not None and not waiting.done() and self._is_ours(session, subscription):
            waiting.set_result(honoured)

    def on_cancelled(self, session: ClientSession, request: Id) -> None:
        """The server ends a subscription without an answer. Where it has requests of its own, it means those."""
        if self._listen is not None and self._is_ours(session, request):
            session.on_failure(request, ConnectionLost("the server has ended the subscription"))

    def put(self, change: Change) -> None:
        uri = change.uri
        watched = uri is not None and any(covers(own, uri) for own in self.uris)
        if self._everything or change.kind in self.kinds or watched:
            self._changes[change] = None
            self._woken.set()

    def put_all(self) -> None:
        """Report everything watched as changed: there was a time without notifications."""
        for kind in self.kinds:
            self.put(Change(kind))
        for uri in self.uris:
            self.put(Change("resource", uri))

    def end(self, problem: ClientError) -> None:
        """End it with an error; the first one holds."""
        self.ended = self.ended or problem
        self._woken.set()

    # -- subscribing

    async def subscribe(self, session: ClientSession, server: ServerInfo) -> None:
        """Subscribe at the server. Parts that it refuses are noted. Raises ClientError if it refuses all."""
        self.session, self._listen, self._acknowledged, self._subscribed = session, None, None, []
        if not self.kinds and not self.uris:
            return
        if session.revision is not None and session.revision.modern:
            await self._start_listening(session)
        else:
            await self._subscribe_uris(session, server)

    async def _subscribe_uris(self, session: ClientSession, server: ServerInfo) -> None:
        """Changes of lists come unasked, also from servers that don't declare it, but only of lists that exist."""
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
            if listen.answer.cancelled():
                return  # the watch was left meanwhile
            if listen.answer in done:
                listen.answer.result()  # raises what the server answered
                raise session.locate(ConnectError("the server ended the subscription at once"))
            if not done:
                raise session.locate(ConnectError("the server does not acknowledge the subscription"))
            self._check_honoured(session, acknowledged.result())
        except BaseException:
            session.cancel(listen.id, "nobody listens any more")
            raise
        listen.answer.add_done_callback(self._on_listen_ended)  # a failed start is its caller's to repeat

    def _check_honoured(self, session: ClientSession, honoured: Any) -> None:
        """Compare what was subscribed to with what the server acknowledges."""
        if not is_object(honoured):
            session.note("its acknowledgement of a subscription does not say what it will tell of")
            return
        uris = honoured.get("resourceSubscriptions")
        reported = uris if is_array(uris) else []
        missing = [kind for kind in self.kinds if not honoured.get(_FILTERS[kind])]
        missing += [uri for uri in self.uris if uri not in reported]
        if len(missing) == len(self.kinds) + len(self.uris):
            raise session.locate(ConnectError(f"the server does not tell of changes to {_named(missing)}"))
        if missing:
            session.note(f"it does not tell of changes to {_named(missing)}, which are watched")

    def _on_listen_ended(self, answer: asyncio.Future[Any]) -> None:
        if not answer.cancelled() and self._listen is not None and answer is self._listen.answer:
            answer.exception()
            self._subscriptions.on_interrupted(self)

    async def unsubscribe(self, others: Container[str]) -> None:
        """Unsubscribe, except from the URIs of other watches."""
        for uri, session in self._release(others):
            try:
                await session.request("resources/unsubscribe", {"uri": uri}, timeout=ACKNOWLEDGE_SECONDS)
            except ClientError:
                return  # the server is gone, or has no such subscription: nothing more comes either way

    def abandon(self, others: Container[str]) -> None:
        """Unsubscribe without waiting for the answers."""
        for uri, session in self._release(others):
            if session.closed is None:
                session.start("resources/unsubscribe", {"uri": uri}, timeout=ACKNOWLEDGE_SECONDS)

    def _release(self, others: Container[str]) -> list[tuple[str, ClientSession]]:
        session, listen, uris = self.session, self._listen, self._subscribed
        self._listen, self._subscribed = None, []
        if session is None:
            return []
        if listen is not None:
            session.cancel(listen.id, "nobody listens any more")
        return [(uri, session) for uri in uris if uri not in others]


def _named(things: Sequence[str]) -> str:
    names = ", ".join(each[:_NAME_CHARS] for each in things[:_NAMED])
    return names if len(things) <= _NAMED else f"{names} and {len(things) - _NAMED} more"


@final
class Watches:
    """All watches of one client. They are renewed with every connection, and a lost connection is made anew for them.

    `on_change` gets all changes, also without a watch: there is one in the background for it.
    """

    def __init__(self, connection: ReconnectingSession, on_change: Callable[[Change], Any] | None) -> None:
        self._connection = connection
        self._on_change = on_change
        self._background: Watch | None = None
        self._watches: set[Watch] = set()
        self._renewing: set[Watch] = set()
        self._interrupted: dict[Watch, tuple[float, int]] = {}
        """When each was interrupted last, and how often in a row soon after the time before."""
        self._reconnecting = False
        self._tasks = Tasks()

    def __iter__(self) -> Iterator[Watch]:
        return iter(list(self._watches))

    def make(self, kinds: Sequence[str], uris: Sequence[str]) -> Watch:
        return Watch(self, kinds, uris)

    async def begin(self, watch: Watch) -> None:
        session = await self._connection.session()
        self._watches.add(watch)
        try:
            await self._subscribe(watch, session)
        except BaseException:
            self._forget(watch)
            watch.abandon(self._uris())
            raise

    async def end(self, watch: Watch) -> None:
        self._forget(watch)
        await watch.unsubscribe(self._uris())

    def _forget(self, watch: Watch) -> None:
        self._watches.discard(watch)
        self._interrupted.pop(watch, None)

    def _uris(self) -> set[str]:
        return {uri for each in self._watches for uri in each.uris}

    async def _subscribe(self, watch: Watch, session: ClientSession) -> None:
        """Subscribe, unless the watch was left, before or meanwhile."""
        if watch in self._watches:
            await watch.subscribe(session, self._connection.server)
        if watch not in self._watches:
            await watch.unsubscribe(self._uris())

    # -- renewing

    def on_interrupted(self, watch: Watch) -> None:
        """The server ended a subscription, or its stream broke."""
        if watch not in self._watches or not self._connection.connected:
            return
        now = asyncio.get_running_loop().time()
        before, times = self._interrupted.get(watch, (-inf, 0))
        times = times + 1 if now - before < STABLE_SECONDS else 0
        self._interrupted[watch] = now, times
        least = RETRIES[min(times, len(RETRIES) - 1)]
        self._renew(watch, [max(least, seconds) for seconds in RETRIES])

    def _renew(self, watch: Watch, delays: Sequence[float]) -> None:
        """Subscribe again, in a task: the connection must neither wait for it nor fail by it."""
        if watch in self._watches and watch not in self._renewing and watch.ended is None:
            self._renewing.add(watch)
            self._tasks.start(self._try_renewing(watch, delays))

    async def _try_renewing(self, watch: Watch, delays: Sequence[float]) -> None:
        problem: ClientError | None = None
        try:
            for seconds in delays:
                await asyncio.sleep(seconds)
                if watch not in self._watches or not self._connection.connected:
                    return  # it was left; or the next connection renews it
                try:
                    await self._subscribe(watch, await self._connection.session())
                    watch.put_all()
                    return
                except ClientError as again:
                    problem = again
            watch.end(problem or ConnectionLost("the subscription ended", self._connection.name))
        finally:
            self._renewing.discard(watch)

    # -- the connection

    async def on_opened(self, session: ClientSession, server: ServerInfo, again: bool) -> None:
        """There is a connection. Changes since the last one, if there was one, are unknown."""
        kinds = [kind for kind in ("tools", "resources", "prompts") if server.can(kind, "listChanged")]
        if self._background is not None:
            self._background.kinds = tuple(kinds)
        if again:
            for watch in self:
                if watch.session is not session:  # else it was begun on this one
                    self._renew(watch, (0.0, *RETRIES))
        if self._on_change is not None and self._background is None:
            self._background = watch = Watch(self, kinds, (), everything=True)
            if again:
                watch.put_all()
            self._tasks.start(self._report(watch, self._on_change, session))

    async def _report(self, watch: Watch, on_change: Callable[[Change], Any], session: ClientSession) -> None:
        try:
            async with watch:
                async for change in watch:
                    (await self._connection.session()).call_handler("on_change", on_change, change)
        except ClientError as problem:
            (watch.session or session).note(f"on_change hears of nothing any more: {problem.what}")
        finally:
            self._background = None

    def on_lost(self, session: ClientSession) -> None:
        """Reconnect for the watches: they send no request that would."""
        if self._connection.closed:
            return
        if not self._connection.reconnect:
            lost = session.closed or ConnectionLost("the connection was lost")
            self._end_all(ConnectionLost(lost.what, lost.server or self._connection.name, lost.said))
        elif self._watches and not self._reconnecting:
            self._reconnecting = True  # a connection that fails while it is made is lost too
            self._tasks.start(self._reconnect())

    async def _reconnect(self) -> None:
        problem: ClientError | None = None
        try:
            for seconds in (0.0, *RETRIES):
                await asyncio.sleep(seconds)
                if not self._watches:
                    return
                try:
                    problem = (await self._connection.session()).closed
                except ClientError as again:
                    problem = again
                if problem is None:
                    return
            self._end_all(problem or ConnectionLost("the connection was lost", self._connection.name))
        finally:
            self._reconnecting = False

    def _end_all(self, problem: ClientError) -> None:
        for watch in self:
            watch.end(copy(problem))  # two awaiters must not share one exception object

    async def close(self) -> None:
        self._end_all(ConnectionLost("the client was closed", self._connection.name))
        await self._tasks.end()


_LISTS = {
    "notifications/tools/list_changed": ("tools", ("tools/list",)),
    "notifications/resources/list_changed": ("resources", ("resources/list", "resources/templates/list")),
    "notifications/prompts/list_changed": ("prompts", ("prompts/list",)),
}


class _Meta(Struct):
    subscription: Id | None = field(name=SUBSCRIPTION_ID, default=None)


class _Params(Struct, rename="camel"):
    uri: str | None = None
    level: str = "info"
    logger: str | None = None
    data: Any = None
    request_id: Id | None = None
    notifications: Any = None
    meta: _Meta = field(name="_meta", default_factory=_Meta)


_read = msgspec.json.Decoder(_Params).decode


@final
class NotificationRouter:
    """Passes notifications on: to the cache, the watches, the handlers and `on_log`."""

    def __init__(
        self,
        cache: Cache,
        subscriptions: Watches,
        handlers: RequestHandlers,
        elicitations: UrlElicitations,
        on_log: Callable[[LogMessage], Any] | None,
        log_level: str | None,
    ) -> None:
        self._cache, self._subscriptions = cache, subscriptions
        self._handlers, self._elicitations = handlers, elicitations
        self._on_log = on_log
        self.log_level = log_level
        """The lowest level that is wanted. A server without `logging` may send others all the same."""

    def route(self, session: ClientSession, method: str, raw: Raw) -> None:
        try:
            if method == "notifications/elicitation/complete":
                self._elicitations.on_complete(raw)
            else:
                self._route(session, method, _read(raw))
        except BROKEN:
            session.note(f"the parameters of {method[:100]} can't be read")

    def _route(self, session: ClientSession, method: str, params: _Params) -> None:
        if method in _LISTS:
            kind, methods = _LISTS[method]
            for each in methods:
                self._cache.drop(each)
            self._report(session, Change(kind), params.meta.subscription)
        elif method == "notifications/resources/updated" and params.uri is not None:
            self._cache.drop("resources/read", params.uri)
            self._report(session, Change("resource", params.uri), params.meta.subscription)
        elif method == "notifications/message" and self._on_log is not None:
            if self._is_wanted(params.level):
                session.call_handler("on_log", self._on_log, LogMessage(params.level, params.data, params.logger))
        elif method == "notifications/cancelled" and params.request_id is not None:
            self._handlers.on_cancelled(session, params.request_id)
            for watch in self._subscriptions:
                watch.on_cancelled(session, params.request_id)
        elif method == "notifications/subscriptions/acknowledged":
            for watch in self._subscriptions:
                watch.on_acknowledged(session, params.meta.subscription, params.notifications)

    def _is_wanted(self, level: str) -> bool:
        lowest = self.log_level
        if lowest not in LOG_LEVELS or level not in LOG_LEVELS:
            return True
        return LOG_LEVELS.index(level) >= LOG_LEVELS.index(lowest)

    def _report(self, session: ClientSession, change: Change, subscription: Id | None) -> None:
        for watch in self._subscriptions:
            watch.on_change(session, change, subscription)
