"""Calls of tools that a call makes itself: a client of the handshake era within the server.

They go through the engine as the calls of any client do, so scopes, rates, limits, telemetry and errors are those of
the called tools. They have the principal and the folders of the outer call, and count among its connection's. The outer
call gives up its place and its deadline stops while one of them runs: else calls that wait for each other could take
every place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from longshore.errors import LongshoreError, Unanswerable
from longshore.protocol.peer import Peer
from longshore.protocol.revisions import LEGACY, REVISIONS
from longshore.protocol.session import Session
from longshore.server.link import Link
from longshore.server.recording import shorten
from longshore.server.session_state import state_of
from longshore.wire.codec import INTERNAL_ERROR, encode, error
from longshore.wire.messages import Id, Reply, Request

if TYPE_CHECKING:
    from longshore.server.call import Call
    from longshore.server.engine import Engine
    from longshore.telemetry.events import Source

Answer = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Answers a request of a called tool's, by its method and parameters. Raises Unanswerable."""


class _Progress(Struct):
    progress: float = 0.0
    total: float | None = None
    message: str = ""


class _Sent(Struct):
    """What the engine sends beside answers: questions, progress and log messages."""

    method: str
    id: Id | UnsetType = UNSET
    params: Raw = Raw(b"{}")


_read = msgspec.json.Decoder(_Sent).decode
_read_progress = msgspec.json.Decoder(_Progress).decode
_read_params = msgspec.json.Decoder(dict[str, Any]).decode


@final
class InnerCalls:
    """The requests that one call makes. `close` cancels those that are in flight.

    `waiting` is the request that the caller waits for now, if there is one: a held call has several, one after the
    other. `answer` answers questions of the called tools; `progress` gets what they say of their progress.
    """

    def __init__(
        self,
        engine: Engine,
        call: Call,
        capabilities: Mapping[str, Any],
        waiting: Callable[[], Call | None],
        answer: Answer,
        progress: Callable[[str], None],
    ) -> None:
        self._engine, self._waiting, self._answer, self._progress = engine, waiting, answer, progress
        self.link: Final = InnerLink(call, capabilities, self)
        self._in_flight: dict[Id, asyncio.Future[bytes]] = {}
        self._tools: dict[Id, str] = {}
        self._asked: dict[Id, asyncio.Task[None]] = {}
        self._waiters = 0
        self._paused: Call | None = None
        self._last = 0

    def call_tool(self, name: str, arguments: Raw) -> bytes | Awaitable[bytes]:
        """Call a tool. The answer is a JSON-RPC response; an inline tool's is there at once."""
        id = self._next_id()
        params = {"name": name, "arguments": arguments, "_meta": {"progressToken": id}}
        self._tools[id] = name
        return self._send(Request(id, "tools/call", params))

    def read_resource(self, uri: str) -> bytes | Awaitable[bytes]:
        """Read a resource, likewise."""
        return self._send(Request(self._next_id(), "resources/read", {"uri": uri}))

    def close(self) -> None:
        """Cancel what is in flight. Nothing more is sent."""
        self._engine.hang_up(self.link)
        for task in self._asked.values():
            task.cancel()
        for future in self._in_flight.values():
            future.cancel()
        self._in_flight.clear()

    def _next_id(self) -> int:
        self._last += 1
        return self._last

    def _send(self, request: Request) -> bytes | Awaitable[bytes]:
        future = self._in_flight[request.id] = asyncio.get_running_loop().create_future()
        reply = self._engine.handle(encode(request), self.link)
        if reply is None:
            return asyncio.ensure_future(self._wait(request.id, future))  # a task: nobody may come to await it
        self._close(request.id)
        return reply

    async def _wait(self, id: Id, future: asyncio.Future[bytes]) -> bytes:
        self._waiters += 1
        if self._waiters == 1 and (outer := self._waiting()) is not None:
            self._paused = outer
            self._engine.executor.pause(outer)
        try:
            return await future
        finally:
            self._waiters -= 1
            self._close(id)
            if not self._waiters and self._paused is not None:
                self._engine.executor.resume(self._paused)
                self._paused = None

    def _close(self, id: Id) -> None:
        self._in_flight.pop(id, None)
        self._tools.pop(id, None)

    # -- what the engine sends

    def take_answer(self, frame: bytes | None) -> None:
        """The answer of a request that was not answered at once; None: it was cancelled."""
        id = None if frame is None else msgspec.json.decode(frame, type=_Answered).id
        future = None if id is None else self._in_flight.get(id)
        if frame is not None and future is not None and not future.done():
            future.set_result(frame)

    def take(self, frame: bytes) -> None:
        """A question, or a notification."""
        sent = _read(frame)
        if sent.id is not UNSET:
            task = asyncio.get_running_loop().create_task(self._reply(sent.id, sent))
            self._asked[sent.id] = task
            task.add_done_callback(lambda _: self._asked.pop(sent.id, None))  # type: ignore[arg-type]
        elif sent.method == "notifications/progress":
            self._report(sent.params)
        elif sent.method == "notifications/cancelled":
            withdrawn = self._asked.get(_read_params(sent.params).get("requestId", ""))
            if withdrawn is not None:
                withdrawn.cancel()

    def _report(self, params: Raw) -> None:
        step = _read_progress(params)
        of = f" of {step.total:g}" if step.total else ""
        name = self._tools.get(_read_params(params).get("progressToken", ""), "")
        self._progress(f"{name}: {step.message or f'{step.progress:g}{of}'}")

    async def _reply(self, id: Id, sent: _Sent) -> None:
        try:
            frame: bytes = encode(Reply(id, await self._answer(sent.method, _read_params(sent.params))))
        except LongshoreError as problem:
            code = problem.code if isinstance(problem, Unanswerable) else INTERNAL_ERROR
            frame = error(id, code, str(problem))
        self._engine.handle(frame, self.link)


class _Answered(Struct):
    id: Id


@final
class InnerLink(Link):
    """The link of inner calls, whose records name the call that makes them."""

    __slots__ = ("_calls", "_outer")

    def __init__(self, outer: Call, capabilities: Mapping[str, Any], calls: InnerCalls) -> None:
        client = outer.peer.client
        peer = Peer(REVISIONS[LEGACY[-1]], dict(capabilities), client)
        super().__init__(Session(peer), outer.link.principal)
        self.session.client_roots = outer.session.client_roots
        self.session.state = state_of(outer)
        self.caller = outer.link.caller
        self._outer, self._calls = outer, calls

    def describe(self) -> Source:
        link = self._outer.link
        self.source = made = (link.source or link.describe()).inner(shorten(self._outer.id))
        return made

    def keeps_state(self) -> bool:
        return self._outer.link.keeps_state()

    def send(self, frame: bytes) -> None:
        self._calls.take(frame)

    def answer(self, frame: bytes | None) -> None:
        self._calls.take_answer(frame)
