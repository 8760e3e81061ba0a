"""Code that blocks the event loop is named, and the call's timeout is answered when the loop is free again."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from typing import Any

import pytest

from longshore import Server
from longshore.server import watchdog
from longshore.telemetry.records import Problem, Record
from waiting import eventually

from .test_engine import SECONDS, Peer, run, text_of


class Reports:
    """The problems of a server. Blocking code waits for the next one, in place of a sleep."""

    def __init__(self, app: Server) -> None:
        self.texts: list[str] = []
        self.came = threading.Event()
        app.listen(self._hear)

    def at(self, place: str) -> str:
        """The one that names this place."""
        (found,) = [text for text in self.texts if place in text]
        return found

    def _hear(self, record: Record) -> None:
        if isinstance(record, Problem):
            self.texts.append(record.text)
            self.came.set()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(watchdog, "BLOCKED_SECONDS", 0.25)


def line_of(function: Any, text: str) -> str:
    lines, first = inspect.getsourcelines(function)
    return f"test_watchdog.py:{first + next(n for n, line in enumerate(lines) if text in line)}"


def watchdog_of(app: Server) -> watchdog.Watchdog:
    """A watchdog of its own, to be changed: the one of an earlier test may still look once."""
    executor = app.engine.executor
    executor._watchdog = watchdog.Watchdog(executor)
    return executor._watchdog


@pytest.mark.parametrize("mode", ["async", "inline"])
def test_a_tool_that_blocks_the_loop_is_named_with_its_file_and_line(mode: str) -> None:
    async def body() -> None:
        app = Server("t")
        reports = Reports(app)
        never = asyncio.Event()

        def download() -> bool:
            return reports.came.wait(SECONDS)  # a library's code blocks, called here

        if mode == "async":

            @app.tool
            async def fetch() -> bool:
                return download()
        else:
            app.tool(name="fetch", run="inline")(download)

        @app.tool
        async def other() -> str:
            await never.wait()
            return "went on"

        peer = Peer(app)
        peer.call(1, "other")
        await asyncio.sleep(0)
        peer.call(2, "fetch")
        assert text_of(await peer.get()) == "true"
        never.set()
        assert text_of(await peer.get()) == "went on"
        report = reports.at(line_of(download, "came.wait"))
        assert report.startswith("fetch has blocked the event loop for ")
        assert "write `def`, which runs in a thread, or `await asyncio.to_thread(…)`" in report
        eventually("the thread's end", lambda: not app.engine.executor.watched)

    run(body())


def test_a_task_that_a_tool_started_is_named_by_its_line() -> None:
    async def body() -> None:
        app = Server("t")
        reports = Reports(app)

        async def part() -> bool:
            return reports.came.wait(SECONDS)

        @app.tool
        async def gather() -> list[bool]:
            return list(await asyncio.gather(part(), part()))

        peer = Peer(app)
        peer.call(1, "gather")
        assert text_of(await peer.get()) == "[true,true]"
        report = reports.at(line_of(part, "came.wait"))
        assert " part has blocked the event loop" in report
        assert "while gather ran" in report

    run(body())


def test_a_task_that_began_while_another_blocked_is_not_blamed_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    first_found, second_runs, enough = threading.Event(), threading.Event(), threading.Event()
    answers = iter([False])

    def loop_answers() -> bool:
        """No, the first time, and the second task begins just then."""
        first_found.set()
        assert second_runs.wait(SECONDS)
        if next(answers, True):
            enough.set()
            return True
        return False

    async def body() -> None:
        app = Server("t")
        reports = Reports(app)
        monkeypatch.setattr(watchdog_of(app), "_loop_answers", loop_answers)

        async def first() -> bool:
            return first_found.wait(SECONDS)

        async def second() -> bool:
            second_runs.set()
            return enough.wait(SECONDS)

        @app.tool
        async def gather() -> list[bool]:
            return list(await asyncio.gather(first(), second()))

        peer = Peer(app)
        peer.call(1, "gather")
        assert text_of(await peer.get()) == "[true,true]"
        assert reports.texts == []

    run(body())


def test_each_blocking_location_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    enough = threading.Event()

    def spot(frame: Any) -> str:
        seen.append(place(frame))
        if len(seen) == 3:
            enough.set()
        return seen[-1]

    place = watchdog.locate_frame
    monkeypatch.setattr(watchdog, "locate_frame", spot)

    async def body() -> None:
        app = Server("t")
        reports = Reports(app)

        @app.tool
        async def fetch() -> bool:
            return enough.wait(SECONDS)

        peer = Peer(app)
        peer.call(1, "fetch")
        assert text_of(await peer.get()) == "true"
        reports.at(line_of(fetch, "enough.wait"))

    run(body())


def test_a_call_that_returns_after_its_timeout_is_answered_with_the_timeout() -> None:
    """The loop was blocked, so the timer could not fire: what it returned late is no success."""

    async def body() -> None:
        app = Server("t")

        @app.tool(timeout=0.01)
        async def late() -> str:
            threading.Event().wait(0.05)
            return "late"

        peer = Peer(app)
        peer.call(1, "late")
        answer = await peer.get()
        assert answer["result"]["isError"] is True
        assert text_of(answer).startswith("late did not finish within 0.01 s (its `timeout`)")

    run(body())


def test_a_call_that_blocks_past_its_timeout_and_goes_on_is_answered_at_once() -> None:
    async def body() -> None:
        app = Server("t")
        never = asyncio.Event()

        @app.tool(timeout=0.01)
        async def late() -> None:
            threading.Event().wait(0.05)
            await never.wait()

        peer = Peer(app)
        peer.call(1, "late")
        assert text_of(await peer.get()).startswith("late did not finish within 0.01 s and was stopped")

    run(body())


def test_after_a_thread_that_failed_the_next_call_starts_another(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", failures.append)

    def fail() -> None:
        raise RuntimeError("no frames today")

    async def body() -> None:
        app = Server("t")
        monkeypatch.setattr(watchdog_of(app), "_find", fail)
        never = asyncio.Event()

        @app.tool
        async def wait() -> None:
            await never.wait()

        peer = Peer(app)
        for count in (1, 2):
            peer.call(count, "wait")
            eventually("the thread's end", lambda count=count: len(failures) == count)  # type: ignore[misc]
            assert not app.engine.executor.watched
            await asyncio.sleep(0)
        never.set()
        for _ in range(2):
            await peer.get()

    run(body())
