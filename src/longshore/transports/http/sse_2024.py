"""2024-11-05:

HTTP+SSE on two endpoints. The stream is the session; every message is sent by a POST of its own. The id of a session
names the process that has the stream, so other processes relay a POST to it.
"""

from __future__ import annotations

import asyncio
from secrets import token_urlsafe
from time import monotonic
from typing import Final, final
from urllib.parse import parse_qs, quote

from longshore.limits import Limits
from longshore.protocol.peer import Principal
from longshore.protocol.revisions import MODERN
from longshore.server.frame_tap import FrameTap
from longshore.server.link import Link
from longshore.stores import Store
from longshore.transports.http.cluster import Cluster, ClusterMessage
from longshore.transports.http.gate import Denied, Gate, HttpRequest, shutting_down
from longshore.transports.http.modern import has_envelope
from longshore.transports.http.pending import Delivery, hung_up
from longshore.transports.http.responses import Receive, Send, finish, reply, start_stream, write
from longshore.transports.http.sessions import ID_BYTES
from longshore.transports.http.streams import LAST, Follower, event_writer, follow
from longshore.wire.codec import PARSE_ERROR, encode, read
from longshore.wire.messages import Blank, Malformed

_STORED_SECONDS: Final = 600.0
"""The expiry of an open stream's entry in the store, by which other processes know it."""


@final
class SseSession(Link):
    """One open stream."""

    __slots__ = ("_limits", "_tap", "events")
    transport = "sse"

    def __init__(self, principal: Principal, limits: Limits, tap: FrameTap) -> None:
        super().__init__(None, principal)
        self.events = Follower()
        self._limits, self._tap = limits, tap

    def send(self, frame: bytes) -> None:
        if self._tap.watchers:
            self._tap.show("out", self, frame)
        self.events.put(0, frame)
        self.congested = self.events.bytes > self._limits.output_bytes
        if self.events.overrun(self._limits):
            self.events.close()


@final
class SseSessions:
    """The open streams of this process."""

    def __init__(self, delivery: Delivery, gate: Gate, store: Store, cluster: Cluster, mcp_path: str) -> None:
        self._delivery, self._engine, self._limits = delivery, delivery.engine, delivery.limits
        self._gate, self._store, self._cluster = gate, store, cluster
        self._mcp_path = mcp_path
        self.open: dict[str, SseSession] = {}
        self._refreshed = monotonic()
        self._warned = False

    async def listen(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """GET: open a session. Its first event names the address for POSTs."""
        self._check_listen(request)
        id = f"{self._cluster.id}.{token_urlsafe(ID_BYTES)}"
        session = self.open[id] = SseSession(request.principal, self._limits, self._engine.tap)
        session.caller = request.owner, id
        watcher = asyncio.get_running_loop().create_task(_watch(session, receive))
        try:
            if self._store.shared:
                await self._store.set(_key(id), _caller_key(request.principal), _STORED_SECONDS)
            await start_stream(send, request.extra)
            root = quote(request.scope.get("root_path", ""))
            await write(send, f"event: endpoint\r\ndata: {root}/messages?sessionId={id}\r\n\r\n".encode())
            await self._send_events(session, send)
            await finish(send)
        finally:
            watcher.cancel()
            del self.open[id]
            session.events.close()
            self._engine.detach(session)
            self._engine.cancel_all(session)
            self._engine.recording.session_closed(session)
            if self._store.shared:
                self._cluster.run(self._store.delete(_key(id)))

    def _check_listen(self, request: HttpRequest) -> None:
        if not request.accepts_stream:
            raise Denied(406, "this is answered as text/event-stream; accept it")
        if self._delivery.stopping:
            raise shutting_down()
        if len(self.open) >= self._limits.sessions:
            raise Denied(503, "too many open streams", ((b"retry-after", b"1"),))
        if not self._warned:
            self._warned = True
            text = "a client came by HTTP+SSE (GET /sse), which MCP deprecates since 2025-03-26; it still works"
            self._engine.recorder.problem("notice", text)

    async def _send_events(self, session: SseSession, send: Send) -> None:
        write_event, events = event_writer(send), session.events

        async def write_and_start(position: int, frame: bytes) -> None:
            was_congested = session.congested
            session.congested = events.bytes > self._limits.output_bytes
            if was_congested and not session.congested:
                self._engine.executor.start_queued()  # calls relayed by other processes wait for that
            await write_event(position, frame)

        await follow(None, "", events, -1, write_and_start, self._limits.keep_alive_seconds)

    async def refresh(self) -> None:
        """Renew the entries of the open streams in the store."""
        if self._store.shared and monotonic() - self._refreshed > _STORED_SECONDS / 3:
            self._refreshed = monotonic()
            for id, session in list(self.open.items()):
                await self._store.set(_key(id), _caller_key(session.principal), _STORED_SECONDS)

    async def post(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """POST: a message of a session, answered on its stream."""
        query = parse_qs(request.scope.get("query_string", b"").decode("latin-1"))
        id = (query.get("sessionId") or query.get("session_id") or [""])[0]
        session = self.open.get(id)
        if not await self._may_post(id, session, request.principal):
            raise Denied(404, "there is no such session; open one with GET /sse")
        body = await self._gate.read_json(request, receive)
        if self._delivery.stopping:
            raise shutting_down()
        if session is not None and session.congested:
            raise Denied(503, "read what waits on the stream first", ((b"retry-after", b"1"),))
        self._check_message(body)
        if session is not None:
            self._handle(session, body)
        else:
            await self._cluster.post("old", id, _caller_key(request.principal) + b"\n" + body)
        await reply(send, 202, b"", request.extra)

    async def _may_post(self, id: str, session: SseSession | None, principal: Principal) -> bool:
        """Whether the session is open, here or in another process, and belongs to the caller."""
        process = id.partition(".")[0]
        if process == self._cluster.id:
            return session is not None and session.principal == principal
        if not self._store.shared or await self._store.get(_key(id)) != _caller_key(principal):
            return False
        return await self._cluster.is_alive(process)

    def _check_message(self, body: bytes) -> None:
        message = read(body, self._limits.depth, self._limits.batch)
        if isinstance(message, Malformed) and message.id is None:
            raise Denied(400, message.text, code=message.code)
        if isinstance(message, Blank):
            raise Denied(400, "the body holds no JSON-RPC message", code=PARSE_ERROR)
        if has_envelope(body):
            raise Denied(400, f"a request of {MODERN[-1]} has headers to agree with; send it to {self._mcp_path}")

    def handle_relayed(self, message: ClusterMessage) -> None:
        """Handle a message that was POSTed to another process."""
        session = self.open.get(message.name)
        caller, _, body = message.data.partition(b"\n")
        if session is not None and _caller_key(session.principal) == caller:
            self._handle(session, body)

    def close_all(self) -> None:
        """Close every stream as soon as everything is sent."""
        for session in list(self.open.values()):
            session.events.put(0, LAST)

    def _handle(self, session: SseSession, body: bytes) -> None:
        if self._engine.tap.watchers:
            self._engine.tap.show("in", session, body)
        frame = self._engine.handle(body, session)
        if frame is not None:
            session.send(frame)


def _key(id: str) -> str:
    return f"old:{id}"


def _caller_key(principal: Principal) -> bytes:
    """A caller and its scopes on one line: a token with other scopes is another caller."""
    return encode([principal.name, None if principal.scopes is None else sorted(principal.scopes)])


async def _watch(session: SseSession, receive: Receive) -> None:
    await hung_up(receive)
    session.events.close()
