"""Every path but MCP's own: the endpoints of 2024-11-05, REST, health, metrics, and what browsers ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias, final

from longshore.auth.credentials import Refusal
from longshore.auth.guard import Guard
from longshore.config import Config
from longshore.transports.http.admin import Health, Metrics
from longshore.transports.http.gate import COOKIE, Denied, HttpRequest, denial
from longshore.transports.http.responses import JSON_TYPE, Receive, Send, reply
from longshore.transports.http.rest import OPENAPI, TOOLS, RestEndpoint
from longshore.transports.http.sse_2024 import SseSessions
from longshore.wire.codec import encode

Serve: TypeAlias = Callable[[HttpRequest, Receive, Send], Awaitable[None]]

_ALLOWED_HEADERS = (
    "authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, last-event-id"
)
_REMEMBERED_SECONDS = b"600"
"""How long a browser may cache the answer to a preflight."""


@final
class Routes:
    """The paths of one app beside MCP's own."""

    def __init__(
        self,
        config: Config,
        guard: Guard,
        sse: SseSessions,
        rest: RestEndpoint,
        health: Health,
        metrics: Metrics,
    ) -> None:
        self._http, self._key_header = config.http, config.auth.key_header.lower()
        self._guard, self._rest = guard, rest
        self._known: dict[str, dict[str, Serve]] = {
            "/health": {"GET": health.serve, "HEAD": health.serve},
            "/metrics": {"GET": metrics.serve, "HEAD": metrics.serve},
            "/sse": {"GET": sse.listen},
            "/messages": {"POST": sse.post},
            COOKIE: {"POST": self._set_cookie},
        }
        if guard.metadata() is not None:
            self._known |= {path: {"GET": self._describe_resource} for path in guard.metadata_paths}

    async def serve(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        http, method, path = self._http, request.scope["method"], request.path
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

    async def preflight(self, request: HttpRequest, send: Send) -> None:
        """Tell a browser what a page of another origin may send."""
        if not request.extra:
            raise Denied(405, "no other web origin may use this server (http.origins)")
        wanted = request.headers.get(b"access-control-request-headers", b"").decode("latin-1").lower()
        params = [name.strip() for name in wanted.split(",") if name.strip().startswith("mcp-param-")]
        allowed = ", ".join([_ALLOWED_HEADERS, *([self._key_header] if self._key_header else []), *params])
        answer = (
            (b"access-control-allow-methods", b"POST, GET, DELETE"),
            (b"access-control-allow-headers", allowed.encode("latin-1")),
            (b"access-control-max-age", _REMEMBERED_SECONDS),
        )
        await reply(send, 204, b"", (*request.extra, *answer))

    async def _set_cookie(self, request: HttpRequest, _: Receive, send: Send) -> None:
        """Turn a credential in a header into a cookie, for a browser."""
        cookie = self._guard.cookie(request.headers)
        if isinstance(cookie, Refusal):
            raise denial(cookie)
        await reply(send, 204, b"", ((b"set-cookie", cookie.encode("latin-1")), *request.extra))

    # -- authorization

    async def _describe_resource(self, request: HttpRequest, _: Receive, send: Send) -> None:
        await reply(send, 200, encode(self._guard.metadata()), (JSON_TYPE, *request.extra))
