"""Streams of server-sent events, and HTTP+SSE, the transport of 2024-11-05.

In HTTP+SSE one stream carries all that the server sends, and names a URL to POST to.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Final, final
from urllib.parse import urljoin

from msgspec import Struct

from longshore.backoff import Backoff
from longshore.client.channel import Channel, ChannelEvents, FrameInfo, TransportOptions
from longshore.client.mcp_endpoint import (
    EVENT_STREAM,
    MOST_REQUESTS,
    POST_HEADERS,
    McpEndpoint,
    media_type,
    read_refusal,
    refuse,
)
from longshore.client.tasks import Tasks
from longshore.errors import ClientError, ConnectError, ConnectionLost, HttpRefused
from longshore.http_client.response import ExchangeBroken, HttpResponse
from longshore.http_client.urls import parse_url
from longshore.wire.messages import Id

ACCEPT_SECONDS: Final = 60.0
"""For a message to be accepted. Some servers accept it only after they have processed it."""
_FLUSH_SECONDS: Final = 0.5
_END_SECONDS: Final = 1.0
"""For a stream to end after the last message. Then its connection can be reused."""
_MOST_URL: Final = 4096
_BACKOFF: Final = Backoff(first=0.25, most=30.0)
_LEAST_RETRY: Final = 0.05
"""A server that asks to be asked again at once is asked at most twenty times a second."""
_MOST_RETRY: Final = 300.0
_MOST_ID: Final = 4096
"""A longer id would not fit into a header."""
_MOST_DIGITS: Final = 9


class EventTooLarge(ValueError):
    """An event is larger than a message may be."""


class SseEvent(Struct, frozen=True):
    """One event with data. `kind` is "message" unless the server says otherwise."""

    data: bytes
    kind: str = "message"


@final
class SseParser:
    """Parses the events of one stream, however the bytes are split. `limit` bounds one event.

    A stream may outlive its connection: `restart` begins the next one, which the server continues after `last_id`.
    """

    def __init__(self, limit: int) -> None:
        self.last_id = ""
        """The id of the last whole event that had one, or of an event without data."""
        self.failures = 0
        """Connections in a row that brought nothing."""
        self.retry: float | None = None
        """Seconds after which the server wants to be asked again."""
        self._limit = limit
        self.restart()

    def restart(self) -> None:
        """Forget an event that was cut off."""
        self._part: list[bytes] = []
        self._data: list[bytes] = []
        self._kind = ""
        self._id: str | None = None
        self._size = self._whole = 0
        """Bytes of the event so far, and those of them that are whole lines."""
        self._skip_newline = False
        self._first = True

    def delay(self) -> float:
        """Seconds before the next connection: what the server asks for, with back-off after failures."""
        back_off = _BACKOFF.pause(self.failures + 1)
        if self.retry is None:
            return back_off
        retry = min(_MOST_RETRY, max(_LEAST_RETRY, self.retry))
        return retry if not self.failures else max(retry, back_off)

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that are complete now. Raises EventTooLarge."""
        if not data:
            return []
        if self._skip_newline:
            self._skip_newline = False
            data = data.removeprefix(b"\n")
        found: list[SseEvent] = []
        for line in data.splitlines(keepends=True):
            self._size += len(line)
            if self._size > self._limit:
                self.last_id = self.last_id if self._id is None else self._id  # resume after it
                raise EventTooLarge(f"an event of more than {self._limit:,} bytes")
            self._part.append(line)
            if line[-1] not in b"\r\n":
                return found  # the last line, incomplete
            self._add_line(b"".join(self._part).rstrip(b"\r\n"), found)
            self._part.clear()
            self._whole = self._size
        self._skip_newline = data[-1:] == b"\r"
        return found

    def _add_line(self, line: bytes, found: list[SseEvent]) -> None:
        if self._first:
            self._first = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            self._dispatch(found)
            return
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if name == b"data":
            self._data.append(value)
            return
        text = value.decode("utf-8", "replace")
        if not name:
            self._size = self._whole  # a comment: there may be any number of them
        elif name == b"event":
            self._kind = text
        elif name == b"id" and len(text) <= _MOST_ID and (text.isprintable() or not text):
            self._id = text
        elif name == b"retry" and len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit():
            self.retry = int(text) / 1000

    def _dispatch(self, found: list[SseEvent]) -> None:
        if self._id is not None:
            self.last_id = self._id
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        if data:
            found.append(SseEvent(data, self._kind or "message"))
        self._data = []
        self._kind, self._id, self._size = "", None, 0


async def drain(response: HttpResponse) -> None:
    """Read to the end for a limited time, so that the connection can be reused; else close it."""
    try:
        async with asyncio.timeout(_END_SECONDS):
            async for _ in response:
                pass
    except (TimeoutError, ExchangeBroken):
        pass
    finally:
        response.close()


@final
class SseChannel(Channel):
    """A channel to a server of the first revision."""

    handshake_only = True

    def __init__(self, url: str, events: ChannelEvents, options: TransportOptions) -> None:
        super().__init__(events)
        self._endpoint = McpEndpoint(url, options, events.on_login)
        self.label = self._endpoint.label
        self._parser = SseParser(options.limits.frame_bytes)
        self._post_url = ""
        self._sending, self._others = Tasks(), Tasks()
        self._free = asyncio.Semaphore(MOST_REQUESTS)
        self._queued: dict[Id, asyncio.Task[None]] = {}
        """Requests that wait to be sent."""
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
            raise ConnectError(what) from refused
        except EventTooLarge as problem:
            raise ConnectError(f"it sent {problem}") from None
        self.events.note("it speaks only the HTTP+SSE of 2024-11-05, which later revisions deprecate")
        self._others.start(self._read(response, first))

    def send(self, frame: bytes, info: FrameInfo) -> None:
        if not self._closed and self._post_url:
            task = self._sending.start(self._send(frame, info, self._post_url))
            if info.id is not None:
                self._queued[info.id] = task
        elif info.id is not None:
            self.events.on_failure(info.id, ConnectionLost("the connection is closed", unsent=True))

    def cancel(self, id: Id, frame: bytes) -> None:
        """A request that was not sent yet is dropped without a notification."""
        task = self._queued.pop(id, None)
        if task is None:
            super().cancel(id, frame)
        else:
            task.cancel()

    async def ready(self) -> None:
        """Wait until the server has the handshake's confirmation: each message has its own connection."""
        await self._sending.wait(ACCEPT_SECONDS)

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
            raise ConnectError("its stream ended before it said where to send to")
        except BaseException:
            response.close()
            raise

    def _resolve(self, data: bytes) -> str:
        """The URL to POST to. It must have the origin of the stream: else a server could have us POST anywhere."""
        if len(data) > _MOST_URL:
            raise ConnectError("the URL that it gives to send to is too long")
        try:
            url = urljoin(self._endpoint.current_url, data.decode("utf-8", "replace").strip())
        except ValueError as problem:
            raise ConnectError(f"what it gives to send to is no URL ({problem})") from None
        origin = parse_url(url).origin
        if origin != self._endpoint.origin:
            what = f"it wants messages sent to {origin}, which is another origin than its own"
            raise ConnectError(f"{what}; that is not done")
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
        """Send a message.

        An answer does not wait for requests to end: one of them may need it. Nor does a cancellation.
        """
        at_once = info.method in ("response", "notifications/cancelled")
        try:
            async with nullcontext() if at_once else self._free:
                if info.id is not None:
                    self._queued.pop(info.id, None)
                response = await self._endpoint.send("POST", POST_HEADERS, frame, url=url, seconds=ACCEPT_SECONDS)
                if not 200 <= response.status < 300:
                    refuse(await read_refusal(response))
                self._others.start(drain(response))
                return
        except ClientError as failed:
            problem = self._endpoint.explain(failed)
        except Exception as failed:  # the caller must get an answer in any case
            problem = ClientError(f"the request failed ({failed!r})")
        if info.id is not None:
            self.events.on_failure(info.id, problem)
        elif not self._closed:
            self.events.note(f"{info.method} could not be delivered: {problem.what}")
