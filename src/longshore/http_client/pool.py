"""HttpClient: requests over pooled connections."""

from __future__ import annotations

import asyncio
from errno import ECONNREFUSED
from typing import Final, final

from longshore.errors import ConnectError
from longshore.http_client.dial import Allow, dial
from longshore.http_client.http1 import HttpConnection, Proxy
from longshore.http_client.response import ExchangeBroken, HttpResponse, Unreachable
from longshore.http_client.urls import HeaderPairs, Url, parse_url, request_head

CONNECT_SECONDS: Final = 10.0
"""For a connection, with name lookup and TLS."""
IDLE_SECONDS: Final = 4.0
"""A connection that was idle for longer is not reused: many servers close theirs after five seconds, and whether a
request that crosses with that was read can't be known."""
IDLE: Final = 128
"""Idle connections to one origin."""
_CLOSE_SECONDS: Final = 1.0
_REPEATABLE: Final = ("GET", "DELETE")


@final
class HttpClient:
    """A pool of connections. It follows no redirect and stores no cookie.

    Methods are GET, POST and DELETE. `allow` restricts the addresses that it connects to.
    """

    def __init__(self, allow: Allow = None) -> None:
        self._allow = allow
        self._idle: dict[str, list[HttpConnection]] = {}
        self._live: set[HttpConnection] = set()
        self._closed = False

    async def fetch(
        self,
        method: str,
        url: str,
        headers: HeaderPairs = (),
        body: bytes = b"",
        *,
        seconds: float = 30.0,
        limit: int = 1 << 20,
    ) -> HttpResponse:
        """A response with its whole `body`, of at most `limit` bytes, within `seconds`. Raises ConnectError."""
        try:
            async with asyncio.timeout(seconds):
                response = await self.stream(method, url, headers, body, seconds=None)
                await response.read(limit)
                return response
        except TimeoutError:
            raise ExchangeBroken(f"it did not answer within {seconds:g} s", parse_url(url).origin) from None
        except ConnectError as problem:
            raise problem.at(parse_url(url).origin) from None

    async def stream(
        self, method: str, url: str, headers: HeaderPairs = (), body: bytes = b"", *, seconds: float | None = 30.0
    ) -> HttpResponse:
        """A response whose head arrived within `seconds`, with the body to iterate over. Raises ConnectError."""
        parsed = parse_url(url)
        head = request_head(method, parsed, headers, len(body))
        try:
            async with asyncio.timeout(seconds):
                return await self._send(method, parsed, head, body)
        except TimeoutError:
            raise ExchangeBroken(f"it did not answer within {seconds:g} s", parsed.origin) from None
        except ConnectError as problem:
            raise problem.at(parsed.origin) from None

    async def close(self) -> None:
        """Close every connection."""
        self._closed = True
        self._idle.clear()
        live = list(self._live)
        for connection in live:
            connection.abort()
        if live:
            await asyncio.wait([connection.closed for connection in live], timeout=_CLOSE_SECONDS)

    async def _send(self, method: str, url: Url, head: bytes, body: bytes) -> HttpResponse:
        """Send a request and wait for the head of the response.

        An idle connection may end at this moment. A repeatable request is then sent again, on a new one.
        """
        idle = self._take_idle(url)
        if idle is not None:
            response = idle.send(head, body)
            try:
                await response.wait_for_head()
                return response
            except ExchangeBroken:
                if response.started or method not in _REPEATABLE:
                    raise
        response = (await self._connect(url)).send(head, body)
        await response.wait_for_head()
        return response

    # -- connections

    def _take_idle(self, url: Url) -> HttpConnection | None:
        idle = self._idle.get(url.origin)
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        while idle:
            connection = idle.pop()
            if connection.idle_since >= oldest and connection.is_usable:
                return connection
            connection.abort()
        return None

    async def _connect(self, url: Url) -> HttpConnection:
        self._check_open()

        def make(proxy: Proxy | None) -> HttpConnection:
            return HttpConnection(url, self._live.add, self._free, self._remove, proxy)

        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                connection = await dial(make, url, CONNECT_SECONDS, self._allow)
        except TimeoutError:
            raise Unreachable(f"no connection within {CONNECT_SECONDS:g} s; is the address right?") from None
        except (OSError, UnicodeError) as problem:
            raise Unreachable(_reason(url, problem)) from None
        try:
            self._check_open()
        except Unreachable:
            connection.abort()
            raise
        return connection

    def _check_open(self) -> None:
        if self._closed:
            raise Unreachable("the client is closed")

    def _free(self, connection: HttpConnection) -> None:
        now = asyncio.get_running_loop().time()
        idle = self._idle.setdefault(connection.url.origin, [])
        while idle and idle[0].idle_since < now - IDLE_SECONDS:
            idle.pop(0).abort()
        if self._closed or len(idle) >= IDLE:
            connection.abort()
        else:
            connection.idle_since = now
            idle.append(connection)

    def _remove(self, connection: HttpConnection) -> None:
        self._live.discard(connection)
        idle = self._idle.get(connection.url.origin)
        if idle is not None and connection in idle:
            idle.remove(connection)


def _reason(url: Url, problem: Exception) -> str:
    """Why no connection could be made, and what to do."""
    from socket import gaierror

    if isinstance(problem, gaierror):
        return f"the name {url.host!r} is not known ({problem.strerror}); is it spelled right?"
    if isinstance(problem, ConnectionRefusedError) or f"[Errno {ECONNREFUSED}]" in str(problem):
        return f"nothing listens at {url.host} port {url.port} (connection refused); is the server running?"
    if url.scheme == "https":
        from ssl import SSLCertVerificationError, SSLError

        if isinstance(problem, SSLCertVerificationError):
            return f"its certificate is not trusted ({problem.verify_message}); SSL_CERT_FILE names others to trust"
        if isinstance(problem, (SSLError, ConnectionResetError)):
            return f"it does not speak TLS as we do ({getattr(problem, 'reason', None) or problem}); is it http://?"
    return f"no connection ({getattr(problem, 'strerror', None) or problem or type(problem).__name__})"
