"""The response to one HTTP request, from the time that the engine gets the request until the last byte is sent.

A `PendingResponse` is the engine's link. Its answer leaves in one of two ways:

- It is attached to a connection of our own server, and `answer` writes a plain JSON answer there. No task waits. -
`deliver` awaits the answer and sends it by ASGI. Our own server also does that, in a task, for anything other than one
plain answer: a stream, an error status, a client that reads slowly.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

from msgspec import Struct

from longshore.auth.guard import Guard
from longshore.errors import Forbidden
from longshore.limits import Limits
from longshore.protocol.dialect import Failure, FailureKind
from longshore.protocol.session import Session
from longshore.server.engine import Engine
from longshore.server.frame_tap import FrameTap
from longshore.server.link import Link
from longshore.telemetry.events import Source
from longshore.transports.http.gate import Gone, HttpRequest, denial
from longshore.transports.http.responses import (
    JSON_TYPE,
    HeaderPairs,
    Receive,
    Send,
    event,
    finish,
    reply,
    start_stream,
    write,
)
from longshore.transports.http.streams import Wakeup
from longshore.wire.codec import ErrorFrame

RESPONSE: Final = "longshore.response"
"""The key of an ASGI scope under which our own server passes a response that was begun."""
SLOW_SECONDS: Final = 0.025
"""After so long a call is slow: it is worth a timer, or a task that notices when its client hangs up. One timer marks
all of them, so it may take twice as long."""


class Writer(Protocol):
    """A connection that can write an answer without a task."""

    def respond(self, frame: bytes) -> bool:
        """Write a JSON response. False: the client reads too slowly."""
        ...

    def deliver(self, response: Deliverable) -> None:
        """Have a task deliver the response by ASGI."""
        ...


class Deliverable(Protocol):
    """A response that our own server gives back to the app for delivery."""

    async def deliver(self, receive: Receive, send: Send) -> None: ...


class SlowResponses:
    """One timer for all pending responses: it marks those that are not answered within a short time."""

    __slots__ = ("_armed", "_new")

    def __init__(self) -> None:
        self._new: list[PendingResponse] = []
        self._armed = False

    def reset(self) -> None:
        """Forget the timer of an earlier loop."""
        self._new, self._armed = [], False

    def add(self, pending: PendingResponse) -> None:
        self._new.append(pending)
        if not self._armed:
            self._armed = True
            asyncio.get_running_loop().call_later(SLOW_SECONDS, self._sweep)

    def _sweep(self) -> None:
        new, self._new = self._new, []
        self._armed = False
        for pending in new:
            if not (pending.done or pending.slow):
                pending.slow = True
                pending.became_slow()


class Delivery(Struct):
    """The collaborators of every pending response."""

    engine: Engine
    limits: Limits
    guard: Guard
    slow: SlowResponses
    tap: FrameTap
    stopping: bool = False
    """Whether the app is shutting down."""


class PendingResponse(Link):
    """The response to one POST. Subclasses define the messages before the answer, and the reaction to a hang-up."""

    __slots__ = (
        "_delivery",
        "_timer",
        "_wakeup",
        "_writer",
        "accepts_json",
        "accepts_stream",
        "done",
        "extra",
        "frame",
        "gone",
        "kind",
        "slow",
    )
    has_status = True
    transport = "http"

    def __init__(self, delivery: Delivery, request: HttpRequest, session: Session[Any] | None = None) -> None:
        # The attributes of Link are set here: there is one for each request, and a call of its constructor costs 0.2
        # µs.
        self.session = Session() if session is None else session
        self.principal = request.principal
        self.caller = request.caller
        self.congested = False
        self.headers = None
        self.source = None
        self.extra = request.extra
        self.accepts_json, self.accepts_stream = request.accepts_json, request.accepts_stream
        self.done = False
        self.frame: bytes | None = None
        """The answer. Empty for a message that has none, None for a request that was cancelled."""
        self.gone = False
        """Whether the client has hung up."""
        self.slow = False
        self.kind: FailureKind | None = None
        """Why the answer is a failure."""
        self._delivery = delivery
        self._timer: asyncio.TimerHandle | None = None
        self._writer: Writer | None = None
        self._wakeup: Wakeup | None = None

    # -- the engine's side

    def describe(self) -> Source:
        self.source = made = Source(self.transport, self.session.label, self.principal.name, self.dialect)
        return made

    def answer(self, frame: bytes | None) -> None:
        self.frame = frame
        self.done = True
        if frame and self._delivery.tap.watchers:
            self._delivery.tap.show("out", self, frame)
        if self._timer is not None:
            self._timer.cancel()
        writer = self._writer
        if writer is not None and frame.__class__ is bytes:  # an ErrorFrame may have a status
            self._writer = None
            assert frame is not None
            if not writer.respond(frame):
                writer.deliver(self)
        else:
            self.wake()

    def failed(self, failure: Failure) -> None:
        self.kind = failure.kind

    def accept(self) -> None:
        """The message is a notification or a response, which has no answer."""
        self.frame, self.done = b"", True

    # -- the connection's side

    @property
    def streaming(self) -> bool:
        """Whether something was sent before the answer, so that the response is a stream."""
        return False

    @property
    def is_plain(self) -> bool:
        """Whether an answer may be written unchanged: without other headers, events, or changes to store before it."""
        return self.accepts_json and not self.streaming and not self.extra

    def attach(self, writer: Writer) -> None:
        """Write a plain answer there when it comes."""
        self._writer = writer
        self._delivery.slow.add(self)

    def became_slow(self) -> None:
        """Wait longer before the response becomes a stream. A connection of our own needs no task for that."""
        if self._writer is not None and self.accepts_stream:
            loop, seconds = asyncio.get_running_loop(), self._delivery.limits.stream_after_seconds
            self._timer = loop.call_later(seconds, self.begin_stream)
        else:
            self.wake()

    def lose(self) -> None:
        """The client has hung up."""
        self.gone, self._writer = True, None
        if self._timer is not None:
            self._timer.cancel()
        self.wake()

    def wake(self) -> None:
        writer = self._writer
        if writer is not None:
            self._writer = None
            writer.deliver(self)
        elif self._wakeup is not None:
            self._wakeup.wake()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for any change. False: the time ran out."""
        if self._wakeup is None:
            self._wakeup = Wakeup()
        return await self._wakeup.wait(seconds)

    async def deliver(self, receive: Receive, send: Send) -> None:
        """Send the response: as JSON if the answer is the first message, as a stream if it takes long."""
        if self.done and not self.streaming:
            await self.send_answer(send)
            return
        self._delivery.slow.add(self)
        watcher: asyncio.Task[None] | None = None
        try:
            while not (self.done or self.streaming or self.slow):
                await self.wait()
            if self.streaming or not self.done:
                watcher = asyncio.get_running_loop().create_task(self._watch(receive))
            seconds = self._delivery.limits.stream_after_seconds if self.accepts_stream else None
            while self.accepts_json and not (self.done or self.streaming or self.gone):
                if not await self.wait(seconds):
                    break
            if self.gone:
                raise Gone
            if not self.done:
                self.begin_stream()
            if self.done and not self.streaming:
                await self.send_answer(send)
            else:
                await self.send_stream(send)
        finally:
            if watcher is not None:
                watcher.cancel()
            self.close()

    async def _watch(self, receive: Receive) -> None:
        await hung_up(receive)
        self.lose()

    def close(self) -> None:
        """Release the response from its connection. If there is no answer yet, the request is cancelled."""
        if not self.done:
            self._delivery.engine.hang_up(self)

    async def send_answer(self, send: Send) -> None:
        """Send the answer as a whole, with its status."""
        frame = self.frame
        if not frame:
            await self.send_nothing(send)
            return
        status, headers = self.status(frame), self.answer_headers(frame)
        if status == 200 and not self.accepts_json:
            await start_stream(send, headers)
            await write(send, event(frame))
            await finish(send)
        else:
            await reply(send, status, frame, (JSON_TYPE, *headers))

    def answer_headers(self, frame: bytes) -> HeaderPairs:
        """The headers of an answer beside its type."""
        if isinstance(frame, ErrorFrame) and isinstance(frame.cause, Forbidden):
            return (*self.extra, *self.challenge(frame.cause.needed))
        return self.extra

    def challenge(self, needed: frozenset[str]) -> HeaderPairs:
        """The header that names the scopes that the caller needs."""
        return denial(self._delivery.guard.forbid(self.principal, needed)).headers

    # -- for subclasses

    def status(self, frame: bytes) -> int:
        """The HTTP status of an answer."""
        raise NotImplementedError

    async def send_nothing(self, send: Send) -> None:
        """Respond to a message that has no answer, or to a request that was cancelled."""
        raise NotImplementedError

    def begin_stream(self) -> None:
        """Make the response a stream, even if nothing was sent yet."""
        raise NotImplementedError

    async def send_stream(self, send: Send) -> None:
        """Send the response as a stream of events that ends with the answer."""
        raise NotImplementedError


async def hung_up(receive: Receive) -> None:
    """Wait until the client hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass
