"""Requests to one server, over successive connections.

The next request after a loss opens a new connection. A request that was under way is sent again if that does no harm:
it only reads, the tool declares that it may be repeated, or it was certainly not delivered.
"""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast, final

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from longshore.backoff import Backoff
from longshore.client.channel import ChannelFactory
from longshore.client.clock import PausableClock
from longshore.client.handlers import RequestHandlers
from longshore.client.models import Change, LogMessage, ServerInfo, read_object
from longshore.client.negotiate import (
    ClientHello,
    EndedByProbe,
    OlderTransport,
    forget,
    negotiate,
    remember,
    within,
)
from longshore.client.server_lists import Cache
from longshore.client.session import ClientSession, Headers, Progress
from longshore.client.targets import Target
from longshore.client.tasks import end
from longshore.client.watches import Watches
from longshore.errors import (
    BadAnswer,
    CallTimeout,
    ClientError,
    ConnectError,
    ConnectionLost,
    ServerError,
    Unanswerable,
)
from longshore.limits import Limits
from longshore.protocol.peer import PREFIX, SUBSCRIPTION_ID
from longshore.protocol.revisions import LOG_LEVELS
from longshore.schema.kinds import as_array, as_object, is_object
from longshore.wire.codec import BROKEN
from longshore.wire.messages import Id, Message

T = TypeVar("T")
E = TypeVar("E", bound=ClientError)

RESTARTS = 5
RESTART_SECONDS = 10.0
"""A server that was connected to so many times within this time is not tried again at once."""
ROUNDS = 16
"""Rounds of questions that one request may take."""
BACKOFF = Backoff(0.05, 1.0)
RESENDS = 5
"""Times that a request is sent again: the server may just be starting."""
URL_ROUNDS = 3
"""Times that one request may require pages to be visited first."""
URL_ELICITATION_REQUIRED = -32042
_RECENT = 100
"""Completed URL elicitations that are remembered: the notification may come before anything waits for it."""
_UNEXPECTED = "a result of a kind that was not agreed on: {!r}"
DEFAULT: Any = object()
"""The client's own timeout."""
_LISTS = {
    "notifications/tools/list_changed": ("tools", ("tools/list",)),
    "notifications/resources/list_changed": ("resources", ("resources/list", "resources/templates/list")),
    "notifications/prompts/list_changed": ("prompts", ("prompts/list",)),
}


def busy_delay(attempt: int) -> float:
    """Seconds to wait if a server only asks to be called again."""
    return BACKOFF.pause(attempt + 1)


class ConnectionOptions(Struct, frozen=True):
    """How to connect, and where notifications go."""

    name: str | None
    timeout: float | None
    reconnect: bool
    limits: Limits
    on_log: Callable[[LogMessage], Any] | None
    on_change: Callable[[Change], Any] | None
    log_level: str | None


class _Meta(Struct):
    subscription: Id | None = field(name=SUBSCRIPTION_ID, default=None)


class _Params(Struct, rename="camel"):
    """The parameters of notifications."""

    uri: str | None = None
    level: str = "info"
    logger: str | None = None
    data: Any = None
    request_id: Id | None = None
    elicitation_id: str | None = None
    notifications: Any = None
    meta: _Meta = field(name="_meta", default_factory=_Meta)


_read_params = msgspec.json.Decoder(_Params).decode


@final
class ReconnectingSession:
    """A session that outlives its connections. There is one at a time; concurrent callers await the same attempt."""

    def __init__(
        self, target: Target, hello: ClientHello, options: ConnectionOptions, handlers: RequestHandlers, cache: Cache
    ) -> None:
        self.name = options.name or target.name
        self.reconnect = options.reconnect
        self.closed = True
        self.current: ClientSession | None = None
        self.watches = Watches(self, options.on_change)
        self._target, self._hello, self._options = target, hello, options
        self._handlers, self._cache = handlers, cache
        self._log_level = options.log_level
        """The lowest level that is wanted. A server without `logging` may send others all the same."""
        self._completed: deque[str] = deque(maxlen=_RECENT)
        self._completion = asyncio.Event()
        self._openers = 0
        self._server: ServerInfo | None = None
        self._clock: PausableClock | None = None
        self._attempt: asyncio.Task[ClientSession] | None = None
        self._attempts: deque[float] = deque(maxlen=RESTARTS)
        self._last_failure: ClientError | None = None
        """Why the last attempt to replace a lost connection failed."""

    # -- the connection

    async def open(self) -> None:
        if self.closed:
            self.closed = False
            self.current = self._server = self._attempt = self._last_failure = None
            self._clock, self._completion = PausableClock(), asyncio.Event()
            self._attempts.clear()
        self._openers += 1
        try:
            await self.session()
        except BaseException:
            if self._openers == 1:  # otherwise another caller still needs it
                await self.close()
            raise
        finally:
            self._openers -= 1

    async def close(self) -> None:
        """End the connection, and open no other."""
        self.closed = True
        current, attempt = self.current, self._attempt
        if attempt is not None:
            attempt.cancel()  # first: it must not succeed while the last connection is closed
        try:
            if current is not None:
                await current.close()
        finally:
            if attempt is not None:
                await end((attempt,))

    async def session(self) -> ClientSession:
        """The current connection, or a new one if it was lost. Raises ConnectError, or the reason of the loss."""
        current = self.current
        return current if current is not None and current.closed is None else await self._session_within(None)

    async def _session_within(self, seconds: float | None) -> ClientSession:
        """The connection. Raises TimeoutError; the attempt then continues for others."""
        if self._clock is None:
            raise self._not_open()
        attempt = self._attempt
        if attempt is None or attempt.done():
            attempt = self._attempt = asyncio.get_running_loop().create_task(self._connect(self._clock))
            attempt.add_done_callback(_retrieve)
        await self._clock.wait_excluding_login(attempt, seconds)
        if attempt.cancelled():
            raise ConnectError("the client was closed while it connected", self.name)
        problem = attempt.exception()
        if isinstance(problem, ClientError):  # two awaiters must not share one exception object
            raise copy.copy(problem) from problem.__cause__
        return attempt.result()

    async def _connect(self, clock: PausableClock) -> ClientSession:
        current = self.current
        if self.closed:
            raise ConnectError("the client is closed; open it first", self.name)
        if current is None:
            return await self._open(clock, again=False)
        if current.closed is None:
            return current
        if not self.reconnect:
            raise ConnectError(current.closed.what, current.closed.server, current.closed.said)
        now = clock.loop.time()
        if len(self._attempts) == RESTARTS and now - self._attempts[0] < RESTART_SECONDS:
            lost = self._last_failure or current.closed
            what = f"it was lost {RESTARTS} times in {RESTART_SECONDS:g} s, the last time because: {lost.what}"
            raise ConnectError(what, lost.server, lost.said)
        self._attempts.append(now)
        await current.close()
        self._last_failure = None
        try:
            return await self._open(clock, again=True)
        except ClientError as problem:
            self._last_failure = problem
            raise

    async def _open(self, clock: PausableClock, *, again: bool) -> ClientSession:
        """Try the target's channels in order: a later one only where the server may be an older one."""
        refused: OlderTransport | None = None
        for make_channel in self._target.channels:
            try:
                try:
                    return await self._open_session(make_channel, clock, self._hello, again)
                except EndedByProbe as ended:
                    try:
                        hello = replace(self._hello, era="legacy")
                        session = await self._open_session(make_channel, clock, hello, again)
                    except ConnectError:
                        raise ended from ended.__cause__  # the probe was not the cause
                    remember(self._target.key, self.server)
                    return session
            except OlderTransport as problem:
                refused = problem
            except ConnectError as problem:
                if refused is not None:  # the first answer may be the real reason
                    problem.what += f" (before that, it refused the handshake: {refused.what})"
                raise
        assert refused is not None
        raise refused

    async def _open_session(
        self, make_channel: ChannelFactory, clock: PausableClock, hello: ClientHello, again: bool
    ) -> ClientSession:
        name = "" if self.name == self._target.name else self.name
        session = ClientSession(make_channel, clock, self._options.limits, self, name)
        channel, timeout = session.channel, self._options.timeout
        if channel.handshake_only and hello.era == "auto":
            hello = replace(hello, era="legacy")
        key = "" if channel.handshake_only else self._target.key
        try:
            await within(clock, channel.open(), timeout)
            self._server = await negotiate(session, hello, timeout, key)
            self.current = session
            self._cache.clear()
            await self._set_initial_level(session)
            self.watches.on_opened(session, again)
            return session
        except BaseException as problem:
            forget(key)  # the server may have another version now
            if isinstance(problem, ClientError):
                session.locate(problem)
            await session.close()
            if isinstance(problem, TimeoutError) and not isinstance(problem, ClientError):
                raise session.locate(ConnectError(f"it could not be reached within {timeout:g} s")) from None
            raise

    @property
    def connected(self) -> bool:
        return self.current is not None and self.current.closed is None

    @property
    def server(self) -> ServerInfo:
        if self._server is None:
            raise self._not_open()
        return self._server

    def _not_open(self) -> ConnectError:
        return ConnectError("the client is not open; write `async with Client(…)`", self.name)

    # -- the level of the log

    async def _set_initial_level(self, session: ClientSession) -> None:
        if self._log_level is None:
            return
        params = self._level_params(session, self._log_level)
        if params is not None:
            try:
                await session.request("logging/setLevel", params, timeout=self._options.timeout)
            except ClientError as problem:
                if session.closed is not None:
                    raise
                session.note(f"the level of its log could not be set: {problem.what}")

    async def set_log_level(self, level: str) -> None:
        params = self._level_params(await self.session(), level)
        self._log_level = level
        if params is not None:
            await self.send("logging/setLevel", params, safe=True)

    def _level_params(self, session: ClientSession, level: str) -> dict[str, Any] | None:
        """The parameters of `logging/setLevel`; None if the envelope says it, or the server has no levels to set."""
        if session.envelope is not None:
            session.envelope = {**session.envelope, PREFIX + "logLevel": level}
            return None
        return {"level": level} if self.server.can("logging") else None

    # -- notifications

    def on_notification(self, session: ClientSession, method: str, params: Raw) -> None:
        """Pass a notification on: to the cache, the watches, the handlers and `on_log`."""
        try:
            self._route(session, method, _read_params(params))
        except BROKEN:
            session.note(f"the parameters of {method[:100]} can't be read")

    def _route(self, session: ClientSession, method: str, params: _Params) -> None:
        if method in _LISTS:
            kind, methods = _LISTS[method]
            for each in methods:
                self._cache.drop(each)
            self._report(session, Change(kind), params)
        elif method == "notifications/resources/updated" and params.uri is not None:
            self._cache.drop("resources/read", params.uri)
            self._report(session, Change("resource", params.uri), params)
        elif method == "notifications/message" and self._options.on_log is not None:
            if self._is_wanted(params.level):
                message = LogMessage(params.level, params.data, params.logger)
                session.call_handler("on_log", self._options.on_log, message)
        elif method == "notifications/cancelled" and params.request_id is not None:
            self._handlers.on_cancelled(session, params.request_id)
            for watch in self.watches:
                watch.on_cancelled(session, params.request_id)
        elif method == "notifications/subscriptions/acknowledged":
            for watch in self.watches:
                watch.on_acknowledged(session, params.meta.subscription, params.notifications)
        elif method == "notifications/elicitation/complete" and params.elicitation_id is not None:
            self._completed.append(params.elicitation_id)
            self._completion.set()
            self._completion.clear()

    def _report(self, session: ClientSession, change: Change, params: _Params) -> None:
        for watch in self.watches:
            watch.on_change(session, change, params.meta.subscription)

    def _is_wanted(self, level: str) -> bool:
        lowest = self._log_level
        if lowest not in LOG_LEVELS or level not in LOG_LEVELS:
            return True
        return LOG_LEVELS.index(level) >= LOG_LEVELS.index(lowest)

    def on_request(self, session: ClientSession, message: Message) -> None:
        self._handlers.take(session, message)

    def on_session_lost(self, session: ClientSession) -> None:
        self._handlers.on_lost(session)
        for watch in self.watches:
            watch.on_lost(session)

    # -- errors

    def read(self, read: Callable[[Any], T], answer: Any) -> T:
        """Read an answer. Raises BadAnswer with the server's label."""
        try:
            return read(answer)
        except BadAnswer as problem:
            raise self.locate(problem) from None

    def locate(self, problem: E) -> E:
        """The same problem with the server's label and the end of its stderr."""
        return problem.at(self.name) if self.current is None else self.current.locate(problem)

    def bad_answer(self, what: str) -> BadAnswer:
        return self.locate(BadAnswer(what))

    # -- requests

    async def send(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        timeout: Any = DEFAULT,
        progress: Progress | None = None,
        headers: Headers = (),
        safe: bool = False,
    ) -> Raw:
        """Send a request, and again after a lost connection if that does no harm. One timeout holds for all."""
        seconds = self._seconds(timeout)
        clock, tries = self._clock, 0
        if clock is None:
            raise self._not_open()
        begun = clock.now()
        while True:
            session = self.current
            if session is None or session.closed is not None:
                session = await self._reconnect(method, seconds, begun)
            try:
                return await session.request(
                    method, params, timeout=seconds, begun=begun, progress=progress, headers=headers
                )
            except ConnectionLost as lost:
                again = lost.unsent or (safe and tries == 0)
                if not again or not self.reconnect or self.closed or tries == RESENDS:
                    raise
                tries += 1
                pause = BACKOFF.pause(tries)
                if seconds is not None and clock.now() + pause >= begun + seconds:
                    raise
            await asyncio.sleep(pause)

    def _seconds(self, timeout: Any) -> float | None:
        seconds: float | None = self._options.timeout if timeout is DEFAULT else timeout
        return seconds

    async def _reconnect(self, method: str, seconds: float | None, begun: float) -> ClientSession:
        """Connect within the rest of a request's timeout."""
        now = begun if self._clock is None else self._clock.now()
        try:
            return await self._session_within(None if seconds is None else max(begun + seconds - now, 0.0))
        except TimeoutError as problem:
            if isinstance(problem, ClientError):
                raise
            what = f"{method} could not be sent within {seconds:g} s: the lost connection is still being made anew"
            raise CallTimeout(what, self.name) from None

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Send a request that only reads and is answered without questions."""
        record = self.read(read_object, await self.send(method, params, safe=True))
        kind = self._result_type(record)
        if kind != "complete":
            raise self.bad_answer(_UNEXPECTED.format(str(kind)[:50]))
        return record

    async def complete(
        self,
        method: str,
        params: dict[str, Any],
        *,
        timeout: Any = DEFAULT,
        progress: Progress | None = None,
        headers: Headers = (),
        safe: bool = False,
        store: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """Send a request that may be answered with questions; answer them, and send it again with the answers.

        `store` gets a result that took no questions: only that may be cached.
        """
        extra: dict[str, Any] = {}
        url_rounds = 0
        for attempt in range(ROUNDS + 1):
            try:
                raw = await self.send(
                    method,
                    params | extra if extra else params,
                    timeout=timeout,
                    progress=progress,
                    headers=headers,
                    safe=safe and not extra,
                )
            except ServerError as problem:
                if url_rounds == URL_ROUNDS or not await self._visit_urls(problem, self._seconds(timeout)):
                    raise
                url_rounds += 1
                continue
            record = self.read(read_object, raw)
            kind = self._result_type(record)
            if kind == "complete":
                if store is not None and not extra:
                    store(record)
                return record
            if kind == "task":
                what = f"a result of the kind 'task', which this client does not follow; use request({method!r}, …)"
                raise self.bad_answer(what)
            if kind != "input_required":
                raise self.bad_answer(_UNEXPECTED.format(str(kind)[:50]))
            if attempt < ROUNDS:  # otherwise a person would be asked for nothing
                extra = await self._answer(record, attempt)
        raise self.bad_answer(f"{method} was answered with questions more than {ROUNDS} times")

    def _result_type(self, record: dict[str, Any]) -> Any:
        """The kind of a result. The handshake era has only one, and servers' values for it are ignored."""
        modern = self.current is not None and self.current.envelope is not None
        return record.get("resultType", "complete") if modern else "complete"

    # -- questions

    async def _visit_urls(self, problem: ServerError, seconds: float | None) -> bool:
        """Have the user visit the pages that a server of 2025-11-25 requires first. False: there is nothing to retry.

        Consent is not completion: the server reports completion by a notification, or the timeout passes.
        """
        pages = as_array(as_object(problem.data).get("elicitations"))
        required = problem.code == URL_ELICITATION_REQUIRED
        if not required or not pages or "elicitation/create" not in self._handlers.handled:
            return False
        ids: set[str] = set()
        for page in pages:
            params: dict[str, Any] = {**page, "mode": "url"} if is_object(page) else {}
            try:
                answer = await self._handled(self._handlers.answer("elicitation/create", params))
            except Unanswerable:
                return False
            if answer.get("action") != "accept":
                return False
            if isinstance(params.get("elicitationId"), str):
                ids.add(params["elicitationId"])
        try:
            async with asyncio.timeout(seconds):
                while not ids <= set(self._completed):
                    await self._completion.wait()
        except TimeoutError:
            pass  # servers need not report completion
        return True

    async def _answer(self, record: dict[str, Any], attempt: int) -> dict[str, Any]:
        questions, state = record.get("inputRequests"), record.get("requestState")
        extra: dict[str, Any] = {}
        if isinstance(questions, dict) and questions:
            answers = self._handlers.answer_all(cast("dict[str, Any]", questions))
            extra["inputResponses"] = await self._handled(answers)
        elif state is None:
            raise self.bad_answer("it asks for input without saying which")
        else:
            await asyncio.sleep(busy_delay(attempt))
        if state is not None:
            extra["requestState"] = state
        return extra

    async def _handled(self, answering: Awaitable[T]) -> T:
        """Await a handler's answer. Its exceptions become ClientErrors."""
        try:
            return await answering
        except Unanswerable as problem:
            raise self.locate(problem) from None
        except Exception as problem:
            if self.current is not None:
                self.current.note(f"a handler raised {problem!r}")
            raise self.locate(ClientError(f"it asked a question, and the handler raised {problem!r}")) from problem


def _retrieve(attempt: asyncio.Task[ClientSession]) -> None:
    """Mark an exception as retrieved: there may be no awaiter left, and asyncio would log it."""
    if not attempt.cancelled():
        attempt.exception()
