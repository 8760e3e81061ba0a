"""Requests to one server, over as many connections as it takes.

A lost connection is made anew by the next request that needs one. A request that was under way is sent again if that
does no harm: it only reads, the tool declares that it may be repeated, or it surely never arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast, final

from msgspec import Raw, Struct

from longshore.client.cache import Cache
from longshore.client.channel import ChannelFactory
from longshore.client.clock import PausableClock
from longshore.client.connector import Connector
from longshore.client.handlers import RequestHandlers, UrlElicitations
from longshore.client.models import Change, LogMessage, ServerInfo, read_object
from longshore.client.negotiate import ClientHello
from longshore.client.session import ClientSession, Headers, Progress
from longshore.client.targets import Target
from longshore.client.watches import NotificationRouter, Watches
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
from longshore.protocol.peer import PREFIX
from longshore.retry import Backoff
from longshore.schema.kinds import is_array, is_object
from longshore.wire.messages import Message

T = TypeVar("T")
E = TypeVar("E", bound=ClientError)

ROUNDS = 16
"""Rounds of questions that one request may take."""
BACKOFF = Backoff(0.05, 1.0)
RESENDS = 5
"""Times that a request is sent again: the server may just be starting."""
URL_ROUNDS = 3
"""Times that one request may require pages to be visited first."""
URL_ELICITATION_REQUIRED = -32042
DEFAULT: Any = object()
"""The client's own timeout."""


def busy_delay(attempt: int) -> float:
    """Seconds to wait where a server asks for nothing but to be called again."""
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


@final
class ReconnectingSession:
    """A session that outlives its connections."""

    def __init__(
        self, target: Target, hello: ClientHello, options: ConnectionOptions, handlers: RequestHandlers, cache: Cache
    ) -> None:
        self.name = options.name or target.name
        self.reconnect = options.reconnect
        self._target, self._hello, self._options = target, hello, options
        self._handlers, self._cache = handlers, cache
        self._connector: Connector | None = None
        self._openers = 0
        self._elicitations = UrlElicitations()
        self.subscriptions = Watches(self, options.on_change)
        self.notifications = NotificationRouter(
            cache, self.subscriptions, handlers, self._elicitations, options.on_log, options.log_level
        )

    # -- the connection

    async def open(self) -> None:
        if self.closed:
            self._connector = Connector(
                self._target, self._hello, self._options.timeout, self.reconnect, self._make_session, self._on_opened
            )
        self._openers += 1
        try:
            await self.session()
        except BaseException:
            if self._openers == 1:  # else another caller still needs it
                await self.close()
            raise
        finally:
            self._openers -= 1

    async def close(self) -> None:
        if self._connector is not None:
            await self._connector.close()

    async def session(self) -> ClientSession:
        """The current connection, made anew if it was lost. Raises ConnectError."""
        connector = self._connector
        if connector is None:
            raise self._not_open()
        current = connector.current
        return current if current is not None and current.closed is None else await connector.session()

    @property
    def closed(self) -> bool:
        return self._connector is None or self._connector.closed

    @property
    def connected(self) -> bool:
        current = self._current
        return current is not None and current.closed is None

    @property
    def server(self) -> ServerInfo:
        if self._connector is None or self._connector.server is None:
            raise self._not_open()
        return self._connector.server

    @property
    def notes(self) -> list[str]:
        current = self._current
        return [] if current is None else list(current.notes)

    def stderr_tail(self) -> str:
        current = self._current
        return "" if current is None else current.channel.stderr_tail()

    @property
    def _current(self) -> ClientSession | None:
        return None if self._connector is None else self._connector.current

    def _not_open(self) -> ConnectError:
        return ConnectError("the client is not open; write `async with Client(…)`", self.name)

    def _make_session(self, make_channel: ChannelFactory, clock: PausableClock) -> ClientSession:
        name = "" if self.name == self._target.name else self.name
        return ClientSession(make_channel, clock, self._options.limits, self, name)

    async def _on_opened(self, session: ClientSession, again: bool) -> None:
        """Bring a new connection to the state of the last one."""
        self._cache.clear()
        level = self.notifications.log_level
        if level is not None:
            await self._set_initial_level(session, level)
        await self.subscriptions.on_opened(session, self.server, again)

    async def _set_initial_level(self, session: ClientSession, level: str) -> None:
        if session.envelope is not None:
            session.envelope = {**session.envelope, PREFIX + "logLevel": level}
        elif self.server.can("logging"):
            try:
                await session.request("logging/setLevel", {"level": level}, timeout=self._options.timeout)
            except ClientError as problem:
                if session.closed is not None:
                    raise
                session.note(f"the level of its log could not be set: {problem.what}")

    async def set_log_level(self, level: str) -> None:
        session = await self.session()
        self.notifications.log_level = level
        if session.envelope is not None:
            session.envelope = {**session.envelope, PREFIX + "logLevel": level}
        elif self.server.can("logging"):  # a server without that capability may log all the same
            await self.send("logging/setLevel", {"level": level}, safe=True)

    # -- what a session reports

    def on_notification(self, session: ClientSession, method: str, params: Raw) -> None:
        self.notifications.route(session, method, params)

    def on_request(self, session: ClientSession, message: Message) -> None:
        self._handlers.take(session, message)

    def on_session_lost(self, session: ClientSession) -> None:
        self._handlers.on_lost(session)
        self.subscriptions.on_lost(session)

    # -- errors

    def read(self, read: Callable[[Any], T], answer: Any) -> T:
        """Read an answer. Raises BadAnswer with the server's label."""
        try:
            return read(answer)
        except BadAnswer as problem:
            raise self.locate(problem) from None

    def locate(self, problem: E) -> E:
        """The same problem with the server's label and the end of its stderr."""
        current = self._current
        return problem.at(self.name) if current is None else current.locate(problem)

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
        spent, tries = 0.0, 0
        while True:
            session = self._current
            if session is None or session.closed is not None:
                session, took = await self._connect(method, seconds, spent)
                spent += took
            begun = session.clock.now()
            try:
                return await session.request(
                    method, params, timeout=seconds, spent=spent, progress=progress, headers=headers
                )
            except ConnectionLost as lost:
                again = lost.unsent or (safe and tries == 0)
                if not again or not self.reconnect or self.closed or tries == RESENDS:
                    raise
                tries += 1
                pause = BACKOFF.pause(tries)
                spent += session.clock.now() - begun + pause
                if seconds is not None and spent >= seconds:
                    raise
            await asyncio.sleep(pause)

    def _seconds(self, timeout: Any) -> float | None:
        seconds: float | None = self._options.timeout if timeout is DEFAULT else timeout
        return seconds

    async def _connect(self, method: str, seconds: float | None, spent: float) -> tuple[ClientSession, float]:
        """Connect within the rest of a request's timeout."""
        if self._connector is None:
            raise self._not_open()
        try:
            return await self._connector.session_within(None if seconds is None else max(seconds - spent, 0.0))
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
            raise self._unexpected(kind)
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
                raise self.locate(BadAnswer(what))
            if kind != "input_required":
                raise self._unexpected(kind)
            if attempt < ROUNDS:  # else a person would be asked in vain
                extra = await self._answer(record, attempt)
        raise self.locate(BadAnswer(f"{method} was answered with questions more than {ROUNDS} times"))

    def _result_type(self, record: dict[str, Any]) -> Any:
        """The kind of a result. The handshake era has only one, whatever a server writes there."""
        current = self._current
        modern = current is not None and current.envelope is not None
        return record.get("resultType", "complete") if modern else "complete"

    def _unexpected(self, kind: Any) -> BadAnswer:
        return self.locate(BadAnswer(f"a result of a kind that was not agreed on: {str(kind)[:50]!r}"))

    # -- questions

    async def _visit_urls(self, problem: ServerError, seconds: float | None) -> bool:
        """Have the user visit the pages that a server of 2025-11-25 requires first. False: there is nothing to retry.

        Consent is not completion: the server reports completion by a notification, or the timeout passes.
        """
        pages: Any = problem.data.get("elicitations") if is_object(problem.data) else None
        required = problem.code == URL_ELICITATION_REQUIRED
        if not required or not is_array(pages) or not pages or not self._handlers.handles("elicitation/create"):
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
        await self._elicitations.wait(ids, seconds)
        return True

    async def _answer(self, record: dict[str, Any], attempt: int) -> dict[str, Any]:
        questions, state = record.get("inputRequests"), record.get("requestState")
        extra: dict[str, Any] = {}
        if isinstance(questions, dict) and questions:
            answers = self._handlers.answer_all(cast("dict[str, Any]", questions))
            extra["inputResponses"] = await self._handled(answers)
        elif state is None:
            raise self.locate(BadAnswer("it asks for input without saying which"))
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
            current = self._current
            if current is not None:
                current.note(f"a handler raised {problem!r}")
            raise self.locate(ClientError(f"it asked a question, and the handler raised {problem!r}")) from problem
