"""Toolsets in a live process: opened once at first use, closed at every end, replaced while the client stays."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from waiting import eventually

from .conftest import Workshop
from .peer import Peer, call, request, text_of

COUNTED = """
    import asyncio, os, time
    from longshore import Server, Toolset, ToolError, tool
    app = Server("counted")

    def note(text):
        with open("log", "a") as file:
            file.write(text + "\\n")

    class Store(Toolset):
        def __init__(self):
            self.opened = 0

        async def start(self):
            note("start")
            while os.path.exists("hold"):
                await asyncio.sleep(0.005)
            if os.path.exists("fail"):
                raise RuntimeError("secret path /etc/shadow")
            self.opened += 1

        async def stop(self):
            note("stop")

        @tool
        async def later(self) -> int:
            return self.opened

        @tool
        def thread(self) -> int:
            return self.opened

        @tool(run="inline")
        def inline(self) -> int:
            return self.opened

    class Blocking(Toolset):
        def start(self):
            time.sleep(0.05)
            note("start blocking")

        def stop(self):
            note("stop blocking")

        @tool
        def use(self) -> str:
            return "used"

    class Unused(Toolset):
        def start(self): note("start unused")
        def stop(self): note("stop unused")
        @tool
        def never(self) -> str: ...

    app.add(Store())
    app.add(Blocking())
    app.add(Unused())
"""


def log(workshop: Workshop) -> list[str]:
    path = workshop.folder / "log"
    return path.read_text().splitlines() if path.exists() else []


def started(workshop: Workshop, source: str = COUNTED) -> Peer:
    peer = workshop.serve(source)
    peer.start()
    return peer


def test_a_toolset_is_not_started_before_its_first_use(workshop: Workshop) -> None:
    peer = started(workshop)
    peer.ask(request(1, "tools/list"))
    peer.close_input()
    assert peer.wait() == 0
    assert log(workshop) == []


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGINT"])
def test_started_toolsets_are_closed_at_the_end(workshop: Workshop, how: str) -> None:
    peer = started(workshop)
    peer.call("later")
    peer.call("use")
    if how == "end of input":
        peer.close_input()
    else:
        os.kill(peer.pid, signal.Signals[how])
    peer.wait()
    assert sorted(log(workshop)) == ["start", "start blocking", "stop", "stop blocking"]


def test_a_cancel_while_it_opens_does_not_stop_the_opening(workshop: Workshop) -> None:
    (workshop.folder / "hold").touch()
    peer = started(workshop)
    peer.send(call(1, "later"), call(2, "later"))
    eventually("it opens", lambda: log(workshop))
    peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    peer.ask(request("ping", "ping"))
    (workshop.folder / "hold").unlink()
    assert text_of(peer.answer(2)) == "1"
    assert log(workshop) == ["start"]
    assert 1 not in [frame.get("id") for frame in peer.seen]


def test_a_stop_that_fails_or_hangs_does_not_hold_the_end(workshop: Workshop) -> None:
    peer = started(
        workshop,
        """
        import asyncio, time
        from longshore import Server, Toolset, tool
        app = Server("unwilling")

        class Failing(Toolset):
            def start(self): ...
            def stop(self): raise RuntimeError("can't")
            @tool
            def first(self) -> str: return "1"

        class Hanging(Toolset):
            def start(self): ...
            def stop(self): time.sleep(600)
            @tool
            def second(self) -> str: return "2"

        class Forgetful(Toolset):
            async def start(self): self.task = asyncio.ensure_future(asyncio.sleep(600))
            async def stop(self):
                self.task.cancel()
                await self.task
            @tool
            def third(self) -> str: return "3"

        class Willing(Toolset):
            def start(self): ...
            def stop(self): open("stopped", "w").close()
            @tool
            def fourth(self) -> str: return "4"

        app.add(Failing())
        app.add(Hanging())
        app.add(Forgetful())
        app.add(Willing())
        """,
    )
    for name in ("first", "second", "third", "fourth"):
        peer.call(name)
    peer.close_input()
    assert peer.wait() == 0
    assert "did not close" in peer.stderr
    assert "not closed within 0.2 s, so ended as it is: hanging" in peer.stderr
    assert (workshop.folder / "stopped").exists()


# -- while it runs

GROWING = """
    import asyncio
    from longshore import Server, Toolset, tool
    import extra
    app = Server("growing")

    class Weather(Toolset):
        def start(self): ...
        def stop(self): open("stopped", "w").close()

        @tool
        def forecast(self) -> str:
            return "sunny"

    app.add(extra.Extra())

    @app.tool
    async def grow() -> str:
        app.add(Weather())
        return "grown"

    @app.tool
    def shrink() -> str:
        app.remove("weather")
        return "shrunk"

    @app.tool
    def renew() -> str:
        app.reload("extra")
        return "renewed"

    @app.tool(run="inline")
    def one_more() -> str:
        @app.tool(replace=True)
        def fresh() -> str:
            return "fresh"
        return "declared"
"""
EXTRA = """
    from longshore import Toolset, tool

    class Extra(Toolset):
        @tool
        def {name}(self) -> str:
            return "{name}"
"""


def names(peer: Peer) -> set[str]:
    return {tool["name"] for tool in peer.ask(request("list", "tools/list"))["result"]["tools"]}


@pytest.fixture
def growing(workshop: Workshop) -> Peer:
    workshop.write(EXTRA.format(name="old"), "extra.py")
    return started(workshop, GROWING)


def test_a_toolset_can_come_and_go_while_the_client_stays(workshop: Workshop, growing: Peer) -> None:
    assert "forecast" not in names(growing)
    assert text_of(growing.call("grow")) == "grown"
    growing.notice("notifications/tools/list_changed")
    assert "forecast" in names(growing)
    assert text_of(growing.call("forecast")) == "sunny"
    assert text_of(growing.call("shrink")) == "shrunk"
    growing.notice("notifications/tools/list_changed")
    assert "forecast" not in names(growing)
    assert growing.call("forecast")["error"]["code"] == -32602
    eventually("it was closed", (workshop.folder / "stopped").exists)


def test_a_toolset_can_be_loaded_anew(workshop: Workshop, growing: Peer) -> None:
    assert text_of(growing.call("old")) == "old"
    path: Path = workshop.write(EXTRA.format(name="new_name"), "extra.py")
    os.utime(path, (1, 1))  # else Python may think that its bytecode is fresh
    assert text_of(growing.call("renew")) == "renewed"
    growing.notice("notifications/tools/list_changed")
    assert "old" not in names(growing)
    assert text_of(growing.call("new_name")) == "new_name"


def test_a_tool_declared_by_a_tool_is_there(growing: Peer) -> None:
    growing.call("one_more")
    growing.notice("notifications/tools/list_changed")
    assert text_of(growing.call("fresh")) == "fresh"
