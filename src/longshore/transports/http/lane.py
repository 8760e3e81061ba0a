"""The fast lane of our own server: a POST that has come as a whole, answered without a task or ASGI messages.

An ASGI server makes a task for each request, and the app one that waits for the answer. For a call that takes ten
microseconds that is most of the work. Here the engine is called as soon as the body is there, and its answer is written
as soon as it comes, by whoever it comes from. Whatever is not as usual (a stream, an error with a status, a session to
store, a client that has to wait longer than a moment) goes the ordinary way from that point on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, final

from longshore.transports.http import legacy, modern
from longshore.transports.http.gate import NOT_YET, Denied, Request
from longshore.transports.http.modern import is_modern
from longshore.transports.http.pending import PendingResponse
from longshore.transports.http.responses import Receive, Scope, Send

if TYPE_CHECKING:
    from longshore.transports.http.app import HttpApp

Rest = Callable[[Receive, Send], Awaitable[None]]


class Exchange(Protocol):
    """A request whose body has come, and the way back."""

    scope: Any
    when_lost: Callable[[], None]

    def whole(self) -> bytes:
        """The body."""
        ...

    def taken(self) -> None:
        """The body was made use of: nobody may be given it again."""
        ...

    def respond(self, frame: bytes) -> bool:
        """Write an answer as JSON. False: the client is behind with reading, so somebody must wait for it."""
        ...

    def go_on(self, app: Any) -> None:
        """Let an ASGI app do the rest, in a task."""
        ...


@final
class Lane:
    """Takes what can be answered at once, or without waiting for it."""

    __slots__ = ("_app",)

    def __init__(self, app: HttpApp) -> None:
        self._app = app

    def take(self, exchange: Exchange) -> bool:
        """Deal with a POST whose body has come. False: it must go the ordinary way, and nothing was made of it."""
        app, scope = self._app, exchange.scope
        if scope["path"] not in app.paths or not app.ready:
            return False
        try:
            request = app.gate.admit(scope)
            app.gate.check_body(request)
        except Denied:
            return False
        if request.principal is NOT_YET or request.only_one or b"origin" in request.headers:
            return False
        body = exchange.whole()
        if len(body) > app.limits.frame_bytes:  # it came in chunks, without saying so
            return False
        if is_modern(request.headers.get(b"mcp-protocol-version"), body):
            self._take_modern(exchange, request, body)
            return True
        return self._take_legacy(exchange, request, body)

    def _take_modern(self, exchange: Exchange, request: Request, body: bytes) -> None:
        app = self._app
        exchange.taken()
        post, frame = modern.begin(app, request, body)
        if frame is not None and frame.__class__ is bytes and not post.frames and exchange.respond(frame):
            return

        def rest(receive: Receive, send: Send) -> Awaitable[None]:
            return modern.go_on(app, request, post, frame, body, receive, send)

        def lost() -> None:
            post.gone, post.outlet = True, None
            app.engine.hang_up(post)

        if frame is None and post.session.rows and not (post.done or post.frames):
            self._wait(exchange, post, rest, lost)
        else:
            Detached(app, exchange, rest).resume()

    def _take_legacy(self, exchange: Exchange, request: Request, body: bytes) -> bool:
        app = self._app
        id = request.headers.get(legacy.SESSION_HEADER)
        if id is None or request.twice or legacy.is_batch(body):
            return False
        live = app.sessions.get_cached(id.decode("latin-1"), request.principal)
        if live is None:
            return False
        exchange.taken()
        link, frame = legacy.handle(app, request, live, body)
        usual = link.stream is None and not live.changed
        if frame is not None and frame.__class__ is bytes and usual and exchange.respond(frame):
            return True

        def rest(receive: Receive, send: Send) -> Awaitable[None]:
            return legacy.go_on(app, request, link, frame, receive, send)

        def lost() -> None:
            link.gone, link.outlet = True, None

        if link.pending and usual:
            self._wait(exchange, link, rest, lost)
        else:
            Detached(app, exchange, rest).resume()
        return True

    def _wait(self, exchange: Exchange, post: PendingResponse, rest: Rest, lost: Callable[[], None]) -> None:
        """Nobody waits: the answer is written when it comes, unless that takes longer than a moment."""
        exchange.when_lost = lost
        post.outlet = Detached(self._app, exchange, rest)
        self._app.waiting.add(post)


@final
class Detached:
    """The outlet of a request that nobody waits for."""

    __slots__ = ("_app", "_exchange", "_rest")

    def __init__(self, app: HttpApp, exchange: Exchange, rest: Rest) -> None:
        self._app, self._exchange, self._rest = app, exchange, rest

    def respond(self, frame: bytes) -> None:
        if not self._exchange.respond(frame):
            self.resume()

    def resume(self) -> None:
        self._exchange.when_lost = _nothing
        self._exchange.go_on(self._go_on)

    async def _go_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app.answer(self._rest(receive, send), scope, send)


def _nothing() -> None:
    pass
