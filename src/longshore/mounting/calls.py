"""Forwards requests to a mounted server, in whatever eras the two sides speak.

A stateless server answers a call with its questions and a state of its own. Both go into our own signed state, so the
retry needs nothing of this process.

A server of the handshake era may ask in the middle of a call, which can't be sent twice, so it runs in a task of its
own. A caller of the handshake era is asked while the call waits. A caller of the stateless era gets `input_required`:
the call is held, and the retry, whose signed state names it, continues it. A question does not say which call it
belongs to, and it must not reach a stranger: it is passed on only while all that the server works on is for one caller.
A call that waits for an answer counts too, for it may ask again meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from os import urandom
from typing import TYPE_CHECKING, Any, final

from msgspec import UNSET

from longshore.client.client import Client
from longshore.client.reconnecting_session import ROUNDS, URL_ELICITATION_REQUIRED, busy_delay
from longshore.errors import (
    CAPABILITY_MISSING,
    CapabilityMissing,
    ClientError,
    ConnectionLost,
    ProtocolError,
    ResourceNotFound,
    ServerError,
    ToolError,
    Unanswerable,
)
from longshore.mounting.relayed_questions import capabilities_of, read_question, write_answer
from longshore.mounting.supervisor import stderr_of
from longshore.protocol.dialect import RESOURCE_NOT_FOUND
from longshore.protocol.peer import PREFIX
from longshore.protocol.questions import Question, require
from longshore.protocol.revisions import LOG_LEVELS, MODERN
from longshore.schema.kinds import as_object, is_object
from longshore.server.context import wanted_rank
from longshore.server.link import LOCAL
from longshore.wire.codec import INTERNAL_ERROR, INVALID_PARAMS

if TYPE_CHECKING:
    from longshore.client.models import LogMessage
    from longshore.server.call import Call

HELD = 64
"""Calls at one server that are held for the retries of stateless callers. More questions are refused."""

Record = dict[str, Any]


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
        self.answer: asyncio.Future[Record] = asyncio.get_running_loop().create_future()

    def refuse(self, why: str, code: int = INTERNAL_ERROR) -> None:
        if not self.answer.done():
            self.answer.set_exception(Unanswerable(code, why))
            self.answer.exception()  # the server may have stopped waiting


@final
class PendingCall:
    """A call that a server of the handshake era works on. `call` is the request that waits for it now, if one does."""

    def __init__(self, call: Call, work: Callable[[PendingCall], Coroutine[Any, Any, Record]]) -> None:
        self.call: Call | None = None
        self.caller = caller_of(call)
        self.questions: dict[str, PendingQuestion] = {}
        self.asked = 0
        self.changed = asyncio.Event()
        """Set when a question has come or the call has ended."""
        self.task = asyncio.get_running_loop().create_task(work(self))
        self.task.add_done_callback(self._on_done)
        self.expiry: asyncio.TimerHandle | None = None
        """Ends a held call whose retry does not come."""

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


@final
class Calls:
    """Forwards requests to one mounted server, and its questions and log messages back.

    `ready` waits until the server is there, `ending` is whether it is being unmounted, and `warn` logs a problem.
    """

    def __init__(
        self,
        prefix: str,
        ready: Callable[[Call], Awaitable[Client]],
        ending: Callable[[], bool],
        warn: Callable[[str], None],
    ) -> None:
        self._prefix = prefix
        self._ready, self._ending, self._warn = ready, ending, warn
        self.requests: dict[Call, None] = {}
        """All requests that are forwarded at this moment, of any kind."""
        self.pending: dict[str, PendingCall] = {}
        """Calls at a server of the handshake era, by an id that can't be guessed."""

    async def call_tool(self, name: str, arguments: Any, call: Call) -> Record:
        """Call a tool. Gives the result as it came."""
        client = await self._ready(call)
        stateless = client.server.revision in MODERN
        params = {"name": name, "arguments": arguments, "_meta": self._meta(client, call, asks=True)}
        with self._forwarding(call):
            id = await call.context.once("pending", lambda: "" if stateless else self._start(params, call))
            if stateless is bool(id):
                raise ToolError(f"the mounted server {self._prefix!r} is not what it was when it asked; call again")
            return await (self._in_rounds(client, params, call) if stateless else self._wait(id, call))

    async def ask(self, method: str, params: Record, call: Call) -> Record:
        """Any other request. It can't ask back: only tools may."""

        async def send(client: Client) -> Any:
            meta = self._meta(client, call, asks=False)
            return await client.request(method, {**params, "_meta": meta}, timeout=None)

        with self._forwarding(call):
            record = await self._send(call, send)
            if record.get("resultType", "complete") != "complete":
                raise ToolError(f"{self._prefix} asks something before it answers {method}, which only tools may do")
            return record

    @contextmanager
    def _forwarding(self, call: Call) -> Generator[None]:
        self.requests[call] = None
        try:
            yield
        except ClientError as problem:
            raise self._explained(problem, call) from None
        finally:
            self.requests.pop(call, None)

    async def _call(self, params: Record, call: Call, waiting: Callable[[], Call | None]) -> Record:
        """Call the tool. Progress goes to the request that waits, if its caller gave a token."""

        def report(done: float, total: float | None, message: str | None) -> None:
            request = waiting()
            if request is not None:
                request.context.progress(done, total, message)

        progress = None if call.meta is UNSET or call.meta.progress_token is UNSET else report

        async def send(client: Client) -> Any:
            return await client.request("tools/call", params, timeout=None, on_progress=progress)

        def again(client: Client, lost: ConnectionLost) -> bool:
            repeatable = lost.unsent or client.listing.repeatable(params["name"])
            return client.resends and repeatable and "requestState" not in params

        return await self._send(call, send, again)

    async def _send(
        self,
        call: Call,
        send: Callable[[Client], Awaitable[Any]],
        again: Callable[[Client, ConnectionLost], bool] | None = None,
    ) -> Record:
        """Forward a request; once more if the server was lost and that does no harm: `again` says whether it does."""
        client = await self._ready(call)
        try:
            return dict(await send(client))
        except ConnectionLost as lost:
            if self._ending() or not (again is None or again(client, lost)):
                raise
        return dict(await send(await self._ready(call)))

    def _meta(self, client: Client, call: Call, *, asks: bool) -> Record:
        """The caller's `_meta` without the parts between it and us."""
        given = call.context.meta.items()
        meta = {key: value for key, value in given if key != "progressToken" and not key.startswith(PREFIX)}
        if client.server.revision in MODERN:
            able = capabilities_of(call.peer) if asks else {}
            meta[PREFIX + "clientCapabilities"] = {**able, **client.capabilities}
            rank = wanted_rank(call)
            if rank is not None:
                meta[PREFIX + "logLevel"] = LOG_LEVELS[rank]
        return meta

    # -- questions of a stateless server

    async def _in_rounds(self, client: Client, params: Record, call: Call) -> Record:
        """Call in rounds. Each is remembered instead of the one before: a retry starts with the answers to the last."""
        questions = call.executor.questions
        last: Record | None = questions.recall(call, "round")
        for n in range(0 if last is None else last["n"], ROUNDS + 1):
            extra = {} if last is None else await self._answer(client, last, call)
            record = await self._call(params | extra, call, lambda: call)
            kind = record.get("resultType", "complete")
            if kind == "complete":
                return record
            if kind != "input_required":
                raise ToolError(f"{self._prefix} answered with a result of an unknown kind")
            asked = {key: record[key] for key in ("inputRequests", "requestState") if key in record}
            last = {"n": n + 1, "asked": asked}
            questions.remember(call, "round", last)
        raise ToolError(f"{self._prefix} asked in {ROUNDS} rounds and still has questions")

    async def _answer(self, client: Client, last: Record, call: Call) -> Record:
        """The answers for the next round: by our own client's handlers, else by the caller."""
        asked = last["asked"]
        requests: Any = asked.get("inputRequests", {})
        if not is_object(requests) or not all(is_object(each) for each in requests.values()):
            raise ToolError(f"{self._prefix} asks something that can't be read")
        state = {"requestState": asked["requestState"]} if "requestState" in asked else {}
        if not requests:
            if not state:
                raise ToolError(f"{self._prefix} asks for something without saying what")
            await asyncio.sleep(busy_delay(last["n"] - 1))  # the server is busy
            return state
        own = {key: each for key, each in requests.items() if each.get("method") in client.handlers.handled}
        if own and "own" not in last:
            last["own"] = {key: await self._answer_here(client, each) for key, each in own.items()}
            call.executor.questions.remember(call, "round", last)  # else a retry would ask our own handlers again
        others = {key: self._read(each) for key, each in requests.items() if key not in own}
        answers: Mapping[str, Any] = {}
        if others:
            try:
                answers = await call.context.ask(**others)
            except (ToolError, ProtocolError):
                raise
            except Exception as problem:
                self._warn(f"a question of its could not be put: {problem!r}")
                raise ToolError(f"{self._prefix} asks something that can't be read") from None
        return {"inputResponses": last.get("own", {}) | {key: write_answer(answers[key]) for key in others}, **state}

    def _read(self, request: Record) -> Question:
        return read_question(self._prefix, str(request.get("method")), as_object(request.get("params")))

    async def _answer_here(self, client: Client, request: Record) -> Any:
        method = str(request.get("method"))
        try:
            return await client.handlers.answer(method, as_object(request.get("params")))
        except ClientError:
            raise
        except Exception as problem:
            self._warn(f"the handler of {method[:100]} raised {problem!r}")
            raise ToolError(f"what {self._prefix} asks could not be answered: {type(problem).__name__}") from None

    # -- calls at a server of the handshake era

    def _start(self, params: Record, call: Call) -> str:
        id = urandom(12).hex()
        self.pending[id] = PendingCall(call, lambda pending: self._call(params, call, lambda: pending.call))
        return id

    def _forget(self, id: str) -> None:
        pending = self.pending.pop(id, None)
        if pending is not None:
            pending.task.cancel()

    async def _wait(self, id: str, call: Call) -> Record:
        """Wait for a call's result, and put its questions to the caller meanwhile."""
        pending = self.pending.get(id)
        if pending is None:
            text = f"the call at {self._prefix!r} that asked is gone: the answer came too late, or to another process"
            raise ToolError(f"{text}; call again")
        if pending.call is not None:
            raise ToolError("another request goes on with this call already")
        pending.call, pending.caller = call, caller_of(call)
        pending.changed.set()
        if pending.expiry is not None:
            pending.expiry.cancel()
        is_retried = False
        try:
            while True:
                await pending.changed.wait()
                pending.changed.clear()
                if pending.task.done():
                    result = await pending.task
                    is_retried = _asks(call)  # the questions are on their way out; the retry finds the result
                    return result
                await self._put_questions(id, pending, call)
        except asyncio.CancelledError:
            is_retried = _asks(call)
            raise
        finally:
            pending.call = None
            if is_retried:
                seconds = call.executor.limits.state_seconds
                pending.expiry = asyncio.get_running_loop().call_later(seconds, self._forget, id)
            else:
                self._forget(id)

    async def _put_questions(self, id: str, pending: PendingCall, call: Call) -> None:
        """Put the server's questions to the caller. The server may take them back meanwhile."""
        for key, each in list(pending.questions.items()):
            try:
                require(each.question, call.peer)
            except CapabilityMissing as problem:  # of this question alone: the others may still be answered
                each.refuse(str(problem))
            if each.answer.done():
                del pending.questions[key]
        put = dict(pending.questions)
        if not put:
            return
        asking = asyncio.ensure_future(call.context.ask(**{key: each.question for key, each in put.items()}))
        ends: list[asyncio.Future[Any]] = [asking, pending.task, *(each.answer for each in put.values())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                self._pass_answers(put, asking)
                for key in put:
                    pending.questions.pop(key, None)
                call.executor.questions.remember(call, "pending", id)  # the answers have arrived: forget them
            pending.changed.set()
        finally:
            asking.cancel()
            await asyncio.wait([asking])
            if not asking.cancelled():
                asking.exception()

    def _pass_answers(self, put: Mapping[str, PendingQuestion], asking: asyncio.Future[Any]) -> None:
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
                each.answer.set_result(write_answer(asking.result()[key]))

    # -- what such a server sends meanwhile

    async def put_question(self, method: str, params: Mapping[str, Any]) -> Record:
        """Put a question of the server's to the caller that it works for. Raises Unanswerable."""
        pending = self._asking_call()
        try:
            asked = PendingQuestion(read_question(self._prefix, method, params))
        except ToolError as problem:
            raise Unanswerable(INVALID_PARAMS, str(problem)) from None
        pending.asked += 1
        key = f"{self._prefix}-{pending.asked}"
        pending.questions[key] = asked
        pending.changed.set()
        try:
            return await asked.answer
        finally:
            asked.refuse("the server does not want to know any more")
            pending.questions.pop(key, None)

    def _asking_call(self) -> PendingCall:
        """The call that asks, if all calls are one caller's."""
        running = [each for each in self.pending.values() if not each.task.done()]
        if not running:
            raise Unanswerable(INVALID_PARAMS, "nobody who could be asked waits for an answer")
        callers = {each.caller for each in running} | {caller_of(call) for call in self.requests}
        if len(callers) > 1:
            text = "requests of several callers are being worked on, so nobody knows whom to ask"
            raise Unanswerable(INTERNAL_ERROR, text)
        if sum(each.is_held for each in self.pending.values()) >= HELD:
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

    # -- errors

    def _explained(self, problem: ClientError, call: Call) -> Exception:
        """The error for the caller: its own faults as they are, all others with the server's name."""
        if isinstance(problem, ServerError):
            text, code, data = f"{self._prefix}: {problem.message}", problem.code, problem.data
            if call.method == "resources/read" and (code == RESOURCE_NOT_FOUND or (is_object(data) and "uri" in data)):
                return ResourceNotFound(call.arguments.uri)
            if code == CAPABILITY_MISSING:
                return CapabilityMissing(text, as_object(data).get("requiredCapabilities", {}))
            if code == INVALID_PARAMS or (code == URL_ELICITATION_REQUIRED and not call.peer.revision.modern):
                return ProtocolError(code, text, data)
            return ToolError(f"{text} ({code})")
        server = f"the mounted server {self._prefix!r}"
        if self._ending():
            return ToolError(f"{server} was taken away before it had answered")
        if isinstance(problem, ConnectionLost) and not problem.unsent:
            text = f"{server} was lost while it worked on this: {problem.what}; whether it was done is not known."
            return ToolError(f"{text} It is started again{stderr_of(problem)}")
        return ToolError(f"{server} failed: {problem.what}")


def _asks(call: Call) -> bool:
    """Whether a call is answered with questions, so that a retry will continue it."""
    asked = call.elicitation
    if call.ended or asked is None or not asked.open:
        return False
    return asked.fault is None and asked.round < call.executor.limits.questions  # else the questions are not sent
