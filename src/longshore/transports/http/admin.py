"""Health and metrics of the HTTP server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from time import monotonic, time
from typing import Final, Literal, final

import msgspec
from msgspec import Struct

from longshore import __version__
from longshore.server.engine import Engine
from longshore.stores import Store
from longshore.transports.http.cluster import Cluster
from longshore.transports.http.gate import HttpRequest
from longshore.transports.http.pending import Lifecycle
from longshore.transports.http.responses import JSON_TYPE, Receive, Send, reply
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

    def __init__(self, engine: Engine, store: Store, lifecycle: Lifecycle) -> None:
        self._executor, self._recorder = engine.executor, engine.recorder
        self._store, self._lifecycle = store, lifecycle
        self._look: asyncio.Task[list[str]] | None = None
        self._looked_at = 0.0
        self._known: list[str] = []

    async def serve(self, request: HttpRequest, _: Receive, send: Send) -> None:
        """GET /health."""
        headers = (JSON_TYPE, (b"cache-control", b"no-store"), *request.extra)
        if self._lifecycle.stopping:
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
        """The parts that fail. Concurrent requests share one check, and its result is used for a second."""
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
                await self._store.check()
        except Exception as problem:
            problems["store"] = problem
        self._tell(problems)
        return list(problems)

    @property
    def _crowded(self) -> bool:
        """Whether a call would have to wait for a place."""
        executor = self._executor
        return executor.running >= executor.limits.running or executor.queued > 0

    @property
    def _full(self) -> bool:
        """Whether a call would be refused, because too many wait."""
        executor = self._executor
        return self._crowded and executor.queued >= executor.limits.parked

    def _out_of_threads(self) -> bool:
        """Whether calls that were given up hold every thread, so that `def` tools are refused until a restart."""
        executor = self._executor
        return 0 < executor.limits.abandoned <= executor.abandoned

    def _tell(self, problems: dict[str, Exception | None]) -> None:
        """Log what has begun to fail."""
        for name, problem in problems.items():
            if name not in self._known:
                self._recorder.problem("error", f"not healthy: the {name} failed its check", problem)
        self._known = list(problems)


_TYPE: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class ProcessMetrics(Struct, array_like=True):
    """The metrics of one process. New fields go to the end, with a default: another version may read them."""

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
    """A metric as Prometheus sees it: the sum of one field of all processes."""

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
    """The metrics of one process, and the sum over all processes that serve together.

    Every process stores its metrics with its heartbeat, and once more before it answers a scrape; so the next process
    that is asked counts from there, and a sum never decreases while the same processes run.
    """

    def __init__(
        self, engine: Engine, store: Store, cluster: Cluster, sessions: Sessions, sse: SseSessions, uploads: Uploads
    ) -> None:
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
        return ProcessMetrics(
            started=self._started,
            memory=_resident_bytes(),
            calls=executor.calls,
            running=executor.running,
            parked=executor.queued,
            live=len(executor.live),
            abandoned=executor.abandoned,
            sessions=len(lives) + len(self._sse.open),
            streams=sum(len(live.streams) for live in lives.values()),
            listens=len(engine.subscriptions.listens),
            tools={
                entry.name: (entry.calls, entry.failures)
                for entry in tuple(engine.catalog.tools.values())
                if entry.calls or entry.failures
            },
            uploads=self._uploads.held,
        )

    async def _gather(self) -> list[ProcessMetrics]:
        """The metrics of all processes. Raises StoreError: half a sum would look like a restart."""
        if not self._store.shared:
            return [self.take()]
        return [found for raw in await self._cluster.all_metrics() if (found := self._read(raw)) is not None]

    def _read(self, raw: bytes) -> ProcessMetrics | None:
        try:
            return _decode(raw)
        except msgspec.DecodeError as problem:
            text = "the metrics of another process can't be read; is it another version?"
            self._engine.recorder.problem("warning", text, problem)
            return None


def render(processes: Sequence[ProcessMetrics], tools: Sequence[str], server_info: dict[str, object]) -> str:
    """The text that Prometheus reads. `tools` are all tools, called or not."""
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
    """The resident memory of this process; 0 where the system has no /proc."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
