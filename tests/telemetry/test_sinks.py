"""Sinks: a log file that rotates, a history that forgets, and threads that hold up no call, whatever a sink does."""

from __future__ import annotations

import asyncio
import json
import stat
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from longshore import Server
from longshore.config import Config
from longshore.config.sections import TelemetryConfig
from longshore.errors import ConfigError
from longshore.telemetry.feeder import Feeder
from longshore.telemetry.history import History, read_history
from longshore.telemetry.lines import json_line
from longshore.telemetry.log_file import LogFile
from longshore.telemetry.recorder import Recorder
from longshore.telemetry.records import Problem, RequestCompleted, level_of
from longshore.telemetry.ring import Event
from longshore.telemetry.sinks import Sinks
from memory_link import Memory
from waiting import eventually

AT = 1_700_000_000.0


def event(number: int, at: float = AT) -> Event:
    return number, 5, Problem("info", f"{number:06}", at)


LINE = len(json_line(event(0)[2], level_of(event(0)[2])))


def texts(path: Path) -> list[str]:
    return [json.loads(line)["text"] for line in path.read_text().splitlines()]


# -- the log file


@pytest.mark.parametrize(("room", "first"), [(-1, 2), (0, 3), (1, 3)])
def test_a_file_rotates_at_its_size(tmp_path: Path, room: int, first: int) -> None:
    path = tmp_path / "log.jsonl"
    log = LogFile(str(path), 3 * LINE + room, 2)
    log.write([event(number) for number in range(4)], 0.0)
    log.close()
    assert texts(tmp_path / "log.jsonl.1") == [f"{number:06}" for number in range(first)]
    assert texts(path) == [f"{number:06}" for number in range(first, 4)]


@pytest.mark.parametrize(("count", "files"), [(1, 2), (2, 3), (3, 4), (4, 4)])
def test_so_many_old_files_are_kept(tmp_path: Path, count: int, files: int) -> None:
    log = LogFile(str(tmp_path / "log"), LINE, count)
    for number in range(4):
        log.write([event(number)], 0.0)
    log.close()
    found = sorted(tmp_path.glob("log*"))
    assert len([each for each in found if each.name != "log.lock"]) == files
    assert texts(tmp_path / "log") == ["000003"]
    assert texts(tmp_path / "log.1") == ["000002"]


def test_without_old_files_the_file_begins_anew(tmp_path: Path) -> None:
    log = LogFile(str(tmp_path / "log"), LINE, 0)
    log.write([event(1), event(2)], 0.0)
    log.close()
    assert texts(tmp_path / "log") == ["000002"]


def test_two_writers_of_one_file_lose_no_line(tmp_path: Path) -> None:
    logs = [LogFile(str(tmp_path / "log"), 20 * LINE, 50) for _ in range(2)]

    def write(name: int) -> None:
        for number in range(300):
            logs[name].write([event(name * 500 + number)], 0.0)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [text for path in tmp_path.glob("log*") if path.suffix != ".lock" for text in texts(path)]
    assert sorted(found) == sorted(f"{name * 500 + number:06}" for name in range(2) for number in range(300))


def test_a_file_is_its_owners(tmp_path: Path) -> None:
    LogFile(str(tmp_path / "new" / "log"), 100, 1).close()
    assert stat.S_IMODE((tmp_path / "new" / "log").stat().st_mode) == 0o600


# -- the history


@pytest.mark.parametrize(("age", "kept"), [(59, True), (60, True), (61, False)])
def test_records_are_deleted_at_their_age(tmp_path: Path, age: int, kept: bool) -> None:
    history = History(str(tmp_path / "h.sqlite"), 60.0, 1 << 30, clock=lambda: AT)
    history.write([event(1, AT - age), event(2, AT)], 0.0)
    history.prune()
    history.close()
    found = [record.text for _, record in read_history(str(tmp_path / "h.sqlite"))]  # type: ignore[union-attr]
    assert found == (["000001", "000002"] if kept else ["000002"])


def test_the_oldest_are_deleted_at_the_size(tmp_path: Path) -> None:
    def fill(most: int) -> tuple[int, list[int]]:
        history = History(str(tmp_path / f"{most}.sqlite"), 60.0, most, clock=lambda: AT)
        for start in range(0, 5000, 500):
            history.write([event(start + number) for number in range(500)], 0.0)
        size = history.size
        history.close()
        numbers: list[int] = []
        while more := read_history(str(tmp_path / f"{most}.sqlite"), numbers[-1] if numbers else 0):
            numbers += [number for number, _ in more]
        return size, numbers

    whole, every = fill(1 << 30)
    assert len(every) == 5000
    for most, complete in ((whole - 1, False), (whole, True), (whole + 1, True)):
        size, numbers = fill(most)
        assert size <= most
        assert (len(numbers) == 5000) is complete
        assert numbers == every[len(every) - len(numbers) :], "the latest are there"


def test_every_kind_of_record_can_be_read_again(tmp_path: Path) -> None:
    history = History(str(tmp_path / "h.sqlite"), 1e12, 1 << 30)
    done = RequestCompleted(id=1, method="tools/call", tool="add", seconds=0.5, outcome="ok", tokens=3, at=AT)
    history.write([(1, 5, done), (2, 5, Problem("error", "a \ud800 b", AT, "trace"))], 0.0)
    history.close()
    assert [record for _, record in read_history(str(tmp_path / "h.sqlite"))] == [
        done,
        Problem("error", "a \\ud800 b", AT, "trace"),
    ]


# -- sinks that fail


class Stuck:
    """A sink whose writes take until `gate` is set."""

    def __init__(self) -> None:
        self.gate, self.entered, self.written = threading.Event(), threading.Event(), list[Event]()

    def write(self, events: list[Event], offset: float) -> None:
        self.entered.set()
        assert self.gate.wait(60)
        self.written += events

    def close(self) -> None:
        pass


class Dead:
    """A sink that can't be written to."""

    def write(self, events: list[Event], offset: float) -> None:
        raise OSError("no space left on device")

    def close(self) -> None:
        raise OSError("nor can it be closed")


def make() -> Server:
    app = Server("sinks")

    @app.tool(run="inline")
    def add(a: int, b: int) -> int:
        return a + b

    @app.tool
    async def later(a: int) -> int:
        return a

    return app


def call(app: Server, times: int) -> None:
    """Call both tools so often, and have each answered."""

    async def run() -> None:
        link = Memory(app.engine)
        link.put(
            b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
            b'"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
        )
        async with asyncio.timeout(60):
            await link.get()
            for number in range(times):
                for tool, arguments in (("add", {"a": 1, "b": 2}), ("later", {"a": 3})):
                    params = {"name": tool, "arguments": arguments}
                    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
                    link.put(msgspec.json.encode(message))
                    assert b'"result":3' in await link.get()
        link.close()

    asyncio.run(run())


def test_a_sink_that_blocks_delays_no_call_and_loses_what_the_ring_can_not_hold() -> None:
    app, sink = make(), Stuck()
    ring = app.recorder.open_ring(100)
    feeder = Feeder("stuck", app.recorder, ring, lambda: sink)
    feeder.start()
    call(app, 1)
    assert sink.entered.wait(60)
    call(app, 200)
    assert not sink.written, "all of them were answered while it was stuck"
    sink.gate.set()
    eventually("the rest is written", lambda: sink.written and sink.written[-1][0] == ring.last)
    assert feeder.dropped > 0
    assert feeder.dropped + len(sink.written) == ring.last
    assert feeder.stop(60)
    assert app.recorder.threads == 0


def test_a_sink_that_fails_is_reported_once_and_what_it_lost_is_counted() -> None:
    app, said = make(), list[Any]()
    app.recorder.fallback = lambda: said.append  # type: ignore[assignment,return-value]
    feeder = Feeder("file", app.recorder, app.recorder.open_ring(1000), Dead)
    feeder.start()
    call(app, 20)
    eventually("it has failed", lambda: feeder.failures)
    call(app, 20)
    assert feeder.stop(60)
    assert feeder.dropped >= 40
    (problem,) = said
    assert problem.text == "telemetry can't be written to the file: no space left on device"


def test_a_sink_that_recovers_is_written_again(tmp_path: Path) -> None:
    app, folder = make(), tmp_path / "there"
    folder.write_text("a file is in the way")
    feeder = Feeder(
        "file", app.recorder, app.recorder.open_ring(1000), lambda: LogFile(str(folder / "log"), 1 << 20, 1)
    )
    feeder.start()
    call(app, 1)
    eventually("it has failed", lambda: feeder.failures)
    folder.unlink()
    call(app, 1)
    eventually("it is written", lambda: (folder / "log").exists() and (folder / "log").stat().st_size)
    assert feeder.stop(60)


def test_all_is_written_at_the_end(tmp_path: Path) -> None:
    app = make()
    telemetry = TelemetryConfig(file=str(tmp_path / "log"), history=str(tmp_path / "h.sqlite"))
    sinks = Sinks(app.recorder, Config(telemetry=telemetry), "sinks", "1")
    call(app, 50)
    sinks.close()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    kinds = [line["type"] for line in lines if line.get("tool") == "add"]
    assert kinds == ["request_received", "tool_invoked", "tool_completed", "request_completed"] * 50
    assert all("arguments" not in line and "result" not in line for line in lines)
    (done, *_) = [line for line in lines if line["type"] == "request_completed" and line.get("tool") == "add"]
    answer = (
        b'{"jsonrpc":"2.0","id":0,"result":{"content":[{"type":"text","text":"3"}],"structuredContent":{"result":3}}}'
    )
    assert (done["bytes"], done["tokens"]) == (len(answer), -(-len(answer) // 4))
    assert {key: done[key] for key in ("transport", "principal", "dialect", "revision", "outcome")} == {
        "transport": "memory",
        "principal": "local",
        "dialect": "mcp",
        "revision": "2025-11-25",
        "outcome": "ok",
    }
    first = read_history(str(tmp_path / "h.sqlite"), most=1)[0][1]
    assert type(first).__name__ == "RequestReceived"


def test_tokens_are_counted_in_characters() -> None:
    app = Server("wide")

    @app.tool(run="inline")
    def say() -> str:
        return "é" * 400

    ring = app.recorder.open_ring(100)
    from longshore.telemetry.events import expand

    async def run() -> None:
        link = Memory(app.engine)
        link.put(
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","_meta":'
            b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
        )
        answer = await link.get()
        (done,) = [each for each in expand(ring.since(0).events[-1], 0.0) if isinstance(each, RequestCompleted)]
        assert done.bytes == len(answer) == len(answer.decode()) + 400
        assert done.tokens == -(-len(answer.decode()) // 4)

    asyncio.run(run())


def test_a_collector_without_an_address_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"telemetry\.otlp: it is the address of a collector"):
        Sinks(Recorder(), Config(telemetry=TelemetryConfig(otlp="collector:4318")), "x", "1")
