"""Forwards requests to a mounted server, in whatever eras the two sides speak.

A stateless server answers a call with its questions and a state of its own. Both go into our own signed state, so the
retry needs nothing of this process. A server of the handshake era asks in the middle of a call: see `pending`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
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
)
from longshore.mounting.pending_calls import PendingCalls
from longshore.mounting.questions import capabilities_of, read_question, write_answer
from longshore.mounting.supervisor import stderr_of
from longshore.protocol.dialect import RESOURCE_NOT_FOUND
from longshore.protocol.peer import PREFIX
from longshore.protocol.revisions import LOG_LEVELS, MODERN
from longshore.schema.kinds import is_object
from longshore.server.context import wanted_rank
from longshore.wire.codec import INVALID_PARAMS

if TYPE_CHECKING:
    from longshore.server.call import Call

Progress = Callable[[float, float | None, str | None], Any]
Record = dict[str, Any]


@final
class Calls:
    """Forwards requests to one mounted server.

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
        self.pending = PendingCalls(prefix, warn)

    async def call_tool(self, name: str, arguments: Any, call: Call) -> Record:
        """Call a tool. Gives the result as it came."""
        client = await self._ready(call)
        stateless = client.server.revision in MODERN
        params = {"name": name, "arguments": arguments, "_meta": self._meta(client, call, asks=True)}
        with self._forwarding(call):
            id = await call.context.once("pending", lambda: "" if stateless else self._start(params, call))
            if stateless is bool(id):
                raise ToolError(f"the mounted server {self._prefix!r} is not what it was when it asked; call again")
            return await (self._in_rounds(client, params, call) if stateless else self.pending.wait(id, call))

    async def ask(self, method: str, params: Record, call: Call) -> Record:
        """Any other request. It can't ask back: only tools may."""

        async def send(client: Client) -> Any:
            meta = self._meta(client, call, asks=False)
            return await client.request(method, {**params, "_meta": meta}, timeout=None)

        with self._forwarding(call):
            record = await self._send(call, send, _always)
            if record.get("resultType", "complete") != "complete":
                raise ToolError(f"{self._prefix} asks something before it answers {method}, which only tools may do")
            return record

    @contextmanager
    def _forwarding(self, call: Call) -> Generator[None]:
        self.pending.requests[call] = None
        try:
            yield
        except ClientError as problem:
            raise self._explained(problem, call) from None
        finally:
            self.pending.requests.pop(call, None)

    # -- the stateless era

    async def _in_rounds(self, client: Client, params: Record, call: Call) -> Record:
        """Call in rounds. Each is remembered instead of the one before: a retry starts with the answers to the last."""
        questions = call.executor.questions
        last: Record | None = questions.recall(call, "round")
        for n in range(0 if last is None else last["n"], ROUNDS + 1):
            extra = {} if last is None else await self._answer(client, last, call)
            record = await self._call(params | extra, call, _progress(call, lambda: call))
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
        own = {key: each for key, each in requests.items() if _method(each) in client.handlers.handled}
        if own and "own" not in last:
            last["own"] = {key: await self._answer_here(client, each) for key, each in own.items()}
            call.executor.questions.remember(call, "round", last)  # else a retry would ask our own handlers again
        puts = {key: each for key, each in requests.items() if key not in own}
        return {"inputResponses": last.get("own", {}) | await self._put(puts, call), **state}

    async def _answer_here(self, client: Client, question: Record) -> Any:
        try:
            return await client.handlers.answer(_method(question), _params(question))
        except ClientError:
            raise
        except Exception as problem:
            self._warn(f"the handler of {_method(question)[:100]} raised {problem!r}")
            raise ToolError(f"what {self._prefix} asks could not be answered: {type(problem).__name__}") from None

    async def _put(self, requests: Record, call: Call) -> Record:
        """Put questions to the caller."""
        if not requests:
            return {}
        puts = {key: read_question(self._prefix, _method(each), _params(each)) for key, each in requests.items()}
        try:
            found = await call.context.ask(**puts)
        except (ToolError, ProtocolError):
            raise
        except Exception as problem:
            self._warn(f"a question of its could not be put: {problem!r}")
            raise ToolError(f"{self._prefix} asks something that can't be read") from None
        return {key: write_answer(found[key]) for key in puts}

    # -- the handshake era

    def _start(self, params: Record, call: Call) -> str:
        def work(id: str) -> Coroutine[Any, Any, Record]:
            return self._call(params, call, _progress(call, lambda: self.pending.request_of(id)))

        return self.pending.start(call, work)

    # -- both

    async def _call(self, params: Record, call: Call, progress: Progress | None) -> Record:
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
        again: Callable[[Client, ConnectionLost], bool],
    ) -> Record:
        """Forward a request; once more if the server was lost and that does no harm."""
        client = await self._ready(call)
        try:
            return dict(await send(client))
        except ConnectionLost as lost:
            if self._ending() or not again(client, lost):
                raise
        return dict(await send(await self._ready(call)))

    def _meta(self, client: Client, call: Call, *, asks: bool) -> Record:
        """The caller's `_meta` without the parts between it and us."""
        meta = {
            key: value
            for key, value in call.context.meta.items()
            if key != "progressToken" and not key.startswith(PREFIX)
        }
        if client.server.revision in MODERN:
            able = capabilities_of(call.peer) if asks else {}
            meta[PREFIX + "clientCapabilities"] = {**able, **client.capabilities}
            rank = wanted_rank(call)
            if rank is not None:
                meta[PREFIX + "logLevel"] = LOG_LEVELS[rank]
        return meta

    def _explained(self, problem: ClientError, call: Call) -> Exception:
        """The error for the caller: its own faults as they are, all others with the server's name."""
        if isinstance(problem, ServerError):
            return self._mapped(problem, call)
        if self._ending():
            return ToolError(f"the mounted server {self._prefix!r} was taken away before it had answered")
        if isinstance(problem, ConnectionLost) and not problem.unsent:
            text = f"the mounted server {self._prefix!r} was lost while it worked on this: {problem.what}"
            text += "; whether it was done is not known. It is started again"
            return ToolError(text + stderr_of(problem))
        return ToolError(f"the mounted server {self._prefix!r} failed: {problem.what}")

    def _mapped(self, problem: ServerError, call: Call) -> Exception:
        text, code, data = f"{self._prefix}: {problem.message}", problem.code, problem.data
        if call.method == "resources/read" and (code == RESOURCE_NOT_FOUND or (is_object(data) and "uri" in data)):
            return ResourceNotFound(call.arguments.uri)
        if code == CAPABILITY_MISSING:
            return CapabilityMissing(text, data.get("requiredCapabilities", {}) if is_object(data) else {})
        if code == INVALID_PARAMS or (code == URL_ELICITATION_REQUIRED and not call.peer.revision.modern):
            return ProtocolError(code, text, data)
        return ToolError(f"{text} ({code})")


def _always(client: Client, lost: ConnectionLost) -> bool:  # noqa: ARG001 - a request that only reads
    return True


def _method(question: Record) -> str:
    return str(question.get("method"))


def _params(question: Record) -> Record:
    params: Any = question.get("params")
    return params if is_object(params) else {}


def _progress(call: Call, request: Callable[[], Call | None]) -> Progress | None:
    """Passes progress to the request that waits, if its caller gave a token."""
    if call.meta is UNSET or call.meta.progress_token is UNSET:
        return None

    def report(done: float, total: float | None, message: str | None) -> None:
        now = request()
        if now is not None:
            now.context.progress(done, total, message)

    return report
