"""Requests to one server, over as many connections as it takes.

A connection that is lost is made anew by the next request that needs one. A request that was under way is sent again if
that can do no harm: it only reads, the tool says that it may be repeated, or it surely never arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast, final

from msgspec import Raw

from longshore.client.answering import Answering
from longshore.client.channel import Channel
from longshore.client.era import Wish
from longshore.client.opening import Opening
from longshore.client.pending import Progress
from longshore.client.records import ServerInfo
from longshore.client.results import read_object
from longshore.client.session import Session
from longshore.client.targets import Target
from longshore.client.visits import DONE, Visits
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
from longshore.retry import Backoff
from longshore.schema.kinds import is_array, is_object

T = TypeVar("T")
E = TypeVar("E", bound=ClientError)

ROUNDS = 16
"""Rounds of questions that one request may take."""
BACKOFF = Backoff(0.05, 1.0)
WAITS = BACKOFF.pauses(5)
"""Pauses before a lost request is sent again: the server may just be starting."""
VISITS = 3
"""Times that one request may want pages visited first."""
PAGES_FIRST = -32042
DEFAULT: Any = object()
"""The time that the client has for every answer."""


def later(attempt: int) -> float:
    """How many seconds to wait where a server asks nothing but to come again."""
    return BACKOFF.pause(attempt + 1)


@final
class Line:
    """`heard` and `lost` are told what comes of itself; they are set before it is opened."""

    heard: Callable[[Session, str, Raw], None]
    lost: Callable[[Session], None]

    def __init__(
        self,
        target: Target,
        wish: Wish,
        *,
        name: str | None,
        timeout: float | None,
        reconnect: bool,
        limits: Limits,
        answering: Answering,
        opened: Callable[[Session, bool], Awaitable[None]],
    ) -> None:
        self.name = name or target.name
        self.reconnect = reconnect
        self.wish = wish
        self._target, self._timeout, self._limits = target, timeout, limits
        self._answering = answering
        self._opened = opened
        self._opening: Opening | None = None
        self._openers = 0
        self._visits = Visits()

    # -- the connection

    async def open(self) -> None:
        if self.closed:
            self._opening = Opening(
                self._target, self.wish, self._timeout, self.reconnect, self._make_session, self._opened
            )
            self._visits = Visits()
        self._openers += 1
        try:
            await self.session()
        except BaseException:
            if self._openers == 1:  # or somebody else still wants it
                await self.close()
            raise
        finally:
            self._openers -= 1

    async def close(self) -> None:
        if self._opening is not None:
            await self._opening.close()

    async def session(self) -> Session:
        """The connection; another if it was lost. Raises ConnectError."""
        opening = self._opening
        if opening is None:
            raise self._not_open()
        current = opening.current
        return current if current is not None and current.gone is None else await opening.session()

    @property
    def closed(self) -> bool:
        return self._opening is None or self._opening.closed

    @property
    def connected(self) -> bool:
        current = self._current
        return current is not None and current.gone is None

    @property
    def server(self) -> ServerInfo:
        if self._opening is None or self._opening.server is None:
            raise self._not_open()
        return self._opening.server

    @property
    def notes(self) -> list[str]:
        """What was odd about what came."""
        current = self._current
        return [] if current is None else list(current.notes)

    def said(self) -> str:
        current = self._current
        return "" if current is None else current.channel.said()

    @property
    def _current(self) -> Session | None:
        return None if self._opening is None else self._opening.current

    def _not_open(self) -> ConnectError:
        return ConnectError("the client is not open; write `async with Client(…)`", self.name)

    def _make_session(self, channel: Channel) -> Session:
        if self.name != self._target.name:
            channel.where = f"{self.name}: {channel.where}"
        return Session(channel, self._limits, self._hear, self._answering.take, self._lose)

    def _hear(self, session: Session, method: str, params: Raw) -> None:
        if method != DONE:
            self.heard(session, method, params)
        elif not self._visits.hear(params):
            session.note(f"the parameters of {method} can't be read")

    def _lose(self, session: Session) -> None:
        self._answering.lost(session)
        self.lost(session)

    # -- answers

    def read(self, read: Callable[[Any], T], answer: Any) -> T:
        """An answer as what it should be. Raises BadAnswer, which says whose it was."""
        try:
            return read(answer)
        except BadAnswer as problem:
            raise self.place(problem) from None

    def place(self, problem: E) -> E:
        """The same problem, and which server it is about, and what that last said."""
        current = self._current
        if current is None:
            return problem.at(self.name)
        return problem.at(current.channel.where, current.channel.said())

    # -- requests

    async def send(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        timeout: Any = DEFAULT,
        progress: Progress | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        safe: bool = False,
    ) -> Raw:
        """Send a request, and again where the connection was lost and that does no harm. All in the same time."""
        seconds = self._seconds(timeout)
        spent, tries = 0.0, 0
        while True:
            session = self._current
            if session is None or session.gone is not None:
                session, took = await self._connect(method, seconds, spent)
                spent += took
            begun = session.clock.now()
            try:
                return await session.request(
                    method, params, timeout=seconds, spent=spent, progress=progress, headers=headers
                )
            except ConnectionLost as lost:
                again = lost.unsent or (safe and tries == 0)
                if not again or not self.reconnect or self.closed or tries == len(WAITS):
                    raise
                spent += session.clock.now() - begun + WAITS[tries]
                if seconds is not None and spent >= seconds:
                    raise
            await asyncio.sleep(WAITS[tries])
            tries += 1

    def _seconds(self, timeout: Any) -> float | None:
        seconds: float | None = self._timeout if timeout is DEFAULT else timeout
        return seconds

    async def _connect(self, method: str, seconds: float | None, spent: float) -> tuple[Session, float]:
        """A connection, in the time that a request has left."""
        if self._opening is None:
            raise self._not_open()
        try:
            return await self._opening.session_within(None if seconds is None else max(seconds - spent, 0.0))
        except TimeoutError as problem:
            if isinstance(problem, ClientError):
                raise
            what = f"{method} could not be sent within {seconds:g} s: the lost connection is still being made anew"
            raise CallTimeout(what, self.name) from None

    async def complete(
        self,
        method: str,
        params: dict[str, Any],
        *,
        timeout: Any = DEFAULT,
        progress: Progress | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        safe: bool = False,
        keep: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """Send a request that may be answered with questions; answer them, and ask again with the answers.

        `keep` gets a result that took no questions: only such a one may be kept for others who ask the same.
        """
        extra: dict[str, Any] = {}
        visits = 0
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
                if visits == VISITS or not await self._visited(problem, self._seconds(timeout)):
                    raise
                visits += 1
                continue
            record = self.read(read_object, raw)
            kind = self._kind(record)
            if kind == "complete":
                if keep is not None and not extra:
                    keep(record)
                return record
            if kind == "task":
                what = f"a result of the kind 'task', which this client does not follow; use request({method!r}, …)"
                raise self.place(BadAnswer(what))
            if kind != "input_required":
                raise self._disagree(kind)
            if attempt < ROUNDS:  # or a person would be asked in vain
                extra = await self._answer(record, attempt)
        raise self.place(BadAnswer(f"{method} was answered with questions more than {ROUNDS} times"))

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Send a request that only reads and is answered without questions."""
        record = self.read(read_object, await self.send(method, params, safe=True))
        kind = self._kind(record)
        if kind != "complete":
            raise self._disagree(kind)
        return record

    def _kind(self, record: dict[str, Any]) -> Any:
        """What a result is. In the handshake era there is one kind, whatever else stands there."""
        current = self._current
        modern = current is not None and current.envelope is not None
        return record.get("resultType", "complete") if modern else "complete"

    def _disagree(self, kind: Any) -> BadAnswer:
        return self.place(BadAnswer(f"a result of a kind that was not agreed on: {str(kind)[:50]!r}"))

    async def _visited(self, problem: ServerError, seconds: float | None) -> bool:
        """Whether a server of 2025-11-25 wanted pages visited first, and they were, or there was time for it."""
        pages: Any = problem.data.get("elicitations") if is_object(problem.data) else None
        if problem.code != PAGES_FIRST or not is_array(pages) or not pages or not self._answering.elicits:
            return False
        asked: set[str] = set()
        for page in pages:
            params: dict[str, Any] = {**page, "mode": "url"} if is_object(page) else {}
            try:
                answer = await self._handled(self._answering.answer("elicitation/create", params))
            except Unanswerable:
                return False
            if answer.get("action") != "accept":
                return False
            if isinstance(params.get("elicitationId"), str):
                asked.add(params["elicitationId"])
        await self._visits.wait(asked, seconds)
        return True

    async def _answer(self, record: dict[str, Any], attempt: int) -> dict[str, Any]:
        questions, state = record.get("inputRequests"), record.get("requestState")
        extra: dict[str, Any] = {}
        if isinstance(questions, dict) and questions:
            answers = self._answering.answer_all(cast("dict[str, Any]", questions))
            extra["inputResponses"] = await self._handled(answers)
        elif state is None:
            raise self.place(BadAnswer("it asks for input without saying which"))
        else:
            await asyncio.sleep(later(attempt))  # it has too much to do
        if state is not None:
            extra["requestState"] = state
        return extra

    async def _handled(self, answering: Awaitable[T]) -> T:
        """What a handler answers. What it raises, the caller gets in words."""
        try:
            return await answering
        except Unanswerable as problem:
            raise self.place(problem) from None
        except Exception as problem:
            current = self._current
            if current is not None:
                current.note(f"a handler raised {problem!r}")
            raise self.place(ClientError(f"it asked a question, and the handler raised {problem!r}")) from problem
