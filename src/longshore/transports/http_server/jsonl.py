"""JSON-RPC lines on the HTTP port, for loopback peers of dialects that ask for it.

A connection that begins with `{` or `[` is no HTTP. It speaks lines, as stdio does, until one of them is not JSON: that
is answered with an error, and the connection ends. There are no headers and so no tokens: a server that requires tokens
does not offer lines, and where tokens are optional, lines come from callers without one (ADR 0025).
"""

from __future__ import annotations

from asyncio import BaseTransport, Transport
from collections import deque
from typing import TYPE_CHECKING, Any, cast, final

from longshore.protocol.peer import Principal
from longshore.server.engine import Engine
from longshore.server.link import Link
from longshore.wire.codec import PARSE_ERROR, ErrorFrame
from longshore.wire.framing import Frame, Framer, TooLong

if TYPE_CHECKING:
    from longshore.transports.http_server.listener import Listener


@final
class JsonlConnection(Link):
    """One connection that speaks lines: the protocol of its transport, and the link of its peer."""

    __slots__ = (
        "_ended",
        "_engine",
        "_framer",
        "_frames",
        "_idle_since",
        "_listener",
        "_progress",
        "_received",
        "_sent",
        "_since",
        "_taken",
        "_transport",
        "_waiting",
    )

    transport = "lines"

    def __init__(self, listener: Listener, engine: Engine, transport: Transport, principal: Principal) -> None:
        super().__init__(principal=principal)
        self._listener = listener
        self._engine = engine
        self._transport = transport
        self._framer = Framer(engine.limits.frame_bytes)
        self._frames: deque[Frame] = deque()
        peer = transport.get_extra_info("peername")
        self.caller = str(peer[0]), peer
        self._ended = False
        self._sent = 0
        self._waiting = 0
        """The bytes of requests that wait for earlier ones."""
        self._taken = 0
        self._since = self._idle_since = listener.now
        self._received = 0
        self._progress = (0, 0)
        """The bytes that were received and sent at the last check."""
        transport.set_write_buffer_limits(engine.limits.output_bytes)

    def connection_made(self, transport: BaseTransport) -> None:
        self._transport = cast("Transport", transport)

    # -- lines in

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if not self._ended:
            self._take(self._framer.feed(data))

    def eof_received(self) -> bool:
        """Handle the end of the peer's input. Calls in flight may finish, for as long as on stdio."""
        self._take(self._framer.close())
        if not self._ended:
            self._listener.loop.call_later(self._engine.limits.eof_grace_seconds, self._give_up)
            self.retire()
        return True

    def _take(self, frames: list[Frame]) -> None:
        self._frames.extend(frames)
        while self._frames and not (self.congested or self._is_full or self._ended):
            frame = self._frames.popleft()
            if isinstance(frame, TooLong):
                reply = self._engine.frames.too_long(frame, self)
            else:
                assert isinstance(frame, bytes)
                if self._engine.tap.watchers:
                    self._engine.tap.show("in", self, frame)
                reply = self._engine.frames.handle(frame, self)
            if isinstance(reply, ErrorFrame) and reply.code == PARSE_ERROR:
                self._break_off(reply)
            elif reply is not None:
                self.send(reply)
            if isinstance(frame, TooLong):
                self.retire()

    def _break_off(self, why: bytes) -> None:
        self.send(why)
        self._ended = True
        self.session.drop_queue()
        self._engine.detach(self)
        self._transport.close()

    # -- lines out

    def send(self, frame: bytes) -> None:
        if not self._transport.is_closing():
            if self._engine.tap.watchers:
                self._engine.tap.show("out", self, frame)
            self._sent += len(frame) + 1
            self._transport.write(frame + b"\n")

    def answer(self, frame: bytes | None) -> None:
        if isinstance(frame, ErrorFrame) and frame.code == PARSE_ERROR:  # to a line that waited for earlier ones
            self._break_off(frame)
        else:
            super().answer(frame)
            self._close_if_done()

    def pause_writing(self) -> None:
        self.congested = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self.congested = False
        self._read_on()

    @property
    def _is_full(self) -> bool:
        return self._waiting > self._engine.limits.output_bytes

    def hold_back(self, size: int) -> None:
        was_full = self._is_full
        self._waiting += size
        if self._transport.is_closing():
            return
        if self._is_full:
            self._transport.pause_reading()
        elif was_full:
            self._listener.loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        """Begin waiting calls, handle the frames that were read, and continue to read, as far as the peer reads."""
        self.session.proceed()
        self._take([])
        if self.congested or self._transport.is_closing():
            return
        self._engine.executor.start_queued()
        if not self._is_full:
            self._transport.resume_reading()

    # -- ending

    def retire(self) -> None:
        """Stop reading, and close when the calls in flight have finished."""
        self._ended = True
        self._engine.detach(self)
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self._ended and not self.session.is_busy:
            self._transport.close()

    def _give_up(self) -> None:
        grace = self._engine.limits.eof_grace_seconds
        self._engine.executor.stop_all(f"the input ended and it did not finish within {grace:g} s", self.session)
        self._transport.close()

    def cut(self) -> Any:
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's signature)
        self._ended = True
        self._listener.connections.discard(self)
        self._engine.detach(self)
        self._engine.cancel_all(self)
        self._engine.recording.session_closed(self)

    def check(self, now: float) -> bool:
        """Abort the connection of a peer that reads nothing. True: all output was read."""
        waiting = self._transport.get_write_buffer_size()
        if not waiting or self._taken != self._sent - waiting:
            self._taken, self._since = self._sent - waiting, now
        elif now - self._since >= self._engine.limits.stall_seconds:
            self._transport.abort()
        self._close_if_idle(now)
        return not waiting

    def _close_if_idle(self, now: float) -> None:
        """Close the connection of a peer without a handshake that sends no more. `nc` waits for that."""
        progress = self._received, self._sent
        if progress != self._progress or self.session.is_busy:
            self._progress, self._idle_since = progress, now
        elif now - self._idle_since >= self._engine.limits.idle_seconds and self._engine.is_bare(self.session):
            self.retire()
