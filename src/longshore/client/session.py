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

from msgspec import UNSET, Raw

from longshore.client.channel import About, Channel
from longshore.client.clock import LOOK_SECONDS, Clock
from longshore.client.frames import NULL, read_broken, read_fault, read_progress, shown
from longshore.client.pending import CAP, Pending, Progress, Sent, raise_in
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

_UNTOLD = 10_000
"""Messages that async handlers of the user's have not done with, at 2 KB each; more are passed over. A batch fits."""
_NOTES = 50
"""Oddities of a server that are remembered."""
_GARBAGE = 1000
"""Things in a row that are no messages, after which nobody expects any."""
_RECENT = 1000
"""Ids given up that are remembered, to tell a late answer from a wrong one."""


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
        self._envelope: Mapping[str, Any] | None = None
        self._sealed: Raw | None = None
        self.gone: ClientError | None = None
        """Why nothing more can be sent."""
        self.notes: deque[str] = deque(maxlen=_NOTES)
        self._heard, self._asked, self._lost = heard, asked, lost
        self._loop = asyncio.get_running_loop()
        self.clock = Clock(self._loop.time)
        """Stopped while a question of the server's is answered, which waits for us, and while a person logs in."""
        self._logs_in = False
        self._pending: dict[Id, Pending] = {}
        self._garbage = 0
        self._given_up: deque[Id] = deque(maxlen=_RECENT)
        self._next = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._armed = inf
        """For when the alarm is set, by the clock."""
        self._telling = Tasks()
        self._ending: asyncio.Task[None] | None = None
        channel.hear, channel.fail, channel.lose, channel.note = self._hear, self._fail, self._lose, self.note

    @property
    def envelope(self) -> Mapping[str, Any] | None:
        """What every modern request carries in its `_meta`; None in the handshake era. Set another to change it."""
        return self._envelope

    @envelope.setter
    def envelope(self, envelope: Mapping[str, Any] | None) -> None:
        self._envelope = envelope
        self._sealed = None if envelope is None else Raw(encode(envelope))  # once, not with every request

    @property
    def stalled(self) -> bool:
        """Whether answers and notifications must wait as well. Over HTTP only requests do: for one of them to end."""
        return self.channel.congested and not self.channel.shared

    # -- sending

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        spent: float = 0.0,
        progress: Progress | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Raw:
        """Send a request and wait for its result. Cancelled or out of time, the server is told to stop.

        `spent` is what the caller has waited already of the time that it has.
        """
        if self.channel.congested:
            spent = await self.clear(method, timeout, spent)
        sent = self.start(method, params, timeout=timeout, spent=spent, progress=progress, headers=headers)
        try:
            return await sent.answer
        except asyncio.CancelledError:
            self.give_up(sent.id, "cancelled by the caller")
            raise

    async def clear(self, method: str, timeout: float | None, spent: float = 0.0) -> float:
        """Wait until the server takes more. That time counts too: gives what is spent by now."""
        begun = self._loop.time()
        try:
            async with asyncio.timeout(None if timeout is None else max(timeout - spent, 0.0)):
                await self.channel.ready()
        except TimeoutError:
            busy = "too many requests are under way"
            why = busy if self.channel.shared else "the server does not read what it was sent"
            what = f"{method} could not be sent within {timeout:g} s: {why}"
            raise CallTimeout(what).at(self.channel.where, self.channel.said()) from None
        if self.gone is not None:
            raise _again(self.gone, unsent=True)
        return spent + self._loop.time() - begun

    def start(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        spent: float = 0.0,
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
            begun = self.clock.now() - spent
            pending.timeout, pending.due, pending.deadline = timeout, begun + timeout, begun + CAP * timeout
            if pending.due < self._armed:
                self._arm(pending.due)
        key = NAME_BEARING.get(method)
        name = None if key is None or params is None or params.get(key) is None else str(params[key])
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
        if self._sealed is None and token is None:
            return params
        body: dict[str, Any] = dict(params) if params is not None else {}
        own: Mapping[str, Any] | None = body.get("_meta")
        if not own and token is None:
            body["_meta"] = self._sealed
            return body
        body["_meta"] = _merge(self.envelope or {}, own or {})
        if token is not None:
            body["_meta"]["progressToken"] = token
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

    def go_on(self) -> None:
        """The clock goes on. Somebody's time may be nearly up."""
        self.clock.go_on()
        self._sweep()

    def _arm(self, due: float) -> None:
        self._stop_alarm()
        self._armed = due
        seconds = max(due - self.clock.now(), 0.0)
        if self.clock.stands:
            seconds = LOOK_SECONDS
        elif self.channel.logs_in:
            seconds = min(seconds, LOOK_SECONDS)
        self._alarm = self._loop.call_later(seconds, self._sweep)

    def _stop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._armed = None, inf

    def _sweep(self) -> None:
        """One timer for all requests, for one each would cost as much as the rest: end those whose time is up."""
        self._stop_alarm()
        self._look()
        now = self.clock.now()
        for id, pending in list(self._pending.items()):
            if pending.due <= now and not self.clock.stands:
                self._expire(id, pending)
        due = min((pending.due for pending in self._pending.values()), default=inf)
        if due < self._armed and self.gone is None:
            self._arm(due)

    def _look(self) -> None:
        """See whether a person logs in somewhere, and stop the clock for as long as they do."""
        logs_in, self._logs_in = self._logs_in, self.channel.waiting
        if self._logs_in and not logs_in:
            self.clock.stop()
        elif logs_in and not self._logs_in:
            self.clock.go_on()

    def _expire(self, id: Id, pending: Pending) -> None:
        done, seconds = pending.done, pending.timeout
        pending.done = self._loop.create_future()  # give_up cancels that one
        self.give_up(id, "timed out")
        what = f"no answer to {pending.method} within {seconds:g} s{self.oddity()}"
        late = CallTimeout(what, fix="give it more by {}", options=("timeout",))
        raise_in(done, late.at(self.channel.where, self.channel.said()))

    def _take(self, id: Id) -> Pending | None:
        return self._pending.pop(id, None)

    # -- the end

    def _fail(self, id: Id, problem: ClientError) -> None:
        pending = self._take(id)
        if pending is not None:
            raise_in(pending.done, problem.at(self.channel.where, self.channel.said()))

    def _lose(self, problem: ClientError) -> None:
        if self.gone is None:
            self.gone = problem.at(self.channel.where, self.channel.said())
            self._stop_alarm()
            for id in list(self._pending):
                self._fail(id, _again(problem))
            self._lost(self)
            self._ending = self._loop.create_task(self.channel.close())  # it may still run, and write

    async def close(self) -> None:
        """End the connection. Whoever still waits gets ConnectionLost."""
        self._stop_alarm()
        if self.gone is None:
            self.gone = ConnectionLost("the connection was closed", self.channel.where)
        for id in list(self._pending):
            self._fail(id, ConnectionLost("the connection was closed before the answer came"))
        try:
            await self.channel.close()  # begun before anything is waited for: the loop may end at any moment
            if self._ending is not None:
                await asyncio.wait((self._ending,))
        finally:
            await self._telling.end()

    # -- receiving

    def _hear(self, frame: bytes) -> None:
        if self.gone is not None:
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
                    self._take_garbage(bytes(item), inner)
        elif isinstance(message, Malformed):
            self._take_garbage(frame, message)
        else:
            self._take_blank(frame)

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
        elif isinstance(message, UnreadableResponse):
            raise_in(pending.done, BadAnswer(read_fault(message.error).message, self.channel.where))
        else:
            raise_in(pending.done, self._fault(message.error))

    def _take_question(self, message: Message) -> None:
        """A request of the server's own. In the modern era there are none, and no answers to them either."""
        if self.revision is not None and self.revision.modern:
            self.note(f"it sent a request of its own, {message.method[:100]}, which {self.revision.name} does not know")
        else:
            self._asked(self, message)

    def _fault(self, raw: Raw) -> ClientError:
        try:
            fault = read_fault(raw)
        except BROKEN:
            return BadAnswer(f"an error answer that is none: {bytes(raw)[:200]!r}", self.channel.where)
        return ServerError(fault.code, fault.message, fault.data, self.channel.where, self.channel.said())

    def _take_progress(self, params: Raw) -> None:
        try:
            said = read_progress(params)
        except BROKEN:
            self.note("a progress message that can't be read")
            return
        pending = self._pending.get(said.progressToken)
        if pending is None or pending.progress is None:
            return
        if pending.due < inf:
            pending.due = min(self.clock.now() + pending.timeout, pending.deadline)
        self.tell("on_progress", pending.progress, said.progress, said.total, said.message)

    def tell(self, name: str, handler: Callable[..., Any], *news: Any) -> None:
        """Call a handler of the user's, which may be async. What it raises is noted: no answer is lost by it.

        One that is slower than the server must not fill our memory: what is too much is passed over.
        """
        try:
            work = handler(*news)
        except Exception as problem:
            self.note(f"{name} raised {problem!r}")
            return
        if not asyncio.iscoroutine(work):
            return
        if len(self._telling) < _UNTOLD:
            self._telling.start(self._told(name, work))
        else:
            work.close()
            self.note(f"{name} is too slow: {_UNTOLD:,} messages wait for it, and more were passed over")

    async def _told(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except Exception as problem:
            self.note(f"{name} raised {problem!r}")

    def _take_garbage(self, frame: bytes, message: Malformed) -> None:
        self._take_broken(frame, f"it sent something that is no message ({message.text}): {shown(frame)}")

    def _take_blank(self, frame: bytes) -> None:
        """An empty line, or an answer that is none."""
        if frame.strip():
            self._take_broken(frame, f"it sent an answer that is none: {shown(frame)}")

    def _take_broken(self, frame: bytes, what: str) -> None:
        """Who waits for a broken answer need not wait on. One without an id is the only request's, if it complains."""
        try:
            broken = read_broken(frame)
        except BROKEN:
            self._count_garbage(what)
            return
        complains = broken.error not in (ABSENT, NULL)
        id = broken.id
        if id is None and complains and len(self._pending) == 1:
            id = next(iter(self._pending))
        if broken.method == ABSENT and id in self._pending:
            self._fail(id, self._fault(broken.error) if complains else BadAnswer(what))
        else:
            self.note(what)

    def _count_garbage(self, what: str) -> None:
        self.note(what)
        self._garbage += 1
        if self._garbage == _GARBAGE:
            self._lose(ConnectionLost(f"it does not speak MCP: {_GARBAGE:,} lines in a row are no messages ({what})"))

    def note(self, text: str) -> None:
        """Remember an oddity of the server's. One that repeats itself does not push the others out."""
        if text not in self.notes:
            self.notes.append(text)

    def oddity(self) -> str:
        """The last one, for a message that says why something did not come."""
        return f" ({self.notes[-1]})" if self.notes else ""


def _again(problem: ClientError, *, unsent: bool = False) -> ClientError:
    """The same problem for another caller: an exception that two await must not be one object."""
    copy = ConnectionLost(problem.what, problem.server, problem.said, unsent=unsent)
    copy.__cause__ = problem.__cause__
    return copy


_FIXED = PREFIX + "protocolVersion"
_DECLARED = PREFIX + "clientCapabilities"


def _merge(envelope: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A caller's `_meta` over the envelope's: it may say more of this request, but not unsay what every one must say.

    Tokens for progress are ours to give, or two requests could have the same.
    """
    meta = {**envelope, **own}
    meta.pop("progressToken", None)
    if envelope:
        meta[_FIXED] = envelope[_FIXED]
        if not isinstance(meta.get(_DECLARED), dict):
            meta[_DECLARED] = envelope[_DECLARED]
    return meta
