"""One HTTP/1.1 connection to an untrusted server: one exchange at a time, everything bounded.

| the server sends | then |
|---|---|
| a head without end | the connection is aborted at `HEAD_BYTES` |
| chunks with more framing than data | aborted at `HEAD_BYTES` plus sixteen times the body |
| a response without a request, or two | the connection is closed and never reused |
| two lengths, a wrong length, no HTTP | aborted |
| a body without a length | it ends with the connection |
| another protocol, an encoding other than gzip | aborted: it was not requested |
| gzip that expands without end | `HttpResponse` yields it in small chunks, and the reader stops at its own limit |
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from select import POLLIN, poll
from typing import Any, Final, cast, final

import httptools
from msgspec import Struct

from longshore.http_client.response import ExchangeBroken, Headers, HttpResponse
from longshore.http_client.urls import Url

HEAD_BYTES: Final = 64 << 10
"""The head of a response, with the informational ones before it."""
_OVERHEAD: Final = 16
"""Bytes of framing for each byte of a body. A chunk of one byte has five."""
_JOINED: Final = 64 << 10
"""Up to this size head and body are one write: a copy is cheaper than a second packet."""
_KEEP_ALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}
"""Seconds, and tries. A stream may be silent for hours: this detects a server that vanished, and keeps routers from
dropping the connection. Not every system has each option."""
_ENCODINGS: Final = {"identity": False, "gzip": True, "x-gzip": True}


class Proxy(Struct, frozen=True):
    """A proxy that connections lead through."""

    host: str
    port: int
    authorization: str = ""

    @property
    def head(self) -> bytes:
        """The header lines that are for the proxy."""
        return f"Proxy-Authorization: {self.authorization}\r\n".encode() if self.authorization else b""


@final
class HttpConnection(asyncio.Protocol):
    """Sends requests and parses responses. `made`, `freed` and `lost` report its state to the pool."""

    def __init__(
        self,
        url: Url,
        made: Callable[[HttpConnection], None],
        freed: Callable[[HttpConnection], None],
        lost: Callable[[HttpConnection], None],
        proxy: Proxy | None = None,
    ) -> None:
        self.url = url
        self.idle_since = 0.0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._made, self._freed, self._lost = made, freed, lost
        self._proxy = proxy
        self.peer = ""
        """The IP address of the server; empty if a proxy is in between."""
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._response: HttpResponse | None = None
        self._reset()

    def _reset(self) -> None:
        self._headers: Headers = []
        self._fed = 0
        self._body = 0
        self._in_head = True
        self._whole = False
        self._surplus = False
        self._until_close = False
        self._reusable = False
        self._problem = ""

    # -- called by the pool and by the response

    @property
    def is_usable(self) -> bool:
        """Whether a request can be sent. Readable data means that the server closed it, or sent an unasked response.

        The socket is polled because the event loop may have been blocked by its owner for long.
        """
        transport = self._transport
        if transport is None or transport.is_closing() or self._response is not None:
            return False
        look = poll()
        look.register(transport.get_extra_info("socket").fileno(), POLLIN)
        return not look.poll(0)

    def send(self, head: bytes, body: bytes) -> HttpResponse:
        """Send a request."""
        transport = self._transport
        assert transport is not None and self._response is None
        self._reset()
        self._parser = httptools.HttpResponseParser(self)
        self._response = response = HttpResponse(self)
        if self._proxy is not None and self.url.scheme == "http":
            head = self._for_proxy(head, self._proxy)
        if len(body) <= _JOINED:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        return response

    def _for_proxy(self, head: bytes, proxy: Proxy) -> bytes:
        """The head with the whole URL in its first line, and the header lines for the proxy."""
        method, _, rest = head.partition(b" ")
        line, _, headers = rest.partition(b"\r\n")
        return b"%s %s%s\r\n%s%s" % (method, self.url.origin.encode(), line, proxy.head, headers)

    def pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # -- called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        _keep_alive(transport.get_extra_info("socket"))
        if self._proxy is None:
            name = cast("tuple[Any, ...] | None", transport.get_extra_info("peername"))
            self.peer = str(name[0]) if isinstance(name, tuple) else ""
        self._made(self)

    def data_received(self, data: bytes) -> None:
        response, parser = self._response, self._parser
        if response is None or parser is None:
            self.abort()
            return
        response.started = True
        self._fed += len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._problem = "it wants to change to another protocol, which was not requested"
        except httptools.HttpParserError as problem:
            if not self._whole:
                self._problem = self._problem or f"its answer is no HTTP ({problem})"
            self._surplus = True
        if not self._problem and self._fed - self._body > HEAD_BYTES + _OVERHEAD * self._body:
            self._problem = f"its answer has more than {HEAD_BYTES:,} bytes beside the body"
        if self._problem:
            self._fail(self._problem)
        elif self._whole:
            self._finish(response)

    def eof_received(self) -> None:
        response = self._response
        if response is not None and self._until_close and not self._problem:
            self._response = None
            response.end()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - it adds nothing to what is known
        if self._response is not None:
            when = "in the middle of its answer" if self._response.started else "without an answer"
            self._fail(f"it closed the connection {when}")
        self._transport = None
        if not self.closed.done():
            self.closed.set_result(None)
        self._lost(self)

    def _fail(self, what: str) -> None:
        response, self._response = self._response, None
        if response is not None:
            response.fail(ExchangeBroken(what))
        self.abort()

    def _finish(self, response: HttpResponse) -> None:
        self._response = None
        response.end()
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._surplus or not self._reusable or transport.get_write_buffer_size():
            transport.abort()  # the last: it answered early, and the rest of the request would still be sent
        else:
            transport.resume_reading()
            self._freed(self)

    # -- called by the parser

    def on_message_begin(self) -> None:
        if self._whole:
            self._surplus = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head and not self._surplus:  # trailers are not used
            self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")))

    def on_headers_complete(self) -> None:
        parser, response = self._parser, self._response
        if parser is None or response is None or self._surplus or self._problem:
            return
        status = parser.get_status_code()
        if 100 <= status < 200:
            return
        self._in_head = False
        named = dict(reversed(self._headers))
        encoding = named.get("content-encoding", "identity").lower()
        compressed = _ENCODINGS.get(encoding)
        if compressed is None:
            self._problem = f"its answer is encoded as {encoding[:20]!r}, which was not requested"
            return
        self._until_close = (
            status not in (204, 304) and "content-length" not in named and "transfer-encoding" not in named
        )
        self._reusable = parser.should_keep_alive()
        response.start(status, self._headers, compressed=compressed)

    def on_body(self, data: bytes) -> None:
        if self._response is not None and not self._surplus and not self._problem:
            self._body += len(data)
            self._response.add(data)

    def on_message_complete(self) -> None:
        if self._in_head:  # an informational response: the final one follows
            self._headers = []
        else:
            self._whole = True


def _keep_alive(wire: Any) -> None:
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        option = getattr(socket, name, None)
        if option is not None:
            wire.setsockopt(socket.IPPROTO_TCP, option, value)
