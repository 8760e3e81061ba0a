"""2026-07-28 over HTTP: one POST, one answer. Nothing is kept between two of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct

from longshore.errors import Forbidden, Unavailable
from longshore.protocol.http_headers import Headers
from longshore.protocol.peer import PREFIX, is_enveloped
from longshore.protocol.revisions import LEGACY
from longshore.transports.http.gate import Denied, Gone
from longshore.transports.http.pending import Post, watch
from longshore.transports.http.responses import (
    JSON_TYPE,
    KEEP_ALIVE,
    Receive,
    Send,
    event,
    finish,
    modern_status,
    reply,
    start_stream,
    write,
)
from longshore.wire.codec import BROKEN, INTERNAL_ERROR, PARSE_ERROR, ErrorFrame, error, read
from longshore.wire.messages import Message

if TYPE_CHECKING:
    from longshore.transports.http.app import HttpApp
    from longshore.transports.http.gate import Request


async def serve(app: HttpApp, request: Request, body: bytes, receive: Receive, send: Send) -> None:
    """Answer a modern POST."""
    post, frame = begin(app, request, body)
    await go_on(app, request, post, frame, body, receive, send)


def begin(app: HttpApp, request: Request, body: bytes) -> tuple[Post, bytes | None]:
    """Have the engine deal with it. None: the answer comes later, was given to the post, or there is none."""
    headers = request.headers
    if app.guard.required:
        app.gate.forget_credentials(request)  # a call holds on to its headers
    post = Post(request.principal, app.limits)
    post.caller = request.caller
    post.headers = Headers(headers, request.twice)
    if request.only_one:
        post.accepts_stream = request.accepts_stream
        if not request.accepts_stream and headers.get(b"mcp-method") == b"subscriptions/listen":
            raise Denied(406, "subscriptions/listen is answered as text/event-stream; accept it")
    return post, app.engine.handle(body, post)


async def go_on(
    app: HttpApp, request: Request, post: Post, frame: bytes | None, body: bytes, receive: Receive, send: Send
) -> None:
    """Send what the engine said, or wait for it."""
    if frame is None:
        if post.done:
            frame = post.frame
        elif post.session.rows:
            await _serve_slowly(app, request, post, receive, send)
            return
        else:
            await _take_note(app, request, body, send)
            return
    if post.frames or not (request.accepts_json or _has_status(frame)):
        await start_stream(send, request.extra)
        await write(send, b"".join(map(event, post.take())) + event(frame or b""))
        await finish(send)
    else:
        await answer(app, request, frame, send)


async def answer(app: HttpApp, request: Request, frame: bytes | None, send: Send) -> None:
    """One JSON answer with the status that goes with it."""
    if frame is not None and frame.__class__ is bytes and not request.extra:
        head = [JSON_TYPE, (b"content-length", b"%d" % len(frame))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": frame})
        return
    if frame is None:
        frame = error(None, INTERNAL_ERROR, "the request was taken back")
    extra = request.extra
    if isinstance(frame, ErrorFrame) and isinstance(frame.cause, Forbidden):
        extra = (*extra, *app.forbidden(request, frame.cause.needed))
    if isinstance(frame, ErrorFrame) and isinstance(frame.cause, Unavailable):
        extra = (*extra, (b"retry-after", b"1"))
    await reply(send, modern_status(frame), frame, (JSON_TYPE, *extra))


def _has_status(frame: bytes | None) -> bool:
    """Whether an answer is a refusal whose status is mandated. Only JSON can have one, whatever the client accepts."""
    return frame is not None and modern_status(frame) != 200


async def _take_note(app: HttpApp, request: Request, body: bytes, send: Send) -> None:
    """A notification is accepted; a response has no place here, and neither has nothing at all."""
    message = read(body, app.limits.depth, 0)
    if not isinstance(message, Message):
        raise Denied(400, "the body is empty; it must be one JSON-RPC message", code=PARSE_ERROR)
    if message.method == "":
        raise Denied(400, "a response has nothing to answer here: 2026-07-28 servers send no requests")
    await reply(send, 202, b"", request.extra)


async def _serve_slowly(app: HttpApp, request: Request, post: Post, receive: Receive, send: Send) -> None:
    app.waiting.add(post)
    watcher = None
    try:
        while not (post.done or post.frames or post.old):
            await post.wait()
        if not post.done or post.frames:
            watcher = asyncio.get_running_loop().create_task(watch(app.engine, post, receive))
        if not (post.done or post.frames or post.gone) and request.accepts_json:
            await post.wait(app.limits.stream_after_seconds if post.accepts_stream else None)
        while not (post.done or post.gone or post.accepts_stream):
            await post.wait()
        if post.gone:
            raise Gone
        if post.done and not post.frames and (request.accepts_json or _has_status(post.frame)):
            await answer(app, request, post.frame, send)
        else:
            await _stream(app, request, post, send)
    finally:
        if watcher is not None:
            watcher.cancel()
        if not post.done:
            app.engine.hang_up(post)


async def _stream(app: HttpApp, request: Request, post: Post, send: Send) -> None:
    await start_stream(send, request.extra)
    while not post.gone:
        done = post.done
        chunk = b"".join(map(event, post.take()))
        if done and post.frame is not None:
            chunk += event(post.frame)
        if chunk:
            await write(send, chunk)
        if done:
            break
        if not post.frames and not post.done:
            await post.wait(app.limits.keep_alive_seconds)
            if not (post.frames or post.done or post.gone):
                await write(send, KEEP_ALIVE)
    if not post.gone:
        await finish(send)


_ENVELOPE = f'"{PREFIX}'.encode()
_ESCAPES = (rb"\u00", rb"\/")
"""JSON can spell the same key in other ways, but not without one of these."""
_LEGACY = frozenset(name.encode() for name in LEGACY)


class _Body(Struct):
    params: Raw = Raw(b"{}")


_read = msgspec.json.Decoder(_Body).decode


def is_modern(version: bytes | None, body: bytes) -> bool:
    """Whether a request is of the era without sessions: its header names a version that is, or it has the envelope."""
    if version is not None and version not in _LEGACY and version.strip() not in _LEGACY:
        return True
    return has_envelope(body)


def has_envelope(body: bytes) -> bool:
    """Whether a message carries the envelope. Its text may also be part of an argument, so it is looked at twice."""
    if _ENVELOPE not in body and _ESCAPES[0] not in body and _ESCAPES[1] not in body:
        return False
    try:
        return is_enveloped(_read(body).params)
    except BROKEN:
        return False
