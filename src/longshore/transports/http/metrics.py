"""Numbers for Prometheus, over all processes that serve together.

Every process leaves its numbers in the store with its heartbeat, and once more before it answers a scrape; so whichever
of them is asked next counts from there, and a sum never goes back while the same processes run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from time import time
from typing import TYPE_CHECKING, Final, Literal, final

import msgspec
from msgspec import Struct

from longshore import __version__
from longshore.transports.http.answers import Receive, Send, reply

if TYPE_CHECKING:
    from longshore.transports.http.app import HttpApp
    from longshore.transports.http.request import Request

_TYPE: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class Numbers(Struct, array_like=True):
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
_decode = msgspec.msgpack.Decoder(Numbers).decode


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

    def take(self) -> Numbers:
        """This process, now."""
        app, engine = self._app, self._app.engine
        executor, lives = engine.executor, app.sessions.lives
        return Numbers(
            started=self._started,
            memory=_resident_bytes(),
            calls=executor.calls,
            running=executor.running,
            parked=executor.parked,
            live=len(executor.live),
            abandoned=executor.abandoned,
            sessions=len(lives) + len(app.routes.old.open),
            streams=sum(len(live.streams) for live in lives.values()),
            listens=len(engine.subscriptions.listens),
            tools={
                entry.name: (entry.calls, entry.failures)
                for entry in tuple(engine.catalog.tools.values())
                if entry.calls or entry.failures
            },
            uploads=app.uploads.held,
        )

    async def _gather(self) -> list[Numbers]:
        """The numbers of all processes. If the others' can't be had it fails: half a sum would look like a restart."""
        app = self._app
        if not app.store.shared:
            return [self.take()]
        await app.workers.say_so()
        found = await app.store.find("worker:")
        return [numbers for raw in found.values() if (numbers := self._read(raw)) is not None]

    def _read(self, raw: bytes) -> Numbers | None:
        try:
            return _decode(raw)
        except msgspec.DecodeError as problem:
            text = "the numbers of another process can't be read; is it another version?"
            self._app.engine.recorder.problem("warning", text, problem)
            return None


def render(processes: Sequence[Numbers], tools: Sequence[str], server_info: dict[str, object]) -> str:
    """The text that Prometheus reads. `tools` are those that are there, called or not."""
    return "".join(_lines(processes, tools, server_info))


def _lines(processes: Sequence[Numbers], tools: Sequence[str], server_info: dict[str, object]) -> Iterator[str]:
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


def _tool_lines(processes: Sequence[Numbers], tools: Sequence[str]) -> Iterator[str]:
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
