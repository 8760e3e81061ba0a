"""2024-11-05: HTTP+SSE on two endpoints. The stream is the session; every message is POSTed beside it.

The id in the address names the process that holds the stream, so a POST that lands elsewhere is passed on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from secrets import token_urlsafe
from time import monotonic
from typing import TYPE_CHECKING, final
from urllib.parse import parse_qs, quote

from longshore.protocol.peer import Principal
from longshore.protocol.revisions import MODERN
from longshore.server.link import Link
from longshore.transports.http.cluster import ClusterMessage
from longshore.transports.http.gate import Denied, Request, shutting_down
from longshore.transports.http.modern import has_envelope
from longshore.transports.http.pending import OVERRUN, Wakeup, hung_up
from longshore.transports.http.responses import (
    KEEP_ALIVE,
    Receive,
    Send,
    event,
    finish,
    reply,
    start_stream,
    write,
)
from longshore.transports.http.sessions import ID_BYTES
from longshore.wire.codec import PARSE_ERROR, encode, read
from longshore.wire.messages import Blank, Malformed

if TYPE_CHECKING:
    from longshore.transports.http.app import HttpApp


_KEPT_SECONDS = 600.0
"""How long an open stream is known to the other processes without being mentioned again."""


@final
class SseSession(Link):
    """One open stream."""

    __slots__ = ("_high", "_queued", "bell", "ending", "frames", "gone", "id")

    def __init__(self, id: str, principal: Principal, high: int) -> None:
        super().__init__(None, principal)
        self.id = id
        self.frames: deque[bytes] = deque()
        self.gone = False
        self.ending = False
        """It is closed as soon as everything is sent."""
        self._high, self._queued = high, 0
        self.bell = Wakeup()

    def send(self, frame: bytes) -> None:
        if not self.gone:
            self.frames.append(frame)
            self._queued += len(frame)
            self.congested = self._queued > self._high
            if self._queued > OVERRUN * self._high:
                self.gone = True
                self.frames.clear()
            self.bell.ring()

    def take(self) -> bytes:
        chunk = b"".join(map(event, self.frames))
        self.frames.clear()
        self._queued, self.congested = 0, False
        return chunk


@final
class SseSessions:
    """The open streams of this process."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self.open: dict[str, SseSession] = {}
        self._refreshed = monotonic()
        self._noted = False

    async def listen(self, request: Request, receive: Receive, send: Send) -> None:
        """GET: open a session. Its first event says where to POST."""
        app = self._app
        if not request.accepts_stream:
            raise Denied(406, "this is answered as text/event-stream; accept it")
        if app.stopping:
            raise shutting_down()
        if len(self.open) >= app.limits.sessions:
            raise Denied(503, "too many open streams", ((b"retry-after", b"1"),))
        if not self._noted:
            self._noted = True
            text = "a client came by HTTP+SSE (GET /sse), which MCP deprecates since 2025-03-26; it still works"
            app.engine.recorder.problem("notice", text)
        id = f"{app.workers.id}.{token_urlsafe(ID_BYTES)}"
        session = self.open[id] = SseSession(id, request.principal, app.limits.output_bytes)
        session.caller = request.owner, id
        watcher = asyncio.get_running_loop().create_task(_watch(session, receive))
        try:
            if app.store.shared:
                await app.store.set(_key(id), _caller_key(request.principal), _KEPT_SECONDS)
            await start_stream(send, request.extra)
            root = quote(request.scope.get("root_path", ""))
            await write(send, f"event: endpoint\r\ndata: {root}/messages?sessionId={id}\r\n\r\n".encode())
            while not session.gone:
                behind, chunk = session.congested, session.take()
                if behind:
                    app.engine.executor.start_queued()  # calls that came from other processes wait for that
                if chunk:
                    await write(send, chunk)
                elif session.ending:
                    break
                else:
                    await session.bell.wait(app.limits.keep_alive_seconds)
                    if not (session.frames or session.gone or session.ending):
                        await write(send, KEEP_ALIVE)
            await finish(send)
        finally:
            watcher.cancel()
            del self.open[id]
            session.gone = True
            app.engine.detach(session)
            app.engine.cancel_all(session)
            if app.store.shared:
                app.workers.run(app.store.delete(_key(id)))

    async def refresh(self) -> None:
        """Let the other processes know that the streams are still open."""
        if self._app.store.shared and monotonic() - self._refreshed > _KEPT_SECONDS / 3:
            self._refreshed = monotonic()
            for id, session in list(self.open.items()):
                await self._app.store.set(_key(id), _caller_key(session.principal), _KEPT_SECONDS)

    async def post(self, request: Request, receive: Receive, send: Send) -> None:
        """POST: a message of a session, answered on its stream."""
        app = self._app
        query = parse_qs(request.scope.get("query_string", b"").decode("latin-1"))
        id = (query.get("sessionId") or query.get("session_id") or [""])[0]
        worker = id.partition(".")[0]
        here = worker == app.workers.id
        session = self.open.get(id)
        if here and (session is None or session.principal != request.principal):
            raise Denied(404, "there is no such session; open one with GET /sse")
        if not here and not (app.store.shared and await self._is_elsewhere(id, worker, request.principal)):
            raise Denied(404, "there is no such session; open one with GET /sse")
        body = await app.body(request, receive)
        if app.stopping:
            raise shutting_down()
        if session is not None and session.congested:
            raise Denied(503, "read what waits on the stream first", ((b"retry-after", b"1"),))
        message = read(body, app.limits.depth, app.limits.batch)
        if isinstance(message, Malformed) and message.id is None:
            raise Denied(400, message.text, code=message.code)
        if isinstance(message, Blank):
            raise Denied(400, "the body holds no JSON-RPC message", code=PARSE_ERROR)
        if has_envelope(body):
            raise Denied(400, f"a request of {MODERN[-1]} has headers to agree with; send it to {app.config.http.path}")
        if session is not None:
            self._handle(session, body)
        else:
            await app.workers.post("old", id, _caller_key(request.principal) + b"\n" + body)
        await reply(send, 202, b"", request.extra)

    async def _is_elsewhere(self, id: str, worker: str, principal: Principal) -> bool:
        """Whether another process holds this stream, for this caller."""
        known = await self._app.store.get(_key(id)) == _caller_key(principal)
        return known and await self._app.workers.is_there(worker)

    def hear(self, notice: ClusterMessage) -> Awaitable[None] | None:
        """A message that was POSTed to another process."""
        session = self.open.get(notice.name)
        principal, _, body = notice.data.partition(b"\n")
        if session is not None and _caller_key(session.principal) == principal:
            self._handle(session, body)
        return None

    def close_all(self) -> None:
        for session in list(self.open.values()):
            session.ending = True
            session.bell.ring()

    def _handle(self, session: SseSession, body: bytes) -> None:
        frame = self._app.engine.handle(body, session)
        if frame is not None:
            session.send(frame)


def _key(id: str) -> str:
    return f"old:{id}"


def _caller_key(principal: Principal) -> bytes:
    """A caller with its rights, as one line: who comes with others is another caller."""
    return encode([principal.name, None if principal.scopes is None else sorted(principal.scopes)])


async def _watch(session: SseSession, receive: Receive) -> None:
    await hung_up(receive)
    session.gone = True
    session.bell.ring()
