"""A loopback HTTP proxy that a browser must use: it resolves each name once and connects to the address it checked.

Why a proxy: rules within the browser see names, not the addresses that these resolve to. Here every connection is
seen: navigations, redirects, sub-resources, fetch, workers and websockets, in each context of the browser.

Why always, even without origin rules: metadata addresses are always blocked, and any name may resolve to one. A page
with 30 scripts on loopback took 59.9 and 63.1 ms without it, 63.2 and 61.9 ms with it (medians of 30, two runs).

Why without a password: it listens on loopback, answers no request that a page of another browser could send (those have
no absolute URL), and makes only connections that the rules allow. A local process with network access can make these
itself; one that shares our loopback without network access could use the proxy for it.
"""

from __future__ import annotations

import asyncio
import errno
import re
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, final

from longshore.addresses import parse_ip
from longshore.toolsets.browser.origins import Address, Origin, OriginRules, origin_of_url, split_authority

MOST_CONNECTIONS: Final = 256
"""Far more than pages use at once. Each takes two of the 1,024 descriptors that a process often may have."""
HEAD_BYTES: Final = 256 << 10
"""The head of a request. Sites with many cookies need some ten KB, and most servers refuse more than 64."""
IDLE_SECONDS: Final = 3600.0
"""A connection on which nothing was sent either way for so long. Websockets may be silent for long."""
RESOLVE_SECONDS: Final = 20.0
CONNECT_SECONDS: Final = 10.0
"""For each address of a name."""
LINGER_SECONDS: Final = 1.0
"""For a browser to read a refusal while it still sends the body of its request."""
NO_HOST: Final = "there is no such host; check the spelling"
NOT_RESOLVED: Final = "its name can't be resolved now; check the spelling and the network"
CONNECTION_REFUSED: Final = "the connection was refused; is the server running, and is the port right?"
NO_ANSWER: Final = "the server did not answer"
NO_ROUTE: Final = "the address can't be reached from here"
_NO_ROUTE_ERRORS: Final = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL)
_UNKNOWN_NAME_ERRORS: Final = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
_PIECE: Final = 64 << 10
_REFUSALS: Final = 64
"""Reasons remembered for `reason_for`. A page can cause any number."""
_LOOPBACK: Final = ("127.0.0.1", "::1")
_REQUEST_LINE: Final = re.compile(rb"([!-~]{1,32}) ([!-~]+) HTTP/1\.[01]")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)")
_FOR_PROXIES: Final = frozenset({b"proxy-connection", b"proxy-authorization", b"host", b"connection", b"upgrade"})

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the IP addresses of a name. Raises OSError."""


class _Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class _Unreachable(Exception):
    """An allowed origin can't be reached."""


async def resolve_name(host: str, port: int) -> Sequence[str]:
    """The addresses of a name by the system's resolver, IPv4 first: a network without IPv6 answers late."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = dict.fromkeys(str(entry[4][0]) for entry in found)
    return sorted(addresses, key=lambda address: ":" in address)


@final
class OriginProxy:
    """Serves one or more browsers. `refused` is called with the origin and the reason of each refusal."""

    def __init__(
        self,
        rules: OriginRules,
        resolve: Resolve = resolve_name,
        refused: Callable[[Origin, str], None] | None = None,
        *,
        most_connections: int = MOST_CONNECTIONS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._rules, self._resolve, self._report = rules, resolve, refused
        self._most, self._idle = most_connections, idle_seconds
        self._server: asyncio.Server | None = None
        self._port = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._reasons: OrderedDict[tuple[str, int], str] = OrderedDict()

    @property
    def url(self) -> str:
        """For --proxy-server."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def connections(self) -> int:
        return len(self._tasks)

    async def open(self) -> str:
        """Listen on a free loopback port. Returns the proxy's URL."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_BYTES)
        self._port = self._server.sockets[0].getsockname()[1]
        return self.url

    async def close(self) -> None:
        """Stop listening and end all connections."""
        if self._server is not None:
            self._server.close()
        while self._tasks:
            tasks = tuple(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    def reason_for(self, url: str) -> str | None:
        """The reason why the last request to this URL's host and port was refused or failed; None if it was not.

        For https Chromium reports only the failure.
        """
        origin = origin_of_url(url)
        return None if origin is None else self._reasons.get((origin.host, origin.port))

    # -- one connection

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= self._most:
            writer.write(_answer(503, f"more than {self._most} connections"))
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._idle) as deadline:
                await _Exchange(self, reader, writer, deadline, self._idle).run()
        except _Refused as problem:
            await _say_last(reader, writer, _answer(problem.status, problem.reason))
        except (OSError, EOFError, TimeoutError):
            pass  # one side has closed, or is silent
        finally:
            writer.close()

    async def connect(self, origin: Origin) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to an address of this origin that the rules allow. Raises _Refused."""
        problem = self._rules.origin_problem(origin)
        if problem is not None:
            raise self._refuse(origin, problem)
        try:
            addresses = await self._addresses(origin)
            self._check_addresses(origin, addresses)
            connected = await _connect_first(origin, addresses)
        except _Unreachable as reason:
            self._store_reason(origin, str(reason))
            raise _Refused(502, f"{origin} can't be reached: {reason}") from None
        self._reasons.pop((origin.host, origin.port), None)
        return connected

    def _check_addresses(self, origin: Origin, addresses: Sequence[Address]) -> None:
        for address in addresses:
            # All of them: a name with both public and private addresses is a known attack.
            problem = self._rules.address_problem(origin, address)
            if problem is None and origin.port == self._port and (address.is_loopback or address.is_unspecified):
                problem = f"{origin} is the browser's own proxy"
            if problem is not None:
                raise self._refuse(origin, problem)

    async def _addresses(self, origin: Origin) -> list[Address]:
        literal = parse_ip(origin.host)
        if literal is not None:
            return [literal]
        if origin.host == "localhost" or origin.host.endswith(".localhost"):
            names: Sequence[str] = _LOOPBACK  # as browsers do, whatever a resolver returns
        else:
            try:
                async with asyncio.timeout(RESOLVE_SECONDS):
                    names = await self._resolve(origin.host, origin.port)
            except (OSError, UnicodeError, TimeoutError) as problem:
                is_unknown = isinstance(problem, socket.gaierror) and problem.errno in _UNKNOWN_NAME_ERRORS
                raise _Unreachable(NO_HOST if is_unknown else NOT_RESOLVED) from None
        found = [address for address in map(parse_ip, names) if address is not None]
        if not found:
            raise _Unreachable(NO_HOST)
        return found

    def _store_reason(self, origin: Origin, reason: str) -> None:
        key = origin.host, origin.port
        self._reasons[key] = reason
        self._reasons.move_to_end(key)
        if len(self._reasons) > _REFUSALS:
            self._reasons.popitem(last=False)

    def _refuse(self, origin: Origin, problem: str) -> _Refused:
        self._store_reason(origin, problem)
        if self._report is not None:
            self._report(origin, problem)
        return _Refused(403, problem)


async def _connect_first(
    origin: Origin, addresses: Sequence[Address]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first of these addresses that accepts one.

    Raises _Unreachable with the reason of the first.
    """
    reasons: list[str] = []
    for address in addresses:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await asyncio.open_connection(str(address), origin.port, limit=_PIECE)
        except (OSError, TimeoutError) as problem:
            reasons.append(_reason_of(problem))
    raise _Unreachable(reasons[0])


def _reason_of(problem: OSError) -> str:
    """The reason why a connection failed, in words."""
    if isinstance(problem, ConnectionRefusedError):
        return CONNECTION_REFUSED
    return NO_ROUTE if problem.errno in _NO_ROUTE_ERRORS else NO_ANSWER


class _Request:
    """The head of a request, taken apart. Raises _Refused for a head that browsers do not send."""

    def __init__(self, head: bytes) -> None:
        line, *rest = head[:-4].split(b"\r\n")
        found = _REQUEST_LINE.fullmatch(line)
        headers = [_HEADER.fullmatch(each) for each in rest]
        if found is None or not all(headers):
            raise _Refused(400, "this is no HTTP request")
        self.method, self.target = found[1].decode(), found[2].decode()
        self._headers = [(each[1], each[2]) for each in headers if each is not None]
        names = [name.lower() for name, _ in self._headers]
        if b"transfer-encoding" in names:
            raise _Refused(411, "a request needs a Content-Length")
        self.body = self._length()

    def _length(self) -> int:
        lengths = {value.strip() for name, value in self._headers if name.lower() == b"content-length"}
        if not lengths:
            return 0
        text = lengths.pop()
        if lengths or not re.fullmatch(rb"[0-9]{1,18}", text):
            raise _Refused(400, "this request has no usable Content-Length")
        return int(text)

    def for_origin(self) -> bytes:
        """The head for the origin's server, without the headers for the proxy."""
        authority, slash, path = self.target.partition("://")[2].partition("/")
        authority, mark, query = authority.partition("?")
        lines = [f"{self.method} /{path if slash else ''}{mark}{query} HTTP/1.1".encode()]
        lines.append(b"Host: " + authority.rpartition("@")[2].encode())
        lines += [name + b": " + value for name, value in self._headers if name.lower() not in _FOR_PROXIES]
        return b"\r\n".join([*lines, b"Connection: keep-alive", b"", b""])


@final
class _Exchange:
    """The requests of one connection of the browser: one tunnel, or plain requests one after the other.

    A browser sends the next plain request after the whole answer to the one before, so answers need no parsing: the
    server's bytes are passed on, and when it closes, the browser's connection is closed.
    """

    def __init__(
        self,
        proxy: OriginProxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        deadline: asyncio.Timeout,
        idle: float,
    ) -> None:
        self._proxy, self._reader, self._writer = proxy, reader, writer
        self._deadline, self._idle = deadline, idle
        self._origin: Origin | None = None
        self._upstream: asyncio.StreamWriter | None = None
        self._answering: asyncio.Task[None] | None = None

    async def run(self) -> None:
        try:
            while (request := await self._read_request()) is not None:
                if request.method == "CONNECT":
                    await self._tunnel(request)
                    return
                await self._forward(request)
        finally:
            await self._drop_upstream()

    async def _read_request(self) -> _Request | None:
        try:
            return _Request(await self._reader.readuntil(b"\r\n\r\n"))
        except asyncio.IncompleteReadError:
            return None
        except asyncio.LimitOverrunError:
            raise _Refused(431, f"the head of a request has more than {HEAD_BYTES:,} bytes") from None

    async def _tunnel(self, request: _Request) -> None:
        place = split_authority(request.target)
        if place is None or place[1] is None:
            raise _Refused(400, "CONNECT needs host:port")
        await self._drop_upstream()
        reader, writer = await self._proxy.connect(Origin("", place[0], place[1]))
        self._upstream = writer
        self._writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        forth = asyncio.create_task(self._pass_on(self._reader, writer))
        back = asyncio.create_task(self._pass_on(reader, self._writer))
        try:
            await asyncio.wait((forth, back), return_when=asyncio.FIRST_EXCEPTION)
        finally:
            await _end(forth)
            await _end(back)

    async def _forward(self, request: _Request) -> None:
        origin = origin_of_url(request.target) if request.target.lower().startswith("http://") else None
        if origin is None:
            raise _Refused(400, "this is a browser's proxy; it answers requests for http:// URLs and CONNECT")
        if self._upstream is None or origin != self._origin or self._upstream.is_closing():
            await self._drop_upstream()
            reader, self._upstream = await self._proxy.connect(origin)
            self._origin = origin
            self._answering = asyncio.create_task(self._answer_from(reader))
        self._upstream.write(request.for_origin())
        await self._pass_on(self._reader, self._upstream, request.body)

    async def _answer_from(self, reader: asyncio.StreamReader) -> None:
        try:
            await self._pass_on(reader, self._writer)
        except OSError:
            pass  # the browser sees an interrupted connection, as it would without a proxy
        self._writer.close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, size: int | None = None
    ) -> None:
        """Pass on `size` bytes, or all until the end, which is passed on too."""
        loop = asyncio.get_running_loop()
        while size is None or size > 0:
            data = await reader.read(_PIECE if size is None else min(size, _PIECE))
            if not data:
                break
            writer.write(data)
            await writer.drain()
            if size is not None:
                size -= len(data)
            if not self._deadline.expired():
                self._deadline.reschedule(loop.time() + self._idle)
        if size is None and writer.can_write_eof() and not writer.is_closing():
            writer.write_eof()

    async def _drop_upstream(self) -> None:
        answering, self._answering = self._answering, None
        upstream, self._upstream = self._upstream, None
        if answering is not None:
            await _end(answering)
        if upstream is not None:
            upstream.close()


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for it."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _say_last(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes) -> None:
    """Answer and close. The rest of the request is read for some time: a reset could overtake the answer."""
    try:
        writer.write(answer)
        writer.write_eof()
        async with asyncio.timeout(LINGER_SECONDS):
            while await reader.read(_PIECE):
                pass
    except (OSError, TimeoutError):
        pass


_REASONS: Final = {
    400: "Bad Request",
    403: "Forbidden",
    411: "Length Required",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


def _answer(status: int, reason: str) -> bytes:
    """A whole response. Plain text: the reason may contain text of a page."""
    refused = "" if status == 502 else "Longshore refused this request: "
    body = f"{refused}{reason}\n".encode()
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
