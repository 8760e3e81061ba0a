"""What the connections of one process share, and the one timer that looks after all of them."""

from __future__ import annotations

import socket as socket_module
from asyncio import AbstractEventLoop, BaseTransport, Server, TimerHandle, Transport, sleep
from collections.abc import Callable
from contextvars import copy_context
from email.utils import formatdate
from socket import socket
from ssl import SSLContext
from time import time
from typing import Any, Protocol, cast, final

import uvicorn
from uvicorn.server import ServerState

from longshore.addresses import is_loopback
from longshore.limits import Limits
from longshore.server.engine import Engine
from longshore.telemetry.recorder import Recorder
from longshore.transports.http.app import HttpApp
from longshore.transports.http.uploads import Uploads
from longshore.transports.http_server.connection import LINGER_SECONDS, Connection
from longshore.transports.process import next_tick

SWEEP_SECONDS = 1.0
"""How often every connection is looked at while one of them has a request to finish or output to take.

Shorter deadlines than four of these are looked at more often. While all connections rest, they are looked at every ten
seconds; without any there is no timer.
"""
BACKLOG = 2048
"""Connections that the kernel holds until we take them."""
_LOOK_SECONDS = 0.01


class Held(Protocol):
    """A connection, whatever is spoken on it."""

    def check(self, now: float) -> bool:
        """End what has been in one place for too long. True: it rests, and may be looked at less often."""
        ...

    def retire(self) -> None: ...
    def cut(self) -> Any: ...


@final
class Listener:
    """Accepts connections for an app, ends those that make no progress, and in the end all."""

    def __init__(
        self, app: Any, loop: AbstractEventLoop, limits: Limits, recorder: Recorder, lines: Engine | None = None
    ) -> None:
        self.app = app
        self.lane: Callable[[Any], bool] | None = app.lane.take if isinstance(app, HttpApp) else None
        """Takes requests that need no task."""
        self.loop = loop
        self.limits = limits
        self.recorder = recorder
        self.state = ServerState()
        self.uvicorn = uvicorn.Config(
            app,
            interface="asgi3",
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # whoever is on loopback could otherwise say to be anybody
        )
        self.uvicorn.load()
        self.uploads = app.uploads if isinstance(app, HttpApp) else Uploads(limits)
        self.leaving: set[Held] = set()
        """Connections that were turned away and hold no place."""
        self._peers: dict[str, int] = {}
        """How many places each address holds; those of this machine are not counted."""
        self.context = copy_context()
        """As it is before any request."""
        self.stopping = False
        self.now = loop.time()
        self._second = 0
        self._date = b""
        self._lines = lines
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

    @property
    def date(self) -> bytes:
        """The Date header of a response that is written now."""
        second = int(time())
        if second != self._second:
            self._second = second
            self._date = b"date: %b\r\n" % formatdate(second, usegmt=True).encode()
        return self._date

    @property
    def connections(self) -> set[Held]:
        return cast("set[Held]", self.state.connections)

    async def listen(self, sockets: list[socket], tls: SSLContext | None) -> None:
        """Begin to accept connections."""
        for each in sockets:
            _have_kernel_watch(each, self.limits.stall_seconds)
            server = await self.loop.create_server(
                self._accept,
                sock=each,
                backlog=BACKLOG,
                ssl=tls,
                ssl_handshake_timeout=self.limits.header_seconds if tls else None,
                ssl_shutdown_timeout=LINGER_SECONDS if tls else None,
            )
            self._servers.append(server)

    def _accept(self) -> Connection:
        self.now = self.loop.time()
        self.look_soon()
        return Connection(self)

    def enter(self, peer: str) -> str | None:
        """A connection has come from this address. Gives why it can't stay, if it can't."""
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
        """One that could stay has gone."""
        left = self._peers.pop(peer, 0) - 1
        if left > 0:
            self._peers[peer] = left

    def take_lines(self, transport: Transport, data: bytes) -> bool:
        """Let a connection speak JSON-RPC lines, if that is offered to it."""
        if self._lines is None or not is_loopback(peer_of(transport)):
            return False
        from longshore.transports.http_server.jsonl import JsonlConnection

        lines = JsonlConnection(self, self._lines, transport)
        self.connections.add(lines)
        transport.set_protocol(lines)
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
        """A connection has begun something that has a short deadline."""
        due = self.loop.time() + self._pause
        if not self._ended and (self._timer is None or self._timer.when() > due):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_at(due, self._sweep)

    # -- ending

    def stop(self) -> None:
        """Accept no more, and let go of every connection that nobody waits for."""
        self.stopping = True
        for server in self._servers:
            server.close()
        for connection in list(self.connections):
            connection.retire()

    def cut(self) -> list[Any]:
        """End what is left. Gives the tasks that were still at it, cancelled."""
        return [task for connection in (*self.connections, *self.leaving) if (task := connection.cut()) is not None]

    def end(self) -> None:
        """Look after nothing any more. For a loop that goes on without us."""
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()

    async def drained(self) -> None:
        """Until the last connection has closed."""
        while self.connections:
            await sleep(_LOOK_SECONDS)


def _have_kernel_watch(listening: socket, seconds: float) -> None:
    """What the kernel holds for a peer that takes nothing is not ours to see. It has a deadline of its own for that."""
    option = getattr(socket_module, "TCP_USER_TIMEOUT", None)  # Linux; connections inherit it
    if option is not None:
        listening.setsockopt(socket_module.IPPROTO_TCP, option, min(int(seconds * 1000), (1 << 31) - 1))


def peer_of(transport: BaseTransport) -> str:
    """The address of the other side; an empty text if it has none."""
    peer: Any = transport.get_extra_info("peername")
    return str(peer[0]) if peer else ""
