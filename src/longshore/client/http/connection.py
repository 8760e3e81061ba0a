"""One HTTP/1.1 connection to a server that may be anybody: one exchange at a time, everything bounded.

| what the server does | what becomes of it |
|---|---|
| a head without end | broken off at `HEAD_BYTES` |
| chunks that are nothing but overhead | broken off at `HEAD_BYTES` and sixteen times the body |
| an answer that nobody asked for, or more than one | the connection is closed and never used again |
| two lengths, a wrong length, no HTTP | broken off |
| a body without length | it ends with the connection |
| another protocol, a compressed body | broken off: neither was asked for |
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from select import POLLIN, poll
from typing import Any, Final, cast, final

import httptools

from longshore.client.http.address import Address
from longshore.client.http.exchange import Broken, Headers, Streaming, find

HEAD_BYTES: Final = 64 << 10
"""The head of an answer, informational ones before it included."""
_OVERHEAD: Final = 16
"""Bytes beside each byte of a body. A chunk of one byte has five."""
_JOINED: Final = 64 << 10
"""Up to here head and body are one write: a copy is cheaper than a second packet."""
_KEEP_ALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}
"""Seconds, and tries. A stream may be silent for hours: a server that vanished meanwhile is noticed, and a router in
between does not forget the connection. Not every system has each of them."""


@final
class Connection(asyncio.Protocol):
    """`made` and `freed` and `lost` tell the pool what it can do with it."""

    def __init__(
        self,
        address: Address,
        made: Callable[[Connection], None],
        freed: Callable[[Connection], None],
        lost: Callable[[Connection], None],
    ) -> None:
        self.address = address
        self.since = 0.0
        """When it was last of use."""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._made, self._freed, self._lost = made, freed, lost
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._exchange: Streaming | None = None
        self._reset()

    def _reset(self) -> None:
        self._headers: Headers = []
        self._head_size = 0
        self._fed = 0
        self._body = 0
        self._in_head = True
        self._whole = False
        self._surplus = False
        self._until_close = False
        self._stays = False
        self._problem = ""

    # -- the pool's side

    @property
    def is_usable(self) -> bool:
        """Whether a request can be sent. If anything can be read now, it is the end, or nothing that we asked for.

        The loop may not have looked for long: a caller may have blocked it.
        """
        transport = self._transport
        if transport is None or transport.is_closing() or self._exchange is not None:
            return False
        look = poll()
        look.register(transport.get_extra_info("socket").fileno(), POLLIN)
        return not look.poll(0)

    def ask(self, head: bytes, body: bytes) -> Streaming:
        """Send a request."""
        transport = self._transport
        assert transport is not None and self._exchange is None
        self._reset()
        self._parser = httptools.HttpResponseParser(self)
        self._exchange = exchange = Streaming(self)
        if len(body) <= _JOINED:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        return exchange

    def pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # -- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        _keep_alive(transport.get_extra_info("socket"))
        self._made(self)

    def data_received(self, data: bytes) -> None:
        exchange, parser = self._exchange, self._parser
        if exchange is None or parser is None:
            self.abort()
            return
        exchange.touched = True
        self._fed += len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._problem = "it wants to change to another protocol, which nobody asked for"
        except httptools.HttpParserError as problem:
            if not self._whole:
                self._problem = self._problem or f"its answer is no HTTP ({problem})"
            self._surplus = True
        if not self._problem and self._fed - self._body > HEAD_BYTES + _OVERHEAD * self._body:
            self._problem = f"its answer has more than {HEAD_BYTES:,} bytes beside the body"
        if self._problem:
            self._fail(self._problem)
        elif self._whole:
            self._finish(exchange)

    def eof_received(self) -> None:
        exchange = self._exchange
        if exchange is not None and self._until_close and not self._problem:
            self._exchange = None
            exchange.end()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - it says no more than we know
        if self._exchange is not None:
            when = "in the middle of its answer" if self._exchange.touched else "without an answer"
            self._fail(f"it closed the connection {when}")
        self._transport = None
        if not self.closed.done():
            self.closed.set_result(None)
        self._lost(self)

    def _fail(self, what: str) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.fail(Broken(what))
        self.abort()

    def _finish(self, exchange: Streaming) -> None:
        self._exchange = None
        exchange.end()
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._surplus or not self._stays or transport.get_write_buffer_size():
            transport.abort()  # at the last: it answered without hearing us out, and the rest would still be sent
        else:
            transport.resume_reading()
            self._freed(self)

    # -- the parser's side

    def on_message_begin(self) -> None:
        if self._whole:
            self._surplus = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head or self._surplus:
            return  # trailers: nothing of ours reads them
        self._head_size += len(name) + len(value) + 4
        if self._head_size > HEAD_BYTES:
            self._problem = f"the head of its answer is longer than {HEAD_BYTES:,} bytes"
            return
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")))

    def on_headers_complete(self) -> None:
        parser, exchange = self._parser, self._exchange
        if parser is None or exchange is None or self._surplus or self._problem:
            return
        status = parser.get_status_code()
        if 100 <= status < 200:
            return
        self._in_head = False
        coding = (find(self._headers, "content-encoding") or "identity").lower()
        if coding != "identity":
            self._problem = f"its answer is compressed ({coding[:20]}), which nobody asked for"
            return
        named = {name for name, _ in self._headers}
        self._until_close = status not in (204, 304) and not named & {"content-length", "transfer-encoding"}
        self._stays = parser.should_keep_alive()
        exchange.start(status, self._headers)

    def on_body(self, data: bytes) -> None:
        if self._exchange is not None and not self._surplus and not self._problem:
            self._body += len(data)
            self._exchange.take(data)

    def on_message_complete(self) -> None:
        if self._in_head:  # an informational answer: the real one follows
            self._headers = []
        else:
            self._whole = True


def _keep_alive(wire: Any) -> None:
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        option = getattr(socket, name, None)
        if option is not None:
            wire.setsockopt(socket.IPPROTO_TCP, option, value)
