"""Passing requests on to a mounted server, and its answers back, in whatever eras the two sides speak.

A stateless server that asks gives its questions and a state of its own. Both go into our own signed state, so the retry
needs nothing of this process. One of the handshake era asks in the middle of a call: see `flights`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

from msgspec import UNSET

from longshore.client.client import Client
from longshore.client.line import PAGES_FIRST, ROUNDS, later
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
from longshore.mounting.flights import Flights, new_id
from longshore.mounting.keeper import last_words
from longshore.mounting.questions import capabilities_of, read_question, write_answer
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
    """The requests that are passed on to one mounted server.

    `ready` waits until the server is there, `ending` tells whether it is being unmounted, and `told` hears what
    whoever runs us should know.
    """

    def __init__(
        self,
        prefix: str,
        ready: Callable[[Call], Awaitable[Client]],
        ending: Callable[[], bool],
        told: Callable[[str], None],
    ) -> None:
        self._prefix = prefix
        self._ready, self._ending, self._told = ready, ending, told
        self.own: dict[str, Any] = {}
        """What the client itself can do."""
        self.flights = Flights(prefix, told)

    async def call_tool(self, name: str, arguments: Any, call: Call) -> Record:
        """Call a tool. Gives the result as it came."""
        client = await self._ready(call)
        stateless = client.server.revision in MODERN
        params = {"name": name, "arguments": arguments, "_meta": self._meta(call, stateless, asks=True)}
        with self._under_way(call):
            flight = await call.context.once("flight", lambda: "" if stateless else self._take_off(params, call))
            if stateless is bool(flight):
                raise ToolError(f"the mounted server {self._prefix!r} is not what it was when it asked; call again")
            return await (self._in_rounds(client, params, call) if stateless else self.flights.follow(flight, call))

    async def ask(self, method: str, params: Record, call: Call) -> Record:
        """Any other request. It can't ask back: only tools may."""

        async def send(client: Client) -> Any:
            meta = self._meta(call, client.server.revision in MODERN, asks=False)
            return await client.request(method, {**params, "_meta": meta}, timeout=None)

        with self._under_way(call):
            record = await self._send(call, send, _always)
            if record.get("resultType", "complete") != "complete":
                raise ToolError(f"{self._prefix} asks something before it answers {method}, which only tools may do")
            return record

    @contextmanager
    def _under_way(self, call: Call) -> Generator[None]:
        self.flights.calls[call] = None
        try:
            yield
        except ClientError as problem:
            raise self._explained(problem, call) from None
        finally:
            self.flights.calls.pop(call, None)

    # -- the stateless era

    async def _in_rounds(self, client: Client, params: Record, call: Call) -> Record:
        """Each round is remembered in the place of the one before: a retry starts with the answers to the last."""
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
        """The answers that the next round brings: our own client's where it has some, else the caller's."""
        asked = last["asked"]
        requests: Any = asked.get("inputRequests", {})
        if not is_object(requests) or not all(is_object(each) for each in requests.values()):
            raise ToolError(f"{self._prefix} asks something that can't be read")
        state = {"requestState": asked["requestState"]} if "requestState" in asked else {}
        if not requests:
            if not state:
                raise ToolError(f"{self._prefix} asks for something without saying what")
            await asyncio.sleep(later(last["n"] - 1))  # it has too much to do
            return state
        own = {key: each for key, each in requests.items() if client.relaying.handles(_method(each))}
        if own and "own" not in last:
            last["own"] = {key: await self._answer_here(client, each) for key, each in own.items()}
            call.executor.questions.remember(call, "round", last)  # else a retry would ask our own handlers again
        puts = {key: each for key, each in requests.items() if key not in own}
        return {"inputResponses": last.get("own", {}) | await self._put(puts, call), **state}

    async def _answer_here(self, client: Client, question: Record) -> Any:
        try:
            return await client.relaying.answer(_method(question), _params(question))
        except ClientError:
            raise
        except Exception as problem:
            self._told(f"the handler of {_method(question)[:100]} raised {problem!r}")
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
            self._told(f"a question of its could not be put: {problem!r}")
            raise ToolError(f"{self._prefix} asks something that can't be read") from None
        return {key: write_answer(found[key]) for key in puts}

    # -- the handshake era

    def _take_off(self, params: Record, call: Call) -> str:
        id = new_id()
        progress = _progress(call, lambda: self.flights.follower(id))
        self.flights.start(id, call, self._call(params, call, progress))
        return id

    # -- both

    async def _call(self, params: Record, call: Call, progress: Progress | None) -> Record:
        async def send(client: Client) -> Any:
            return await client.request("tools/call", params, timeout=None, on_progress=progress)

        def again(client: Client, lost: ConnectionLost) -> bool:
            return "requestState" not in params and client.relaying.resends(params["name"], lost)

        return await self._send(call, send, again)

    async def _send(
        self,
        call: Call,
        send: Callable[[Client], Awaitable[Any]],
        again: Callable[[Client, ConnectionLost], bool],
    ) -> Record:
        """Pass a request on; once more where the server was lost and that can do no harm."""
        client = await self._ready(call)
        try:
            return dict(await send(client))
        except ConnectionLost as lost:
            if self._ending() or not again(client, lost):
                raise
        return dict(await send(await self._ready(call)))

    def _meta(self, call: Call, stateless: bool, *, asks: bool) -> Record:
        """What the caller says beside its request, less what is between it and us."""
        meta = {
            key: value
            for key, value in call.context.meta.items()
            if key != "progressToken" and not key.startswith(PREFIX)
        }
        if stateless:
            meta[PREFIX + "clientCapabilities"] = {**(capabilities_of(call.peer) if asks else {}), **self.own}
            rank = wanted_rank(call)
            if rank is not None:
                meta[PREFIX + "logLevel"] = LOG_LEVELS[rank]
        return meta

    def _explained(self, problem: ClientError, call: Call) -> Exception:
        """What the caller is told: its own faults as they are, all others with the name of who failed."""
        if isinstance(problem, ServerError):
            return self._mapped(problem, call)
        if self._ending():
            return ToolError(f"the mounted server {self._prefix!r} was taken away before it had answered")
        if isinstance(problem, ConnectionLost) and not problem.unsent:
            text = f"the mounted server {self._prefix!r} was lost while it worked on this: {problem.what}"
            text += "; whether it was done is not known. It is started again"
            return ToolError(text + last_words(problem))
        return ToolError(f"the mounted server {self._prefix!r} failed: {problem.what}")

    def _mapped(self, problem: ServerError, call: Call) -> Exception:
        text, code, data = f"{self._prefix}: {problem.message}", problem.code, problem.data
        if call.method == "resources/read" and (code == RESOURCE_NOT_FOUND or (is_object(data) and "uri" in data)):
            return ResourceNotFound(call.arguments.uri)
        if code == CAPABILITY_MISSING:
            return CapabilityMissing(text, data.get("requiredCapabilities", {}) if is_object(data) else {})
        if code == INVALID_PARAMS or (code == PAGES_FIRST and not call.peer.revision.modern):
            return ProtocolError(code, text, data)
        return ToolError(f"{text} ({code})")


def _always(client: Client, lost: ConnectionLost) -> bool:  # noqa: ARG001 - what only reads may be sent again
    return True


def _method(question: Record) -> str:
    return str(question.get("method"))


def _params(question: Record) -> Record:
    params: Any = question.get("params")
    return params if is_object(params) else {}


def _progress(call: Call, follower: Callable[[], Call | None]) -> Progress | None:
    """Tells the caller how far it is, if it wants to know."""
    if call.meta is UNSET or call.meta.progress_token is UNSET:
        return None

    def tell(done: float, total: float | None, message: str | None) -> None:
        now = follower()
        if now is not None:
            now.context.progress(done, total, message)

    return tell
