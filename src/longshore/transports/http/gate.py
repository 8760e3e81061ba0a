"""The gate: what is decided about a request before anybody looks at its body."""

from __future__ import annotations

from typing import Any, final

from msgspec import Struct

from longshore.auth.credentials import Refusal
from longshore.auth.guard import Guard
from longshore.config import Config
from longshore.errors import ConfigError
from longshore.limits import Limits
from longshore.protocol.hosts import Hosts, parse_origin, same_origin
from longshore.protocol.http_headers import accepts, is_json
from longshore.protocol.peer import Principal
from longshore.server.link import LOCAL
from longshore.transports.http.responses import Receive, Scope
from longshore.transports.http.uploads import Uploads
from longshore.wire.codec import INVALID_REQUEST

COOKIE = "/auth/cookie"
LENGTH_DIGITS = 20
"""A longer Content-Length is no number that any body has."""
_LOCAL = Principal()
_OWN_SITES = (b"same-origin", b"none")
"""What a browser says of a fetch by our own page, and by the person at it. Images and frames come without Origin."""


@final
class Gate:
    """Host and Origin, credentials, media types, size."""

    def __init__(self, config: Config, limits: Limits, guard: Guard) -> None:
        self.hosts = _hosts(config)
        self._guard = guard
        self._most = limits.frame_bytes
        self._credentials = {b"authorization", b"cookie", config.auth.key_header.lower().encode("latin-1")}
        self._open = {"/health", *guard.metadata_paths}
        """What a caller may see that has shown nothing yet."""
        self._page = parse_origin(public_origin(config) or "")

    def admit(self, scope: Scope) -> Request:
        """The request, if it may go on. Raises Denied. Its principal may still have to be looked up."""
        raw = scope["headers"]
        headers: dict[bytes, bytes] = dict(raw)
        twice = NOBODY if len(headers) == len(raw) else repeated(raw)
        server = scope.get("server")
        host = headers.get(b"host")
        if not self.hosts.host_ok(host, server) or b"host" in twice:
            raise Denied(421, Hosts.explain_host(host, server))
        root = scope.get("root_path", "")
        path = scope["path"]
        request = Request(scope, headers, twice, path.removeprefix(root) if root else path, _LOCAL)
        if b"origin" in headers:
            self._admit_page(request, headers[b"origin"], host or b"", server)
        elif b"sec-fetch-site" in headers and headers[b"sec-fetch-site"] not in _OWN_SITES:
            raise Denied(403, "a page from elsewhere may not fetch this; browsers name its origin if it uses CORS")
        if self._guard.required:
            request.principal = self._identify(request)
        accept = headers.get(b"accept")
        if accept is not None:
            if b"accept" in twice:
                accept = b",".join(value for name, value in raw if name == b"accept")
            request.accepts_json, request.accepts_stream = accepts(accept)
        return request

    def _admit_page(self, request: Request, origin: bytes, host: bytes, server: Any) -> None:
        if not self.hosts.origin_ok(origin, host, request.scope["scheme"], server) or b"origin" in request.twice:
            raise Denied(403, "requests from this web origin are not accepted (http.origins)")

    def _identify(self, request: Request) -> Principal:
        """Who asks, or that this must be looked up."""
        if request.scope["method"] == "OPTIONS" or request.path in self._open:
            return _LOCAL
        if request.twice & self._credentials:
            raise denial(self._guard.malformed("a credential comes twice; send one"))
        found = self._guard.check(request.headers, self._may_use_cookie(request))
        if isinstance(found, Refusal):
            raise denial(found)
        return NOT_YET if found is None else found

    async def look_up(self, request: Request) -> None:
        """Find out who asks, from whoever issued the token."""
        found = await self._guard.look_up(request.headers, self._may_use_cookie(request))
        if isinstance(found, Refusal):
            raise denial(found)
        request.principal = found

    def _may_use_cookie(self, request: Request) -> bool:
        """Whether a cookie counts: only if a browser says that the page that asks is ours, and not to get another."""
        if request.path == COOKIE:
            return False
        origin = request.headers.get(b"origin")
        if origin is None:
            return request.headers.get(b"sec-fetch-site") == b"same-origin"
        if same_origin(origin, request.headers.get(b"host", b""), request.scope["scheme"]):
            return True
        return self._page is not None and parse_origin(origin.decode("latin-1")) == self._page

    def forget_credentials(self, request: Request) -> None:
        """They have done their work, and nobody further in has any use for them."""
        for name in self._credentials:
            request.headers.pop(name, None)

    def check_body(self, request: Request) -> None:
        """Refuse a body by what its headers say of it."""
        headers = request.headers
        if not is_json(headers.get(b"content-type")) or b"content-type" in request.twice:
            raise Denied(415, "the body must be Content-Type: application/json")
        if b"content-encoding" in headers:
            raise Denied(415, "compressed bodies are not taken")
        length = headers.get(b"content-length", b"0")
        if len(length) > LENGTH_DIGITS or not length.isdigit() or int(length) > self._most:
            raise self.too_long()

    def too_long(self) -> Denied:
        return Denied(413, f"a body is at most {self._most:,} bytes", ((b"connection", b"close"),))


def denial(refusal: Refusal) -> Denied:
    """A refusal of the guard's as an HTTP response."""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if refusal.challenge:
        headers = ((b"www-authenticate", refusal.challenge.encode("latin-1")),)
    elif refusal.status == 503:
        headers = ((b"retry-after", b"5"),)
    return Denied(refusal.status, refusal.text, headers)


def _hosts(config: Config) -> Hosts:
    """What is configured, and the address that clients use: behind a proxy it is not the one that we listen on."""
    hosts, origins = list(config.http.hosts), list(config.http.origins)
    page = public_origin(config)
    if page is not None:
        hosts.append(page.partition("://")[2])
        origins.append(page)
    try:
        return Hosts(hosts, origins)
    except ValueError as problem:
        raise ConfigError(f"http.hosts, http.origins or http.public_url: {problem}") from None


def public_origin(config: Config) -> str | None:
    """Where the server's own pages are for a browser, if that was said."""
    if not config.http.public_url:
        return None
    from urllib.parse import urlsplit

    parts = urlsplit(config.http.public_url)
    return f"{parts.scheme}://{parts.netloc}"


_UNKNOWN = ("", None)
NOT_YET = Principal("", frozenset())
"""Stands for a caller whose token must be looked up before it gets any further."""
NOBODY: frozenset[bytes] = frozenset()


class Request(Struct, gc=False):
    """One HTTP request that has passed the gate."""

    scope: Scope
    headers: dict[bytes, bytes]
    twice: frozenset[bytes]
    path: str
    """Below where the app is mounted."""
    principal: Principal
    """Who asks."""
    accepts_json: bool = True
    accepts_stream: bool = True
    extra: tuple[tuple[bytes, bytes], ...] = ()
    """Headers of every response to it: CORS, where a browser of a named origin asks."""

    @property
    def owner(self) -> str:
        """Whom the request counts against: the principal, or the address where nobody has to say who it is."""
        return self.caller[0]

    @property
    def caller(self) -> tuple[str, object]:
        """The owner, and what tells its clients apart: the address of a principal's, or else the connection's port."""
        client: tuple[str, object] = self.scope.get("client") or _UNKNOWN
        if self.principal is LOCAL or self.principal.name == LOCAL.name:
            return client
        return self.principal.name, client[0]

    @property
    def only_one(self) -> bool:
        """Whether the client does not take both kinds of answer."""
        return not (self.accepts_json and self.accepts_stream)


class Denied(Exception):
    """The request is refused with this status, before anything was made of its body."""

    def __init__(
        self,
        status: int,
        text: str,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        code: int = INVALID_REQUEST,
    ) -> None:
        super().__init__(text)
        self.status, self.text, self.headers, self.code = status, text, headers, code


def shutting_down() -> Denied:
    """The refusal of whatever is new while the server ends: come back, on another connection."""
    return Denied(503, "the server is shutting down", ((b"retry-after", b"1"), (b"connection", b"close")))


class TooLong(Exception):
    """The body is over the limit."""


class Gone(Exception):
    """The client hung up before it had said everything."""


def repeated(headers: Any) -> frozenset[bytes]:
    """The names of headers that came more than once."""
    seen: set[bytes] = set()
    twice: set[bytes] = set()
    for name, _ in headers:
        (twice if name in seen else seen).add(name)
    return frozenset(twice)


async def read_body(receive: Receive, most: int, uploads: Uploads | None) -> bytes:
    """The whole body. Reading stops where the limit is. What is unfinished is counted where the server does not."""
    parts: list[bytes] = []
    size, counted, more = 0, 0, True
    try:
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise Gone
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > most:
                raise TooLong
            parts.append(part)
            more = message.get("more_body", False)
            if more and uploads is not None:
                if not uploads.add(len(part)):
                    raise Denied(503, "too many requests are unfinished; try again later", ((b"retry-after", b"1"),))
                counted += len(part)
    finally:
        if uploads is not None:
            uploads.remove(counted)
    return b"".join(parts)
