"""Work that asks its caller something half-way and can't be started again for the answer.

The work runs in a task of its own. A caller of the handshake era is asked while its request waits. A caller of the
stateless era gets `input_required`: the work is held, and the retry, whose signed state names it, continues it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from os import urandom
from typing import TYPE_CHECKING, Any, final

from longshore.errors import CapabilityMissing, ProtocolError, ToolError, Unanswerable
from longshore.protocol.questions import Question, require
from longshore.server.link import LOCAL
from longshore.wire.codec import INTERNAL_ERROR, INVALID_PARAMS

if TYPE_CHECKING:
    from longshore.server.call import Call

MEMO_KEY = "pending"
"""The key under which `ctx.once` stores the id of the work."""


def caller_of(call: Call) -> object:
    """The caller: the authenticated principal, else the session, which may be that one request.

    The session itself and not its address, which another session may get later.
    """
    name = call.link.principal.name
    return call.session if name == LOCAL.name else name


@final
class HeldQuestion:
    """A question of the work, and the answer to come."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def refuse(self, why: str, code: int = INTERNAL_ERROR) -> None:
        if not self.answer.done():
            self.answer.set_exception(Unanswerable(code, why))
            self.answer.exception()  # the work may have stopped waiting


@final
class HeldCall:
    """Work in progress for a caller. `call` is the request that waits for it now, if one does."""

    def __init__(self, call: Call, work: Callable[[HeldCall], Coroutine[Any, Any, Any]]) -> None:
        self.call: Call | None = None
        self.caller = caller_of(call)
        self.questions: dict[str, HeldQuestion] = {}
        self.asked = 0
        self.changed = asyncio.Event()
        """Set when a question has come or the work has ended."""
        self.expiry: asyncio.TimerHandle | None = None
        """Ends held work whose retry does not come."""
        self.task = asyncio.get_running_loop().create_task(work(self))
        self.task.add_done_callback(self._on_done)

    @property
    def is_held(self) -> bool:
        """Whether it is held, or will be: its stateless caller is being answered with questions."""
        return self.call is None or (bool(self.questions) and self.call.peer.revision.modern)

    async def ask(self, question: Question, label: str) -> Any:
        """Ask the caller, by a key that begins with `label`. Raises Unanswerable."""
        asked = HeldQuestion(question)
        self.asked += 1
        key = f"{label}-{self.asked}"
        self.questions[key] = asked
        self.changed.set()
        try:
            return await asked.answer
        finally:
            asked.refuse("the asking side does not want to know any more")
            self.questions.pop(key, None)

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self.changed.set()
        for pending in self.questions.values():
            pending.refuse("the call that asked has ended")
        if not task.cancelled():
            task.exception()  # a waiting request raises it; there may be none


@final
class HeldCalls:
    """The work in progress of one kind, by an id that can't be guessed. `what` names it in errors."""

    def __init__(self, what: str, warn: Callable[[str], None]) -> None:
        self._what, self._warn = what, warn
        self.all: dict[str, HeldCall] = {}

    def start(self, call: Call, work: Callable[[HeldCall], Coroutine[Any, Any, Any]]) -> str:
        """Start work for a call, and return its id for `wait`."""
        id = urandom(12).hex()
        self.all[id] = HeldCall(call, work)
        return id

    async def wait(self, id: str, call: Call) -> Any:
        """Wait for the result of the work, and put its questions to the caller meanwhile."""
        held = self.all.get(id)
        if held is None:
            text = f"{self._what} is gone: the answer came too late, or to another process"
            raise ToolError(f"{text}; call again")
        if held.call is not None:
            raise ToolError("another request goes on with this call already")
        held.call, held.caller = call, caller_of(call)
        held.changed.set()
        if held.expiry is not None:
            held.expiry.cancel()
        is_retried = False
        try:
            while True:
                await held.changed.wait()
                held.changed.clear()
                if held.task.done():
                    result = await held.task
                    is_retried = _asks(call)  # the questions are on their way out; the retry finds the result
                    return result
                await self._put_questions(id, held, call)
        except asyncio.CancelledError:
            is_retried = _asks(call)
            raise
        finally:
            held.call = None
            if is_retried:
                seconds = call.executor.limits.state_seconds
                held.expiry = asyncio.get_running_loop().call_later(seconds, self._forget, id)
            else:
                self._forget(id)

    def _forget(self, id: str) -> None:
        held = self.all.pop(id, None)
        if held is not None:
            held.task.cancel()

    async def _put_questions(self, id: str, held: HeldCall, call: Call) -> None:
        """Put the questions to the caller. The asking side may take them back meanwhile."""
        for key, each in list(held.questions.items()):
            try:
                require(each.question, call.peer)
            except CapabilityMissing as problem:  # of this question alone: the others may still be answered
                each.refuse(str(problem))
            if each.answer.done():
                del held.questions[key]
        put = dict(held.questions)
        if not put:
            return
        asking = asyncio.ensure_future(call.context.ask(**{key: each.question for key, each in put.items()}))
        ends: list[asyncio.Future[Any]] = [asking, held.task, *(each.answer for each in put.values())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                self._pass_answers(put, asking)
                for key in put:
                    held.questions.pop(key, None)
                call.executor.questions.remember(call, MEMO_KEY, id)  # the answers have arrived: forget them
            held.changed.set()
        finally:
            asking.cancel()
            await asyncio.wait([asking])
            if not asking.cancelled():
                asking.exception()

    def _pass_answers(self, put: Mapping[str, HeldQuestion], asking: asyncio.Future[Any]) -> None:
        """Pass on the answers, or why there are none. An unexpected error must not end the call."""
        problem = asking.exception()
        if problem is not None and not isinstance(problem, Exception):
            raise problem
        code, why = INTERNAL_ERROR, str(problem)
        if problem is not None and not isinstance(problem, (ToolError, ProtocolError)):
            self._warn(f"a question of its could not be put: {problem!r}")
            code, why = INVALID_PARAMS, "the question can't be read"
        for key, each in put.items():
            if problem is not None:
                each.refuse(why, code)
            elif not each.answer.done():
                each.answer.set_result(asking.result()[key])


def _asks(call: Call) -> bool:
    """Whether a call is answered with questions, so that a retry will continue it."""
    asked = call.elicitation
    if call.ended or asked is None or not asked.open:
        return False
    return asked.fault is None and asked.round < call.executor.limits.questions  # else the questions are not sent
