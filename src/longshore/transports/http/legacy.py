"""2025-03-26 to 2025-11-25 over HTTP: sessions, a stream for notifications, and answers that can be fetched later.

A client that hangs up does not cancel its request. The answer is stored in the request's stream, and the client may
fetch it later with the id of the last event that it received.
"""

from __future__ import annotations

import asyncio
from math import ceil
from typing import Any, Final, final

from msgspec import Struct

from longshore.errors import Forbidden, StoreError
from longshore.protocol.revisions import LEGACY, R2511
from longshore.server.engine import Rates, rate_failure
from longshore.server.link import Link
from longshore.transports.http.cluster import Cluster
from longshore.transports.http.gate import Denied, HttpRequest, shutting_down
from longshore.transports.http.pending import Delivery, PendingResponse, hung_up
from longshore.transports.http.responses import (
    HeaderPairs,
    Receive,
    Send,
    finish,
    priming,
    reply,
    retry_after,
    start_stream,
    write,
)
from longshore.transports.http.sessions import LoadedSession, Sessions
from longshore.transports.http.streams import (
    Follower,
    Stream,
    StreamOrigin,
    event_writer,
    find_origin,
    follow,
    log_key,
)
from longshore.wire.codec import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, ErrorFrame, error, read
from longshore.wire.messages import Batch, Malformed, Message

SESSION_HEADER: Final = b"mcp-session-id"
_VERSION_HEADER: Final = b"mcp-protocol-version"
_VERSIONS: Final = frozenset(name.encode() for name in LEGACY)
_RELAYED: Final = ("", "notifications/cancelled", "notifications/roots/list_changed")
"""The messages that other processes take too: responses, and these notifications."""
_HANDSHAKE_SECONDS: Final = 10.0
"""After so long a caller that has made all its handshakes may make as many again."""


@final
class SessionResponse(PendingResponse):
    """The response to a POST of a session. An earlier message makes it a stream that outlives the connection."""

    __slots__ = ("_body", "_decoded", "_endpoint", "follower", "is_new", "live", "stream")

    def __init__(self, endpoint: LegacyEndpoint, request: HttpRequest, live: LoadedSession, body: bytes) -> None:
        super().__init__(endpoint.delivery, request, live.session)
        self.caller = request.owner, live.id
        self.accepts_stream = request.accepts_stream and len(live.streams) < self._delivery.limits.streams
        self.live = live
        self.is_new = live.base is None
        """Whether this is the handshake of a session that is not stored yet."""
        self.stream: Stream | None = None
        self.follower = Follower()
        self._endpoint = endpoint
        self._body = body
        self._decoded: list[tuple[Any, bytes]] | None = None

    @property
    def home(self) -> Link:
        return self.live.notifications

    @property
    def is_batch(self) -> bool:
        return self._body.lstrip()[:1] == b"["

    @property
    def messages(self) -> list[tuple[Any, bytes]]:
        """The messages of the body, each with its bytes. Decoded when first asked for: a plain call never is."""
        if self._decoded is None:
            limits = self._delivery.limits
            message = read(self._body, limits.depth, limits.batch)
            if isinstance(message, Batch):
                items = [bytes(item) for item in message.items]
                self._decoded = [(read(item, limits.depth, 0), item) for item in items]
            else:
                self._decoded = [(message, self._body)]
        return self._decoded

    @property
    def ids(self) -> list[int | str]:
        """The ids of the requests, which another process answers if this one is killed."""
        return [
            message.id
            for message, _ in self.messages
            if isinstance(message, Message) and message.method and isinstance(message.id, int | str)
        ]

    # -- the engine's side

    @property
    def resumable(self) -> bool:
        """Whether the client can resume streams: older ones fail on the event that tells them how."""
        peer = self.session.peer
        return peer is not None and peer.revision.index >= R2511

    @property
    def streaming(self) -> bool:
        return self.stream is not None

    @property
    def is_plain(self) -> bool:
        return super().is_plain and not (self.is_new or self.live.changed or self.is_batch)

    def begin_stream(self) -> None:
        self.open_stream()

    def open_stream(self) -> Stream:
        if self.stream is None:
            self.stream = self.live.open_stream(self.ids)
            if not self.gone:
                self.stream.followers.add(self.follower)
            self.wake()
        return self.stream

    def send(self, frame: bytes) -> None:
        if self.done:
            return
        if self._delivery.tap.watchers:
            self._delivery.tap.show("out", self, frame)
        if self.stream is None and (self.gone or not self.accepts_stream):
            self.live.notifications.send(frame)  # the request has no connection, but the session may have a stream
            return
        self.open_stream().put(frame)

    @property
    def congested(self) -> bool:
        """Whether the reader, or the store, is slow."""
        return self.stream is not None and self.stream.congested

    @congested.setter
    def congested(self, _: bool) -> None:
        """Decided by the stream alone."""

    def answer(self, frame: bytes | None) -> None:
        if self.stream is not None:
            self.stream.end(frame or b"")
        super().answer(frame)

    def close_stream(self, retry: float | None) -> None:
        if not self.resumable or self.done or (self.stream is None and (self.gone or not self.accepts_stream)):
            return
        for follower in self.open_stream().followers:
            follower.close(retry)

    # -- the connection's side

    def lose(self) -> None:
        super().lose()
        self.follower.close()

    async def deliver(self, receive: Receive, send: Send) -> None:
        """Store the changes of the request, then send the response."""
        await self._endpoint.store(self)
        with self.live.pinned():
            await super().deliver(receive, send)

    def close(self) -> None:
        self.gone = True
        if self.stream is not None:
            self.stream.followers.discard(self.follower)

    def status(self, frame: bytes) -> int:
        return _status(frame)

    def answer_headers(self, frame: bytes) -> HeaderPairs:
        return (*super().answer_headers(frame), *self._session_header())

    def _session_header(self) -> HeaderPairs:
        is_begun = self.is_new and self.live.base is not None
        return ((SESSION_HEADER, self.live.id.encode()),) if is_begun else ()

    async def send_nothing(self, send: Send) -> None:
        await reply(send, 202, b"", (*self.extra, *self._session_header()))

    async def send_stream(self, send: Send) -> None:
        stream, limits = self.open_stream(), self._delivery.limits
        await self._endpoint.announce(stream)
        await start_stream(send, (*self.extra, *self._session_header()))
        if self.resumable:
            retry = limits.retry_seconds if self.follower.retry is None else self.follower.retry
            await write(send, priming(f"{stream.id}-0", retry))
        store = self._endpoint.sessions.store
        await follow(store, stream.key, self.follower, -1, event_writer(send, stream.id), limits.keep_alive_seconds)
        if not self.gone:
            if self.follower.retry is not None:
                await write(send, retry_after(self.follower.retry))
            await finish(send)


@final
class BareResponse(PendingResponse):
    """The response to a POST without a session, of a peer that a dialect answers before a handshake.

    It is one JSON answer. Nothing is stored for it, so it can't be fetched later, and a hang-up cancels the request.
    """

    __slots__ = ("_error_status",)
    has_session = False

    def __init__(self, delivery: Delivery, request: HttpRequest, error_status: int) -> None:
        super().__init__(delivery, request)
        self.accepts_json, self.accepts_stream = True, False
        self._error_status = error_status

    def send(self, frame: bytes) -> None:
        pass

    def lose(self) -> None:
        super().lose()
        if not self.done:
            self._delivery.engine.hang_up(self)

    def status(self, frame: bytes) -> int:
        return _status(frame, self._error_status)

    async def send_nothing(self, send: Send) -> None:
        await reply(send, 202, b"", self.extra)


class _Get(Struct):
    """A GET of a session, and the destination of its response."""

    request: HttpRequest
    live: LoadedSession
    receive: Receive
    send: Send


@final
class LegacyEndpoint:
    """Serves POST, GET and DELETE of sessions."""

    def __init__(self, delivery: Delivery, sessions: Sessions, cluster: Cluster) -> None:
        self.delivery = delivery
        self.sessions = sessions
        self._engine, self._limits = delivery.engine, delivery.limits
        self._store = sessions.store
        self._cluster = cluster
        handshakes = delivery.limits.handshakes
        self._handshakes = Rates(handshakes / _HANDSHAKE_SECONDS, handshakes)

    # -- POST

    def handle(self, request: HttpRequest, body: bytes) -> PendingResponse | None:
        """Have the engine handle a POST. None: its session must be looked up in the store first."""
        if request.twice:
            _refuse_twice(request)
        id = request.headers.get(SESSION_HEADER)
        if id is None:
            return self._begin(request, body)
        live = self.sessions.get_cached(id.decode("latin-1"), request.principal)
        return None if live is None else self._handle(request, live, body)

    async def look_up(self, request: HttpRequest, body: bytes) -> PendingResponse:
        """Handle a POST whose session is in the store."""
        live = await self.sessions.find(request.headers[SESSION_HEADER].decode("latin-1"), request.principal)
        if live is None:
            raise _unknown()
        return self._handle(request, live, body)

    def _begin(self, request: HttpRequest, body: bytes) -> PendingResponse:
        """Handle a POST without a session: only `initialize` may be one."""
        message = read(body, self._limits.depth, self._limits.batch)
        if not isinstance(message, Message) or message.method != "initialize" or message.id.__class__ not in (int, str):
            if self._engine.answers_early is not None and _VERSION_HEADER not in request.headers:
                return self._answer_early(request, body)
            if isinstance(message, Malformed):
                raise Denied(400, message.text, code=message.code, id=message.id)
            text = "send initialize first and then its Mcp-Session-Id header, or a 2026-07-28 request with its headers"
            raise Denied(400, text)
        wait = self._handshakes.take(request.owner, "initialize")
        if wait:
            text, headers = rate_failure("initialize", wait).text, ((b"retry-after", b"%d" % ceil(wait)),)
            raise Denied(429, text, headers, INTERNAL_ERROR, message.id)
        return self._handle(request, self.sessions.candidate(request.principal, request.owner), body)

    def _answer_early(self, request: HttpRequest, body: bytes) -> BareResponse:
        """Have a dialect answer a peer that has made no handshake. No session begins."""
        response = BareResponse(self.delivery, request, 200 if self._engine.answers_early == "serves" else 400)
        if self.delivery.tap.watchers:
            self.delivery.tap.show("in", response, body)
        frame = self._engine.frames.handle(body, response)
        if frame is not None:
            response.answer(frame)
        elif not (response.done or response.session.rows):
            response.accept()
        return response

    def _handle(self, request: HttpRequest, live: LoadedSession, body: bytes) -> SessionResponse:
        response = SessionResponse(self, request, live, body)
        if self.delivery.tap.watchers:
            self.delivery.tap.show("in", response, body)
        rows = live.session.rows
        before = len(rows)
        frame = self._engine.frames.handle(body, response)
        if frame is not None:
            response.answer(frame)
        elif not response.done and len(rows) <= before and not response.ids:
            response.accept()
        if response.frame != b"" and live.base is not None:
            live.was_used = True
        return response

    async def store(self, response: SessionResponse) -> None:
        """Store the changes of a request before its answer acknowledges them; relay messages for other processes."""
        live = response.live
        if response.is_new:
            if live.session.peer is not None:
                await self.sessions.begin(live)
            return
        is_notification = response.frame == b""
        if is_notification and not response.is_batch and not isinstance(response.messages[0][0], Message):
            raise Denied(400, "the body holds no JSON-RPC message", code=PARSE_ERROR)
        if live.changed and not await self.sessions.save(live):
            raise _unknown()
        if is_notification or response.is_batch:
            await self._relay(live, response.messages)

    async def _relay(self, live: LoadedSession, messages: list[tuple[Any, bytes]]) -> None:
        """Relay messages about calls that may run in another process. Raises StoreError."""
        if not self._store.shared:
            return
        for message, body in messages:
            if isinstance(message, Message) and message.method in _RELAYED:
                is_ours = message.method == "" and str(message.id).startswith(f"{live.session.name}-")
                if not is_ours:
                    await self._cluster.post("frame", live.id, body)

    async def announce(self, stream: Stream) -> None:
        """Announce a stream to other processes. If that fails, it is sent but can't be resumed there."""
        try:
            await stream.announce()
        except StoreError as problem:
            self._cluster.report("a call that runs can't be followed in other processes", problem)

    # -- GET and DELETE

    async def get(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """Open a session's notification stream, or resume a stream after the last event that the client received."""
        live = await self._find(request)
        if self.delivery.stopping:
            raise shutting_down()
        if not request.accepts_stream:
            raise Denied(406, "a GET is answered as text/event-stream; accept it")
        live.was_used = True
        with live.pinned():
            if live.changed and not await self.sessions.save(live):
                raise _unknown()
            last = request.headers.get(b"last-event-id")
            get = _Get(request, live, receive, send)
            if last is None:
                await self._listen(get)
            else:
                await self._resume(get, last.decode("latin-1"))

    async def delete(self, request: HttpRequest, send: Send) -> None:
        """End a session."""
        live = await self._find(request)
        await self.sessions.end(live.id)
        await reply(send, 204, b"", request.extra)

    async def _find(self, request: HttpRequest) -> LoadedSession:
        _refuse_twice(request)
        id = request.headers.get(SESSION_HEADER)
        version = request.headers.get(_VERSION_HEADER)
        if id is None or (version is not None and version not in _VERSIONS):
            text = "this needs the Mcp-Session-Id of a session; 2026-07-28 has none, and only POST"
            raise Denied(405, text, ((b"allow", b"POST"),))
        live = await self.sessions.find(id.decode("latin-1"), request.principal)
        if live is None:
            raise _unknown()
        return live

    async def _listen(self, get: _Get, name: str = "", after: int = -1) -> None:
        """Send the notification stream after a position, or all that is unsent. Another process may have begun it."""
        live = get.live
        stream, follower = live.notifications.attach(name)
        try:
            await self.sessions.claim(live)
            first = b""
            if after < 0 and live.session.peer is not None and live.session.peer.revision.index >= R2511:
                first = priming(f"{stream.id}-0", self._limits.retry_seconds)
            await self._follow(get, stream.id, follower, stream.sent if after < 0 else after, stream, first=first)
        finally:
            stream.followers.discard(follower)

    async def _resume(self, get: _Get, last: str) -> None:
        """Resume a stream that this process writes, that another one writes, or that has ended."""
        live, follower = get.live, Follower()
        name, _, position = last.rpartition("-")
        after = int(position) if position.isascii() and position.isdigit() and len(position) < 16 else -1
        stream = live.streams.get(name)
        origin = await find_origin(self._store, live.id, name) if name and stream is None else None
        is_known = stream is not None or origin is not None or await self._store.read(log_key(live.id, name), 0, 1)
        if after < 0 or not is_known:
            raise Denied(400, "there is no such stream, or its events are no longer stored")
        if (stream is not None and stream is live.notifications.stream) or (origin is not None and origin.standalone):
            await self._listen(get, name, after)
        elif stream is None:
            await self._cluster.tell("follow", name)
            await self._follow(get, name, follower, after, origin=origin)
        else:
            stream.followers.add(follower)
            try:
                await self._follow(get, name, follower, after, stream)
            finally:
                stream.followers.discard(follower)

    async def _follow(
        self,
        get: _Get,
        name: str,
        follower: Follower,
        after: int,
        stream: Stream | None = None,
        *,
        origin: StreamOrigin | None = None,
        first: bytes = b"",
    ) -> None:
        """Send a stream from a position on. Without `stream` another process writes it, or wrote it until it ended."""
        live, send = get.live, get.send
        watcher = asyncio.get_running_loop().create_task(_watch(follower, get.receive))
        self._cluster.follow(name, follower)
        write_event = event_writer(send, name)
        if stream is not None:
            stream.sent = max(stream.sent, after)

        async def write_and_note(position: int, frame: bytes) -> None:
            await write_event(position, frame)
            if stream is not None:
                stream.sent = max(stream.sent, position)

        async def is_lost() -> bool:
            """Whether its process has ended, or the store has lost its log."""
            is_alive = origin is not None and await self._cluster.is_alive(origin.worker)
            return not is_alive or await find_origin(self._store, live.id, name) is None

        try:
            await start_stream(send, get.request.extra)
            if first:
                await write(send, first)
            key, pause = log_key(live.id, name), self._limits.keep_alive_seconds
            lost = is_lost if stream is None else None
            if not await follow(self._store, key, follower, after, write_and_note, pause, lost) and origin is not None:
                for id in origin.requests:
                    text = "the server ended while this request ran; send it again if that is safe"
                    await write_event(0, error(id, INTERNAL_ERROR, text))
            if follower.retry is not None:
                await write(send, retry_after(follower.retry))
        except StoreError as problem:
            text = "a stream was closed because the store failed; its client can resume it"
            self._cluster.report(text, problem)
        finally:
            watcher.cancel()
            self._cluster.unfollow(name, follower)
        await finish(send)


async def _watch(follower: Follower, receive: Receive) -> None:
    await hung_up(receive)
    follower.close()


def _status(frame: bytes, error_status: int = 200) -> int:
    """The status of an answer: an error is 200 in this era, unless the message could not be read or is forbidden."""
    if not isinstance(frame, ErrorFrame):
        return 200
    if isinstance(frame.cause, Forbidden):
        return 403
    return 400 if frame.code in (PARSE_ERROR, INVALID_REQUEST) else error_status


def _refuse_twice(request: HttpRequest) -> None:
    if SESSION_HEADER in request.twice or _VERSION_HEADER in request.twice:
        raise Denied(400, "Mcp-Session-Id or MCP-Protocol-Version came more than once; send each once")


def _unknown() -> Denied:
    text = "there is no such session, or it has ended; send initialize without Mcp-Session-Id to begin a new one"
    return Denied(404, text)
