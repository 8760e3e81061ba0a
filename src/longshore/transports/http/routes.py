"""Every path but MCP's own: the endpoints of 2024-11-05, REST, health, metrics, and what browsers ask for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from time import monotonic, time
from typing import Final, TypeAlias, final

import msgspec
from msgspec import Struct

from longshore import __version__
from longshore.auth.credentials import Refusal
from longshore.auth.guard import Guard
from longshore.config import Config
from longshore.server.engine import Engine
from longshore.stores import Store
from longshore.telemetry.counters import BUCKETS, Counters
from longshore.transports.http.cluster import Cluster
from longshore.transports.http.gate import COOKIE, Denied, HttpRequest, denial
from longshore.transports.http.pending import Delivery
from longshore.transports.http.responses import JSON_TYPE, Receive, Send, reply
from longshore.transports.http.rest import OPENAPI, TOOLS, RestEndpoint
from longshore.transports.http.sessions import Sessions
from longshore.transports.http.sse_2024 import SseSessions
from longshore.transports.http.uploads import Uploads
from longshore.wire.codec import encode

FRESH_SECONDS: Final = 1.0
"""How long a result is used again, so that frequent probes cost no more than rare ones."""
CHECK_SECONDS: Final = 2.0
"""A store that takes longer counts as failed."""


@final
class Health:
    """The health of one process. A part that fails is named; the log says why, since the path is public."""

    def __init__(self, delivery: Delivery, store: Store) -> None:
        self._delivery, self._store = delivery, store
        self._executor, self._recorder = delivery.engine.executor, delivery.engine.recorder
        self._look: asyncio.Task[list[str]] | None = None
        self._looked_at = 0.0
        self._known: list[str] = []

    async def serve(self, request: HttpRequest, _: Receive, send: Send) -> None:
        """GET /health."""
        headers = (JSON_TYPE, (b"cache-control", b"no-store"), *request.extra)
        if self._delivery.stopping:
            await reply(send, 503, encode({"status": "stopping"}), headers)
            return
        failed, executor = await self._latest(), self._executor
        must_wait = executor.running >= executor.limits.running or executor.queued > 0
        if failed:
            await reply(send, 503, encode({"status": "failing", "failed": failed}), headers)
        elif must_wait and executor.queued >= executor.limits.parked:  # a call would be refused
            await reply(send, 503, encode({"status": "busy"}), (*headers, (b"retry-after", b"1")))
        else:
            await reply(send, 200, encode({"status": "busy" if must_wait else "ok"}), headers)

    async def _latest(self) -> list[str]:
        """The parts that fail. Concurrent requests share one check, and its result is used for a second."""
        look, now = self._look, monotonic()
        if look is None or look.cancelled() or (look.done() and now - self._looked_at >= FRESH_SECONDS):
            self._looked_at = now
            self._look = look = asyncio.get_running_loop().create_task(self._look_now())
        return await asyncio.shield(look)

    async def _look_now(self) -> list[str]:
        """Check each part, and log what has begun to fail."""
        problems: dict[str, Exception | None] = {}
        # Calls that were given up may hold every thread; `def` tools are then refused until a restart.
        if 0 < self._executor.limits.abandoned <= self._executor.abandoned:
            problems["threads"] = None
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self._store.check()
        except Exception as error:
            problems["store"] = error
        for name, problem in problems.items():
            if name not in self._known:
                self._recorder.problem("error", f"not healthy: the {name} failed its check", problem)
        self._known = list(problems)
        return self._known


_TYPE: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


METRICS: Final = {
    "longshore_calls_total": ("counter", "Calls of tools, resources, prompts and completions begun."),
    "longshore_calls_running": ("gauge", "Calls that run."),
    "longshore_calls_parked": ("gauge", "Calls that wait for a free place."),
    "longshore_calls_live": ("gauge", "Calls without an answer yet: running, parked or asking."),
    "longshore_threads_abandoned": ("gauge", "Threads still held by calls that were given up."),
    "longshore_sessions": ("gauge", "Handshake-era sessions that are loaded."),
    "longshore_streams": ("gauge", "Streams of those sessions that are being written."),
    "longshore_listens": ("gauge", "Open subscriptions/listen requests."),
    "longshore_upload_bytes": ("gauge", "Bytes counted for request bodies that have not ended."),
    "process_resident_memory_bytes": ("gauge", "Resident memory."),
}
"""The type and help text of each number that is summed over all processes."""


REQUEST_METRICS: Final = {
    "longshore_requests_total": ("counter", "Requests answered or dropped, by their outcome."),
    "longshore_request_seconds": ("histogram", "From the arrival of a request to its answer."),
    "longshore_tool_seconds": ("histogram", "How long a tool ran."),
    "longshore_answer_tokens_total": ("counter", "Tokens of the answers of a tool, of four characters each."),
    "longshore_refusals_total": ("counter", "Requests refused, and why; status is HTTP's, if HTTP refused it."),
    "longshore_limits_reached_total": ("counter", "Requests that met a limit."),
    "longshore_telemetry_dropped_total": ("counter", "Events that did not reach a sink."),
}
"""The type and help text of what is counted by labels."""


class ProcessMetrics(Struct):
    """The metrics of one process."""

    started: float = 0.0
    sums: dict[str, int] = {}
    """By the names of METRICS. Another version may have others."""
    tools: dict[str, tuple[int, int]] = {}
    """Calls and failures of each tool that had any."""
    samples: list[tuple[str, list[tuple[str, str]], float]] = []
    """Of REQUEST_METRICS: a name, labels and a value each."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ProcessMetrics).decode


@final
class Metrics:
    """The metrics of one process, and the sum over all processes that serve together.

    Every process stores its metrics with its heartbeat, and once more before it answers a scrape; so the next process
    that is asked counts from there, and a sum never decreases while the same processes run.
    """

    def __init__(
        self,
        engine: Engine,
        store: Store,
        cluster: Cluster,
        sessions: Sessions,
        sse: SseSessions,
        uploads: Uploads,
        counters: Counters | None,
    ) -> None:
        """`counters` is None where requests are not recorded."""
        self._counters = counters
        self._engine, self._store, self._cluster = engine, store, cluster
        self._sessions, self._sse, self._uploads = sessions, sse, uploads
        self._started = time()

    async def serve(self, request: HttpRequest, _: Receive, send: Send) -> None:
        """GET /metrics."""
        text = render(await self._gather(), list(self._engine.catalog.tools), self._engine.server_info)
        await reply(send, 200, text.encode(), (_TYPE, *request.extra))

    def encoded(self) -> bytes:
        """The metrics of this process, for the others."""
        return _encode(self.take())

    def take(self) -> ProcessMetrics:
        """The metrics of this process, now."""
        engine, lives = self._engine, self._sessions.loaded
        executor = engine.executor
        sums = {
            "longshore_calls_total": executor.calls,
            "longshore_calls_running": executor.running,
            "longshore_calls_parked": executor.queued,
            "longshore_calls_live": len(executor.live),
            "longshore_threads_abandoned": executor.abandoned,
            "longshore_sessions": len(lives) + len(self._sse.open),
            "longshore_streams": sum(len(live.streams) for live in lives.values()),
            "longshore_listens": len(engine.subscriptions.listens),
            "longshore_upload_bytes": self._uploads.held,
            "process_resident_memory_bytes": _resident_bytes(),
        }
        entries = [each.wrapped or each for each in tuple(engine.catalog.tools.values())]
        tools = {each.name: (each.calls, each.failures) for each in entries if each.calls or each.failures}
        return ProcessMetrics(self._started, sums, tools, self._samples())

    def _samples(self) -> list[tuple[str, list[tuple[str, str]], float]]:
        counted = {} if self._counters is None else self._counters.take()
        samples = [(name, list(labels), value) for (name, labels), value in counted.items()]
        for sink, drops in list(self._engine.recorder.drops.items()):
            dropped = self._counters.dropped if sink == "metrics" and self._counters is not None else drops()
            samples.append(("longshore_telemetry_dropped_total", [("sink", sink)], dropped))
        return samples

    async def _gather(self) -> list[ProcessMetrics]:
        """The metrics of all processes. Raises StoreError: half a sum would look like a restart."""
        if not self._store.shared:
            return [self.take()]
        found: list[ProcessMetrics] = []
        for raw in await self._cluster.all_metrics():
            try:
                found.append(_decode(raw))
            except msgspec.DecodeError as problem:
                text = "the metrics of another process can't be read; is it another version?"
                self._engine.recorder.problem("warning", text, problem)
        return found


def render(processes: Sequence[ProcessMetrics], tools: Sequence[str], server_info: dict[str, object]) -> str:
    """The text that Prometheus reads. `tools` are all tools, called or not."""
    info = {"version": __version__, "server": server_info.get("name"), "server_version": server_info.get("version")}
    started = min((each.started for each in processes), default=0.0)
    sums = {name: [0, 0] for name in tools}
    for each in processes:
        for name, counts in each.tools.items():
            sums[name] = [before + count for before, count in zip(sums.get(name, (0, 0)), counts, strict=True)]
    calls, failures = ([({"tool": name}, counts[at]) for name, counts in sums.items()] for at in (0, 1))
    failed = "Calls of a tool answered with a failure, refused ones included."
    return "".join(
        (
            _metric("longshore_info", "gauge", "What runs here.", [(info, 1)]),
            _metric(
                "longshore_workers", "gauge", "Processes that these numbers are the sum of.", [({}, len(processes))]
            ),
            _metric("process_start_time_seconds", "gauge", "When the first of the processes started.", [({}, started)]),
            *(
                _metric(name, type, help, [({}, sum(each.sums.get(name, 0) for each in processes))])
                for name, (type, help) in METRICS.items()
            ),
            _metric("longshore_tool_calls_total", "counter", "Calls of a tool begun.", calls),
            _metric("longshore_tool_failures_total", "counter", failed, failures),
            *_request_metrics(processes),
        )
    )


def _request_metrics(processes: Sequence[ProcessMetrics]) -> Iterator[str]:
    """The counters and histograms of requests, summed over all processes."""
    sums: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for name, labels, value in (sample for each in processes for sample in each.samples):
        found = sums.setdefault(name, {})
        key = tuple(labels)
        found[key] = found.get(key, 0) + value
    for name, (type, help) in REQUEST_METRICS.items():
        if type == "histogram":
            yield _histogram(name, help, sums)
        else:
            yield _metric(name, type, help, [(dict(labels), value) for labels, value in sums.get(name, {}).items()])


def _histogram(name: str, help: str, sums: Mapping[str, Mapping[tuple[tuple[str, str], ...], float]]) -> str:
    buckets = sums.get(f"{name}_bucket", {})
    lines = [_metric(name, "histogram", help, [])]
    for own in sums.get(f"{name}_count", {}):
        below = 0.0
        for bound in (*(f"{bucket:g}" for bucket in BUCKETS), "+Inf"):
            below += buckets.get((*own, ("le", bound)), 0)
            lines.append(_sample(f"{name}_bucket", {**dict(own), "le": bound}, below))
        lines += [_sample(f"{name}{part}", dict(own), sums[f"{name}{part}"][own]) for part in ("_sum", "_count")]
    return "".join(lines)


def _metric(name: str, type: str, help: str, samples: Sequence[tuple[Mapping[str, object], float]]) -> str:
    lines = [f"# HELP {name} {help}\n# TYPE {name} {type}\n"]
    return "".join([*lines, *(_sample(name, labels, value) for labels, value in samples)])


def _sample(name: str, labels: Mapping[str, object], value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(str(label))}"' for key, label in labels.items())
    shown = f"{value:.6f}" if isinstance(value, float) and not value.is_integer() else f"{value:.0f}"
    return f"{name}{{{inside}}} {shown}\n" if inside else f"{name} {shown}\n"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _resident_bytes() -> int:
    """The resident memory of this process; 0 where the system has no /proc."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


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
        cookie_guard: Guard,
    ) -> None:
        """`cookie_guard` makes the cookies of browsers."""
        self._cookie_guard = cookie_guard
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
        cookie = self._cookie_guard.cookie(request.headers)
        if isinstance(cookie, Refusal):
            raise denial(cookie)
        await reply(send, 204, b"", ((b"set-cookie", cookie.encode("latin-1")), *request.extra))

    # -- authorization

    async def _describe_resource(self, request: HttpRequest, _: Receive, send: Send) -> None:
        await reply(send, 200, encode(self._guard.metadata()), (JSON_TYPE, *request.extra))
