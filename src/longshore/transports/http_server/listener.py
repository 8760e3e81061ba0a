"""The connections of one process: their shared state, and the one timer that enforces their deadlines."""

from __future__ import annotations

import socket as socket_module
from asyncio import AbstractEventLoop, BaseProtocol, Server, TimerHandle, Transport, sleep
from collections.abc import Callable
from contextvars import copy_context
from socket import socket
from ssl import SSLContext
from typing import Any, Protocol, cast, final

from longshore.addresses import is_loopback
from longshore.limits import Limits
from longshore.protocol.peer import Principal
from longshore.server.engine import Engine
from longshore.server.link import LOCAL
from longshore.telemetry.recorder import Recorder
from longshore.transports.http.uploads import Uploads
from longshore.transports.http_server.connection import Connection
from longshore.transports.process import next_tick

SWEEP_SECONDS = 1.0
"""How often every connection is looked at while one of them has a request to finish or output to take.

Shorter deadlines than four of these are looked at more often. While all connections rest, they are looked at every ten
seconds; without any there is no timer.
"""
BACKLOG = 2048
"""Connections that the kernel holds until we take them."""
_LOOK_SECONDS = 0.01


class OpenConnection(Protocol):
    """A connection, of HTTP or of JSON-RPC lines."""

    def check(self, now: float) -> bool:
        """End a connection that made no progress for too long. True: it is idle, and may be checked less often."""
        ...

    def retire(self) -> None: ...
    def cut(self) -> Any: ...


@final
class Listener:
    """Accepts connections for an app, and ends those that make no progress."""

    def __init__(
        self,
        app: Any,
        loop: AbstractEventLoop,
        limits: Limits,
        recorder: Recorder,
        lines: Engine | None = None,
        lines_principal: Principal = LOCAL,
    ) -> None:
        """`lines` handles JSON-RPC lines, which are sent by `lines_principal`; None: they are refused."""
        self.app = app
        self.begin_post: Callable[[Any], None] | None = getattr(app, "begin_post", None)
        """Answers a POST whose body is complete; None for an app that is not ours, which is run in a task."""
        self.loop = loop
        self.limits = limits
        self.recorder = recorder
        self.connections: set[OpenConnection] = set()
        self.uploads: Uploads = getattr(app, "uploads", None) or Uploads(limits)
        self.leaving: set[OpenConnection] = set()
        """Connections that were refused and hold no place."""
        self._peers: dict[str, int] = {}
        """How many connections each address has; loopback addresses are not counted."""
        self.context = copy_context()
        """The context of every request's task."""
        self.stopping = False
        self.now = loop.time()
        self._lines, self._lines_principal = lines, lines_principal
        self._servers: list[Server] = []
        shortest = min(
            limits.header_seconds,
            limits.body_seconds,
            limits.upload_seconds,
            limits.idle_seconds,
            limits.stall_seconds,
        )
        self._pause = min(SWEEP_SECONDS, max(shortest / 4, 0.01))
        self._timer: TimerHandle | None = None
        self._ended = False

    async def listen(self, sockets: list[socket], tls: SSLContext | None) -> None:
        """Begin to accept connections."""
        for each in sockets:
            _set_kernel_deadline(each, self.limits.stall_seconds)
            server = await self.loop.create_server(
                self._accept,
                sock=each,
                backlog=BACKLOG,
                ssl=tls,
                ssl_handshake_timeout=self.limits.header_seconds if tls else None,
                # For all output from `close` on: under TLS its amount is unknown.
                ssl_shutdown_timeout=self.limits.stall_seconds if tls else None,
            )
            self._servers.append(server)

    def _accept(self) -> Connection:
        self.now = self.loop.time()
        self.look_soon()
        return Connection(self)

    def enter(self, peer: str) -> str | None:
        """Count a new connection from this address. Returns the reason of a refusal."""
        limits = self.limits
        if len(self.connections) > limits.connections:
            return f"all {limits.connections:,} connections are taken; try again later"
        if not peer or is_loopback(peer):
            return None
        held = self._peers.get(peer, 0)
        if held >= limits.peer_connections:
            return f"one address has at most {limits.peer_connections:,} connections; close some"
        self._peers[peer] = held + 1
        return None

    def leave(self, peer: str) -> None:
        """Count a connection that was accepted and has ended."""
        left = self._peers.pop(peer, 0) - 1
        if left > 0:
            self._peers[peer] = left

    @property
    def takes_lines(self) -> bool:
        return self._lines is not None

    def serve_jsonl(self, transport: Transport, data: bytes) -> bool:
        """Have a connection speak JSON-RPC lines, if that is configured and the peer is on this machine."""
        peer = transport.get_extra_info("peername")
        if self._lines is None or not is_loopback(str(peer[0]) if peer else ""):
            return False
        from longshore.transports.http_server.jsonl import JsonlConnection

        lines = JsonlConnection(self, self._lines, transport, self._lines_principal)
        self.connections.add(lines)
        transport.set_protocol(cast("BaseProtocol", lines))
        lines.data_received(data)
        return True

    def _sweep(self) -> None:
        self._timer = None
        self.now = now = self.loop.time()
        resting = [connection.check(now) for connection in (*self.connections, *self.leaving)]
        if resting:
            slow = all(resting) and self._pause == SWEEP_SECONDS
            self._timer = self.loop.call_at(next_tick(now) if slow else now + self._pause, self._sweep)

    def look_soon(self) -> None:
        """Check the connections soon: one of them is in a phase with a short deadline."""
        due = self.loop.time() + self._pause
        if not self._ended and (self._timer is None or self._timer.when() > due):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_at(due, self._sweep)

    # -- ending

    def stop(self) -> None:
        """Accept no more connections, and close those without a request."""
        self.stopping = True
        for server in self._servers:
            server.close()
        for connection in list(self.connections):
            connection.retire()

    def cut(self) -> list[Any]:
        """Abort the remaining connections. Returns the tasks that still ran, cancelled."""
        return [task for connection in (*self.connections, *self.leaving) if (task := connection.cut()) is not None]

    def end(self) -> None:
        """Stop the timer, for a loop that continues."""
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()

    async def drained(self) -> None:
        """Wait until the last connection has closed."""
        while self.connections:
            await sleep(_LOOK_SECONDS)


def _set_kernel_deadline(listening: socket, seconds: float) -> None:
    """Set the kernel's deadline for data that a peer does not take, which only the kernel sees."""
    option = getattr(socket_module, "TCP_USER_TIMEOUT", None)  # Linux; connections inherit it
    if option is not None:
        listening.setsockopt(socket_module.IPPROTO_TCP, option, min(int(seconds * 1000), (1 << 31) - 1))
