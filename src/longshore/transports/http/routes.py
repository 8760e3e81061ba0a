"""Every path but MCP's own: the endpoints of 2024-11-05, plain REST, health, metrics, and what browsers ask for."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, final

from longshore.auth.challenge import Refusal
from longshore.transports.http.answers import JSON_TYPE, Receive, Send, reply
from longshore.transports.http.gate import COOKIE, denial
from longshore.transports.http.health import Health
from longshore.transports.http.metrics import Metrics
from longshore.transports.http.old import OldSessions
from longshore.transports.http.request import Denied, Request
from longshore.transports.http.rest import Rest
from longshore.transports.http.workers import Notice
from longshore.wire.codec import encode

if TYPE_CHECKING:
    from longshore.transports.http.app import HttpApp

_ALLOWED_HEADERS = (
    "authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, last-event-id"
)
_EXPOSED_HEADERS = "mcp-session-id, www-authenticate, retry-after"
_REMEMBERED_SECONDS = b"600"
"""How long a browser may remember what a preflight told it."""


@final
class Routes:
    """The other paths of one app."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self.old = OldSessions(app)
        self._health = Health(app)
        self._metrics = Metrics(app)
        self._rest = Rest(app)

    async def serve(self, request: Request, receive: Receive, send: Send) -> None:
        app, method, path = self._app, request.scope["method"], request.path
        match method, path:
            case "OPTIONS", _:
                await self.preflight(request, send)
            case (("GET" | "HEAD"), "/health"):
                await self._health.serve(request, send)
            case (("GET" | "HEAD"), "/metrics"):
                await self._metrics.serve(request, send)
            case "GET", "/sse":
                await self.old.listen(request, receive, send)
            case "POST", "/messages":
                await self.old.post(request, receive, send)
            case "POST", _ if path == COOKIE:
                await self._set_cookie(request, send)
            case "GET", _ if path in app.guard.metadata_paths:
                await self._describe_resource(request, send)
            case _ if app.config.http.rest and (path in ("/tools", "/openapi.json") or path.startswith("/tools/")):
                await self._rest.serve(request, receive, send)
            case _:
                known = _methods(path)
                if known:
                    raise Denied(405, f"{path} takes {known}", ((b"allow", known.encode()),))
                raise Denied(404, f"there is nothing at this path; MCP is at {app.config.http.path}")

    # -- browsers

    def cors(self, origin: bytes) -> tuple[tuple[bytes, bytes], ...]:
        """What lets a page of a named origin read the response."""
        allowed = self._app.gate.hosts.cors(origin)
        if allowed is None:
            return ()
        return (
            (b"access-control-allow-origin", allowed.encode()),
            (b"access-control-expose-headers", _EXPOSED_HEADERS.encode()),
            (b"vary", b"origin"),
        )

    async def preflight(self, request: Request, send: Send) -> None:
        """A browser asks whether a page may do what it is about to do."""
        if not request.extra:
            raise Denied(405, "no other web origin may use this server (http.origins)")
        wanted = request.headers.get(b"access-control-request-headers", b"").decode("latin-1").lower()
        params = [name.strip() for name in wanted.split(",") if name.strip().startswith("mcp-param-")]
        key = self._app.config.auth.key_header.lower()
        allowed = ", ".join([_ALLOWED_HEADERS, *([key] if key else []), *params])
        answer = (
            (b"access-control-allow-methods", b"POST, GET, DELETE"),
            (b"access-control-allow-headers", allowed.encode("latin-1")),
            (b"access-control-max-age", _REMEMBERED_SECONDS),
        )
        await reply(send, 204, b"", (*request.extra, *answer))

    async def _set_cookie(self, request: Request, send: Send) -> None:
        """Turn a credential in a header into a cookie, for a browser to hold."""
        cookie = self._app.guard.cookie(request.headers)
        if isinstance(cookie, Refusal):
            raise denial(cookie)
        await reply(send, 204, b"", ((b"set-cookie", cookie.encode("latin-1")), *request.extra))

    # -- authorization

    async def _describe_resource(self, request: Request, send: Send) -> None:
        metadata: dict[str, Any] | None = self._app.guard.metadata()
        if metadata is None:
            raise Denied(404, "this server has no authorization server")
        await reply(send, 200, encode(metadata), (JSON_TYPE, *request.extra))

    # -- the app

    def hear(self, notice: Notice) -> Awaitable[None] | None:
        """A message of another process that is for one of these paths."""
        return self.old.hear(notice)

    async def shut(self) -> None:
        self.old.close_all()


def _methods(path: str) -> str:
    known = {
        "/health": "GET, HEAD",
        "/metrics": "GET, HEAD",
        "/sse": "GET",
        "/messages": "POST",
        "/auth/cookie": "POST",
    }
    return known.get(path, "")
