"""Http: requests over connections that are kept, with nothing followed and nobody in between."""

from __future__ import annotations

import asyncio
from errno import ECONNREFUSED
from typing import Final, final

from longshore.client.http.address import Address, Pairs, locate, request_head
from longshore.client.http.connection import Connection
from longshore.client.http.exchange import Answer as Answer
from longshore.client.http.exchange import Broken as Broken
from longshore.client.http.exchange import Streaming as Streaming
from longshore.client.http.exchange import Unreachable as Unreachable
from longshore.client.http.reaching import Allow, reach
from longshore.errors import ConnectError

CONNECT_SECONDS: Final = 10.0
"""For a connection, names looked up and TLS agreed on."""
IDLE_SECONDS: Final = 4.0
"""A connection that was of no use for longer is not used again: many servers close theirs after five seconds, and
whether a request that crosses with that was read, nobody can tell."""
IDLE: Final = 128
"""Connections to one server that are kept for later."""
_CLOSE_SECONDS: Final = 1.0
_REPEATABLE: Final = ("GET", "DELETE")


@final
class Http:
    """A pool of connections. No redirect is followed, no proxy used, no cookie kept; TLS trusts what the system does.

    Methods are GET, POST and DELETE. `allow` says to which addresses it may connect.
    """

    def __init__(self, allow: Allow = None) -> None:
        self._allow = allow
        self._idle: dict[tuple[str, str, int], list[Connection]] = {}
        self._live: set[Connection] = set()
        self._closed = False

    async def fetch(
        self,
        method: str,
        url: str,
        headers: Pairs = (),
        body: bytes = b"",
        *,
        seconds: float = 30.0,
        most: int = 1 << 20,
    ) -> Answer:
        """A whole answer of at most `most` bytes, within `seconds`. Raises ConnectError."""
        try:
            async with asyncio.timeout(seconds):
                streaming = await self.stream(method, url, headers, body, seconds=None)
                return await streaming.whole(most)
        except TimeoutError:
            raise Broken(f"it did not answer within {seconds:g} s", locate(url).origin) from None
        except ConnectError as problem:
            raise problem.at(locate(url).origin) from None

    async def stream(
        self, method: str, url: str, headers: Pairs = (), body: bytes = b"", *, seconds: float | None = 30.0
    ) -> Streaming:
        """An answer as it comes; its head within `seconds`. Raises ConnectError."""
        address = locate(url)
        head = request_head(method, address, headers, len(body))
        try:
            async with asyncio.timeout(seconds):
                return await self._ask(method, address, head, body)
        except TimeoutError:
            raise Broken(f"it did not answer within {seconds:g} s", address.origin) from None
        except ConnectError as problem:
            raise problem.at(address.origin) from None

    async def close(self) -> None:
        """End every connection."""
        self._closed = True
        self._idle.clear()
        live = list(self._live)
        for connection in live:
            connection.abort()
        if live:
            await asyncio.wait([connection.closed for connection in live], timeout=_CLOSE_SECONDS)

    async def _ask(self, method: str, address: Address, head: bytes, body: bytes) -> Streaming:
        """Send a request and wait for the head of its answer.

        A kept connection may end just then. What may be done twice is then sent again, on a fresh one.
        """
        kept = self._kept(address)
        if kept is not None:
            streaming = kept.ask(head, body)
            try:
                return await _begun(streaming)
            except Broken:
                if streaming.touched or method not in _REPEATABLE:
                    raise
        return await _begun((await self._connect(address)).ask(head, body))

    # -- connections

    def _kept(self, address: Address) -> Connection | None:
        idle = self._idle.get(address.key)
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        while idle:
            connection = idle.pop()
            if connection.since >= oldest and connection.is_usable:
                return connection
            connection.abort()
        return None

    async def _connect(self, address: Address) -> Connection:
        self._check_open()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                connection = await reach(
                    lambda: Connection(address, self._live.add, self._free, self._forget),
                    address,
                    CONNECT_SECONDS,
                    self._allow,
                )
        except TimeoutError:
            raise Unreachable(f"no connection within {CONNECT_SECONDS:g} s; is the address right?") from None
        except (OSError, UnicodeError) as problem:
            raise Unreachable(_reason(address, problem)) from None
        try:
            self._check_open()
        except Unreachable:
            connection.abort()
            raise
        return connection

    def _check_open(self) -> None:
        if self._closed:
            raise Unreachable("the client is closed")

    def _free(self, connection: Connection) -> None:
        now = asyncio.get_running_loop().time()
        idle = self._idle.setdefault(connection.address.key, [])
        while idle and idle[0].since < now - IDLE_SECONDS:
            idle.pop(0).abort()
        if self._closed or len(idle) >= IDLE:
            connection.abort()
        else:
            connection.since = now
            idle.append(connection)

    def _forget(self, connection: Connection) -> None:
        self._live.discard(connection)
        idle = self._idle.get(connection.address.key)
        if idle is not None and connection in idle:
            idle.remove(connection)


async def _begun(streaming: Streaming) -> Streaming:
    """Wait for the head of an answer. Whoever stops waiting has no more of it."""
    try:
        await streaming.head()
    except BaseException:
        streaming.close()
        raise
    return streaming


def _reason(address: Address, problem: Exception) -> str:
    """Why no connection could be made, and what to do."""
    from socket import gaierror

    if isinstance(problem, gaierror):
        return f"the name {address.host!r} is not known ({problem.strerror}); is it spelled right?"
    if isinstance(problem, ConnectionRefusedError) or f"[Errno {ECONNREFUSED}]" in str(problem):
        return f"nothing listens at {address.host} port {address.port} (connection refused); is the server running?"
    if address.scheme == "https":
        from ssl import SSLCertVerificationError, SSLError

        if isinstance(problem, SSLCertVerificationError):
            return f"its certificate is not trusted ({problem.verify_message}); SSL_CERT_FILE names others to trust"
        if isinstance(problem, (SSLError, ConnectionResetError)):
            return f"it does not speak TLS as we do ({getattr(problem, 'reason', None) or problem}); is it http://?"
    return f"no connection ({getattr(problem, 'strerror', None) or problem or type(problem).__name__})"
