"""Streamable HTTP, both eras at one URL.

Each request is a POST whose response is one JSON document or a stream of events. In the modern era that is all, and
closing a stream cancels its request. In the handshake era there is a session besides: an id that the server gave, a
GET stream for messages that belong to no request, and streams that can be resumed after they broke.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, final

from longshore.client.channel import CLIENT_LIMITS, Channel, ChannelEvents, FrameInfo
from longshore.client.event_stream import EventStreamReader, EventTooLarge, drain
from longshore.client.mcp_endpoint import (
    EVENT_STREAM,
    JSON,
    McpEndpoint,
    answered_ids,
    error_for,
    is_session_over,
    media_type,
    read_refusal,
    refuse,
)
from longshore.client.tasks import Tasks, end
from longshore.errors import BadAnswer, ClientError, ConnectionLost
from longshore.http_client.response import HttpResponse, Unreachable
from longshore.http_client.urls import HeaderPairs, parse_url
from longshore.limits import Limits
from longshore.protocol.http_headers import write_value
from longshore.protocol.revisions import MODERN, R2506, Revision
from longshore.wire.messages import Id

if TYPE_CHECKING:
    from longshore.client.auth.authorizer import Authorizer

MOST_REQUESTS: Final = 128
"""Requests in flight, each with its own connection. Others wait."""
DELIVERY_SECONDS: Final = 30.0
"""For a notification or a response of ours to be accepted."""
_REFUSED_SECONDS: Final = 0.25
"""When a session has ended, for other requests in flight to be refused too: then they may be sent again."""
_FLUSH_SECONDS: Final = 0.5
"""For the last notifications to be delivered before closing."""
_LISTEN_SECONDS: Final = 1.0
"""For a server to say whether it has a stream for the session. Some say so with its first event only."""
_DELETE_SECONDS: Final = 2.0
_SESSION_CHARS: Final = 1024
POST_HEADERS: Final = (("Content-Type", JSON), ("Accept", f"{JSON}, {EVENT_STREAM}"))
_SESSION_OVER: Final = "the server has ended the session"


@final
class HttpChannel(Channel):
    """A channel to an MCP endpoint."""

    shared = True

    def __init__(
        self,
        url: str,
        events: ChannelEvents,
        *,
        headers: HeaderPairs = (),
        authorizer: Authorizer | None = None,
        limits: Limits = CLIENT_LIMITS,
    ) -> None:
        super().__init__(events)
        self._endpoint = McpEndpoint(url, headers, authorizer, events.on_login)
        self.label = self._endpoint.label
        self._limit = limits.frame_bytes
        self._streams = EventStreamReader(self._open_stream, self._receive, events.note, limits.frame_bytes)
        self._revision: Revision | None = None
        self._session: str | None = None
        self._requests: dict[Id, asyncio.Task[None]] = {}
        self._unanswered = 0
        """Requests that were sent and have no response yet."""
        self._deliveries, self._others = Tasks(), Tasks()
        self._order = asyncio.Lock()
        self._initialized = asyncio.Event()
        """Clear between the handshake and its confirmation by `notifications/initialized`: no request is sent then."""
        self._initialized.set()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._session_over = self._lost = self._closed = False
        self._closing = asyncio.Lock()

    # -- called by the session

    async def open(self) -> None:
        """The first request connects."""
        if not parse_url(self._endpoint.url).is_confidential:
            what = f"the connection to {self.label} is not encrypted: others on the network can read it; use https"
            self.events.note(what)

    def send(self, frame: bytes, info: FrameInfo) -> None:
        id = info.id
        if self._closed or self._session_over:
            if id is not None:
                what = _SESSION_OVER if self._session_over else "the connection is closed"
                self.events.on_failure(id, ConnectionLost(what, unsent=True))
        elif id is None:
            self._deliveries.start(self._deliver_in_order(frame, info))
        else:
            task = asyncio.get_running_loop().create_task(self._request(frame, info, id))
            self._requests[id] = task
            task.add_done_callback(lambda _: self._remove(id))
            self.congested = len(self._requests) >= MOST_REQUESTS

    def cancel(self, id: Id, frame: bytes) -> None:
        """Closing its stream cancels a modern request. An older server gets the notification too."""
        if self._revision is not None and not self._revision.modern:
            self.send(frame, FrameInfo("notifications/cancelled"))
        task = self._requests.get(id)
        if task is not None:
            task.cancel()

    async def ready(self) -> None:
        while self.congested and not self._closed and not self._lost:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if not waiter.cancelled():
                    self._wake_next()
                raise

    def speak(self, revision: Revision) -> None:
        self._revision = revision
        if not revision.modern:
            self._initialized.clear()

    async def close(self) -> None:
        self._closed = True
        self._wake_all()
        async with self._closing:
            try:
                await end([*self._requests.values()])
                await self._others.end()
                await self._deliveries.wait(_FLUSH_SECONDS)
                await self._deliveries.end()
                await self._others.end()
                await self._delete_session()
            finally:
                await self._endpoint.close(self.events.note)

    async def _delete_session(self) -> None:
        if self._session is None or self._session_over:
            return
        headers = [*self._version_headers(None), ("Mcp-Session-Id", self._session)]
        self._session = None
        try:
            async with asyncio.timeout(_DELETE_SECONDS):
                await read_refusal(await self._endpoint.send("DELETE", headers, login=False))
        except (TimeoutError, ClientError):
            pass
        except Exception as problem:  # from an authorizer of the caller's
            self.events.note(f"the session could not be ended ({problem!r})")

    # -- headers

    def _headers(self, info: FrameInfo | None) -> list[tuple[str, str]]:
        """The protocol's headers. `info` is None for a request without a body."""
        headers = self._version_headers(info)
        session = self._used_session
        if session is not None:
            headers.append(("Mcp-Session-Id", session))
        return headers

    def _version_headers(self, info: FrameInfo | None) -> list[tuple[str, str]]:
        revision = self._revision
        if revision is None:
            return [] if info is None or info.method != "server/discover" else _modern_headers(MODERN[-1], info)
        if revision.modern:
            return [] if info is None else _modern_headers(revision.name, info)
        return [("MCP-Protocol-Version", revision.name)] if revision.index >= R2506 else []

    @property
    def _used_session(self) -> str | None:
        """None for a modern server: it may have begun a session before the revision was agreed on."""
        return None if self._revision is not None and self._revision.modern else self._session

    def _may_be_modern(self, info: FrameInfo) -> bool:
        return info.method == "server/discover" if self._revision is None else self._revision.modern

    # -- requests

    async def _request(self, frame: bytes, info: FrameInfo, id: Id) -> None:
        problem: ClientError = BadAnswer("its answer belongs to no request of ours")
        try:
            await self._initialized.wait()
            await self._exchange(frame, info, id)
        except ClientError as failed:
            problem = self._endpoint.explain(failed)
        except EventTooLarge as failed:
            problem = BadAnswer(f"it sent {failed}")
        except Exception as failed:  # the caller must get an answer, whatever it is
            problem = ClientError(f"the request failed ({failed!r})")
            problem.__cause__ = failed
        self.events.on_failure(id, problem)  # has no effect if the answer came

    def _remove(self, id: Id) -> None:
        del self._requests[id]
        if len(self._requests) < MOST_REQUESTS:
            self.congested = False
            self._wake_next()

    def _wake_next(self) -> None:
        """Let the sender go on that has waited longest."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _wake_all(self) -> None:
        while self._waiters:
            self._wake_next()

    async def _exchange(self, frame: bytes, info: FrameInfo, id: Id) -> None:
        session = self._used_session
        self._unanswered += 1
        try:
            headers = [*POST_HEADERS, *self._headers(info), *info.headers]
            response = await self._endpoint.send("POST", headers, frame)
        finally:
            self._unanswered -= 1
        try:
            await self._read_response(response, info, id, session)
        finally:
            response.close()

    async def _read_response(self, response: HttpResponse, info: FrameInfo, id: Id, session: str | None) -> None:
        if not 200 <= response.status < 300:
            await self._read_refusal(response, info, id, session)
            return
        if info.method == "initialize":
            self._set_session(response)
        kind = media_type(response)
        if kind == EVENT_STREAM:
            await self._streams.read_answer(response, id, resumable=not self._may_be_modern(info))
        elif kind == JSON:
            self.events.on_frame(await response.read(self._limit))
        else:
            refuse(await read_refusal(response))

    async def _read_refusal(self, response: HttpResponse, info: FrameInfo, id: Id, session: str | None) -> None:
        await read_refusal(response)
        modern = self._may_be_modern(info)
        if session is not None and not modern and is_session_over(response, id):
            self.events.on_failure(id, ConnectionLost(_SESSION_OVER, unsent=True))
            self._end_session()
            return
        error = error_for(response.body, id, accept_null_id=modern)
        if error is None:
            refuse(response)
        self.events.on_frame(error)

    def _set_session(self, response: HttpResponse) -> None:
        session = response.header("mcp-session-id")
        if session is None:
            return
        if not session or len(session) > _SESSION_CHARS or not all("!" <= char <= "~" for char in session):
            raise BadAnswer("the id that it gave the session can't be sent back; it must be visible ASCII")
        self._session = session

    def _end_session(self) -> None:
        """The server does not know the session any more. It may refuse the other requests in flight one by one."""
        if self._session_over or self._closed:
            return
        self._session_over = True
        if self._unanswered:
            self._others.start(self._lose_later())
        else:
            self._lose(ConnectionLost(_SESSION_OVER))

    async def _lose_later(self) -> None:
        waiting = [task for task in self._requests.values() if task is not asyncio.current_task()]
        if waiting:
            await asyncio.wait(waiting, timeout=_REFUSED_SECONDS)
        self._lose(ConnectionLost(_SESSION_OVER))

    def _lose(self, problem: ConnectionLost) -> None:
        if not self._closed and not self._lost:
            self._lost = True
            self.events.on_lost(problem)
            self._wake_all()

    # -- notifications and responses of ours

    async def _deliver_in_order(self, frame: bytes, info: FrameInfo) -> None:
        """Send notifications one after the other. Responses and cancellations wait for none of them."""
        if info.method == "notifications/initialized":
            await self._confirm_handshake(frame, info)
            return
        await self._initialized.wait()
        if info.method in ("response", "notifications/cancelled"):
            await self._deliver(frame, info)
        else:
            async with self._order:
                await self._deliver(frame, info)

    async def _confirm_handshake(self, frame: bytes, info: FrameInfo) -> None:
        """End the handshake and open the stream of the session.

        A server may use that stream to ask questions about a request, so it is opened before any request is sent.
        """
        try:
            if await self._deliver(frame, info) and not self._closed:
                opened = asyncio.Event()
                self._others.start(self._listen(opened))
                async with asyncio.timeout(_LISTEN_SECONDS):
                    await opened.wait()
        except TimeoutError:
            pass
        finally:
            self._initialized.set()

    async def _deliver(self, frame: bytes, info: FrameInfo) -> bool:
        """Whether the server accepted a notification or response."""
        session = self._used_session
        try:
            headers = [*POST_HEADERS, *self._headers(info)]
            response = await self._endpoint.send("POST", headers, frame, seconds=DELIVERY_SECONDS)
            if 200 <= response.status < 300:
                self._others.start(drain(response))  # some servers answer by a stream and leave it open
                return True
            await read_refusal(response)
        except ClientError as problem:
            self.events.note(f"{info.method} could not be delivered: {problem.what}")
            return False
        except Exception as problem:  # from an authorizer of the caller's
            self.events.note(f"{info.method} could not be delivered: {problem!r}")
            return False
        if session is not None and is_session_over(response):
            self._end_session()
        else:
            self.events.note(f"{info.method} was refused with HTTP status {response.status}")
        return False

    # -- the stream that belongs to no request

    async def _listen(self, opened: asyncio.Event) -> None:
        try:
            await self._streams.listen(opened.set)
        except Unreachable as problem:
            self._session_over = True
            self._lose(ConnectionLost(f"it can't be reached any more ({problem.what})"))
        except ConnectionLost:
            pass  # it ended with the session
        except Exception as problem:  # a login that failed, an authorizer of the caller's
            what = problem.what if isinstance(problem, ClientError) else repr(problem)
            self.events.note(f"the stream of the session has ended ({what}); requests go on without it")
        finally:
            opened.set()

    async def _open_stream(self, last_id: str) -> HttpResponse:
        session = self._session
        resume = [("Last-Event-ID", last_id)] if last_id else []
        response = await self._endpoint.send("GET", [("Accept", EVENT_STREAM), *self._headers(None), *resume])
        if response.status in (400, 404) and session is not None:
            await read_refusal(response)
            if not is_session_over(response):
                refuse(response)
            self._end_session()
            raise ConnectionLost(_SESSION_OVER)
        return response

    def _receive(self, frame: bytes, id: Id | None) -> None:
        """Pass on a message of a stream. An answer may come on another stream than its own, which then ends."""
        self.events.on_frame(frame)
        if id is None and self._requests:
            for each in answered_ids(frame):
                task = self._requests.get(each)
                if task is not None:
                    task.cancel()


def _modern_headers(version: str, info: FrameInfo) -> list[tuple[str, str]]:
    """The parts of a modern request's body that its headers repeat."""
    headers = [("MCP-Protocol-Version", version), ("Mcp-Method", info.method)]
    if info.name is not None:
        headers.append(("Mcp-Name", write_value(info.name)))
    return headers
