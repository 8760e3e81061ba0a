"""Every path but MCP's own: the endpoints of 2024-11-05, plain REST, health, metrics, and what browsers ask for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from time import monotonic, time
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, final

import msgspec
from msgspec import Struct

from longshore import __version__
from longshore.auth.credentials import Refusal
from longshore.transports.http.gate import COOKIE, Denied, Request, denial
from longshore.transports.http.responses import JSON_TYPE, Receive, Send, reply
from longshore.transports.http.rest import OPENAPI, TOOLS, Rest
from longshore.transports.http.sse_2024 import SseSessions
from longshore.wire.codec import encode

if TYPE_CHECKING:
    from longshore.transports.http.app import HttpApp
    from longshore.transports.http.gate import Request

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
        self.sse = SseSessions(app)
        self._rest = Rest(app)
        health, metrics = Health(app).serve, Metrics(app).serve
        self._known: dict[str, dict[str, Serve]] = {
            "/health": {"GET": health, "HEAD": health},
            "/metrics": {"GET": metrics, "HEAD": metrics},
            "/sse": {"GET": self.sse.listen},
            "/messages": {"POST": self.sse.post},
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


FRESH_SECONDS: Final = 1.0
"""For so long an answer stands: asking often must not cost more than asking."""
CHECK_SECONDS: Final = 2.0
"""A store that takes longer is as good as none."""


@final
class Health:
    """The health of one process. What fails is named; why it does is for the log, since anybody may ask."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self._look: asyncio.Task[list[str]] | None = None
        self._looked_at = 0.0
        self._known: list[str] = []

    async def serve(self, request: Request, _: Receive, send: Send) -> None:
        """GET /health."""
        headers = (JSON_TYPE, (b"cache-control", b"no-store"), *request.extra)
        if self._app.stopping:
            await reply(send, 503, encode({"status": "stopping"}), headers)
            return
        failed = await self._latest()
        if failed:
            await reply(send, 503, encode({"status": "failing", "failed": failed}), headers)
        elif self._full:
            await reply(send, 503, encode({"status": "busy"}), (*headers, (b"retry-after", b"1")))
        else:
            await reply(send, 200, encode({"status": "busy" if self._crowded else "ok"}), headers)

    async def _latest(self) -> list[str]:
        """What fails, by the last look if it is fresh. Who asks while one is taken shares it."""
        look, now = self._look, monotonic()
        if look is None or look.cancelled() or (look.done() and now - self._looked_at >= FRESH_SECONDS):
            self._looked_at = now
            self._look = look = asyncio.get_running_loop().create_task(self._look_now())
        return await asyncio.shield(look)

    async def _look_now(self) -> list[str]:
        problems: dict[str, Exception | None] = {}
        if self._out_of_threads():
            problems["threads"] = None
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self._app.store.check()
        except Exception as problem:
            problems["store"] = problem
        self._tell(problems)
        return list(problems)

    @property
    def _crowded(self) -> bool:
        """Whether a call would have to wait for a place. Ours would only make others wait, and tell nothing."""
        executor = self._app.engine.executor
        return executor.running >= executor.limits.running or executor.queued > 0

    @property
    def _full(self) -> bool:
        """Whether a call would be refused, because too many wait."""
        executor = self._app.engine.executor
        return self._crowded and executor.queued >= executor.limits.parked

    def _out_of_threads(self) -> bool:
        """Whether calls that were given up hold every thread, so that `def` tools are refused until a restart."""
        executor = self._app.engine.executor
        return 0 < executor.limits.abandoned <= executor.abandoned

    def _tell(self, problems: dict[str, Exception | None]) -> None:
        """Put into the log what has begun to fail; what still does was said before."""
        for name, problem in problems.items():
            if name not in self._known:
                self._app.engine.recorder.problem("error", f"not healthy: the {name} failed its check", problem)
        self._known = list(problems)


_TYPE: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class ProcessMetrics(Struct, array_like=True):
    """What one process has counted. New fields go to the end, with a default: another version may read them."""

    started: float = 0.0
    memory: int = 0
    calls: int = 0
    running: int = 0
    parked: int = 0
    live: int = 0
    abandoned: int = 0
    sessions: int = 0
    streams: int = 0
    listens: int = 0
    tools: dict[str, tuple[int, int]] = {}
    """Calls and failures of each tool that had any."""
    uploads: int = 0


class Metric(Struct, frozen=True):
    """A number as it is shown. `field` is where it stands in the record of a process; they are added up."""

    field: str
    name: str
    type: Literal["counter", "gauge"]
    help: str


METRICS: Final = (
    Metric("calls", "longshore_calls_total", "counter", "Calls of tools, resources, prompts and completions begun."),
    Metric("running", "longshore_calls_running", "gauge", "Calls that run."),
    Metric("parked", "longshore_calls_parked", "gauge", "Calls that wait for a free place."),
    Metric("live", "longshore_calls_live", "gauge", "Calls without an answer yet: running, parked or asking."),
    Metric("abandoned", "longshore_threads_abandoned", "gauge", "Threads still held by calls that were given up."),
    Metric("sessions", "longshore_sessions", "gauge", "Handshake-era sessions at hand."),
    Metric("streams", "longshore_streams", "gauge", "Streams of those sessions that are being written."),
    Metric("listens", "longshore_listens", "gauge", "Open subscriptions/listen requests."),
    Metric("uploads", "longshore_upload_bytes", "gauge", "Bytes counted for request bodies that have not ended."),
    Metric("memory", "process_resident_memory_bytes", "gauge", "Resident memory."),
)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ProcessMetrics).decode


@final
class Metrics:
    """The numbers of one process, and its way to the others'."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self._started = time()
        app.workers.numbers = lambda: _encode(self.take())

    async def serve(self, request: Request, _: Receive, send: Send) -> None:
        """GET /metrics."""
        text = render(await self._gather(), list(self._app.engine.catalog.tools), self._app.engine.server_info)
        await reply(send, 200, text.encode(), (_TYPE, *request.extra))

    def take(self) -> ProcessMetrics:
        """This process, now."""
        app, engine = self._app, self._app.engine
        executor, lives = engine.executor, app.sessions.loaded
        return ProcessMetrics(
            started=self._started,
            memory=_resident_bytes(),
            calls=executor.calls,
            running=executor.running,
            parked=executor.queued,
            live=len(executor.live),
            abandoned=executor.abandoned,
            sessions=len(lives) + len(app.routes.sse.open),
            streams=sum(len(live.streams) for live in lives.values()),
            listens=len(engine.subscriptions.listens),
            tools={
                entry.name: (entry.calls, entry.failures)
                for entry in tuple(engine.catalog.tools.values())
                if entry.calls or entry.failures
            },
            uploads=app.uploads.held,
        )

    async def _gather(self) -> list[ProcessMetrics]:
        """The numbers of all processes. If the others' can't be had it fails: half a sum would look like a restart."""
        app = self._app
        if not app.store.shared:
            return [self.take()]
        await app.workers.heartbeat()
        found = await app.store.find("worker:")
        return [numbers for raw in found.values() if (numbers := self._read(raw)) is not None]

    def _read(self, raw: bytes) -> ProcessMetrics | None:
        try:
            return _decode(raw)
        except msgspec.DecodeError as problem:
            text = "the numbers of another process can't be read; is it another version?"
            self._app.engine.recorder.problem("warning", text, problem)
            return None


def render(processes: Sequence[ProcessMetrics], tools: Sequence[str], server_info: dict[str, object]) -> str:
    """The text that Prometheus reads. `tools` are those that are there, called or not."""
    return "".join(_lines(processes, tools, server_info))


def _lines(processes: Sequence[ProcessMetrics], tools: Sequence[str], server_info: dict[str, object]) -> Iterator[str]:
    yield from _head("longshore_info", "gauge", "What runs here.")
    info = {"version": __version__, "server": server_info.get("name"), "server_version": server_info.get("version")}
    yield _sample("longshore_info", 1, info)
    yield from _head("longshore_workers", "gauge", "Processes that these numbers are the sum of.")
    yield _sample("longshore_workers", len(processes))
    yield from _head("process_start_time_seconds", "gauge", "When the first of the processes started.")
    yield _sample("process_start_time_seconds", min((each.started for each in processes), default=0.0))
    for metric in METRICS:
        yield from _head(metric.name, metric.type, metric.help)
        yield _sample(metric.name, sum(getattr(each, metric.field) for each in processes))
    yield from _tool_lines(processes, tools)


def _tool_lines(processes: Sequence[ProcessMetrics], tools: Sequence[str]) -> Iterator[str]:
    sums = {name: [0, 0] for name in tools}
    for each in processes:
        for name, (calls, failures) in each.tools.items():
            counted = sums.setdefault(name, [0, 0])
            counted[0] += calls
            counted[1] += failures
    for at, name, help in (
        (0, "longshore_tool_calls_total", "Calls of a tool begun."),
        (1, "longshore_tool_failures_total", "Calls of a tool answered with a failure, refused ones included."),
    ):
        yield from _head(name, "counter", help)
        for tool, counted in sums.items():
            yield _sample(name, counted[at], {"tool": tool})


def _head(name: str, type: str, help: str) -> Iterator[str]:
    escaped = help.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {name} {escaped}\n"
    yield f"# TYPE {name} {type}\n"


def _sample(name: str, value: float, labels: dict[str, object] | None = None) -> str:
    inside = ",".join(f'{key}="{_escaped(str(label))}"' for key, label in (labels or {}).items())
    return f"{name}{{{inside}}} {value}\n" if inside else f"{name} {value}\n"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _resident_bytes() -> int:
    """What this process holds in memory; 0 where the system does not say so in a file."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
