"""Streamable HTTP, both eras at one URL.

Each request is a POST whose response is one JSON document or a stream of events. In the modern era that is all, and
closing a stream cancels its request. In the handshake era there is a session besides: an id that the server gave, a
GET stream for messages that belong to no request, and streams that outlive their connection: the server may close one
to be asked again later, or it may break. Either way it is resumed after the last event that had an id.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Final, TypeGuard, final

from longshore.client.channel import Channel, ChannelEvents, FrameInfo, TransportOptions
from longshore.client.mcp_endpoint import (
    EVENT_STREAM,
    JSON,
    MOST_REQUESTS,
    POST_HEADERS,
    McpEndpoint,
    answered_ids,
    error_for,
    is_session_over,
    media_type,
    read_refusal,
    refuse,
)
from longshore.client.sse import EventTooLarge, SseParser, drain
from longshore.client.tasks import Tasks, end
from longshore.errors import BadAnswer, ClientError, ConnectionLost, HttpRefused
from longshore.http_client.response import ExchangeBroken, HttpResponse, Unreachable
from longshore.http_client.urls import parse_url
from longshore.protocol.http_headers import write_value
from longshore.protocol.revisions import MODERN, R2506, Revision
from longshore.wire.messages import Id

DELIVERY_SECONDS: Final = 30.0
"""For a notification or a response of ours to be accepted."""
RESUME_TRIES: Final = 6
"""Failures in a row before a request's stream is given up, or an unreachable server: about 15 s. A server that answers
is asked for as long as the session lasts."""
_REFUSED_SECONDS: Final = 0.25
"""When a session has ended, for other requests in flight to be refused too: then they may be sent again."""
_FLUSH_SECONDS: Final = 0.5
"""For the last notifications to be delivered before closing."""
_LISTEN_SECONDS: Final = 1.0
"""For a server to say whether it has a stream for the session. Some say so with its first event only."""
_DELETE_SECONDS: Final = 2.0
_SESSION_CHARS: Final = 1024
_SESSION_OVER: Final = "the server has ended the session"
_TRANSIENT: Final = frozenset((409, 429, 500, 502, 503, 504))
_NO_STREAM: Final = frozenset((404, 405))
"""How servers say that they have no stream for a session."""


@final
class HttpChannel(Channel):
    """A channel to an MCP endpoint."""

    shared = True

    def __init__(self, url: str, events: ChannelEvents, options: TransportOptions) -> None:
        super().__init__(events)
        self._endpoint = McpEndpoint(url, options, events.on_login)
        self.label = self._endpoint.label
        self._limit = options.limits.frame_bytes
        self._revision: Revision | None = None
        self._session: str | None = None
        self._requests: dict[Id, asyncio.Task[None]] = {}
        self._free = asyncio.Semaphore(MOST_REQUESTS)
        self._queued: set[Id] = set()
        """Requests that wait to be sent."""
        self._deliveries, self._others = Tasks(), Tasks()
        self._order = asyncio.Lock()
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
            self._deliveries.start(self._deliver(frame, info))
        else:
            self._queued.add(id)
            task = asyncio.get_running_loop().create_task(self._request(frame, info, id))
            self._requests[id] = task
            task.add_done_callback(lambda _: self._requests.pop(id))

    def cancel(self, id: Id, frame: bytes) -> None:
        """Closing its stream cancels a modern request. An older server gets the notification too."""
        if self._revision is not None and not self._revision.modern and id not in self._queued:
            self.send(frame, FrameInfo("notifications/cancelled"))
        self._queued.discard(id)  # a task that is cancelled before it has begun does not do so
        task = self._requests.get(id)
        if task is not None:
            task.cancel()

    def speak(self, revision: Revision) -> None:
        self._revision = revision

    async def ready(self) -> None:
        """After the handshake, wait for its confirmation to be accepted and for the stream of the session.

        A server may use that stream to ask questions about a request, so it is opened before any request is sent.
        """
        await self._deliveries.wait(DELIVERY_SECONDS)
        opened = asyncio.Event()
        self._others.start(self._listen(opened))
        try:
            async with asyncio.timeout(_LISTEN_SECONDS):
                await opened.wait()
        except TimeoutError:
            pass

    async def close(self) -> None:
        self._closed = True
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
        headers, self._session = self._headers(None), None
        try:
            async with asyncio.timeout(_DELETE_SECONDS):
                await read_refusal(await self._endpoint.send("DELETE", headers, login=False))
        except (TimeoutError, ClientError):
            pass
        except Exception as problem:  # from an authorizer of the caller's
            self.events.note(f"the session could not be ended ({problem!r})")

    # -- headers

    def _is_modern(self, info: FrameInfo) -> bool:
        """Whether a message is, or may be, of the modern era."""
        return info.method == "server/discover" if self._revision is None else self._revision.modern

    def _headers(self, info: FrameInfo | None) -> list[tuple[str, str]]:
        """The protocol's headers. `info` is None for a request without a body, which the modern era does not have.

        Headers of a modern request repeat parts of its body, and name no session: a modern server may have begun one
        before the revision was agreed on.
        """
        headers: list[tuple[str, str]] = []
        revision = self._revision
        if info is not None and self._is_modern(info):
            headers.append(("MCP-Protocol-Version", MODERN[-1] if revision is None else revision.name))
            headers.append(("Mcp-Method", info.method))
            if info.name is not None:
                headers.append(("Mcp-Name", write_value(info.name)))
            return headers
        if revision is not None and revision.index >= R2506 and not revision.modern:
            headers.append(("MCP-Protocol-Version", revision.name))
        if self._session is not None:
            headers.append(("Mcp-Session-Id", self._session))
        return headers

    # -- requests

    async def _request(self, frame: bytes, info: FrameInfo, id: Id) -> None:
        problem: ClientError = BadAnswer("its answer belongs to no request of ours")
        try:
            async with self._free:
                self._queued.discard(id)
                await self._exchange(frame, info, id)
        except ClientError as failed:
            problem = self._endpoint.explain(failed)
        except EventTooLarge as failed:
            problem = BadAnswer(f"it sent {failed}")
        except Exception as failed:  # the caller must get an answer in any case
            problem = ClientError(f"the request failed ({failed!r})")
            problem.__cause__ = failed
        finally:
            self._queued.discard(id)
        self.events.on_failure(id, problem)  # has no effect if the answer came

    async def _exchange(self, frame: bytes, info: FrameInfo, id: Id) -> None:
        modern = self._is_modern(info)
        response = await self._endpoint.send("POST", [*POST_HEADERS, *self._headers(info), *info.headers], frame)
        try:
            if not 200 <= response.status < 300:
                await self._read_refusal(response, id, modern)
                return
            if info.method == "initialize":
                self._set_session(response)
            kind = media_type(response)
            if kind == EVENT_STREAM:
                await self._read_answer(response, id, resumable=not modern)
            elif kind == JSON:
                self.events.on_frame(await response.read(self._limit))
            else:
                refuse(await read_refusal(response))
        finally:
            response.close()

    async def _read_refusal(self, response: HttpResponse, id: Id, modern: bool) -> None:
        await read_refusal(response)
        if self._session is not None and not modern and is_session_over(response, id):
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
        """The server has ended the session. It may refuse the other requests in flight one by one."""
        if not self._session_over and not self._closed:
            self._session_over = True
            self._others.start(self._lose_later())

    async def _lose_later(self) -> None:
        if self._requests:
            await asyncio.wait([*self._requests.values()], timeout=_REFUSED_SECONDS)
        self._lose(_SESSION_OVER)

    def _lose(self, what: str) -> None:
        if not self._closed and not self._lost:
            self._lost = self._session_over = True
            for id in self._queued:
                self.events.on_failure(id, ConnectionLost(what, unsent=True))
            self.events.on_lost(ConnectionLost(what))

    # -- notifications and responses of ours

    async def _deliver(self, frame: bytes, info: FrameInfo) -> None:
        """Send notifications one after the other. Responses and cancellations wait for none of them."""
        at_once = info.method in ("response", "notifications/cancelled")
        try:
            async with nullcontext() if at_once else self._order:
                headers = [*POST_HEADERS, *self._headers(info)]
                response = await self._endpoint.send("POST", headers, frame, seconds=DELIVERY_SECONDS)
            if 200 <= response.status < 300:
                self._others.start(drain(response))  # some servers answer by a stream and leave it open
                return
            await read_refusal(response)
        except ClientError as problem:
            self.events.note(f"{info.method} could not be delivered: {problem.what}")
        except Exception as problem:  # from an authorizer of the caller's
            self.events.note(f"{info.method} could not be delivered: {problem!r}")
        else:
            if self._session is not None and not self._is_modern(info) and is_session_over(response):
                self._end_session()
            else:
                self.events.note(f"{info.method} was refused with HTTP status {response.status}")

    # -- streams

    async def _read_answer(self, response: HttpResponse, id: Id, *, resumable: bool) -> None:
        """Read until the answer to a request has come. Raises ConnectionLost, EventTooLarge."""
        parser = SseParser(self._limit)
        while not await self._read(response, parser, id):
            if not resumable or not parser.last_id:
                raise ConnectionLost("the stream ended before the answer came")
            if parser.failures >= RESUME_TRIES:
                raise ConnectionLost(f"the stream ended before the answer came, {RESUME_TRIES} times without a message")
            response = await self._resume(parser)

    async def _resume(self, parser: SseParser) -> HttpResponse:
        while True:
            await asyncio.sleep(parser.delay())
            try:
                return await self._open_stream(parser)
            except (HttpRefused, Unreachable, ExchangeBroken) as problem:
                if _is_final(problem) or parser.failures >= RESUME_TRIES:
                    what = f"the stream broke before the answer came, and could not be resumed ({problem.what})"
                    raise ConnectionLost(what) from problem

    async def _listen(self, opened: asyncio.Event) -> None:
        """Read the messages that belong to no request, for as long as the session lasts and has such a stream."""
        try:
            await self._listen_on(opened)
        except Unreachable as problem:
            self._lose(f"it can't be reached any more ({problem.what})")
        except ConnectionLost:
            pass  # the stream ended with the session
        except Exception as problem:  # a login that failed, an authorizer of the caller's
            what = problem.what if isinstance(problem, ClientError) else repr(problem)
            self.events.note(f"the stream of the session has ended ({what}); requests go on without it")
        finally:
            opened.set()

    async def _listen_on(self, opened: asyncio.Event) -> None:
        parser, unreachable, was_open = SseParser(self._limit), 0, False
        while True:
            try:
                response = await self._open_stream(parser)
                unreachable, was_open = 0, True
                opened.set()
                await self._read(response, parser, None)
            except Unreachable:
                unreachable += 1
                if unreachable >= RESUME_TRIES:
                    raise
            except (HttpRefused, ExchangeBroken) as problem:
                unreachable = 0
                if _is_final(problem):
                    if was_open or problem.status not in _NO_STREAM:
                        self.events.note(f"the stream of the session has ended ({problem.what})")
                    return
                if parser.failures == RESUME_TRIES:
                    self.events.note(f"the stream of the session is not available at the moment ({problem.what})")
            except EventTooLarge as problem:
                parser.failures += 1
                self.events.note(f"the stream of the session held {problem}, which was skipped")
            await asyncio.sleep(parser.delay())

    async def _open_stream(self, parser: SseParser) -> HttpResponse:
        """The stream from now on, or after the last event. Raises HttpRefused, Unreachable, ExchangeBroken."""
        resume = [("Last-Event-ID", parser.last_id)] if parser.last_id else []
        try:
            response = await self._endpoint.send("GET", [("Accept", EVENT_STREAM), *self._headers(None), *resume])
            if response.status == 200 and media_type(response) == EVENT_STREAM:
                return response
            await read_refusal(response)
            if self._session is None or not is_session_over(response):
                refuse(response)
        except (HttpRefused, Unreachable, ExchangeBroken):
            parser.failures += 1
            raise
        self._end_session()
        raise ConnectionLost(_SESSION_OVER)

    async def _read(self, response: HttpResponse, parser: SseParser, id: Id | None) -> bool:
        """Read one connection to its end. True: the answer to the request has come."""
        parser.restart()
        received = answered = False
        try:
            async for chunk in response:
                received = True  # a comment or an id alone counts too
                for event in parser.feed(chunk):
                    if event.kind == "message":
                        ids = answered_ids(event.data)
                        answered = answered or id in ids
                        self.events.on_frame(event.data)
                        if id is None:
                            self._end_answered(ids)
                if answered:
                    await drain(response)
                    return True
        except ExchangeBroken:
            pass
        finally:
            response.close()
        parser.failures = 0 if received else parser.failures + 1
        return False

    def _end_answered(self, ids: list[Id]) -> None:
        """End the streams of requests that were answered on the stream of the session."""
        for each in ids:
            task = self._requests.get(each)
            if task is not None:
                task.cancel()


def _is_final(problem: ClientError) -> TypeGuard[HttpRefused]:
    """Whether other requests would be refused, too."""
    return isinstance(problem, HttpRefused) and problem.status not in _TRANSIENT
