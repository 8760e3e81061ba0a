"""2025-03-26 to 2025-11-25 over HTTP: sessions, a stream for notices, and answers that can be fetched later.

A client that hangs up does not take its request back. The answer is kept in the request's stream, and the client may
come back for it with the id of the last event that it saw.
"""

from __future__ import annotations

import asyncio
from math import ceil
from typing import TYPE_CHECKING, Any

from longshore.errors import Forbidden, StoreError
from longshore.protocol.revisions import LEGACY, R2511
from longshore.server.link import Link
from longshore.server.rate_limits import rate_failure
from longshore.transports.http.gate import Denied, Gone, shutting_down
from longshore.transports.http.loaded_session import LoadedSession
from longshore.transports.http.pending import PendingResponse, hung_up
from longshore.transports.http.responses import (
    JSON_TYPE,
    KEEP_ALIVE,
    Receive,
    Send,
    event,
    finish,
    legacy_status,
    priming,
    reply,
    retry_after,
    start_stream,
    write,
)
from longshore.transports.http.streams import Follower, Stream, find_origin, follow, follow_elsewhere, log_key
from longshore.wire.codec import INTERNAL_ERROR, PARSE_ERROR, ErrorFrame, error, read
from longshore.wire.messages import Batch, Malformed, Message

if TYPE_CHECKING:
    from longshore.limits import Limits
    from longshore.protocol.peer import Principal
    from longshore.transports.http.app import HttpApp
    from longshore.transports.http.gate import Request

SESSION_HEADER = b"mcp-session-id"
_VERSIONS = frozenset(name.encode() for name in LEGACY)


class SessionPost(PendingResponse):
    """A POST of a session. What is sent before the answer makes it a stream, which outlives its connection."""

    __slots__ = ("_limits", "body", "follower", "live", "pending", "stream")

    def __init__(self, live: LoadedSession, principal: Principal, body: bytes, limits: Limits) -> None:
        super().__init__(live.session, principal)
        self.live = live
        self.body = body
        self._limits = limits
        self.pending = False
        """Whether an answer is still to come."""
        self.stream: Stream | None = None
        self.follower = Follower()

    @property
    def home(self) -> Link:
        return self.live.notifications

    @property
    def resumable(self) -> bool:
        """Whether the client knows to come back: older ones choke on the event that tells them."""
        peer = self.session.peer
        return peer is not None and peer.revision.index >= R2511

    def open_stream(self) -> Stream:
        if self.stream is None:
            self.stream = self.live.open_stream(_ids(self._limits, self.body))
            if not self.gone:
                self.stream.followers.add(self.follower)
            self.wake()
        return self.stream

    def send(self, frame: bytes) -> None:
        if self.done:
            return
        if self.stream is None and (self.gone or not self.accepts_stream):
            self.live.notifications.send(frame)  # nobody follows this request, but the session may have a stream
            return
        self.open_stream().put(frame)

    @property
    def congested(self) -> bool:
        """Whether the reader, or the store, is behind."""
        return self.stream is not None and self.stream.congested

    @congested.setter
    def congested(self, _: bool) -> None:
        """It follows from the stream alone."""

    def answer(self, frame: bytes | None) -> None:
        if self.stream is not None:
            self.stream.end(frame or b"")
        super().answer(frame)

    def close_stream(self, retry: float | None) -> None:
        if not self.resumable or self.done or (self.stream is None and (self.gone or not self.accepts_stream)):
            return
        for follower in self.open_stream().followers:
            follower.close(retry)


# -- POST


async def post(app: HttpApp, request: Request, body: bytes, receive: Receive, send: Send) -> None:
    """Answer a POST of the handshake era."""
    _refuse_twice(request)
    id = request.headers.get(SESSION_HEADER)
    if id is None:
        await _begin(app, request, body, receive, send)
        return
    name = id.decode("latin-1")
    live = app.sessions.get_cached(name, request.principal) or await app.sessions.find(name, request.principal)
    if live is None:
        raise _unknown()
    await _serve(app, request, live, body, receive, send, ())


async def _begin(app: HttpApp, request: Request, body: bytes, receive: Receive, send: Send) -> None:
    """A POST without a session: only `initialize` may be one."""
    message = read(body, app.limits.depth, app.limits.batch)
    if isinstance(message, Malformed):
        frame = error(message.id, message.code, message.text)
        await reply(send, 400, frame, (JSON_TYPE, *request.extra))
    elif not isinstance(message, Message) or message.method != "initialize" or message.id.__class__ not in (int, str):
        text = "send initialize first and then its Mcp-Session-Id header, or a request of 2026-07-28 with its headers"
        raise Denied(400, text)
    else:
        wait = app.handshakes.take(request.owner, "initialize")
        if wait:
            await _slow_down(request, message.id, wait, send)
            return
        live = app.sessions.candidate(request.principal, request.owner)
        header = (SESSION_HEADER, live.id.encode())
        await _serve(app, request, live, body, receive, send, (header,))


async def _slow_down(request: Request, id: Any, wait: float, send: Send) -> None:
    text = rate_failure("initialize", wait).text
    headers = (JSON_TYPE, (b"retry-after", b"%d" % ceil(wait)), *request.extra)
    await reply(send, 429, error(id, INTERNAL_ERROR, text), headers)


async def _serve(
    app: HttpApp,
    request: Request,
    live: LoadedSession,
    body: bytes,
    receive: Receive,
    send: Send,
    new: tuple[tuple[bytes, bytes], ...],
) -> None:
    link, frame = handle(app, request, live, body)
    await go_on(app, request, link, frame, receive, send, new)


def handle(app: HttpApp, request: Request, live: LoadedSession, body: bytes) -> tuple[SessionPost, bytes | None]:
    """Have the engine deal with it. None: the answer comes later, was given to the link, or there is none."""
    link = SessionPost(live, request.principal, body, app.limits)
    link.caller = request.owner, live.id
    link.accepts_stream = request.accepts_stream and len(live.streams) < app.limits.streams
    rows = live.session.rows
    before = len(rows)
    frame = app.engine.handle(body, link)
    if frame is None:
        link.pending = not link.done and (len(rows) > before or bool(_ids(app.limits, body)))
    if live.base is not None and (frame is not None or link.pending):
        live.was_used = True
    return link, frame


async def go_on(
    app: HttpApp,
    request: Request,
    link: SessionPost,
    frame: bytes | None,
    receive: Receive,
    send: Send,
    new: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    """Send what the engine said, or wait for it. What it changed is stored before that is acknowledged."""
    live, body = link.live, link.body
    if frame is None and not link.pending:
        frame = link.frame
        if frame is None:
            await _take_note(app, request, live, body, send)
            return
    if new:
        if live.session.peer is not None:
            await app.sessions.begin(live)
        else:
            new = ()
    elif live.changed or is_batch(body):
        if not await app.sessions.save(live):
            raise _unknown()
        await app.notices.relay(live, read(body, app.limits.depth, app.limits.batch), body)
    if link.pending or link.stream is not None:
        if frame is not None:
            link.answer(frame)
        await _serve_slowly(app, request, link, receive, send, new)
    else:
        await _answer(app, request, frame, send, new)


def is_batch(body: bytes) -> bool:
    return body.lstrip()[:1] == b"["


async def _answer(
    app: HttpApp, request: Request, frame: bytes | None, send: Send, new: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    extra = (*request.extra, *new)
    if frame is None:
        await reply(send, 202, b"", extra)  # the request was taken back, and nobody may answer it now
    elif not request.accepts_json and legacy_status(frame) == 200:
        await start_stream(send, extra)
        await write(send, event(frame))
        await finish(send)
    else:
        if isinstance(frame, ErrorFrame) and isinstance(frame.cause, Forbidden):
            extra = (*extra, *app.forbidden(request, frame.cause.needed))
        await reply(send, legacy_status(frame), frame, (JSON_TYPE, *extra))


async def _take_note(app: HttpApp, request: Request, live: LoadedSession, body: bytes, send: Send) -> None:
    """Notifications and responses. The call that one is about may run in another process."""
    message = read(body, app.limits.depth, app.limits.batch)
    if not isinstance(message, (Message, Batch)):
        raise Denied(400, "the body holds no JSON-RPC message", code=PARSE_ERROR)
    if live.changed and not await app.sessions.save(live):
        raise _unknown()
    await app.notices.relay(live, message, body)
    await reply(send, 202, b"", request.extra)


async def _serve_slowly(
    app: HttpApp,
    request: Request,
    link: SessionPost,
    receive: Receive,
    send: Send,
    new: tuple[tuple[bytes, bytes], ...],
) -> None:
    app.waiting.add(link)
    app.sessions.pin(link.live)
    watcher = None
    try:
        while not (link.done or link.stream or link.old) and request.accepts_json:
            await link.wait()
        if not (link.done or link.stream) and request.accepts_json:
            watcher = asyncio.get_running_loop().create_task(_watch(link, receive))
            await link.wait(app.limits.stream_after_seconds if link.accepts_stream else None)
            while not (link.done or link.stream or link.gone or link.accepts_stream):
                await link.wait()
        if link.done and link.stream is None:
            await _answer(app, request, link.frame, send, new)
        elif link.gone:
            raise Gone
        else:
            watcher = watcher or asyncio.get_running_loop().create_task(_watch(link, receive))
            await _stream(app, request, link, send, new)
    finally:
        if watcher is not None:
            watcher.cancel()
        link.gone = True
        if link.stream is not None:
            link.stream.followers.discard(link.follower)
        app.sessions.unpin(link.live)


def _ids(limits: Limits, body: bytes) -> list[Any]:
    """The requests of a body, to answer them for a process that ended before it did."""
    message = read(body, limits.depth, limits.batch)
    items = message.items if isinstance(message, Batch) else [body]
    messages = [read(bytes(item), limits.depth, 0) for item in items]
    return [
        each.id for each in messages if isinstance(each, Message) and each.method and each.id.__class__ in (int, str)
    ]


async def _stream(
    app: HttpApp, request: Request, link: SessionPost, send: Send, new: tuple[tuple[bytes, bytes], ...]
) -> None:
    stream = link.open_stream()
    try:
        await stream.announce()
    except StoreError as problem:
        app.problem("a call that runs can't be followed in other processes", problem)
    await start_stream(send, (*request.extra, *new))
    if link.resumable:
        retry = app.limits.retry_seconds if link.follower.retry is None else link.follower.retry
        await write(send, priming(f"{stream.id}-0", retry))
    await follow(app.store, stream, link.follower, -1, writer(send, stream.id), app.limits.keep_alive_seconds)
    if not link.gone:
        if link.follower.retry is not None:
            await write(send, retry_after(link.follower.retry))
        await finish(send)


async def _watch(link: SessionPost, receive: Receive) -> None:
    await hung_up(receive)
    link.gone = True
    link.follower.close()
    link.wake()


def writer(send: Send, stream: str) -> Any:
    """Writes the events of one stream, with ids to resume it by."""

    async def write_event(position: int, frame: bytes) -> None:
        if position < 0:
            await write(send, KEEP_ALIVE)
        else:
            await write(send, event(frame, f"{stream}-{position}" if position else ""))

    return write_event


# -- GET and DELETE


async def get(app: HttpApp, request: Request, receive: Receive, send: Send) -> None:
    """Open a session's own stream, or take up one that was interrupted."""
    live = await _find(app, request)
    if app.stopping:
        raise shutting_down()
    if not request.accepts_stream:
        raise Denied(406, "a GET is answered as text/event-stream; accept it")
    last = request.headers.get(b"last-event-id")
    live.was_used = True
    app.sessions.pin(live)
    try:
        if live.changed and not await app.sessions.save(live):
            raise _unknown()
        if last is None:
            await _listen(app, request, live, receive, send)
        else:
            await _resume(app, request, live, last.decode("latin-1"), receive, send)
    finally:
        app.sessions.unpin(live)


async def _listen(
    app: HttpApp, request: Request, live: LoadedSession, receive: Receive, send: Send, name: str = "", after: int = -1
) -> None:
    """The session's own stream, which another process may have begun: after a position, or all that nobody was sent."""
    stream, follower = live.notifications.attach(name)
    app.workers.follow(stream.id, follower)
    try:
        await app.sessions.ownership.claim(live)
        await start_stream(send, request.extra)
        if after < 0 and live.session.peer is not None and live.session.peer.revision.index >= R2511:
            await write(send, priming(f"{stream.id}-0", app.limits.retry_seconds))
        await _follow(app, stream, follower, stream.sent if after < 0 else after, receive, send)
    finally:
        stream.followers.discard(follower)
        app.workers.unfollow(stream.id, follower)


async def _follow(app: HttpApp, stream: Stream, follower: Follower, after: int, receive: Receive, send: Send) -> None:
    watcher = asyncio.get_running_loop().create_task(_watch_follower(follower, receive))
    stream.sent = max(stream.sent, after)
    write_event = writer(send, stream.id)

    async def note(position: int, frame: bytes) -> None:
        await write_event(position, frame)
        stream.sent = max(stream.sent, position)

    try:
        await follow(app.store, stream, follower, after, note, app.limits.keep_alive_seconds)
        if follower.retry is not None:
            await write(send, retry_after(follower.retry))
    except StoreError as problem:
        app.problem("a stream was let go because the store failed", problem)  # the client comes back to it
    finally:
        watcher.cancel()
    await finish(send)


async def _watch_follower(follower: Follower, receive: Receive) -> None:
    await hung_up(receive)
    follower.close()


async def _resume(app: HttpApp, request: Request, live: LoadedSession, last: str, receive: Receive, send: Send) -> None:
    name, _, position = last.rpartition("-")
    after = int(position) if position.isascii() and position.isdigit() and len(position) < 16 else -1
    stream = live.streams.get(name)
    if stream is not None and after >= 0:
        await _resume_here(app, request, live, stream, after, receive, send)
        return
    key = log_key(live.id, name)
    origin = await find_origin(app.store, live.id, name) if name else None
    if after < 0 or (origin is None and not await app.store.read(key, 0, 1)):
        raise Denied(400, "there is no such stream, or its events are no longer kept")
    if origin is not None and origin.standalone:
        await _listen(app, request, live, receive, send, name, after)
        return
    follower = Follower()
    watcher = asyncio.get_running_loop().create_task(_watch_follower(follower, receive))
    app.workers.follow(name, follower)
    write_event = writer(send, name)

    async def lost() -> bool:
        """Whether nobody writes it any more, or the store has lost what was written."""
        there = origin is not None and await app.workers.is_there(origin.worker)
        return not there or await find_origin(app.store, live.id, name) is None

    async def fail_lost_requests() -> None:
        for id in origin.requests if origin is not None else ():
            text = "the server ended while this request ran; send it again if that is safe"
            await write_event(0, error(id, INTERNAL_ERROR, text))

    try:
        await start_stream(send, request.extra)
        await app.workers.tell("follow", name)
        pause = app.limits.keep_alive_seconds
        await follow_elsewhere(app.store, key, follower, after, write_event, pause, lost, fail_lost_requests)
    except StoreError as problem:
        app.problem("a stream was let go because the store failed", problem)  # the client comes back to it
    finally:
        watcher.cancel()
        app.workers.unfollow(name, follower)
    await finish(send)


async def _resume_here(
    app: HttpApp, request: Request, live: LoadedSession, stream: Stream, after: int, receive: Receive, send: Send
) -> None:
    if stream is live.notifications.stream:
        await _listen(app, request, live, receive, send, stream.id, after)
        return
    follower = Follower()
    stream.followers.add(follower)
    try:
        await start_stream(send, request.extra)
        await _follow(app, stream, follower, after, receive, send)
    finally:
        stream.followers.discard(follower)


async def delete(app: HttpApp, request: Request, send: Send) -> None:
    """End a session."""
    live = await _find(app, request)
    await app.sessions.end(live.id)
    await reply(send, 204, b"", request.extra)


def _refuse_twice(request: Request) -> None:
    if SESSION_HEADER in request.twice or b"mcp-protocol-version" in request.twice:
        raise Denied(400, "Mcp-Session-Id or MCP-Protocol-Version came more than once; send each once")


async def _find(app: HttpApp, request: Request) -> LoadedSession:
    _refuse_twice(request)
    id = request.headers.get(SESSION_HEADER)
    version = request.headers.get(b"mcp-protocol-version")
    if id is None or (version is not None and version not in _VERSIONS):
        text = "this needs the Mcp-Session-Id of a session; 2026-07-28 has none, and only POST"
        raise Denied(405, text, ((b"allow", b"POST"),))
    live = await app.sessions.find(id.decode("latin-1"), request.principal)
    if live is None:
        raise _unknown()
    return live


def _unknown() -> Denied:
    text = "there is no such session, or it has ended; send initialize without Mcp-Session-Id to begin a new one"
    return Denied(404, text)
