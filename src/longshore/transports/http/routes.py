"""Every path but MCP's own: the endpoints of 2024-11-05, plain REST, health, metrics, and what browsers ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, final

from longshore.auth.challenge import Refusal
from longshore.transports.http.answers import JSON_TYPE, Receive, Send, reply
from longshore.transports.http.gate import COOKIE, denial
from longshore.transports.http.health import Health
from longshore.transports.http.metrics import Metrics
from longshore.transports.http.old import OldSessions
from longshore.transports.http.request import Denied, Request
from longshore.transports.http.rest import OPENAPI, TOOLS, Rest
from longshore.wire.codec import encode

if TYPE_CHECKING:
    from longshore.transports.http.app import HttpApp

Serve: TypeAlias = Callable[[Request, Receive, Send], Awaitable[None]]

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
        self._rest = Rest(app)
        health, metrics = Health(app).serve, Metrics(app).serve
        self._known: dict[str, dict[str, Serve]] = {
            "/health": {"GET": health, "HEAD": health},
            "/metrics": {"GET": metrics, "HEAD": metrics},
            "/sse": {"GET": self.old.listen},
            "/messages": {"POST": self.old.post},
            COOKIE: {"POST": self._set_cookie},
        }
        if app.guard.metadata() is not None:
            self._known |= {path: {"GET": self._describe_resource} for path in app.guard.metadata_paths}

    async def serve(self, request: Request, receive: Receive, send: Send) -> None:
        http, method, path = self._app.config.http, request.scope["method"], request.path
        known = self._known.get(path)
        if method == "OPTIONS":
            await self.preflight(request, send)
        elif known is not None:
            if method not in known:
                allowed = ", ".join(known)
                raise Denied(405, f"{path} takes {allowed}", ((b"allow", allowed.encode()),))
            await known[method](request, receive, send)
        elif http.rest and (path in (TOOLS, OPENAPI) or path.startswith(f"{TOOLS}/")):
            await self._rest.serve(request, receive, send)
        else:
            raise Denied(404, f"there is nothing at this path; MCP is at {http.path}")

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

    async def _set_cookie(self, request: Request, _: Receive, send: Send) -> None:
        """Turn a credential in a header into a cookie, for a browser to hold."""
        cookie = self._app.guard.cookie(request.headers)
        if isinstance(cookie, Refusal):
            raise denial(cookie)
        await reply(send, 204, b"", ((b"set-cookie", cookie.encode("latin-1")), *request.extra))

    # -- authorization

    async def _describe_resource(self, request: Request, _: Receive, send: Send) -> None:
        await reply(send, 200, encode(self._app.guard.metadata()), (JSON_TYPE, *request.extra))
