"""MCP over HTTP as one ASGI app, for our own server and for mounting in other apps.

A request passes the gate (Host, Origin, credentials, media types, size) before its body is decoded, then goes to its
era: a request with the 2026-07-28 envelope, or that names a version without a handshake, is modern, every other one is
legacy. Every POST to MCP's path goes through `_handle`, which creates a pending response. Our own server calls
`begin_post` when a body is complete; other servers call the app, which reads the body first. The app starts itself with
the first request, so it needs no lifespan where it is mounted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol, final

from msgspec import UNSET, structs

from longshore.auth.guard import Guard
from longshore.auth.verifiers import TokenVerifier
from longshore.config import Config
from longshore.errors import ConfigError, LongshoreError, StoreError
from longshore.limits import Limits
from longshore.server.content_methods import PARTS
from longshore.server.engine import Engine, Rates
from longshore.stores import open_store
from longshore.telemetry.counters import Counters
from longshore.telemetry.events import RequestInfo, Source
from longshore.telemetry.feeder import Feeder
from longshore.transports.http.cluster import Cluster, ClusterMessage, Kind, share_secrets
from longshore.transports.http.gate import (
    NOT_YET,
    Denied,
    Gate,
    Gone,
    HttpRequest,
    auth_of,
    resource_url,
    shutting_down,
)
from longshore.transports.http.legacy import LegacyEndpoint
from longshore.transports.http.modern import ModernEndpoint, is_modern
from longshore.transports.http.parts import HttpParts, PartFactory, PartHost
from longshore.transports.http.pending import RESPONSE, Deliverable, Delivery, PendingResponse, SlowResponses, Writer
from longshore.transports.http.responses import JSON_TYPE, Receive, Scope, Send, reply
from longshore.transports.http.rest import RestEndpoint
from longshore.transports.http.routes import Health, Metrics, Routes
from longshore.transports.http.sessions import Sessions
from longshore.transports.http.sse_2024 import SseSessions
from longshore.transports.http.uploads import Uploads
from longshore.transports.process import next_tick
from longshore.wire.codec import INTERNAL_ERROR, encode, error, read
from longshore.wire.messages import Message

_KEY_CHARACTERS = 32
_COUNTING_SECONDS = 0.2
"""At the end, for the thread that counts requests: it has only to see that it is over."""
_HUNG_UP = 499
_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"})


class CompletePost(Writer, Protocol):
    """A POST to our own server whose body is complete, and the connection that it came on."""

    scope: Any

    @property
    def body(self) -> bytes: ...

    def respond_later(self, pending: PendingResponse) -> None:
        """Write this response when its answer comes."""
        ...

    def run_app(self) -> None:
        """Run the app for the request, in a task."""
        ...


@final
class HttpApp:
    """The ASGI app of one server. It also receives the messages of the other processes that serve together."""

    def __init__(
        self,
        engine: Engine,
        config: Config,
        *,
        token: str | None = None,
        on_close: Callable[[], Awaitable[None]] | None = None,
        parts: Sequence[PartFactory] = (),
        parts_token: str | None = None,
        verifier: TokenVerifier | None = None,
    ) -> None:
        """`token` is accepted beside the configured ones; `on_close` is awaited when the app closes.

        `parts` are served beside MCP; `parts_token` is accepted there, where MCP itself asks for no token.
        `verifier` is the author's own.
        """
        _check_state_key(config)
        self.engine = engine
        self.config = config
        self.limits: Limits = engine.limits
        self.uploads = Uploads(engine.limits)
        http = config.http
        engine.limit_rates(Rates(http.rate, http.burst) if http.rate else None)
        engine.executor.hold_at_least(engine.limits.upload_bytes)  # the handler of a complete body may run
        self._paths = frozenset({http.path, http.path.rstrip("/") + "/", "/", ""})
        self._dialect_versions = frozenset(version.encode() for version in engine.dialect_revisions)
        self._token, self._on_close, self._verifier = token, on_close, verifier
        self._part_factories, self._parts_token = parts, parts_token
        self._build()
        self._closed = False
        self._starting: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop that it has started on. In the tests of an app that mounts it, that may be another one each time."""
        self._sweeper: asyncio.Task[None] | None = None

    def _build(self) -> None:
        """Create everything that `close` ends and that a new start needs."""
        engine, config = self.engine, self.config
        self.store = store = open_store(config.http.store or "memory://")
        self.guard = _make_guard(engine, config, self._token, self._verifier)
        self._parts_guard = parts_guard = self.guard
        if self._part_factories and not self.guard.required:
            own = self._parts_token or self._token
            parts_guard = _make_parts_guard(engine, config, own, self._verifier) or self.guard
            self._parts_guard = parts_guard
        self._gate = Gate(config, self.limits, self.guard, self.uploads, parts_guard)
        self._delivery = delivery = Delivery(engine, self.limits, self.guard, SlowResponses(), engine.tap)
        self.cluster = Cluster(store, engine.recorder)
        self.sessions = Sessions(engine, store, config.http.session_ttl, self.cluster)
        self.sse = SseSessions(delivery, self._gate, store, self.cluster, config.http.path)
        self._counting = _count_requests(engine, config)
        counters = None if self._counting is None else self._counting.counters
        self._metrics = Metrics(engine, store, self.cluster, self.sessions, self.sse, self.uploads, counters)
        rest = RestEndpoint(delivery, self._gate, config)
        self._routes = Routes(config, self.guard, self.sse, rest, Health(delivery, store), self._metrics, parts_guard)
        self._modern = ModernEndpoint(delivery, self._gate)
        self._legacy = LegacyEndpoint(delivery, self.sessions, self.cluster)
        host = PartHost(engine, config, self._gate, parts_guard, self.sessions, self.sse)
        self._parts = HttpParts([make(host) for make in self._part_factories])
        self._gate.open_parts(self._parts)

    @property
    def stopping(self) -> bool:
        return self._delivery.stopping

    # -- POST to MCP's path

    def begin_post(self, exchange: CompletePost) -> None:
        """Answer a POST whose body our own server has read: now, when its answer comes, or in a task."""
        scope = exchange.scope
        if scope["path"] not in self._paths or self._loop is None or self._delivery.stopping:
            exchange.run_app()
            return
        try:
            request, body = self._gate.admit(scope), exchange.body
            self._check_post(request)
            self._gate.check_size(body)
            response = None if request.principal is NOT_YET else self._handle(request, body)
        except Denied as denied:
            exchange.deliver(denied)
            return
        if response is None:
            exchange.run_app()
        elif not response.is_plain:
            exchange.deliver(response)
        elif not response.done:
            exchange.respond_later(response)
        elif response.frame.__class__ is not bytes or not response.frame or not exchange.respond(response.frame):
            exchange.deliver(response)

    async def _post(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        self._check_post(request)
        body = await self._gate.read_json(request, receive)
        response = self._handle(request, body) or await self._legacy.look_up(request, body)
        await response.deliver(receive, send)

    def _check_post(self, request: HttpRequest) -> None:
        if not (request.accepts_json or request.accepts_stream):
            raise Denied(406, "the answer is application/json or text/event-stream; accept both")
        self._gate.check_body(request)

    def _handle(self, request: HttpRequest, body: bytes) -> PendingResponse | None:
        """Have the engine handle the messages of a POST. None: their session must be looked up first."""
        if self._delivery.stopping and _is_request(body, self.limits):
            raise shutting_down()
        version = request.headers.get(b"mcp-protocol-version")
        if is_modern(version, body) and version not in self._dialect_versions:
            return self._modern.handle(request, body)
        return self._legacy.handle(request, body)

    # -- ASGI

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "lifespan":
            await self._live(receive, send)
        elif kind == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif kind == "http":
            try:
                await self._serve(scope, receive, send)
            except Denied as denied:
                await self._deny(denied, scope, send)
            except Gone:
                # The client has closed, but a middleware may wait for a response and report an error without one.
                await self._deny(Denied(_HUNG_UP, "the client hung up"), scope, send)
            except Exception as problem:
                await self._fail(problem, scope, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        response: Deliverable | None = scope.pop(RESPONSE, None)
        if response is not None:
            await response.deliver(receive, send)
            return
        if self._loop is not asyncio.get_running_loop():
            await self.start()
        request = self._gate.admit(scope)
        if request.principal is NOT_YET:
            await self._gate.look_up(request)
        method = scope["method"]
        if request.path not in self._paths:
            part = self._parts.find(request.path)
            await (self._routes if part is None else part).serve(request, receive, send)
        elif method == "POST":
            await self._post(request, receive, send)
        elif method == "GET":
            await self._legacy.get(request, receive, send)
        elif method == "DELETE":
            await self._legacy.delete(request, send)
        elif method == "OPTIONS":
            await self._routes.preflight(request, send)
        else:
            raise Denied(405, f"{request.path} takes POST, GET and DELETE", ((b"allow", b"POST, GET, DELETE"),))

    async def _deny(self, denied: Denied, scope: Scope, send: Send) -> bool:
        """Send a refusal with the CORS headers of an answer. False: the client has hung up."""
        origin = dict(scope["headers"]).get(b"origin")
        extra = () if origin is None else self._gate.cors(origin)
        part = self._parts.find(scope["path"].removeprefix(scope.get("root_path", "")))
        if part is None:
            frame: bytes = error(denied.id, denied.code, denied.text)
        else:
            frame, extra = encode({"text": denied.text}), (*part.headers, *extra)
        self._record(denied, scope)
        try:
            await reply(send, denied.status, frame, (JSON_TYPE, *denied.headers, *extra))
        except OSError:  # so ASGI servers report that the client has hung up; some report nothing
            return False
        return True

    def _record(self, denied: Denied, scope: Scope) -> None:
        """Record a request that is refused at the level of HTTP, without its path, which is the client's text."""
        recorder = self.engine.recorder
        if recorder.on and denied.status != _HUNG_UP:
            method = scope["method"] if scope["method"] in _METHODS else "unknown"
            recorder.refused(RequestInfo(Source("http", "", "", "http"), "", method, ""), "http", denied.status)

    async def _fail(self, problem: Exception, scope: Scope, send: Send) -> None:
        """Respond to an internal failure, or one of the store. A response that has begun is cut off by the server."""
        if isinstance(problem, StoreError):
            text = "a request failed because the store did"
            denied = Denied(503, "sessions can't be reached at the moment; try again", ((b"retry-after", b"1"),))
        else:
            text = f"{type(problem).__name__} over HTTP"
            denied = Denied(500, "the server failed; its log says how", code=INTERNAL_ERROR)
        try:
            was_sent = await self._deny(denied, scope, send)
        except RuntimeError:
            self.cluster.report(text, problem)
            raise problem from None
        if was_sent or not isinstance(problem, OSError):
            self.cluster.report(text, problem)

    # -- starting and stopping

    async def start(self) -> None:
        """Start serving on the running loop, also again after `close`.

        The first request calls it if nothing else did.
        """
        loop, starting = asyncio.get_running_loop(), self._starting
        is_ready = self._loop is loop and not self._delivery.stopping
        if starting is None or starting.get_loop() is not loop or (starting.done() and not is_ready):
            self._starting = starting = loop.create_task(self._start())
        await asyncio.shield(starting)

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        if self._closed:
            self._build()
            self._closed = False
        self.engine.executor.adopt_loop(loop)
        if self.engine.policy.lifespan is not None:
            await self.engine.policy.lifespan.open()
        await share_secrets(self.engine, self.store, self.config.http.state_key)
        await self.cluster.start(self)
        if self.store.shared:
            self.engine.relay_changes(self._announce)
        self._delivery.slow.reset()
        if self._counting is not None and not self._counting.feeder.is_running:
            self._counting.feeder.start()
        self._sweeper = loop.create_task(self._sweep())
        self._delivery.stopping = False
        self._loop = loop

    async def shut(self, grace: float) -> None:
        """Accept no new requests, let calls finish within the grace, answer the rest, and end every stream."""
        self._delivery.stopping = True
        engine = self.engine
        for listen in list(engine.subscriptions.listens):
            engine.detach(listen.link)
        for live in list(self.sessions.loaded.values()):
            if live.notifications.follower is not None:
                live.notifications.follower.close()
        await self._parts.close()
        await _drained(engine, grace)
        engine.executor.stop_all("the server was shut down")
        self.sse.close_all()
        for live in list(self.sessions.loaded.values()):
            engine.drop_link(live.notifications)
            for stream in list(live.streams.values()):
                if not stream.origin.standalone:
                    stream.end()
                await stream.flush()
        if self._sweeper is not None:
            self._sweeper.cancel()
        engine.relay_changes(None)  # changes from here on do not concern the other processes
        await self.cluster.stop()

    async def close(self) -> None:
        """Close the store and the guard. After `shut`, when no connection is left."""
        self._closed = True
        if self._counting is not None and self._counting.feeder.is_running:
            self._counting.feeder.stop(_COUNTING_SECONDS)
        if self._on_close is not None:
            await self._on_close()
        await self.guard.close()
        if self._parts_guard is not self.guard:
            await self._parts_guard.close()
        await self.store.close()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.start()
                except LongshoreError as problem:
                    await send({"type": "lifespan.startup.failed", "message": str(problem)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                if not self._delivery.stopping:
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
                await self.sse.refresh()
            except Exception as problem:
                self.cluster.report("sessions could not be swept", problem)

    # -- the other processes

    def _announce(self, kind: Kind, name: str) -> None:
        """Have all processes notify their clients of a change, this one too, when the bus delivers the message."""
        self.cluster.run(self._announce_now(kind, name))

    async def _announce_now(self, kind: Kind, name: str) -> None:
        try:
            await self.cluster.post(kind, name)
        except StoreError as problem:
            self.cluster.report("a change could not be sent to the other processes", problem)
            self.handle(ClusterMessage(self.cluster.id, kind, name))

    def handle(self, message: ClusterMessage) -> Awaitable[None] | None:
        """Handle a message of another process. An awaitable is run in a task."""
        match message.kind:
            case "list":
                self.engine.notify_list_changed(message.name)
            case "resource":
                self.engine.notify_resource_changed(message.name)
            case "old":
                self.sse.handle_relayed(message)
            case _:
                return self.sessions.handle(message)
        return None

    async def catch_up(self) -> None:
        """Read the loaded sessions again, and notify every listener that everything may have changed."""
        await self.sessions.catch_up()
        subscriptions = self.engine.subscriptions
        for part in PARTS:
            subscriptions.list_changed(part)
        for uri in subscriptions.watched():
            subscriptions.resource_changed(uri)

    def in_use(self) -> bool:
        """Whether another process may wait for a call, a stream or a session of this one."""
        if self.engine.executor.live or self.sse.open:
            return True
        return any(live.needed for live in self.sessions.loaded.values())

    def metrics(self) -> bytes:
        """The metrics of this process; heartbeats carry them."""
        return self._metrics.encoded()


class _Counting(NamedTuple):
    """The counters of requests, and the listener that updates them between two scrapes."""

    counters: Counters
    feeder: Feeder


def _count_requests(engine: Engine, config: Config) -> _Counting | None:
    """Count requests for /metrics, for which the recorder keeps events. None: no records are requested."""
    if not config.telemetry.records:
        return None
    ring = engine.recorder.open_ring(config.telemetry.ring)
    counters = Counters(engine.recorder, ring)
    return _Counting(counters, Feeder("metrics", engine.recorder, ring, lambda: counters))


def _make_guard(engine: Engine, config: Config, token: str | None, verifier: TokenVerifier | None) -> Guard:
    def report(text: str) -> None:
        engine.recorder.problem("warning", text)

    guard = Guard(
        auth_of(config),
        config.tokens,
        resource=resource_url(config),
        extra_token=token,
        verifier=verifier,
        resource_name=str(engine.server_info.get("title") or engine.server_info["name"]),
        known_scopes=lambda: frozenset[str]().union(*(entry.needed for entry in engine.tools.values())),
        report=report,
    )
    for warning in guard.warnings:
        report(warning)
    return guard


def _make_parts_guard(
    engine: Engine, config: Config, token: str | None, verifier: TokenVerifier | None
) -> Guard | None:
    """The guard of parts where MCP itself asks for no credential. None: authentication is off."""
    if config.auth.mode == "off":
        return None
    try:
        required = structs.replace(
            config, auth=structs.replace(config.auth, mode="required" if token is None else "auto")
        )
        return _make_guard(engine, required, token, verifier)
    except ConfigError as problem:
        raise ConfigError(f"http.console: it needs a token: {problem}") from None


def _check_state_key(config: Config) -> None:
    key, store = config.http.state_key, config.http.store or ""
    if key is not None and len(key) < _KEY_CHARACTERS:
        raise ConfigError(f"http.state_key: it has {len(key)} characters; use {_KEY_CHARACTERS} or more, at random")
    if key is None and store.lower().startswith(("redis://", "rediss://")):
        raise ConfigError(
            "http.state_key: several hosts may share this store, so they must sign with one key; set it to the same "
            f"secret of {_KEY_CHARACTERS} characters or more on each (LONGSHORE_HTTP_STATE_KEY)"
        )


def _is_request(body: bytes, limits: Limits) -> bool:
    """Whether a body is a request. Responses and cancellations let a running call finish."""
    message = read(body, limits.depth, limits.batch)
    return not isinstance(message, Message) or (message.method != "" and message.id is not UNSET)


async def _drained(engine: Engine, grace: float) -> None:
    """Wait until no call runs, or for the grace."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def look() -> None:
        if not engine.executor.live and not done.done():
            done.set_result(None)

    remove = engine.executor.add_end_listener(lambda: loop.call_soon(look))  # the end of a call may begin the next
    look()
    try:
        await asyncio.wait_for(done, grace)
    except TimeoutError:
        pass
    finally:
        remove()
