"""MCP over HTTP as one ASGI app, for our own server and for anybody's.

A request passes the gate (Host, Origin, credentials, media types, size) before its body is looked at, then goes to
its era: what carries the 2026-07-28 envelope or names a version without a handshake is modern, the rest is legacy. The
app starts itself with the first request, so it needs no lifespan where it is mounted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import final

from msgspec import UNSET

from longshore.auth.guard import Guard
from longshore.config import Config
from longshore.errors import StoreError
from longshore.limits import Limits
from longshore.server.engine import Engine
from longshore.server.rate_limits import Rates
from longshore.stores import Store
from longshore.transports.http import legacy, modern
from longshore.transports.http.admin import Routes
from longshore.transports.http.cluster import Cluster, share_state
from longshore.transports.http.cluster_events import ClusterEvents
from longshore.transports.http.gate import (
    NOT_YET,
    Denied,
    Gate,
    Gone,
    Request,
    TooLong,
    denial,
    read_body,
    shutting_down,
)
from longshore.transports.http.lane import Lane
from longshore.transports.http.modern import is_modern
from longshore.transports.http.pending import Waiting
from longshore.transports.http.responses import Receive, Scope, Send, refuse
from longshore.transports.http.sessions import Sessions
from longshore.transports.http.uploads import BOUNDED, Uploads
from longshore.transports.process import next_tick
from longshore.wire.codec import INTERNAL_ERROR, read
from longshore.wire.messages import Message

TELL_SECONDS = 1.0
"""How often the log says that the store fails."""
HANDSHAKE_SECONDS = 10.0
"""After so long a caller that has made all its handshakes may make as many again."""


@final
class HttpApp:
    """The ASGI app of one server."""

    def __init__(
        self, engine: Engine, config: Config, paths: frozenset[str], find: Callable[[], tuple[Store, Guard]]
    ) -> None:
        self.engine = engine
        self.config = config
        self.limits: Limits = engine.limits
        self._find = find
        self._furnish()
        self.uploads = Uploads(self.limits)
        engine.executor.hold_at_least(self.limits.upload_bytes)  # what was let in may run
        self.stopping = False
        self._told = 0.0
        self.closing: Callable[[], Awaitable[None]] = _nothing
        """What else is to be closed with the app: the toolsets of a server that is mounted somewhere."""
        self.paths = paths
        self._starting: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """Where it has started. In the tests of whoever mounts it, that may be another one each time."""
        self._sweeper: asyncio.Task[None] | None = None

    def _furnish(self) -> None:
        """All that ends with a life of the app, and is new in the next."""
        self.store, self.guard = self._find()
        self.gate = Gate(self.config, self.limits, self.guard)
        self.notices = ClusterEvents(self)
        self.workers = Cluster(self.store, self.notices.hear, self.problem)
        self.workers.when_missed = self.notices.catch_up
        self.workers.in_use = self._in_use
        ttl = self.config.http.session_ttl
        self.sessions = Sessions(self.engine, self.store, self.limits, ttl, self.workers, self.problem)
        handshakes = self.limits.handshakes
        self.handshakes = Rates(handshakes / HANDSHAKE_SECONDS, handshakes)
        self.waiting = Waiting()
        self.routes = Routes(self)
        self.lane = Lane(self)
        self._closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "lifespan":
            await self._live(receive, send)
        elif kind == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif kind == "http":
            await self.answer(self._serve(scope, receive, send), scope, send)

    async def answer(self, work: Awaitable[None], scope: Scope, send: Send) -> None:
        """See to it that work on a request ends with a response."""
        try:
            await work
        except Denied as denied:
            await self._deny(denied, scope, send)
        except Gone:
            # Nobody hears this, but a middleware may wait for a response and call it a fault if there is none.
            await self._deny(Denied(499, "the client hung up"), scope, send)
        except Exception as problem:
            await self._failed(problem, scope, send)

    async def _failed(self, problem: Exception, scope: Scope, send: Send) -> None:
        """A fault of ours or of the store's. A response that has begun can only be cut off; the server sees to that."""
        if isinstance(problem, StoreError):
            text = "a request failed because the store did"
            busy = ((b"retry-after", b"1"),)
            denied = Denied(503, "sessions can't be reached at the moment; try again", busy)
        else:
            text = f"{type(problem).__name__} over HTTP"
            denied = Denied(500, "the server failed; its log says how", code=INTERNAL_ERROR)
        try:
            heard = await self._deny(denied, scope, send)
        except RuntimeError:
            self.problem(text, problem)
            raise problem from None
        if heard or not isinstance(problem, OSError):
            self.problem(text, problem)

    @property
    def ready(self) -> bool:
        """Whether it has started and does not stop."""
        return self._loop is not None and not self.stopping

    # -- the way of a request

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._loop is not asyncio.get_running_loop():
            await self.start()
        request = self.gate.admit(scope)
        if request.principal is NOT_YET:
            await self.gate.look_up(request)
        if b"origin" in request.headers:
            request.extra = self.routes.cors(request.headers[b"origin"])
        method = scope["method"]
        if request.path not in self.paths:
            await self.routes.serve(request, receive, send)
        elif method == "POST":
            await self._post(request, receive, send)
        elif method == "GET":
            await legacy.get(self, request, receive, send)
        elif method == "DELETE":
            await legacy.delete(self, request, send)
        elif method == "OPTIONS":
            await self.routes.preflight(request, send)
        else:
            raise Denied(405, f"{request.path} takes POST, GET and DELETE", ((b"allow", b"POST, GET, DELETE"),))

    async def _post(self, request: Request, receive: Receive, send: Send) -> None:
        if not (request.accepts_json or request.accepts_stream):
            raise Denied(406, "the answer is application/json or text/event-stream; accept both")
        body = await self.body(request, receive)
        if self.stopping and _asks(body, self.limits):
            raise shutting_down()
        if is_modern(request.headers.get(b"mcp-protocol-version"), body):
            await modern.serve(self, request, body, receive, send)
        else:
            await legacy.post(self, request, body, receive, send)

    async def body(self, request: Request, receive: Receive) -> bytes:
        """The JSON body of a request."""
        self.gate.check_body(request)
        try:
            return await self.read(request, receive)
        except TooLong:
            raise self.gate.too_long() from None

    async def read(self, request: Request, receive: Receive) -> bytes:
        """The body of a request, whatever it is."""
        bounded = BOUNDED in (request.scope.get("extensions") or ())
        return await read_body(receive, self.limits.frame_bytes, None if bounded else self.uploads)

    async def _deny(self, denied: Denied, scope: Scope, send: Send) -> bool:
        """Say no. A page that may read our answers may read this one too. False: nobody is left to hear it."""
        origin = dict(scope["headers"]).get(b"origin")
        extra = () if origin is None else self.routes.cors(origin)
        try:
            await refuse(send, denied.status, denied.text, (*denied.headers, *extra), denied.code)
        except OSError:  # so ASGI has a server say that the client has hung up; some say nothing
            return False
        return True

    def forbidden(self, request: Request, needed: frozenset[str]) -> tuple[tuple[bytes, bytes], ...]:
        """The challenge that tells a client which scopes it would need."""
        return denial(self.guard.forbid(request.principal, needed)).headers

    # -- beginning and ending

    async def start(self) -> None:
        """Be ready to serve on the loop that runs, also once more. Called by the first request if nobody did before."""
        loop, starting = asyncio.get_running_loop(), self._starting
        ready = self._loop is loop and not self.stopping
        if starting is None or starting.get_loop() is not loop or (starting.done() and not ready):
            self._starting = starting = loop.create_task(self._start())
        await asyncio.shield(starting)

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        if self._closed:
            self._furnish()
        self.engine.executor.adopt_loop(loop)
        await share_state(self.engine, self.store, self.config.http.state_key)
        await self.workers.start()
        self.notices.attend()
        self._sweeper = loop.create_task(self._sweep())
        self.waiting = Waiting()
        self.stopping = False
        self._loop = loop

    async def shut(self, grace: float) -> None:
        """Take nothing new, let what runs finish within the grace, answer the rest, and end every stream."""
        self.stopping = True
        engine = self.engine
        for listen in list(engine.subscriptions.listens):
            engine.detach(listen.link)
        for live in list(self.sessions.loaded.values()):
            if live.notifications.follower is not None:
                live.notifications.follower.close()
        await _drained(engine, grace)
        engine.executor.stop_all("the server was shut down")
        self.routes.sse.close_all()
        for live in list(self.sessions.loaded.values()):
            engine.subscriptions.links.discard(live.notifications)
            for stream in list(live.streams.values()):
                if not stream.origin.standalone:
                    stream.end()
                await stream.settled()
        if self._sweeper is not None:
            self._sweeper.cancel()
        self.notices.rest()
        await self.workers.stop()

    def _in_use(self) -> bool:
        """Whether another process may be waiting for something of this one."""
        waited_for = self.engine.executor.live or self.routes.sse.open
        return bool(waited_for) or any(live.needed for live in self.sessions.loaded.values())

    async def close(self) -> None:
        """Let the store and the guard go. After `shut`, when no connection is left."""
        self._closed = True
        await self.closing()
        await self.guard.close()
        await self.store.close()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                if not self.stopping:
                    await self.shut(self.config.http.grace)
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _sweep(self) -> None:
        while True:
            now = asyncio.get_running_loop().time()
            pause = min(next_tick(now) - now, self.config.http.session_ttl / 2, self.limits.event_seconds / 6)
            await asyncio.sleep(pause)
            try:
                await self.sessions.sweep()
                await self.routes.sse.refresh()
            except Exception as problem:
                self.problem("sessions could not be looked after", problem)

    def problem(self, text: str, problem: Exception) -> None:
        """Put it into the log. A store that fails does so for everybody: that is said now and then, not each time."""
        if isinstance(problem, StoreError):
            self.workers.store_failed()
            if monotonic() - self._told < TELL_SECONDS:
                return
            self._told = monotonic()
        self.engine.recorder.problem("error", text, problem)


def _asks(body: bytes, limits: Limits) -> bool:
    """Whether a body wants something done. An answer or a cancel is about what is being done, and lets it end."""
    message = read(body, limits.depth, limits.batch)
    return not isinstance(message, Message) or (message.method != "" and message.id is not UNSET)


async def _nothing() -> None:
    pass


async def _drained(engine: Engine, grace: float) -> None:
    """Until nothing runs any more, or the grace is over."""
    done = asyncio.get_running_loop().create_future()

    def look() -> None:
        if not engine.executor.live and not done.done():
            done.set_result(None)

    remove = engine.executor.add_end_listener(look)
    look()
    try:
        await asyncio.wait_for(done, grace)
    except TimeoutError:
        pass
    finally:
        remove()
