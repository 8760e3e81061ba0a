"""Streams of server-sent events: parsing one connection, and resuming a stream over several.

A stream of the handshake era outlives its connection: the server may close it to be asked again later, or it may
break. Either way it is resumed after the last event that had an id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, final

from msgspec import Struct

from longshore.client.mcp_endpoint import EVENT_STREAM, answered_ids, media_type, read_refusal, refuse
from longshore.errors import ClientError, ConnectionLost, HttpRefused
from longshore.http_client.response import ExchangeBroken, HttpResponse, Unreachable
from longshore.retry import Backoff
from longshore.wire.messages import Id

RESUME_TRIES: Final = 6
"""Failures in a row before a request's stream is given up, or an unreachable server: about 15 s. A server that answers
is asked for as long as the session lasts."""
_END_SECONDS: Final = 1.0
"""For a stream to end after the last message. Then its connection can be reused."""
_TRANSIENT: Final = frozenset((409, 429, 500, 502, 503, 504))
_NO_STREAM: Final = frozenset((404, 405))
"""How servers say that they have no stream for a session."""
_BACKOFF: Final = Backoff(first=0.25, most=30.0)
_LEAST_RETRY: Final = 0.05
"""A server that asks to be asked again at once is asked at most twenty times a second."""
_MOST_RETRY: Final = 300.0
_BOM: Final = b"\xef\xbb\xbf"
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
    """Parses the events of one connection, however the bytes are split. `limit` bounds one event."""

    def __init__(self, limit: int) -> None:
        self.last_id: str | None = None
        """The id of the last whole event that had one, or of an event without data."""
        self.retry: float | None = None
        """Seconds after which the server wants to be asked again."""
        self._limit = limit
        self._part: list[bytes] = []
        self._size = 0
        self._whole = 0
        """The part of `_size` that is whole lines."""
        self._skip_newline = False
        self._first = True
        self._data: list[bytes] = []
        self._kind = ""
        self._id: str | None = None

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
            if line[-1] not in b"\r\n":
                self._part.append(line)
                return found  # the last line, incomplete
            self._add_line(self._join(line.rstrip(b"\r\n")), found)
            self._whole = self._size
        self._skip_newline = data[-1:] == b"\r"
        return found

    def _join(self, line: bytes) -> bytes:
        if self._part:
            line = b"".join((*self._part, line))
            self._part.clear()
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        return line

    def _add_line(self, line: bytes, found: list[SseEvent]) -> None:
        if not line:
            self._dispatch(found)
            return
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if name == b"data":
            self._data.append(value)
        elif not name:
            self._size = self._whole  # a comment: there may be any number of them
        else:
            self._add_field(name, value.decode("utf-8", "replace"))

    def _add_field(self, name: bytes, text: str) -> None:
        if name == b"event":
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


@final
class StreamCursor:
    """How far a stream was read: the `last_id` to resume after, `failures` since the last byte, whether it `opened`."""

    def __init__(self) -> None:
        self.last_id = ""
        self.failures = 0
        self.opened = False
        self._retry: float | None = None

    def advance(self, parser: SseParser) -> None:
        if parser.last_id is not None:
            self.last_id = parser.last_id
        if parser.retry is not None:
            self._retry = parser.retry

    def delay(self) -> float:
        """Seconds before the next connection: what the server asks for, with back-off after failures."""
        back_off = _BACKOFF.pause(self.failures + 1)
        if self._retry is None:
            return back_off
        retry = min(_MOST_RETRY, max(_LEAST_RETRY, self._retry))
        return retry if not self.failures else max(retry, back_off)


@final
class EventStreamReader:
    """Reads the streams of one channel, reconnecting as necessary.

    `connect` requests a stream after an event id, or from now on. `receive` gets each message, with the id of the
    request whose stream it came on, or None.
    """

    def __init__(
        self,
        connect: Callable[[str], Awaitable[HttpResponse]],
        receive: Callable[[bytes, Id | None], None],
        note: Callable[[str], None],
        limit: int,
    ) -> None:
        self._connect = connect
        self._receive = receive
        self._note = note
        self._limit = limit

    async def read_answer(self, response: HttpResponse, id: Id, *, resumable: bool) -> None:
        """Read until the answer to a request has come. Raises ConnectionLost, EventTooLarge."""
        cursor = StreamCursor()
        while not await self._read(response, cursor, id):
            if not resumable or not cursor.last_id:
                raise ConnectionLost("the stream ended before the answer came")
            if cursor.failures >= RESUME_TRIES:
                raise ConnectionLost(f"the stream ended before the answer came, {RESUME_TRIES} times without a message")
            response = await self._resume(cursor)

    async def _resume(self, cursor: StreamCursor) -> HttpResponse:
        while True:
            await asyncio.sleep(cursor.delay())
            try:
                return await self._open(cursor)
            except (HttpRefused, Unreachable, ExchangeBroken) as problem:
                if _is_final(problem) or cursor.failures >= RESUME_TRIES:
                    what = f"the stream broke before the answer came, and could not be resumed ({problem.what})"
                    raise ConnectionLost(what) from problem

    async def listen(self, opened: Callable[[], None]) -> None:
        """Read the messages that belong to no request, until cancelled. Returns if the server has no such stream.

        Calls `opened` when there is one. Raises Unreachable if the server has been down for long.
        """
        cursor, unreachable = StreamCursor(), 0
        while True:
            try:
                response = await self._open(cursor)
                unreachable = 0
                opened()
                await self._read(response, cursor, None)
            except Unreachable:
                unreachable += 1
                if unreachable >= RESUME_TRIES:
                    raise
            except (HttpRefused, ExchangeBroken) as problem:
                unreachable = 0
                if self._is_end(cursor, problem):
                    return
            except EventTooLarge as problem:
                cursor.failures += 1
                self._note(f"the stream of the session held {problem}, which was skipped")
            await asyncio.sleep(cursor.delay())

    def _is_end(self, cursor: StreamCursor, problem: ClientError) -> bool:
        """Whether the server refuses the stream of the session for good."""
        if isinstance(problem, HttpRefused) and _is_final(problem):
            if cursor.opened or problem.status not in _NO_STREAM:
                self._note(f"the stream of the session has ended ({problem.what})")
            return True
        if cursor.failures == RESUME_TRIES:
            self._note(f"the stream of the session is not available at the moment ({problem.what})")
        return False

    async def _open(self, cursor: StreamCursor) -> HttpResponse:
        """The stream after the cursor. Raises HttpRefused, Unreachable, ExchangeBroken."""
        try:
            response = await self._connect(cursor.last_id)
            if response.status != 200 or media_type(response) != EVENT_STREAM:
                refuse(await read_refusal(response))
        except (HttpRefused, Unreachable, ExchangeBroken):
            cursor.failures += 1
            raise
        cursor.opened = True
        return response

    async def _read(self, response: HttpResponse, cursor: StreamCursor, id: Id | None) -> bool:
        """Read one connection to its end. True: the answer to the request has come."""
        parser = SseParser(self._limit)
        received = answered = False
        try:
            async for chunk in response:
                received = True  # a comment or an id alone counts too
                for event in parser.feed(chunk):
                    if event.kind == "message":
                        answered = answered or (id is not None and id in answered_ids(event.data))
                        self._receive(event.data, id)
                if answered:
                    await drain(response)
                    return True
        except ExchangeBroken:
            pass
        finally:
            cursor.advance(parser)
            response.close()
        cursor.failures = 0 if received else cursor.failures + 1
        return False


async def drain(response: HttpResponse) -> None:
    """Read to the end, for a moment, so that the connection can be reused; else close it."""
    try:
        async with asyncio.timeout(_END_SECONDS):
            async for _ in response:
                pass
    except (TimeoutError, ExchangeBroken):
        pass
    finally:
        response.close()


def _is_final(problem: ClientError) -> bool:
    """Whether another request would be refused too."""
    return isinstance(problem, HttpRefused) and problem.status not in _TRANSIENT
