"""Calls at a server of the handshake era, which may ask a question in the middle of a call.

Such a call can't be sent twice, so it runs in a task of its own. A caller of the handshake era is asked while the call
waits. A caller of the stateless era gets `input_required`: the call is held, and the retry, whose signed state names
it, continues it. A question does not say which call it belongs to, and it must not reach a stranger: it is passed on
only while all that the server works on is for one caller. A call that waits for an answer counts too, for it may ask
again meanwhile.
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
    from longshore.client.models import LogMessage
    from longshore.server.call import Call

HELD = 64
"""Calls at one server that are held for the retries of stateless callers. More questions are refused."""


def caller_of(call: Call) -> object:
    """The caller: the authenticated principal, else the session, which may be that one request.

    The session itself and not its address, which another session may get later.
    """
    name = call.link.principal.name
    return call.session if name == LOCAL.name else name


@final
class PendingQuestion:
    """A question of the server's, and the answer to come."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    def set_answer(self, answer: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(write_answer(answer))

    def refuse(self, why: str, code: int = INTERNAL_ERROR) -> None:
        if not self.answer.done():
            self.answer.set_exception(Unanswerable(code, why))


@final
class PendingCall:
    """A call that the server works on. `call` is the request that waits for it now, if one does."""

    def __init__(self, id: str, call: Call, work: Coroutine[Any, Any, dict[str, Any]]) -> None:
        self.id = id
        self.call: Call | None = None
        self.caller = caller_of(call)
        self.questions: dict[str, PendingQuestion] = {}
        self.changed = asyncio.Event()
        """Set when a question has come or the call has ended."""
        self.task = asyncio.get_running_loop().create_task(work)
        self.task.add_done_callback(self._on_done)
        self._asked = 0
        self._expiry: asyncio.TimerHandle | None = None

    @property
    def is_held(self) -> bool:
        """Whether it is held, or will be: its stateless caller is being answered with questions."""
        return self.call is None or (bool(self.questions) and self.call.peer.revision.modern)

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self.changed.set()
        for pending in self.questions.values():
            pending.refuse("the call that asked has ended")
        if not task.cancelled():
            task.exception()  # a waiting request raises it; there may be none

    def add_question(self, prefix: str, pending: PendingQuestion) -> str:
        self._asked += 1
        key = f"{prefix}-{self._asked}"
        self.questions[key] = pending
        self.changed.set()
        return key

    def attach(self, call: Call) -> None:
        """A request waits for it from now on."""
        if self.call is not None:
            raise ToolError("another request goes on with this call already")
        self.call, self.caller = call, caller_of(call)
        self.changed.set()
        if self._expiry is not None:
            self._expiry.cancel()

    def hold(self, seconds: float, forget: Callable[[PendingCall], None]) -> None:
        """Wait for the retry for so long, also if the call ends meanwhile."""
        self.call = None
        self._expiry = asyncio.get_running_loop().call_later(seconds, forget, self)


@final
class PendingCalls:
    """The requests that one mounted server works on for us."""

    def __init__(self, prefix: str, warn: Callable[[str], None]) -> None:
        self._prefix, self._warn = prefix, warn
        self._pending: dict[str, PendingCall] = {}
        self.requests: dict[Call, None] = {}
        """All requests that are forwarded at this moment, of any kind."""

    # -- a call

    def start(self, call: Call, work: Callable[[str], Coroutine[Any, Any, dict[str, Any]]]) -> str:
        """Start a call. `work` gets its id, which can't be guessed."""
        id = urandom(12).hex()
        self._pending[id] = PendingCall(id, call, work(id))
        return id

    def request_of(self, id: str) -> Call | None:
        """The request that waits for a call now, if one does."""
        pending = self._pending.get(id)
        return None if pending is None else pending.call

    def _forget(self, pending: PendingCall) -> None:
        pending.task.cancel()
        self._pending.pop(pending.id, None)

    async def wait(self, id: str, call: Call) -> dict[str, Any]:
        """Wait for a call's result, and put its questions to the caller meanwhile."""
        pending = self._pending.get(id)
        if pending is None:
            text = f"the call at {self._prefix!r} that asked is gone: the answer came too late, or to another process"
            raise ToolError(f"{text}; call again")
        pending.attach(call)
        is_retried = False
        try:
            result = await self._wait(pending, call)
            is_retried = _asks(call)  # the questions are on their way out; the retry finds the result
            return result
        except asyncio.CancelledError:
            is_retried = _asks(call)
            raise
        finally:
            if is_retried:
                pending.hold(call.executor.limits.state_seconds, self._forget)
            else:
                self._forget(pending)

    async def _wait(self, pending: PendingCall, call: Call) -> dict[str, Any]:
        while True:
            await pending.changed.wait()
            pending.changed.clear()
            if pending.task.done():
                return await pending.task
            await self._put_questions(pending, call)

    async def _put_questions(self, pending: PendingCall, call: Call) -> None:
        """Put the server's questions to the caller. The server may take them back meanwhile."""
        for key, each in list(pending.questions.items()):
            try:
                require(each.question, call.peer)
            except CapabilityMissing as problem:  # of this question alone: the others may still be answered
                each.refuse(str(problem))
            if each.answer.done():
                del pending.questions[key]
        questions = {key: each.question for key, each in pending.questions.items()}
        if not questions:
            return
        asking = asyncio.ensure_future(call.context.ask(**questions))
        taken_back = (each.answer for each in pending.questions.values())
        ends: list[asyncio.Future[Any]] = [asking, pending.task, *taken_back]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                self._pass_answers(pending, questions, asking)
                call.executor.questions.remember(call, "pending", pending.id)  # the answers have arrived: forget them
            pending.changed.set()
        finally:
            asking.cancel()
            await asyncio.wait([asking])
            if not asking.cancelled():
                asking.exception()

    def _pass_answers(
        self, pending: PendingCall, questions: Mapping[str, Question], asking: asyncio.Future[Any]
    ) -> None:
        problem = asking.exception()
        if problem is not None and not isinstance(problem, Exception):
            raise problem
        code, why = self._refusal(problem) if problem is not None else (0, "")
        for key in questions:
            each = pending.questions.pop(key, None)
            if each is not None and problem is not None:
                each.refuse(why, code)
            elif each is not None:
                each.set_answer(asking.result()[key])

    def _refusal(self, problem: Exception) -> tuple[int, str]:
        """The code and text for a server whose question could not be put. An unexpected error must not end the call."""
        if isinstance(problem, (ToolError, ProtocolError)):
            return INTERNAL_ERROR, str(problem)
        self._warn(f"a question of its could not be put: {problem!r}")
        return INVALID_PARAMS, "the question can't be read"

    # -- what the server sends meanwhile

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Put a question of the server's to the caller that it works for. Raises Unanswerable."""
        pending = self._asking_call()
        try:
            asked = PendingQuestion(read_question(self._prefix, method, params))
        except ToolError as problem:
            raise Unanswerable(INVALID_PARAMS, str(problem)) from None
        key = pending.add_question(self._prefix, asked)
        try:
            return await asked.answer
        except asyncio.CancelledError:
            asked.refuse("the server does not want to know any more")
            raise
        finally:
            if asked.answer.done() and not asked.answer.cancelled():
                asked.answer.exception()
            pending.questions.pop(key, None)

    def _asking_call(self) -> PendingCall:
        """The call that asks, if all calls are one caller's."""
        running = [each for each in self._pending.values() if not each.task.done()]
        if not running:
            raise Unanswerable(INVALID_PARAMS, "nobody who could be asked waits for an answer")
        callers = {each.caller for each in running} | {caller_of(call) for call in self.requests}
        if len(callers) > 1:
            text = "requests of several callers are being worked on, so nobody knows whom to ask"
            raise Unanswerable(INTERNAL_ERROR, text)
        if sum(each.is_held for each in self._pending.values()) >= HELD:
            raise Unanswerable(INTERNAL_ERROR, f"{HELD} calls wait for answers already")
        return running[-1]

    def log(self, message: LogMessage) -> None:
        """Pass a log message of the server's to the caller, if there is only one."""
        calls = list(self.requests)
        if calls and len({caller_of(call) for call in calls}) == 1:
            logger = self._prefix if message.logger is None else f"{self._prefix}.{str(message.logger)[:100]}"
            try:
                calls[-1].context.log(message.level, message.data, logger=logger)
            except ValueError:
                pass  # a level that does not exist


def _asks(call: Call) -> bool:
    """Whether a call is answered with questions, so that a retry will continue it."""
    asked = call.elicitation
    if call.ended or asked is None or not asked.open:
        return False
    return asked.fault is None and asked.round < call.executor.limits.questions  # else the questions are not sent
