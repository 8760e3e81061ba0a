"""The gate: every check of a request before its body is decoded."""

from __future__ import annotations

from typing import Any, Final, final
from urllib.parse import urlsplit

from msgspec import Struct, structs

from longshore.addresses import is_loopback
from longshore.auth.credentials import Refusal
from longshore.auth.guard import Guard
from longshore.config import Config
from longshore.config.sections import AuthConfig
from longshore.errors import ConfigError
from longshore.limits import Limits
from longshore.protocol.http_headers import Hosts, accepts, is_json, parse_origin, same_origin
from longshore.protocol.peer import ANONYMOUS, Principal
from longshore.server.link import LOCAL
from longshore.transports.http.parts import HttpParts
from longshore.transports.http.responses import HeaderPairs, Receive, Scope, Send
from longshore.transports.http.uploads import BOUNDED, Uploads
from longshore.wire.codec import INVALID_REQUEST
from longshore.wire.messages import Id

COOKIE: Final = "/auth/cookie"
_LENGTH_DIGITS: Final = 20
"""A longer Content-Length is no number that any body has."""
NOT_YET: Final = Principal("", frozenset())
"""Stands for a caller whose token must be looked up before the request goes on."""
_OWN_SITES: Final = (b"same-origin", b"none")
"""The headers of a browser for a fetch by our own page, and by its user. Images and frames come without Origin."""
_FORWARDING: Final = frozenset({b"forwarded", b"via", b"x-real-ip", b"cf-connecting-ip", b"true-client-ip"})
"""Headers that proxies and tunnels add, besides X-Forwarded-*: the caller behind them may be anywhere."""
_EXPOSED_HEADERS: Final = b"mcp-session-id, www-authenticate, retry-after"
_UNKNOWN: Final = ("", None)
_NONE: Final[frozenset[bytes]] = frozenset()


class HttpRequest(Struct, gc=False):
    """One HTTP request that has passed the gate."""

    scope: Scope
    headers: dict[bytes, bytes]
    twice: frozenset[bytes]
    """The names of headers that came more than once."""
    path: str
    """Below the path that the app is mounted at."""
    principal: Principal
    accepts_json: bool = True
    accepts_stream: bool = True
    extra: HeaderPairs = ()
    """Headers of every response to it: CORS, for a page of a configured origin."""

    @property
    def owner(self) -> str:
        """The name whose limits the request counts against: the principal, or the address if no token is required."""
        return self.caller[0]

    @property
    def caller(self) -> tuple[str, object]:
        """The owner with the key of one of its clients: the address for a principal, else the connection's port."""
        client: tuple[str, object] = self.scope.get("client") or _UNKNOWN
        if self.principal is LOCAL or self.principal.name in (LOCAL.name, ANONYMOUS.name):
            return client
        return self.principal.name, client[0]


class Denied(Exception):
    """The request is refused with this status. It can be delivered as a response, which raises it."""

    def __init__(
        self, status: int, text: str, headers: HeaderPairs = (), code: int = INVALID_REQUEST, id: Any = None
    ) -> None:
        super().__init__(text)
        self.status, self.text, self.headers, self.code = status, text, headers, code
        self.id: Id | Any = id

    async def deliver(self, receive: Receive, send: Send) -> None:  # noqa: ARG002  (as of every response)
        raise self


def shutting_down() -> Denied:
    """The refusal of new requests while the server shuts down: try again, on another connection."""
    return Denied(503, "the server is shutting down", ((b"retry-after", b"1"), (b"connection", b"close")))


class Gone(Exception):
    """The client has hung up."""


@final
class Gate:
    """Checks Host and Origin, credentials, media types and sizes."""

    def __init__(
        self, config: Config, limits: Limits, guard: Guard, uploads: Uploads, parts_guard: Guard | None = None
    ) -> None:
        """`parts_guard` checks the requests of parts, and those for the cookie that their pages need."""
        self._hosts = _hosts(config)
        self._guard = guard
        self._parts_guard = guard if parts_guard is None else parts_guard
        self._parts = HttpParts(())
        self._parts_paths: tuple[str, ...] = ()
        self._uploads = uploads
        self._most = limits.frame_bytes
        self._credentials = {b"authorization", b"cookie", config.auth.key_header.lower().encode("latin-1")}
        self._open = {"/health", *guard.metadata_paths}
        """Paths that need no credential."""
        self._page = parse_origin(public_origin(config) or "")

    def open_parts(self, parts: HttpParts) -> None:
        """Admit the requests of parts, which are made with the gate."""
        self._parts, self._parts_paths = parts, (*parts.prefixes, COOKIE) if parts.prefixes else ()

    def _guard_of(self, path: str) -> Guard:
        return self._parts_guard if path.startswith(self._parts_paths) else self._guard

    def admit(self, scope: Scope) -> HttpRequest:
        """The request, if it is admitted. Raises Denied. Its principal may still have to be looked up."""
        raw = scope["headers"]
        headers: dict[bytes, bytes] = dict(raw)
        twice = _NONE if len(headers) == len(raw) else _repeated(raw)
        server = scope.get("server")
        host = headers.get(b"host")
        if not self._hosts.host_ok(host, server) or b"host" in twice:
            raise Denied(421, Hosts.explain_host(host, server))
        root = scope.get("root_path", "")
        path = scope["path"]
        request = HttpRequest(scope, headers, twice, path.removeprefix(root) if root else path, self._guard.anyone)
        if b"origin" in headers:
            self._admit_page(request, headers[b"origin"], host or b"", server)
        elif b"sec-fetch-site" in headers and headers[b"sec-fetch-site"] not in _OWN_SITES:
            raise Denied(403, "a page from elsewhere may not fetch this; browsers name its origin if it uses CORS")
        guard = self._guard if not self._parts_paths else self._guard_of(request.path)
        if guard.required or guard.optional:
            request.principal = self._identify(request, guard)
        accept = headers.get(b"accept")
        if accept is not None:
            if b"accept" in twice:
                accept = b",".join(value for name, value in raw if name == b"accept")
            request.accepts_json, request.accepts_stream = accepts(accept)
        return request

    def _admit_page(self, request: HttpRequest, origin: bytes, host: bytes, server: Any) -> None:
        if not self._hosts.origin_ok(origin, host, request.scope["scheme"], server) or b"origin" in request.twice:
            raise Denied(403, "requests from this web origin are not accepted (http.origins)")
        request.extra = self.cors(origin)

    def cors(self, origin: bytes) -> HeaderPairs:
        """The headers that let a page of a configured origin read the response."""
        allowed = self._hosts.cors(origin)
        if allowed is None:
            return ()
        return (
            (b"access-control-allow-origin", allowed.encode()),
            (b"access-control-expose-headers", _EXPOSED_HEADERS),
            (b"vary", b"origin"),
        )

    def _identify(self, request: HttpRequest, guard: Guard) -> Principal:
        """The caller, or NOT_YET if its token must be looked up."""
        path = request.path
        if request.scope["method"] == "OPTIONS" or path in self._open or self._parts.is_open(path):
            return guard.anyone
        if request.twice & self._credentials:
            raise denial(guard.malformed("a credential comes twice; send one"))
        found = guard.check(request.headers, self._may_use_cookie(request), is_local(request))
        if isinstance(found, Refusal):
            raise denial(found)
        return NOT_YET if found is None else found

    async def look_up(self, request: HttpRequest) -> None:
        """Ask the authorization server for the principal."""
        guard = self._guard_of(request.path)
        found = await guard.look_up(request.headers, self._may_use_cookie(request))
        if isinstance(found, Refusal):
            raise denial(found)
        request.principal = found

    def _may_use_cookie(self, request: HttpRequest) -> bool:
        """Whether a cookie counts: only for requests from our own pages, and not for another cookie."""
        if request.path == COOKIE:
            return False
        if b"origin" not in request.headers:
            return request.headers.get(b"sec-fetch-site") == b"same-origin"
        return self.is_own_page(request)

    def is_own_page(self, request: HttpRequest) -> bool:
        """Whether a request that names its origin comes from a page of this server."""
        origin = request.headers[b"origin"]
        if same_origin(origin, request.headers.get(b"host", b""), request.scope["scheme"]):
            return True
        return self._page is not None and parse_origin(origin.decode("latin-1")) == self._page

    def forget_credentials(self, request: HttpRequest) -> None:
        """Remove the credentials from the headers: no code behind the gate needs them."""
        for name in self._credentials:
            request.headers.pop(name, None)

    def check_body(self, request: HttpRequest) -> None:
        """Check a body by its headers: it must be JSON, uncompressed, and within the limit."""
        headers = request.headers
        if not is_json(headers.get(b"content-type")) or b"content-type" in request.twice:
            raise Denied(415, "the body must be Content-Type: application/json")
        if b"content-encoding" in headers:
            raise Denied(415, "compressed bodies are not taken")
        self.check_length(headers)

    def check_length(self, headers: dict[bytes, bytes]) -> None:
        """Check the declared length of a body."""
        length = headers.get(b"content-length", b"0")
        if len(length) > _LENGTH_DIGITS or not length.isdigit() or int(length) > self._most:
            raise self.too_long()

    async def read_json(self, request: HttpRequest, receive: Receive) -> bytes:
        """The JSON body of a request. Raises Denied."""
        self.check_body(request)
        return await self.read_body(request, receive)

    async def read_body(self, request: HttpRequest, receive: Receive) -> bytes:
        """The whole body.

        Raises Denied as soon as it is over the limit. Bodies that the listener counts are not counted again.
        """
        uploads = None if BOUNDED in (request.scope.get("extensions") or ()) else self._uploads
        parts: list[bytes] = []
        size, counted, more = 0, 0, True
        try:
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise Gone
                part: bytes = message.get("body", b"")
                size += len(part)
                if size > self._most:
                    raise self.too_long()
                parts.append(part)
                more = message.get("more_body", False)
                if more and uploads is not None:
                    if not uploads.add(len(part)):
                        text = "too many requests are unfinished; try again later"
                        raise Denied(503, text, ((b"retry-after", b"1"),))
                    counted += len(part)
        finally:
            if uploads is not None:
                uploads.remove(counted)
        return b"".join(parts)

    def check_size(self, body: bytes) -> None:
        """Refuse a body that is longer than declared: it came in chunks."""
        if len(body) > self._most:
            raise self.too_long()

    def too_long(self) -> Denied:
        return Denied(413, f"a body is at most {self._most:,} bytes", ((b"connection", b"close"),))


def is_local(request: HttpRequest) -> bool:
    """Whether a request comes from this machine, and has no headers of a proxy."""
    client = request.scope.get("client")
    if client is None or not is_loopback(str(client[0])):
        return False
    headers = request.headers
    return _FORWARDING.isdisjoint(headers) and not any(name.startswith(b"x-forwarded-") for name in headers)


def denial(refusal: Refusal) -> Denied:
    """A refusal of the guard's as an HTTP response."""
    headers: HeaderPairs = ()
    if refusal.challenge:
        headers = ((b"www-authenticate", refusal.challenge.encode("latin-1")),)
    elif refusal.status == 503:
        headers = ((b"retry-after", b"5"),)
    return Denied(refusal.status, refusal.text, headers)


def auth_of(config: Config) -> AuthConfig:
    """The configured authentication.

    Tokens are not optional where requests of others arrive from this machine: those of a proxy or a web page come from
    a loopback address too.
    """
    http, auth = config.http, config.auth
    relays = bool(http.public_url or http.hosts or http.origins)
    return structs.replace(auth, mode="required") if auth.mode == "optional" and relays else auth


def _hosts(config: Config) -> Hosts:
    """The configured hosts and origins, and those of the public URL, which differ from ours behind a proxy."""
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
    """The origin of the server's own pages, if a public URL is configured."""
    if not config.http.public_url:
        return None
    parts = urlsplit(config.http.public_url)
    return f"{parts.scheme}://{parts.netloc}"


def resource_url(config: Config) -> str:
    """The URL of MCP for clients."""
    http = config.http
    if http.public_url:
        base = http.public_url.rstrip("/")
        return base if base.endswith(http.path) else base + http.path
    host = f"[{http.host}]" if ":" in http.host else http.host
    scheme = "https" if http.tls_cert else "http"
    return f"{scheme}://{host}:{http.port}{http.path}"


def _repeated(headers: Any) -> frozenset[bytes]:
    """The names of repeated headers."""
    seen: set[bytes] = set()
    twice: set[bytes] = set()
    for name, _ in headers:
        (twice if name in seen else seen).add(name)
    return frozenset(twice)
