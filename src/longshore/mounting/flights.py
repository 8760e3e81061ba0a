"""Calls at a server of the handshake era, which may ask in the middle of one.

Such a call can't be begun twice, so it is a task of its own, a flight. A caller of the handshake era is asked while the
flight waits. To one of the stateless era the answer is `input_required`: the flight is held, and the retry, whose
signed state names it, goes on with it. Nothing in a question says which call it belongs to, and it must not reach a
stranger: it is passed on only while all that the server works on is for one caller. A call that waits for an answer
counts too, for it may ask for more meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from os import urandom
from typing import TYPE_CHECKING, Any, final

from longshore.errors import CapabilityMissing, ProtocolError, ToolError, Unanswerable
from longshore.mounting.questions import read_question, write_answer
from longshore.protocol.questions import Question, require
from longshore.server.link import LOCAL
from longshore.wire.codec import INTERNAL_ERROR, INVALID_PARAMS

if TYPE_CHECKING:
    from longshore.client.records import LogMessage
    from longshore.server.call import Call

HELD = 64
"""Flights that wait for stateless callers to come back, landed or not, at one server. More questions are refused."""


def caller_of(call: Call) -> object:
    """Who is behind a call: whoever has shown who they are, or else its session, which may be that one request.

    The session itself and not its address, which another one may have as soon as nobody holds this one.
    """
    name = call.link.principal.name
    return call.session if name == LOCAL.name else name


def new_id() -> str:
    """A name for a flight that nobody could guess."""
    return urandom(12).hex()


@final
class Asked:
    """A question of the server's, and the answer to come."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    def settle(self, answer: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(write_answer(answer))

    def refuse(self, why: str, code: int = INTERNAL_ERROR) -> None:
        if not self.answer.done():
            self.answer.set_exception(Unanswerable(code, why))


@final
class Flight:
    """One call on its way. `call` is the request that waits for it now, if one does."""

    def __init__(self, id: str, call: Call, work: Coroutine[Any, Any, dict[str, Any]]) -> None:
        self.id = id
        self.call: Call | None = None
        self.caller = caller_of(call)
        self.questions: dict[str, Asked] = {}
        self.news = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(work)
        self.task.add_done_callback(self._landed)
        self._asked = 0
        self._expiry: asyncio.TimerHandle | None = None

    @property
    def stays(self) -> bool:
        """Whether it is held, or will be: its stateless caller is being answered with questions."""
        return self.call is None or (bool(self.questions) and self.call.peer.revision.modern)

    def _landed(self, task: asyncio.Task[Any]) -> None:
        self.news.set()
        for asked in self.questions.values():
            asked.refuse("the call that asked has ended")
        if not task.cancelled():
            task.exception()  # whoever waits raises it; if nobody does, nobody is missing it

    def put(self, prefix: str, asked: Asked) -> str:
        self._asked += 1
        key = f"{prefix}-{self._asked}"
        self.questions[key] = asked
        self.news.set()
        return key

    def board(self, call: Call) -> None:
        """A request goes on with it."""
        if self.call is not None:
            raise ToolError("another request goes on with this call already")
        self.call, self.caller = call, caller_of(call)
        self.news.set()
        if self._expiry is not None:
            self._expiry.cancel()

    def hold(self, seconds: float, forget: Callable[[Flight], None]) -> None:
        """Its request was answered with questions. The next one has so long to come, also if it lands meanwhile."""
        self.call = None
        self._expiry = asyncio.get_running_loop().call_later(seconds, forget, self)


@final
class Flights:
    """What one mounted server works on for us."""

    def __init__(self, prefix: str, told: Callable[[str], None]) -> None:
        self._prefix, self._told = prefix, told
        self._flights: dict[str, Flight] = {}
        self.calls: dict[Call, None] = {}
        """All requests that are passed on at this moment, of whatever kind."""

    # -- a call

    def start(self, id: str, call: Call, work: Coroutine[Any, Any, dict[str, Any]]) -> None:
        self._flights[id] = Flight(id, call, work)

    def follower(self, id: str) -> Call | None:
        """The request that waits for a flight now, if one does."""
        flight = self._flights.get(id)
        return None if flight is None else flight.call

    def _forget(self, flight: Flight) -> None:
        flight.task.cancel()
        self._flights.pop(flight.id, None)

    async def follow(self, id: str, call: Call) -> dict[str, Any]:
        """Wait for a flight's end, and have the caller answer what it asks meanwhile."""
        flight = self._flights.get(id)
        if flight is None:
            text = f"the call at {self._prefix!r} that asked is gone: the answer came too late, or to another process"
            raise ToolError(f"{text}; call again")
        flight.board(call)
        comes_again = False
        try:
            result = await self._fly(flight, call)
            comes_again = _asks(call)  # the questions are on their way out; the retry finds the result
            return result
        except asyncio.CancelledError:
            comes_again = _asks(call)
            raise
        finally:
            if comes_again:
                flight.hold(call.executor.limits.state_seconds, self._forget)
            else:
                self._forget(flight)

    async def _fly(self, flight: Flight, call: Call) -> dict[str, Any]:
        while True:
            await flight.news.wait()
            flight.news.clear()
            if flight.task.done():
                return await flight.task
            await self._answer(flight, call)

    async def _answer(self, flight: Flight, call: Call) -> None:
        """Put what the server asks to the caller. The server may give up on it meanwhile."""
        for key, asked in list(flight.questions.items()):
            try:
                require(asked.question, call.peer)
            except CapabilityMissing as problem:  # of this question alone: the others may still be answered
                asked.refuse(str(problem))
            if asked.answer.done():
                del flight.questions[key]
        puts = {key: asked.question for key, asked in flight.questions.items()}
        if not puts:
            return
        asking = asyncio.ensure_future(call.context.ask(**puts))
        given_up = (asked.answer for asked in flight.questions.values())
        ends: list[asyncio.Future[Any]] = [asking, flight.task, *given_up]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                self._settle(flight, puts, asking)
                call.executor.questions.remember(call, "flight", flight.id)  # it has its answers: they travel no more
            flight.news.set()
        finally:
            asking.cancel()
            await asyncio.wait([asking])
            if not asking.cancelled():
                asking.exception()

    def _settle(self, flight: Flight, puts: Mapping[str, Question], asking: asyncio.Future[Any]) -> None:
        problem = asking.exception()
        if problem is not None and not isinstance(problem, Exception):
            raise problem
        code, why = self._refusal(problem) if problem is not None else (0, "")
        for key in puts:
            asked = flight.questions.pop(key, None)
            if asked is not None and problem is not None:
                asked.refuse(why, code)
            elif asked is not None:
                asked.settle(asking.result()[key])

    def _refusal(self, problem: Exception) -> tuple[int, str]:
        """What the server is told whose question could not be put. What nobody foresaw must not end the call."""
        if isinstance(problem, (ToolError, ProtocolError)):
            return INTERNAL_ERROR, str(problem)
        self._told(f"a question of its could not be put: {problem!r}")
        return INVALID_PARAMS, "the question can't be read"

    # -- what the server says meanwhile

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """A question of the server's, for whoever it works for. Raises Unanswerable."""
        flight = self._whose()
        try:
            asked = Asked(read_question(self._prefix, method, params))
        except ToolError as problem:
            raise Unanswerable(INVALID_PARAMS, str(problem)) from None
        key = flight.put(self._prefix, asked)
        try:
            return await asked.answer
        except asyncio.CancelledError:
            asked.refuse("the server does not want to know any more")
            raise
        finally:
            if asked.answer.done() and not asked.answer.cancelled():
                asked.answer.exception()
            flight.questions.pop(key, None)

    def _whose(self) -> Flight:
        """The flight that asks, if only one caller's can: also one that waits for an answer may ask again."""
        flights = [flight for flight in self._flights.values() if not flight.task.done()]
        if not flights:
            raise Unanswerable(INVALID_PARAMS, "nobody who could be asked waits for an answer")
        callers = {flight.caller for flight in flights} | {caller_of(call) for call in self.calls}
        if len(callers) > 1:
            text = "requests of several callers are being worked on, so nobody knows whom to ask"
            raise Unanswerable(INTERNAL_ERROR, text)
        if sum(flight.stays for flight in self._flights.values()) >= HELD:
            raise Unanswerable(INTERNAL_ERROR, f"{HELD} calls wait for answers already")
        return flights[-1]

    def log(self, message: LogMessage) -> None:
        """A log message of the server's, for the caller, while there is one."""
        calls = list(self.calls)
        if calls and len({caller_of(call) for call in calls}) == 1:
            logger = self._prefix if message.logger is None else f"{self._prefix}.{str(message.logger)[:100]}"
            try:
                calls[-1].context.log(message.level, message.data, logger=logger)
            except ValueError:
                pass  # a level that does not exist


def _asks(call: Call) -> bool:
    """Whether a call is answered with questions, so that another will go on with what it began."""
    asked = call.elicitation
    if call.ended or asked is None or not asked.open:
        return False
    return asked.fault is None and asked.round < call.executor.limits.questions  # else the questions do not leave
