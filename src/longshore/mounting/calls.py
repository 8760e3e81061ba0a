"""Forwards requests to a mounted server, between all combinations of eras.

A stateless server answers a call with its questions and a state of its own. Both go into our own signed state, so the
retry needs nothing of this process.

A server of the handshake era may ask in the middle of a call, which can't be sent twice, so it is held
(`server/held_calls.py`). A question does not name its call, and must not reach another caller: it is forwarded only
while all calls at the server are of one caller. A call that waits for an answer counts too, because it may ask again
meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
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
from longshore.protocol.questions import Question
from longshore.protocol.revisions import LOG_LEVELS, MODERN
from longshore.schema.kinds import as_object, is_object
from longshore.server.context import TRACE_KEYS, wanted_rank
from longshore.server.held_calls import MEMO_KEY, HeldCall, HeldCalls, caller_of
from longshore.telemetry.trace import to_meta
from longshore.wire.codec import INTERNAL_ERROR, INVALID_PARAMS

if TYPE_CHECKING:
    from longshore.client.models import LogMessage
    from longshore.server.call import Call

_OURS = frozenset({"progressToken", *TRACE_KEYS})
"""Keys of `_meta` that are between the caller and us, or that we give anew."""
HELD = 64
"""Calls at one server that are held for the retries of stateless callers. More questions are refused."""

Record = dict[str, Any]


@final
class Calls:
    """Forwards requests to one mounted server, and its questions and log messages back.

    `ready` waits until the server is connected, `ending` is whether it is being unmounted, and `warn` logs a problem.
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
        self.held = HeldCalls(f"the call at {prefix!r} that asked", warn)
        """Calls at a server of the handshake era."""

    async def call_tool(self, name: str, arguments: Any, call: Call) -> Record:
        """Call a tool. Returns the result unchanged."""
        client = await self._ready(call)
        stateless = client.server.revision in MODERN
        params = {"name": name, "arguments": arguments, "_meta": self._meta(client, call, asks=True)}
        with self._forwarding(call):
            id = await call.context.once(MEMO_KEY, lambda: "" if stateless else self._start(params, call))
            if stateless is bool(id):
                raise ToolError(f"the mounted server {self._prefix!r} is not what it was when it asked; call again")
            return await (self._in_rounds(client, params, call) if stateless else self.held.wait(id, call))

    async def ask(self, method: str, params: Record, call: Call) -> Record:
        """Send any other request. It can't ask questions: only tools may."""

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
        """Call the tool. Progress goes to the waiting request, if its caller gave a token."""

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
        """Forward a request; once more if the server was lost and `again` says that repeating is harmless."""
        client = await self._ready(call)
        try:
            return dict(await send(client))
        except ConnectionLost as lost:
            if self._ending() or not (again is None or again(client, lost)):
                raise
        return dict(await send(await self._ready(call)))

    def _meta(self, client: Client, call: Call, *, asks: bool) -> Record:
        """The caller's `_meta` without the fields of its connection to us."""
        given = call.context.meta.items()
        meta = {key: value for key, value in given if key not in _OURS and not key.startswith(PREFIX)}
        if call.trace is not None:
            meta |= to_meta(call.trace)
        if client.server.revision in MODERN:
            able = capabilities_of(call.peer) if asks else {}
            meta[PREFIX + "clientCapabilities"] = {**able, **client.capabilities}
            rank = wanted_rank(call)
            if rank is not None:
                meta[PREFIX + "logLevel"] = LOG_LEVELS[rank]
        return meta

    # -- questions of a stateless server

    async def _in_rounds(self, client: Client, params: Record, call: Call) -> Record:
        """Call in rounds.

        The state of a round replaces that of the one before: a retry starts with the last answers.
        """
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
        """The answers for the next round: from our own client's handlers, else from the caller."""
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
            call.executor.questions.remember(call, "round", last)  # otherwise a retry would ask our own handlers again
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
        return self.held.start(call, lambda held: self._call(params, call, lambda: held.call))

    # -- what such a server sends meanwhile

    async def put_question(self, method: str, params: Mapping[str, Any]) -> Record:
        """Forward a question of the server to the caller of its calls. Raises Unanswerable."""
        held = self._asking_call()
        try:
            question = read_question(self._prefix, method, params)
        except ToolError as problem:
            raise Unanswerable(INVALID_PARAMS, str(problem)) from None
        return write_answer(await held.ask(question, self._prefix))

    def _asking_call(self) -> HeldCall:
        """The call that the question belongs to, if all calls are of one caller."""
        running = [each for each in self.held.all.values() if not each.task.done()]
        if not running:
            raise Unanswerable(INVALID_PARAMS, "nobody who could be asked waits for an answer")
        callers = {each.caller for each in running} | {caller_of(call) for call in self.requests}
        if len(callers) > 1:
            text = "requests of several callers are being worked on, so nobody knows whom to ask"
            raise Unanswerable(INTERNAL_ERROR, text)
        if sum(each.is_held for each in self.held.all.values()) >= HELD:
            raise Unanswerable(INTERNAL_ERROR, f"{HELD} calls wait for answers already")
        return running[-1]

    def log(self, message: LogMessage) -> None:
        """Forward a log message of the server to the caller, if there is only one."""
        calls = list(self.requests)
        if calls and len({caller_of(call) for call in calls}) == 1:
            logger = self._prefix if message.logger is None else f"{self._prefix}.{str(message.logger)[:100]}"
            try:
                calls[-1].context.log(message.level, message.data, logger=logger)
            except ValueError:
                pass  # a level that does not exist

    # -- errors

    def _explained(self, problem: ClientError, call: Call) -> Exception:
        """The error for the caller: the caller's own errors unchanged, all others with the server's name."""
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
