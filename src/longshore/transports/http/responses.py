"""HTTP responses as ASGI messages: whole ones, and the events of a stream."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
HeaderPairs = tuple[tuple[bytes, bytes], ...]

JSON_TYPE: Final = (b"content-type", b"application/json")
STREAM_HEADERS: Final[HeaderPairs] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
KEEP_ALIVE: Final = b":\r\n\r\n"


async def reply(
    send: Send, status: int, body: bytes = b"", headers: Iterable[tuple[bytes, bytes]] = (JSON_TYPE,)
) -> None:
    """A whole response."""
    if body:
        head = [*headers, (b"content-length", b"%d" % len(body))]
    else:
        head = [header for header in headers if header is not JSON_TYPE]
        if status != 204:  # which has no body, and no length
            head.append((b"content-length", b"0"))
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


def event(data: bytes, id: str = "") -> bytes:
    """One event of a stream. A frame has no newline, so it is one line of data."""
    if id:
        return b"id: %s\r\nevent: message\r\ndata: %s\r\n\r\n" % (id.encode(), data)
    return b"event: message\r\ndata: %s\r\n\r\n" % data


def priming(id: str, retry: float) -> bytes:
    """The first event of a stream that can be resumed: it has only its id."""
    return b"id: %s\r\nretry: %d\r\ndata: \r\n\r\n" % (id.encode(), int(retry * 1000))


def retry_after(seconds: float) -> bytes:
    """The event with the time to reconnect, before the connection is closed."""
    return b"retry: %d\r\n\r\n" % int(seconds * 1000)


async def start_stream(send: Send, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *headers]})


async def write(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def finish(send: Send) -> None:
    await send({"type": "http.response.body", "body": b""})
