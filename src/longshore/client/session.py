"""One open connection: the requests that await an answer, and the handling of every received message.

A request leaves the table exactly once: answered, failed, timed out or cancelled by its caller. The last two are
reported to the server. An answer to a request that has left the table is late and ignored; an answer to a request that
never existed is noted.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, final

import msgspec
from msgspec import UNSET, Raw, Struct

from longshore.client.channel import ChannelFactory, FrameInfo
from longshore.client.clock import PausableClock, Timer
from longshore.client.tasks import Tasks
from longshore.errors import BadAnswer, CallTimeout, ClientError, ConnectionLost, ServerError
from longshore.limits import Limits
from longshore.protocol.http_headers import NAME_BEARING
from longshore.protocol.peer import PREFIX
from longshore.protocol.revisions import Revision
from longshore.wire.codec import BROKEN, encode, error, read
from longshore.wire.messages import (
    ABSENT,
    Batch,
    Id,
    Malformed,
    Message,
    Notification,
    Reply,
    Request,
    UnreadableResponse,
)

if TYPE_CHECKING:
    from longshore.client.reconnecting_session import ReconnectingSession

E = TypeVar("E", bound=ClientError)
Progress = Callable[[float, float | None, str | None], Any]
Headers = tuple[tuple[str, str], ...]

CAP = 10
"""Progress restarts a request's timeout, up to so many timeouts in all."""
HANDLER_TASKS = 10_000
"""Calls of the user's async handlers under way, at 2 KB each; more are dropped. A batch fits."""
MOST_NOTES = 50
_TRACED = frozenset({"tools/call", "resources/read", "prompts/get", "completion/complete"})
"""Requests that carry on the trace of the call that makes them. Others may be made by a task that outlives the call."""
_FIXED = PREFIX + "protocolVersion"
_DECLARED = PREFIX + "clientCapabilities"
_GARBAGE = 1000
"""Lines in a row that are no messages, after which the peer is no MCP server."""


@final
class Sent:
    """A request that was sent: its id, and the future of its answer."""

    __slots__ = ("answer", "deadline", "due", "id", "method", "progress", "timeout")

    def __init__(self, id: Id, method: str, answer: asyncio.Future[Raw], progress: Progress | None) -> None:
        self.id = id
        self.method = method
        self.answer = answer
        self.progress = progress
        self.timeout = 0.0
        self.due = inf
        """When it times out. Progress puts that off, but not past the deadline."""
        self.deadline = inf


@final
class ClientSession:
    """A connection over a channel. `name` precedes the channel's label in error messages.

    `events` receives the notifications of the server.
    """

    def __init__(
        self,
        make_channel: ChannelFactory,
        clock: PausableClock,
        limits: Limits,
        events: ReconnectingSession,
        name: str = "",
    ) -> None:
        self.clock = clock
        self.limits = limits
        self.revision: Revision | None = None
        self.closed: ClientError | None = None
        """Why nothing more can be sent."""
        self.notes: deque[str] = deque(maxlen=MOST_NOTES)
        self._events = events
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._envelope: Mapping[str, Any] | None = None
        self._encoded_envelope: Raw | None = None
        self._pending: dict[Id, Sent] = {}
        self._garbage = self._next = 0
        self._alarm: Timer | None = None
        self._armed = inf
        """The time for which the alarm is set."""
        self._handlers = Tasks()
        self._closing: asyncio.Task[None] | None = None
        self.channel = make_channel(self)

    @property
    def envelope(self) -> Mapping[str, Any] | None:
        """The `_meta` of every modern request; None in the handshake era."""
        return self._envelope

    @envelope.setter
    def envelope(self, envelope: Mapping[str, Any] | None) -> None:
        self._envelope = envelope
        self._encoded_envelope = None if envelope is None else Raw(encode(envelope))  # once, not with every request

    @property
    def label(self) -> str:
        return f"{self._name}: {self.channel.label}" if self._name else self.channel.label

    def loss(self, *, unsent: bool = False) -> ConnectionLost:
        """The reason why the connection is closed.

        A new exception each time: two awaiters must not share one object.
        """
        problem = self.closed or ConnectionLost("the connection was lost", self.label)
        copy = ConnectionLost(problem.what, problem.server, problem.said, unsent=unsent)
        copy.__cause__ = problem.__cause__
        return copy

    def locate(self, problem: E) -> E:
        """The same problem with the server's label and the end of its stderr."""
        return problem.at(self.label, self.channel.stderr_tail())

    # -- sending

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        begun: float | None = None,
        progress: Progress | None = None,
        headers: Headers = (),
    ) -> Raw:
        """Send a request and wait for its result. Cancelled or timed out, it is cancelled at the server.

        `begun` is when the timeout began, by the session's clock, if that was before.
        """
        if self.channel.congested:
            begun = self.clock.now() if begun is None else begun
            await self.wait_until_writable(method, timeout, begun)
        sent = self.start(method, params, timeout=timeout, begun=begun, progress=progress, headers=headers)
        try:
            return await sent.answer
        except asyncio.CancelledError:
            self.cancel(sent.id, "cancelled by the caller")
            raise

    async def wait_until_writable(self, method: str, timeout: float | None, begun: float) -> None:
        """Wait until the server can take more."""
        rest = None if timeout is None else max(begun + timeout - self.clock.now(), 0.0)
        try:
            async with asyncio.timeout(rest):
                await self.channel.ready()
        except TimeoutError:
            what = f"{method} could not be sent within {timeout:g} s: the server does not read what it was sent"
            raise self.locate(CallTimeout(what)) from None
        if self.closed is not None:
            raise self.loss(unsent=True)

    def start(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        begun: float | None = None,
        progress: Progress | None = None,
        headers: Headers = (),
    ) -> Sent:
        """Send a request without waiting for its answer."""
        if self.closed is not None:
            raise self.loss(unsent=True)
        self._next = id = self._next + 1
        trace = _current_trace() if method in _TRACED else None
        body = self._complete(params, id if progress is not None else None, trace)
        frame = encode(Request(id, method, UNSET if body is None else body))  # raises for what is no JSON
        sent = self._pending[id] = Sent(id, method, self._loop.create_future(), progress)
        if timeout is not None:
            begun = self.clock.now() if begun is None else begun
            sent.timeout, sent.due, sent.deadline = timeout, begun + timeout, begun + CAP * timeout
            if sent.due < self._armed:
                self._arm(sent.due)
        key = NAME_BEARING.get(method)
        name = None if key is None or params is None or params.get(key) is None else str(params[key])
        self.channel.send(frame, FrameInfo(method, id, name, headers))
        return sent

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        if self.closed is None:
            self.channel.send(encode(Notification(method, UNSET if params is None else params)), FrameInfo(method))

    def answer(self, id: Id, result: Any) -> None:
        """Answer a request of the server's."""
        if self.closed is None:
            self.channel.send(encode(Reply(id, result)), FrameInfo("response"))

    def refuse(self, id: Id, code: int, text: str) -> None:
        if self.closed is None:
            self.channel.send(error(id, code, text), FrameInfo("response"))

    def _complete(
        self, params: Mapping[str, Any] | None, token: Id | None, trace: Mapping[str, Any] | None
    ) -> Mapping[str, Any] | None:
        """The parameters with the era's envelope, the progress token and the trace in `_meta`.

        A caller's own `_meta` may add to a request, but not remove what every request must have. Progress tokens are
        given here alone, or two requests could have the same one.
        """
        if self._encoded_envelope is None and token is None and trace is None:
            return params
        body: dict[str, Any] = dict(params) if params is not None else {}
        own: Mapping[str, Any] | None = body.get("_meta")
        if not own and token is None and trace is None:
            body["_meta"] = self._encoded_envelope
            return body
        envelope = self._envelope or {}
        body["_meta"] = meta = {**envelope, **(trace or {}), **(own or {})}
        meta.pop("progressToken", None)
        if token is not None:
            meta["progressToken"] = token
        if envelope:
            meta[_FIXED] = envelope[_FIXED]
            if not isinstance(meta.get(_DECLARED), dict):
                meta[_DECLARED] = envelope[_DECLARED]
        return body

    # -- cancelling and timing out

    def cancel(self, id: Id, reason: str) -> None:
        """Stop waiting for an answer and report that to the server, unless the answer has come."""
        pending = self._pending.pop(id, None)
        if pending is not None:
            pending.answer.cancel()
            self._report_cancelled(pending, reason)

    def _report_cancelled(self, pending: Sent, reason: str) -> None:
        if pending.method != "initialize" and self.closed is None:  # which must not be cancelled
            params = {"requestId": pending.id, "reason": reason}
            self.channel.cancel(pending.id, encode(Notification("notifications/cancelled", params)))

    def _arm(self, due: float) -> None:
        self._disarm()
        self._armed = due
        self._alarm = self.clock.call_at(due, self._sweep)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self.clock.cancel(self._alarm)
        self._alarm, self._armed = None, inf

    def _sweep(self) -> None:
        """End all requests that are due. They share one timer: one for each would cost as much as all the rest."""
        self._disarm()
        now = self.clock.now()
        for pending in list(self._pending.values()):
            if pending.due <= now:
                del self._pending[pending.id]
                self._report_cancelled(pending, "timed out")
                what = f"no answer to {pending.method} within {pending.timeout:g} s{self.last_note()}"
                problem = CallTimeout(what, fix="give it more by {}", options=("timeout",))
                _raise_in(pending.answer, self.locate(problem))
        due = min((pending.due for pending in self._pending.values()), default=inf)
        if due < self._armed and self.closed is None:
            self._arm(due)

    # -- called by the channel

    def on_failure(self, id: Id, problem: ClientError) -> None:
        pending = self._pending.pop(id, None)
        if pending is not None:
            _raise_in(pending.answer, self.locate(problem))

    def on_lost(self, problem: ClientError) -> None:
        if self.closed is None:
            self.closed = self.locate(problem)
            self._disarm()
            for id in list(self._pending):
                self.on_failure(id, self.loss())
            self._events.on_session_lost(self)
            self._closing = self._loop.create_task(self.channel.close())  # a child may still run, and write

    def on_login(self, started: bool) -> None:
        if started:
            self.clock.stop()
        else:
            self.clock.resume()

    def note(self, text: str) -> None:
        """Store the report of an unexpected event, once: a repeated one does not displace others."""
        if text not in self.notes:
            self.notes.append(text)

    def last_note(self) -> str:
        """The last report in parentheses, for a message about a missing answer."""
        return f" ({self.notes[-1]})" if self.notes else ""

    async def close(self) -> None:
        """End the connection. Pending requests fail with ConnectionLost."""
        self._disarm()
        if self.closed is None:
            self.closed = ConnectionLost("the connection was closed", self.label)
        for id in list(self._pending):
            self.on_failure(id, ConnectionLost("the connection was closed before the answer came"))
        try:
            await self.channel.close()  # begun before anything is awaited: the loop may end at any moment
            if self._closing is not None:
                await asyncio.wait((self._closing,))
        finally:
            await self._handlers.end()

    # -- receiving

    def on_frame(self, frame: bytes) -> None:
        if self.closed is not None:
            return
        message = read(frame, self.limits.depth, self.limits.batch)
        if isinstance(message, Message):
            self._garbage = 0
            self._take_message(message)
        elif isinstance(message, Batch):
            if self.revision is not None and not self.revision.batches:
                self.note(f"it sent a batch, which {self.revision.name} does not know")
            for item in message.items:
                inner = read(bytes(item), self.limits.depth, 0)
                if isinstance(inner, Message):
                    self._take_message(inner)
                elif isinstance(inner, Malformed):
                    self._take_malformed(bytes(item), inner.text)
        elif isinstance(message, Malformed):
            self._take_malformed(frame, message.text)
        elif frame.strip():
            self._take_malformed(frame, "neither a result nor an error")

    def _take_message(self, message: Message) -> None:
        if message.method:
            if message.id is not UNSET:
                self._take_request(message)
            elif message.method == "notifications/progress":
                self._take_progress(message.params)
            else:
                self._events.on_notification(self, message.method, message.params)
            return
        id = message.id
        assert id is not UNSET
        pending = self._pending.pop(id, None)
        if pending is None:
            if not (isinstance(id, int) and 0 < id <= self._next):  # otherwise it is late
                self.note(f"an answer came for a request {id!r} that nobody waits for")
        elif pending.answer.done():
            pass  # its caller was cancelled in this turn of the loop
        elif message.error == ABSENT:
            pending.answer.set_result(message.result)
        else:
            _raise_in(
                pending.answer, self._server_error(message.error, readable=message.__class__ is not UnreadableResponse)
            )

    def _take_request(self, message: Message) -> None:
        """A request of the server's own. The modern era has none, and no answers to them either."""
        if self.revision is not None and self.revision.modern:
            self.note(f"it sent a request of its own, {message.method[:100]}, which {self.revision.name} does not know")
        else:
            self._events.on_request(self, message)

    def _server_error(self, raw: Raw, *, readable: bool = True) -> ClientError:
        try:
            fault = _read_error(raw)
        except BROKEN:
            return BadAnswer(f"an error answer that is none: {bytes(raw)[:200]!r}", self.label)
        if not readable:
            return BadAnswer(fault.message, self.label)
        return self.locate(ServerError(fault.code, fault.message, fault.data))

    def _take_progress(self, params: Raw) -> None:
        try:
            advance = _read_progress(params)
        except BROKEN:
            self.note("a progress message that can't be read")
            return
        pending = self._pending.get(advance.progress_token)
        if pending is None or pending.progress is None:
            return
        if pending.due < inf:
            pending.due = min(self.clock.now() + pending.timeout, pending.deadline)
        self.call_handler("on_progress", pending.progress, advance.progress, advance.total, advance.message)

    def call_handler(self, name: str, handler: Callable[..., Any], *arguments: Any) -> None:
        """Call a handler of the user's, which may be async. Its exceptions are noted, and lose no answer.

        Calls are dropped while too many are under way: a handler slower than the server must not fill the memory.
        """
        try:
            work = handler(*arguments)
        except Exception as problem:
            self.note(f"{name} raised {problem!r}")
            return
        if not asyncio.iscoroutine(work):
            return
        if len(self._handlers) < HANDLER_TASKS:
            self._handlers.start(self._run_handler(name, work))
        else:
            work.close()
            self.note(f"{name} is too slow: {HANDLER_TASKS:,} messages wait for it, and more were passed over")

    async def _run_handler(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except Exception as problem:
            self.note(f"{name} raised {problem!r}")

    def _take_malformed(self, frame: bytes, why: str) -> None:
        """Fail the request that a malformed answer is for. An error without an id is for the only pending request."""
        what = f"it sent something that is no message ({why}): {bytes(frame[:120]).decode('utf-8', 'replace')}"
        try:
            fields = _read_fields(frame)
        except BROKEN:
            self.note(what)
            self._garbage += 1
            if self._garbage == _GARBAGE:
                what = f"it does not speak MCP: {_GARBAGE:,} lines in a row are no messages ({what})"
                self.on_lost(ConnectionLost(what))
            return
        is_error = fields.error not in (ABSENT, _NULL)
        id = fields.id
        if id is None and is_error and len(self._pending) == 1:
            id = next(iter(self._pending))
        if fields.method == ABSENT and id in self._pending:
            self.on_failure(id, self._server_error(fields.error) if is_error else BadAnswer(what))
        else:
            self.note(what)


def _current_trace() -> Mapping[str, Any] | None:
    """The trace of the current call for `_meta`. Its module is loaded if a call has a trace."""
    module = sys.modules.get("longshore.telemetry.trace")
    trace = None if module is None else module.current()
    return None if module is None or trace is None else module.to_meta(trace)


class _Error(Struct):
    code: int
    message: str = ""
    data: Any = None


class _Progress(Struct, rename="camel"):
    progress_token: Id
    progress: float
    total: float | None = None
    message: str | None = None


class _Fields(Struct):
    """The readable fields of a malformed message."""

    id: Id | None = None
    method: Raw = ABSENT
    error: Raw = ABSENT


_NULL = Raw(b"null")
_read_error = msgspec.json.Decoder(_Error).decode
_read_progress = msgspec.json.Decoder(_Progress).decode
_read_fields = msgspec.json.Decoder(_Fields).decode


def _raise_in(done: asyncio.Future[Raw], problem: ClientError) -> None:
    """Fail a future; if its caller has left, asyncio must not log that."""
    if not done.done():
        done.set_exception(problem)
        done.exception()
