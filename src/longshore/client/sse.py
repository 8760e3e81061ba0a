"""HTTP+SSE, the transport of 2024-11-05: one stream for all that the server sends, which names a URL to POST to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urljoin

from longshore.client.channel import CLIENT_LIMITS, Channel, ChannelEvents, FrameInfo
from longshore.client.event_stream import EventTooLarge, SseParser, drain
from longshore.client.http import POST_HEADERS
from longshore.client.mcp_endpoint import EVENT_STREAM, McpEndpoint, media_type, read_refusal, refuse
from longshore.client.tasks import Tasks
from longshore.errors import ClientError, ConnectError, ConnectionLost, HttpRefused
from longshore.http_client.response import ExchangeBroken, HttpResponse
from longshore.http_client.urls import HeaderPairs, parse_url
from longshore.limits import Limits
from longshore.protocol.revisions import Revision
from longshore.wire.messages import Id

if TYPE_CHECKING:
    from longshore.client.auth.authorizer import Authorizer

ACCEPT_SECONDS: Final = 60.0
"""For a message to be accepted. Some servers accept it only after they have processed it."""
MOST_SENDING: Final = 128
"""Messages in flight, each with its own connection. Others wait."""
_FLUSH_SECONDS: Final = 0.5
_MOST_URL: Final = 4096


@final
class SseChannel(Channel):
    """A channel to a server of the first revision."""

    handshake_only = True

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
        self._parser = SseParser(limits.frame_bytes)
        self._post_url = ""
        self._sending, self._others = Tasks(), Tasks()
        self._free = asyncio.Semaphore(MOST_SENDING)
        self._unsent: dict[Id | None, asyncio.Task[None]] = {}
        self._initialized = asyncio.Event()
        self._initialized.set()
        self._closed = False
        self._closing = asyncio.Lock()

    # -- called by the session

    async def open(self) -> None:
        try:
            response = await self._endpoint.send("GET", [("Accept", EVENT_STREAM)])
            if response.status != 200 or media_type(response) != EVENT_STREAM:
                refuse(await read_refusal(response))
            first = await self._read_post_url(response)
        except HttpRefused as refused:
            what = f"{refused.what}: there is no MCP server of any revision at this URL; is its path right?"
            raise ConnectError(what, self.label) from refused
        except EventTooLarge as problem:
            raise ConnectError(f"it sent {problem}", self.label) from None
        except ConnectError as problem:
            problem.at(self.label)
            raise
        self.events.note("it speaks only the HTTP+SSE of 2024-11-05, which later revisions deprecate")
        self._others.start(self._read(response, first))

    def send(self, frame: bytes, info: FrameInfo) -> None:
        if self._closed or not self._post_url:
            if info.id is not None:
                self.events.on_failure(info.id, ConnectionLost("the connection is closed", unsent=True))
            return
        task = self._sending.start(self._send(frame, info, self._post_url))
        if info.id is not None:
            self._unsent[info.id] = task

    def cancel(self, id: Id, frame: bytes) -> None:
        """A request that was not sent yet is dropped without a notification."""
        task = self._unsent.pop(id, None)
        if task is None:
            super().cancel(id, frame)
        else:
            task.cancel()

    def speak(self, revision: Revision) -> None:  # noqa: ARG002 - no header names it
        self._initialized.clear()

    async def close(self) -> None:
        self._closed = True
        async with self._closing:
            try:
                await self._sending.wait(_FLUSH_SECONDS)
                await self._sending.end()
                await self._others.end()
            finally:
                await self._endpoint.close(self.events.note)

    # -- the stream

    async def _read_post_url(self, response: HttpResponse) -> list[bytes]:
        """Wait for the URL to POST to. Returns the messages that came right after it."""
        try:
            async for chunk in response:
                events = self._parser.feed(chunk)
                for n, event in enumerate(events):
                    if event.kind == "endpoint":
                        self._post_url = self._resolve(event.data)
                        return [later.data for later in events[n + 1 :] if later.kind == "message"]
            raise ConnectError("its stream ended before it said where to send to", self.label)
        except BaseException:
            response.close()
            raise

    def _resolve(self, data: bytes) -> str:
        """The URL to POST to. It must have the origin of the stream: else a server could have us POST anywhere."""
        if len(data) > _MOST_URL:
            raise ConnectError("the URL that it gives to send to is too long", self.label)
        try:
            url = urljoin(self._endpoint.current_url, data.decode("utf-8", "replace").strip())
        except ValueError as problem:
            raise ConnectError(f"what it gives to send to is no URL ({problem})", self.label) from None
        origin = parse_url(url).origin
        if origin != self._endpoint.origin:
            what = f"it wants messages sent to {origin}, which is another origin than its own"
            raise ConnectError(f"{what}; that is not done", self.label)
        return url

    async def _read(self, response: HttpResponse, first: list[bytes]) -> None:
        what = "it ended the stream"
        try:
            for frame in first:
                self.events.on_frame(frame)
            async for chunk in response:
                for event in self._parser.feed(chunk):
                    if event.kind == "message":
                        self.events.on_frame(event.data)
        except ExchangeBroken as problem:
            what = problem.what
        except EventTooLarge as problem:
            what = f"it sent {problem}"
        finally:
            response.close()
        self._post_url = ""
        if not self._closed:
            self.events.on_lost(ConnectionLost(what))

    # -- messages of ours

    async def _send(self, frame: bytes, info: FrameInfo, url: str) -> None:
        confirms = info.method == "notifications/initialized"
        problem: ClientError | None = None
        try:
            if not confirms:
                await self._initialized.wait()
            problem = await self._post(frame, info, url)
        except Exception as failed:  # the caller must get an answer, whatever it is
            problem = ClientError(f"the request failed ({failed!r})")
        finally:
            self._unsent.pop(info.id, None)
            if confirms:
                self._initialized.set()
        if problem is None or self._closed:
            return
        if info.id is not None:
            self.events.on_failure(info.id, problem)
        else:
            self.events.note(f"{info.method} could not be delivered: {problem.what}")

    async def _post(self, frame: bytes, info: FrameInfo, url: str) -> ClientError | None:
        """Send a message, and return the failure if there is one.

        A response of ours does not wait for a free place: a request in flight may wait for it. Nor does a cancellation.
        """
        if info.method in ("response", "notifications/cancelled"):
            return await self._post_now(frame, url)
        async with self._free:
            self._unsent.pop(info.id, None)
            return await self._post_now(frame, url)

    async def _post_now(self, frame: bytes, url: str) -> ClientError | None:
        try:
            response = await self._endpoint.send("POST", POST_HEADERS, frame, url=url, seconds=ACCEPT_SECONDS)
            if not 200 <= response.status < 300:
                refuse(await read_refusal(response))
            self._others.start(drain(response))
        except ClientError as problem:
            return self._endpoint.explain(problem)
        return None
