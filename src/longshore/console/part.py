"""The console as a part of the HTTP app: its shell and static files, which are open, and its data, which are not.

The page calls tools as an MCP client of its own, at MCP's path, so that nothing here runs one. Data need the scope
`console:read`, or `console`, which whatever changes something needs. A principal without a list of scopes has both.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast, final
from urllib.parse import parse_qsl

import msgspec

from longshore.console.history import read_older
from longshore.console.live import Live
from longshore.console.overview import describe
from longshore.console.settings import BadSettings, Settings
from longshore.console.views import Views
from longshore.errors import ConfigError
from longshore.transports.http.gate import Denied, HttpRequest, denial, is_local
from longshore.transports.http.parts import PartHost
from longshore.transports.http.responses import JSON_TYPE, HeaderPairs, Receive, Send, reply
from longshore.transports.http.static_files import StaticFiles
from longshore.wire.codec import BROKEN, encode

if TYPE_CHECKING:
    from longshore.console.context_graph import ContextGraph
    from longshore.runtime import Runtime

PREFIX: Final = "/console"
API: Final = f"{PREFIX}/api/"
SHELL: Final = "index.html"
READ: Final = "console:read"
CHANGE: Final = "console"
BODY_BYTES: Final = 256 << 10
"""Of a request. The settings of all tools have some 50 KB."""
QUERY_BYTES: Final = 4096

_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    b"font-src 'self'; media-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final[HeaderPairs] = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
DATA_HEADERS: Final[HeaderPairs] = (*_HEADERS, (b"cache-control", b"no-store"))

Query: TypeAlias = dict[str, str]


class Answer(msgspec.Struct, frozen=True):
    """A response that is no JSON."""

    body: bytes
    type: bytes


Get: TypeAlias = Callable[[Query], Awaitable[Any]]
"""Answers a GET of one path."""
Post: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Answers a POST of one path, given its body."""


@final
class Console:
    """The console of one server."""

    prefix = PREFIX
    headers = DATA_HEADERS

    def __init__(self, runtime: Runtime, host: PartHost) -> None:
        self._runtime, self._host = runtime, host
        self._files = StaticFiles(os.path.join(os.path.dirname(__file__), "static"), _HEADERS)
        self._live = Live(host)
        self._settings = Settings(runtime, host.engine)
        self._views = Views(host.engine.catalog)
        self._made_context: ContextGraph | None = None

    def is_open(self, path: str) -> bool:
        return not path.startswith(API)

    async def close(self) -> None:
        self._live.close()

    async def serve(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        path = request.path
        if not path.startswith(API):
            await self._serve_file(request, path[len(PREFIX) :], send)
            return
        self._check_caller(request)
        method, name = request.scope["method"], path[len(API) :]
        if method == "POST":
            self._require(request, CHANGE)
            await self._post(request, name, receive, send)
        elif method in ("GET", "HEAD"):
            self._require(request, READ)
            await self._get(request, name, receive, send)
        else:
            raise Denied(405, "the console takes GET and POST", ((b"allow", b"GET, HEAD, POST"),))

    async def _serve_file(self, request: HttpRequest, path: str, send: Send) -> None:
        """Serve a static file. The shell's path ends without a slash; the names in it start from there."""
        if path == "/":
            root = request.scope.get("root_path", "").encode()
            await reply(send, 308, b"", ((b"location", root + PREFIX.encode()), *_HEADERS))
        else:
            await self._files.serve(request, path[1:] or SHELL, send)

    @property
    def _context(self) -> ContextGraph:
        """The context graph, imported by the first look at it."""
        if self._made_context is None:
            from longshore.console.context_graph import ContextGraph

            self._made_context = ContextGraph(self._host.engine)
        return self._made_context

    # -- access

    def _check_caller(self, request: HttpRequest) -> None:
        """Refuse pages of other origins, also those that may use MCP, and other machines where nobody needs a token."""
        if b"origin" in request.headers and not self._host.gate.is_own_page(request):
            raise Denied(403, "the console's data are for its own page only")
        if not self._host.guard.required and not is_local(request):
            raise Denied(403, "authentication is off, so the console answers callers on this machine only")

    def _require(self, request: HttpRequest, scope: str) -> None:
        """Refuse a caller that lacks the scope. Who may change may also look."""
        scopes = request.principal.scopes
        if scopes is not None and scope not in scopes and CHANGE not in scopes:
            raise denial(self._host.guard.forbid(request.principal, frozenset({scope})))

    def _may_change(self, request: HttpRequest) -> bool:
        return not request.principal.lacks(frozenset({CHANGE}))

    # -- GET

    async def _get(self, request: HttpRequest, name: str, receive: Receive, send: Send) -> None:
        query = _read_query(request)
        if name == "stream":
            wants_wire = query.get("wire") == "1"
            if wants_wire:
                self._require(request, CHANGE)
            await self._live.follow(receive, send, DATA_HEADERS, records=query.get("records") == "1", wire=wants_wire)
            return
        found = await self._find(request, name, query)
        if isinstance(found, Answer):
            await reply(send, 200, found.body, ((b"content-type", found.type), *DATA_HEADERS))
        else:
            await reply(send, 200, encode(found), (JSON_TYPE, *DATA_HEADERS))

    async def _find(self, request: HttpRequest, name: str, query: Query) -> Any:
        match name.partition("/"):
            case ("overview", "", ""):
                return describe(self._host, self._live, may_change=self._may_change(request))
            case ("settings", "", ""):
                return await self._settings.describe()
            case ("usage", "", ""):
                return self._live.usage.describe()
            case ("history", "", ""):
                given = {key: query.get(key, "") for key in ("before", "tool", "outcome", "limit")}
                engine = self._host.engine
                return await read_older(engine.recorder, self._host.config.telemetry.history, **given)
            case ("views", "", ""):
                return self._views.list_all()
            case ("views", "/", key):
                shown = await self._views.look(key)
                return Answer(shown.data, shown.mime_type.encode())
            case ("lint", "", ""):
                from longshore.console import lint  # with all rules
                from longshore.server.tool_list import list_tools

                server = list_tools(self._host.engine, self._runtime.admission)
                return await asyncio.to_thread(lint.describe, server, self._host.engine)
            case ("context", "/", what):
                return await self._look_at_context(what, query)
            case _:
                raise Denied(404, "the console has nothing at this path")

    async def _look_at_context(self, what: str, query: Query) -> Any:
        id = query.get("id", "")
        match what:
            case "search":
                return await self._context.search(query.get("q", ""))
            case "node" | "history":
                return await self._context.node(id, with_history=what == "history")
            case "picture":
                depth = query.get("depth", "1")
                svg = await self._context.picture(id, int(depth) if depth.isdecimal() and len(depth) == 1 else -1)
                return Answer(svg, b"image/svg+xml")
            case _:
                raise Denied(404, "the console has nothing at this path")

    # -- POST

    async def _post(self, request: HttpRequest, name: str, receive: Receive, send: Send) -> None:
        gate = self._host.gate
        gate.check_body(request)
        if int(request.headers.get(b"content-length", b"0")) > BODY_BYTES:
            raise Denied(
                413, f"a request of the console has at most {BODY_BYTES:,} bytes", ((b"connection", b"close"),)
            )
        body = await gate.read_body(request, receive)
        if len(body) > BODY_BYTES:
            raise Denied(413, f"a request of the console has at most {BODY_BYTES:,} bytes")
        try:
            value = msgspec.json.decode(body or b"{}")
        except BROKEN as broken:
            raise Denied(400, f"the body is not JSON: {broken}") from None
        if not isinstance(value, dict):
            raise Denied(400, "the body must be a JSON object")
        status, answer = await self._change(name, cast("dict[str, Any]", value))
        await reply(send, status, encode(answer), (JSON_TYPE, *DATA_HEADERS))

    async def _change(self, name: str, body: dict[str, Any]) -> tuple[int, Any]:
        match name.split("/"):
            case ["calls", key, "cancel"]:
                if not self._live.cancel(key):
                    raise Denied(404, "this call has ended")
                return 200, {}
            case ["settings"]:
                return await self._change_settings(body)
            case _:
                raise Denied(404, "the console has nothing to change at this path")

    async def _change_settings(self, body: dict[str, Any]) -> tuple[int, Any]:
        match body:
            case {"changes": dict(changes), **rest} if rest.keys() <= {"version"}:  # pyright: ignore[reportUnknownVariableType]
                version = rest.get("version")
            case _:
                raise Denied(400, 'send {"changes": {"server.timeout": 30}}; null is back to the default')
        try:
            given = cast("dict[str, Any]", changes)
            return 200, await self._settings.change(given, None if version is None else str(version))
        except BadSettings as bad:
            return 422, {"text": "nothing was changed", "problems": bad.problems}
        except ConfigError as problem:
            return 422, {"text": str(problem), "problems": []}


def _read_query(request: HttpRequest) -> Query:
    raw: bytes = request.scope.get("query_string", b"")
    if len(raw) > QUERY_BYTES:
        raise Denied(400, f"a query has at most {QUERY_BYTES:,} bytes")
    try:
        return dict(parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=20))
    except ValueError:
        raise Denied(400, "the query can't be read") from None


def make_console(runtime: Runtime, host: PartHost) -> Console:
    """The factory of the part."""
    return Console(runtime, host)
