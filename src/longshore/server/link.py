"""The connection between the engine and one peer, which a transport implements."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar

from longshore.protocol.peer import Principal
from longshore.protocol.session import Session

if TYPE_CHECKING:
    from longshore.protocol.dialect import Failure
    from longshore.protocol.http_headers import Headers
    from longshore.telemetry.events import Source

LOCAL = Principal()


class Link:
    """Where the answers of one scope of request ids go. A transport subclasses it.

    **A transport supplies**

    - `send(frame)`: sends a notification, or a request of ours. Never blocks and never raises: it queues.
    - `answer(frame)`: sends the response to a request that `Engine.handle` did not answer at once; `answer(None)`
      means that there will be none (the request was cancelled). By default `answer` sends.
    - `congested`: True while the peer does not read what was sent. Calls are then queued instead of started; when it
      is False again, the transport calls `executor.start_queued()`.
    - `caller`: (owner, session or connection), whose calls share the server fairly. None: the only peer, as on stdio.
    - `headers`: the HTTP headers that must agree with the body, which makes the request a modern one; else None.
    - `has_status`: True if a refusal has a status of its own, as in HTTP; then errors stay JSON-RPC errors.
    - `hold_back(size)`: counts the bytes of requests that wait for earlier ones, where they run one after the other;
      less than zero when they begin. Beyond `output_bytes` the transport reads no more. When the peer reads again, it
      calls `session.proceed()`, too.
    - `transport`: its name in telemetry records; `has_session`: False where each request is its own session.
    - `home`: the link for notifications that belong to no request; `owner`: the key by which listens are counted.

    **A transport calls**, on the thread of the event loop:

    - `executor.adopt_loop(loop)` when its loop runs, or `executor.adopt_host(host)` to begin without one (stdio).
    - `engine.handle(frame, link)` for each frame, and sends the bytes that it returns; None: the answer, if any,
      comes by `answer`. For a frame over the limit `engine.too_long`, for one in a reused buffer `engine.handle_long`.
    - `engine.hang_up(link)` when the peer of a single request is gone.
    - `engine.detach(link)` when the input has ended: listens end, and questions get no answer. Then, after a grace
      period, `executor.stop_all(why)` to answer the calls still running, and `engine.cancel_all(link)` to drop them.
    """

    __slots__ = ("caller", "congested", "headers", "principal", "session", "source")
    has_status: ClassVar[bool] = False
    has_session: ClassVar[bool] = True
    transport: ClassVar[str] = "memory"
    dialect: ClassVar[str] = "mcp"

    def __init__(self, session: Session[Any] | None = None, principal: Principal = LOCAL) -> None:
        self.session: Session[Any] = Session() if session is None else session
        self.principal = principal
        self.caller: tuple[str, object] | None = None
        self.congested = False
        self.headers: Headers | None = None
        self.source: Source | None = None
        """Where its requests come from, for telemetry; made by `describe`, which is called while something records."""

    def describe(self) -> Source:
        """Make `source`."""
        from longshore.telemetry.events import Source

        if self.has_session and not self.session.label:
            self.session.label = os.urandom(4).hex()
        self.source = made = Source(self.transport, self.session.label, self.principal.name, self.dialect)
        return made

    @property
    def home(self) -> Link:
        return self

    @property
    def owner(self) -> object:
        return self

    def keeps_state(self) -> bool:
        """Whether the session outlives the request, so that calls can keep something in it."""
        return self.has_session

    def hold_back(self, size: int) -> None:
        """Count requests that wait for earlier ones."""

    def close_stream(self, retry: float | None) -> None:
        """Close the connection but not the request, if the peer can reconnect for the answer."""

    def failed(self, failure: Failure) -> None:
        """Record why the answer that follows is a failure, for a transport with status codes and for dialects."""

    def send(self, frame: bytes) -> None:
        raise NotImplementedError

    def answer(self, frame: bytes | None) -> None:
        if frame is not None:
            self.send(frame)


class WrappedLink(Link):
    """A link around another, for one request whose answer is changed on its way."""

    __slots__ = ("_outer",)

    def __init__(self, outer: Link) -> None:
        self._outer = outer
        super().__init__(outer.session, outer.principal)
        self.caller = outer.caller
        self.headers = outer.headers

    def describe(self) -> Source:
        self.source = made = self._outer.source or self._outer.describe()
        return made

    @property
    def home(self) -> Link:
        return self._outer.home

    @property
    def owner(self) -> object:
        return self._outer.owner

    @property
    def congested(self) -> bool:
        return self._outer.congested

    @congested.setter
    def congested(self, _: bool) -> None:
        """It follows from the outer link alone."""

    def keeps_state(self) -> bool:
        return self._outer.keeps_state()

    def hold_back(self, size: int) -> None:
        self._outer.hold_back(size)

    def close_stream(self, retry: float | None) -> None:
        self._outer.close_stream(retry)

    def failed(self, failure: Failure) -> None:
        self._outer.failed(failure)

    def send(self, frame: bytes) -> None:
        self._outer.send(frame)

    def answer(self, frame: bytes | None) -> None:
        self._outer.answer(frame)
