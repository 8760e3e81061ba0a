"""One open connection: which requests wait for an answer, and what to do with everything that comes.

A request leaves the table exactly once: answered, failed, out of time, or given up by its caller, who then has the
server told. What comes for a request that is no longer there is late and nobody's fault; what comes for one that
never was, is noted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from math import inf
from typing import Any, final

import msgspec
from msgspec import UNSET, Raw, Struct

from longshore.client.channel import About, Channel
from longshore.errors import BadAnswer, CallTimeout, ClientError, ConnectionLost, ServerError
from longshore.limits import Limits
from longshore.protocol.envelope import PREFIX
from longshore.protocol.headers import NAME_BEARING
from longshore.protocol.revisions import Revision
from longshore.wire.codec import BROKEN, encode, error, read
from longshore.wire.messages import ABSENT, Batch, Blank, Id, Malformed, Message, Notification, Reply, Request

Progress = Callable[[float, float | None, str | None], Any]

CAP = 10
"""Progress begins a request's time anew, up to so many times its time in all."""
_NOTES = 50
"""Oddities of a server that are remembered."""
_RECENT = 1000
"""Ids given up that are remembered, to tell a late answer from a wrong one."""


@final
class Pending:
    """A request that waits for its answer."""

    __slots__ = ("deadline", "done", "due", "method", "progress", "timeout")

    def __init__(self, method: str, done: asyncio.Future[Raw], progress: Progress | None) -> None:
        self.method = method
        self.done = done
        self.progress = progress
        self.timeout = 0.0
        self.due = inf
        """When its time is up. Progress puts that off, but not past the deadline."""
        self.deadline = inf


class _Fault(Struct):
    code: int
    message: str = ""
    data: Any = None


class _Progress(Struct):
    progressToken: Id  # noqa: N815 - as it is spelled there
    progress: float
    total: float | None = None
    message: str | None = None


_read_fault = msgspec.json.Decoder(_Fault).decode
_read_progress = msgspec.json.Decoder(_Progress).decode


class Sent(Struct):
    """One request as it was sent: its id, and the answer to come."""

    id: Id
    answer: asyncio.Future[Raw]


@final
class Session:
    """A connection over a channel. `heard` gets notifications, `asked` the server's own requests, `lost` its end."""

    def __init__(
        self,
        channel: Channel,
        limits: Limits,
        heard: Callable[[Session, str, Raw], None],
        asked: Callable[[Session, Message], None],
        lost: Callable[[Session], None],
    ) -> None:
        self.channel = channel
        self.limits = limits
        self.revision: Revision | None = None
        self.envelope: dict[str, Any] | None = None
        """What every modern request carries in its `_meta`; None in the handshake era."""
        self.gone: ClientError | None = None
        """Why nothing more can be sent."""
        self.notes: deque[str] = deque(maxlen=_NOTES)
        self.answering = 0
        """Questions of the server's that are being answered. It waits for us meanwhile, so none of our clocks run."""
        self._heard, self._asked, self._lost = heard, asked, lost
        self._loop = asyncio.get_running_loop()
        self._pending: dict[Id, Pending] = {}
        self._given_up: deque[Id] = deque(maxlen=_RECENT)
        self._next = 0
        self._clock: asyncio.TimerHandle | None = None
        self._armed = inf
        """When the clock strikes next."""
        self._telling: set[asyncio.Task[Any]] = set()
        channel.hear, channel.fail, channel.lose, channel.note = self._hear, self._fail, self._lose, self.note

    # -- sending

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Raw:
        """Send a request and wait for its result. Cancelled or out of time, the server is told to stop."""
        if self.channel.congested:
            await self._clear(method, timeout)
        sent = self.start(method, params, timeout=timeout, progress=progress, headers=headers)
        try:
            return await sent.answer
        except asyncio.CancelledError:
            self.give_up(sent.id, "cancelled by the caller")
            raise

    async def _clear(self, method: str, timeout: float | None) -> None:
        """Wait until the server takes more. That time counts too."""
        try:
            async with asyncio.timeout(timeout):
                await self.channel.ready()
        except TimeoutError:
            what = f"{method} could not be sent within {timeout:g} s: the server does not read what it was sent"
            raise CallTimeout(what).at(self.channel.where, self.channel.said()) from None

    def start(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Sent:
        """Send a request; its answer is the caller's to wait for or to give up."""
        if self.gone is not None:
            raise _again(self.gone, unsent=True)
        self._next = id = self._next + 1
        body = self._complete(params, id if progress is not None else None)
        frame = encode(Request(id, method, UNSET if body is None else body))  # raises for what is no JSON
        pending = Pending(method, self._loop.create_future(), progress)
        self._pending[id] = pending
        if timeout is not None:
            now = self._loop.time()
            pending.timeout, pending.due, pending.deadline = timeout, now + timeout, now + CAP * timeout
            if pending.due < self._armed:
                self._arm(pending.due)
        key = NAME_BEARING.get(method)
        name = str(params.get(key)) if key is not None and params is not None else None
        self.channel.send(frame, About(method, id, name, headers))
        return Sent(id, pending.done)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        if self.gone is None:
            self.channel.send(encode(Notification(method, UNSET if params is None else params)), About(method))

    def answer(self, id: Id, result: Any) -> None:
        """Answer a request of the server's."""
        if self.gone is None:
            self.channel.send(encode(Reply(id, result)), About("response"))

    def refuse(self, id: Id, code: int, text: str) -> None:
        if self.gone is None:
            self.channel.send(error(id, code, text), About("response"))

    def _complete(self, params: Mapping[str, Any] | None, token: Id | None) -> Mapping[str, Any] | None:
        """The parameters with what the era and the caller's wish for progress add to `_meta`."""
        if self.envelope is None and token is None:
            return params
        body: dict[str, Any] = dict(params) if params is not None else {}
        own: Mapping[str, Any] | None = body.get("_meta")
        if not own and token is None:
            body["_meta"] = self.envelope
            return body
        meta: dict[str, Any] = {**(self.envelope or {}), **(own or {})}
        if token is not None:
            meta["progressToken"] = token
        body["_meta"] = meta
        return body

    # -- giving up

    def give_up(self, id: Id, reason: str) -> None:
        """Nobody waits for this answer any more; tell the server, unless it has come."""
        pending = self._take(id)
        if pending is None:
            return
        pending.done.cancel()
        self._given_up.append(id)
        if pending.method != "initialize" and self.gone is None:  # which must not be cancelled
            params = {"requestId": id, "reason": reason}
            self.channel.cancel(id, encode(Notification("notifications/cancelled", params)))

    def _arm(self, due: float) -> None:
        self._stop_clock()
        self._armed = due
        self._clock = self._loop.call_at(due, self._sweep)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()

    def _sweep(self) -> None:
        """One timer for all requests, for one each would cost as much as the rest: end those whose time is up."""
        self._clock, self._armed = None, inf
        now = self._loop.time()
        for id, pending in list(self._pending.items()):
            if pending.due <= now:
                self._expire(id, pending)
        due = min((pending.due for pending in self._pending.values()), default=inf)
        if due < self._armed:
            self._arm(due)

    def _expire(self, id: Id, pending: Pending) -> None:
        if self.channel.waiting or self.answering:
            pending.due = self._loop.time() + pending.timeout
            return
        done, seconds = pending.done, pending.timeout
        pending.done = self._loop.create_future()  # give_up cancels that one
        self.give_up(id, "timed out")
        what = f"no answer to {pending.method} within {seconds:g} s{self.oddity()}; give it more by timeout="
        _raise_in(done, CallTimeout(what).at(self.channel.where, self.channel.said()))

    def _take(self, id: Id) -> Pending | None:
        return self._pending.pop(id, None)

    # -- the end

    def _fail(self, id: Id, problem: ClientError) -> None:
        pending = self._take(id)
        if pending is not None:
            _raise_in(pending.done, problem.at(self.channel.where, self.channel.said()))

    def _lose(self, problem: ClientError) -> None:
        if self.gone is None:
            self.gone = problem.at(self.channel.where, self.channel.said())
            self._stop_clock()
            for id in list(self._pending):
                self._fail(id, _again(problem))
            self._lost(self)

    async def close(self) -> None:
        """End the connection. Whoever still waits gets ConnectionLost."""
        self._stop_clock()
        if self.gone is None:
            self.gone = ConnectionLost("the connection was closed", self.channel.where)
        for id in list(self._pending):
            self._fail(id, ConnectionLost("the connection was closed before the answer came"))
        for task in self._telling:
            task.cancel()
        await self.channel.close()

    # -- receiving

    def _hear(self, frame: bytes) -> None:
        message = read(frame, self.limits.depth, self.limits.batch)
        if isinstance(message, Message):
            self._take_message(message)
        elif isinstance(message, Batch):
            if self.revision is not None and not self.revision.batches:
                self.note(f"it sent a batch, which {self.revision.name} does not know")
            for item in message.items:
                inner = read(bytes(item), self.limits.depth, 0)
                if isinstance(inner, Message):
                    self._take_message(inner)
                elif isinstance(inner, Malformed):
                    self._take_garbage(bytes(item), inner)
        elif isinstance(message, Malformed):
            self._take_garbage(frame, message)
        else:
            self._take_blank(frame, message)

    def _take_message(self, message: Message) -> None:
        if message.method:
            if message.id is not UNSET:
                self._take_question(message)
            elif message.method == "notifications/progress":
                self._take_progress(message.params)
            else:
                self._heard(self, message.method, message.params)
            return
        id = message.id
        assert id is not UNSET
        pending = self._take(id)
        if pending is None:
            if id not in self._given_up:
                self.note(f"an answer came for a request {id!r} that nobody waits for")
        elif pending.done.done():
            pass  # its caller was cancelled in this very turn
        elif message.error == ABSENT:
            pending.done.set_result(message.result)
        else:
            _raise_in(pending.done, self._fault(message.error))

    def _take_question(self, message: Message) -> None:
        """A request of the server's own. In the modern era there are none, and no answers to them either."""
        if self.revision is not None and self.revision.modern:
            self.note(f"it sent a request of its own, {message.method[:100]}, which {self.revision.name} does not know")
        else:
            self._asked(self, message)

    def _fault(self, raw: Raw) -> ClientError:
        try:
            fault = _read_fault(raw)
        except BROKEN:
            return BadAnswer(f"an error answer that is none: {bytes(raw)[:200]!r}", self.channel.where)
        return ServerError(fault.code, fault.message, fault.data, self.channel.where, self.channel.said())

    def _take_progress(self, params: Raw) -> None:
        try:
            said = _read_progress(params)
        except BROKEN:
            self.note("a progress message that can't be read")
            return
        pending = self._pending.get(said.progressToken)
        if pending is None or pending.progress is None:
            return
        if pending.due < inf:
            pending.due = min(self._loop.time() + pending.timeout, pending.deadline)
        self.tell("on_progress", pending.progress, said.progress, said.total, said.message)

    def tell(self, name: str, handler: Callable[..., Any], *news: Any) -> None:
        """Call a handler of the user's, which may be async. What it raises is noted: no answer is lost by it."""
        try:
            work = handler(*news)
        except Exception as problem:
            self.note(f"{name} raised {problem!r}")
            return
        if asyncio.iscoroutine(work):
            task = self._loop.create_task(self._told(name, work))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _told(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except Exception as problem:
            self.note(f"{name} raised {problem!r}")

    def _take_garbage(self, frame: bytes, message: Malformed) -> None:
        self._take_broken(frame, f"it sent something that is no message ({message.text}): {_shown(frame)}")

    def _take_blank(self, frame: bytes, _: Blank) -> None:
        """An empty line, or an answer that is none."""
        if frame.strip():
            self._take_broken(frame, f"it sent an answer that is none: {_shown(frame)}")

    def _take_broken(self, frame: bytes, what: str) -> None:
        """Who waits for a broken answer need not wait on. One without an id is the only request's, if it complains."""
        try:
            broken = _read_broken(frame)
        except BROKEN:
            self.note(what)
            return
        complains = broken.error not in (ABSENT, _NULL)
        id = broken.id
        if id is None and complains and len(self._pending) == 1:
            id = next(iter(self._pending))
        if broken.method == ABSENT and id in self._pending:
            self._fail(id, self._fault(broken.error) if complains else BadAnswer(what))
        else:
            self.note(what)

    def note(self, text: str) -> None:
        """Remember an oddity of the server's. One that repeats itself does not push the others out."""
        if text not in self.notes:
            self.notes.append(text)

    def oddity(self) -> str:
        """The last one, for a message that says why something did not come."""
        return f" ({self.notes[-1]})" if self.notes else ""


class _Broken(Struct):
    id: Id | None = None
    method: Raw = ABSENT
    error: Raw = ABSENT


_NULL = Raw(b"null")
_read_broken = msgspec.json.Decoder(_Broken).decode


def _shown(frame: bytes) -> str:
    return bytes(frame[:120]).decode("utf-8", "replace")


def _raise_in(done: asyncio.Future[Raw], problem: ClientError) -> None:
    """Have whoever waits get an exception. Where nobody does any more, asyncio has no complaint."""
    if not done.done():
        done.set_exception(problem)
        done.exception()


def _again(problem: ClientError, *, unsent: bool = False) -> ClientError:
    """The same problem for another caller: an exception that two await must not be one object."""
    copy = ConnectionLost(problem.what, problem.server, problem.said, unsent=unsent)
    copy.__cause__ = problem.__cause__
    return copy


def make_envelope(
    revision: Revision, capabilities: Mapping[str, Any], info: Mapping[str, Any], log_level: str | None
) -> dict[str, Any]:
    """What every modern request says of itself."""
    envelope: dict[str, Any] = {
        PREFIX + "protocolVersion": revision.name,
        PREFIX + "clientCapabilities": Raw(encode(capabilities)),  # once, not with every request
        PREFIX + "clientInfo": Raw(encode(info)),
    }
    if log_level is not None:
        envelope[PREFIX + "logLevel"] = log_level
    return envelope
