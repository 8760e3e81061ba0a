"""Toolsets in a live process are closed at every end."""

from __future__ import annotations

import os
import signal

import pytest

from waiting import eventually

from .conftest import Workshop
from .peer import Peer

COUNTED = """
    import time
    from longshore import Server, Toolset, tool
    app = Server("counted")

    def note(text):
        with open("log", "a") as file:
            file.write(text + "\\n")

    class Store(Toolset):
        async def start(self): note("start")
        async def stop(self): note("stop")
        @tool
        async def later(self) -> str: return "used"

    class Blocking(Toolset):
        def start(self):
            time.sleep(0.05)
            note("start blocking")
        def stop(self): note("stop blocking")
        @tool
        def use(self) -> str: return "used"

    class Unused(Toolset):
        def start(self): note("start unused")
        def stop(self): note("stop unused")
        @tool
        def never(self) -> str: ...

    app.add_toolset(Store())
    app.add_toolset(Blocking())
    app.add_toolset(Unused())
"""


def log(workshop: Workshop) -> list[str]:
    path = workshop.folder / "log"
    return path.read_text().splitlines() if path.exists() else []


def started(workshop: Workshop, source: str = COUNTED) -> Peer:
    peer = workshop.serve(source)
    peer.start()
    return peer


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

        app.add_toolset(Failing())
        app.add_toolset(Hanging())
        app.add_toolset(Forgetful())
        app.add_toolset(Willing())
        """,
    )
    for name in ("first", "second", "third", "fourth"):
        peer.call(name)
    peer.close_input()
    assert peer.wait() == 0
    assert "did not close" in peer.stderr
    assert "not closed within 0.2 s, so ended as it is: hanging" in peer.stderr
    assert (workshop.folder / "stopped").exists()


def test_an_unavailable_toolset_is_one_line_in_the_log_and_is_not_started(workshop: Workshop) -> None:
    peer = started(
        workshop,
        """
        from longshore import Server, Toolset, tool
        app = Server("bare")

        class Terminal(Toolset):
            def available(self): return "no bubblewrap; install it: apt install bubblewrap"
            def start(self): open("started", "w").close()
            def stop(self): open("stopped", "w").close()
            @tool
            def use(self) -> str: return "used"

        app.add_toolset(Terminal())
        """,
    )
    answer = peer.call("use")
    why = "no bubblewrap; install it: apt install bubblewrap"
    assert answer["error"]["message"] == f"the tool 'use' is unavailable: {why}"
    peer.close_input()
    assert peer.wait() == 0
    assert peer.stderr.count("the toolset 'terminal' is unavailable: " + why) == 1 == len(peer.stderr.splitlines())
    assert not (workshop.folder / "started").exists() and not (workshop.folder / "stopped").exists()


SLOW = """
    import asyncio
    from longshore import Limits, Server, Toolset, tool
    app = Server("slow to stop", limits=Limits(stop_seconds=3.0))  # a third of it is the share of a toolset

    class Slow(Toolset):
        stop_seconds = {deadline}
        async def start(self): ...
        async def stop(self):
            await asyncio.sleep({takes})
            open("stopped", "w").close()
        @tool
        async def use(self) -> str: return "used"

    app.add_toolset(Slow())
"""


@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
@pytest.mark.parametrize(
    ("deadline", "takes", "is_stopped"), [("60.0", 1.5, True), ("0.5", 600, False), ("None", 600, False)]
)
def test_a_toolset_sets_its_own_deadline_to_stop(
    workshop: Workshop, how: str, deadline: str, takes: float, is_stopped: bool
) -> None:
    peer = started(workshop, SLOW.format(deadline=deadline, takes=takes))
    peer.call("use")
    if how == "end of input":
        peer.close_input()
    else:
        os.kill(peer.pid, signal.SIGTERM)
    assert peer.wait() == (0 if how == "end of input" else 128 + signal.SIGTERM)
    assert (workshop.folder / "stopped").exists() == is_stopped
    limit = "1.0" if deadline == "None" else deadline
    assert (f"not closed within {limit} s, so ended as it is: slow" in peer.stderr) != is_stopped


@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
def test_a_toolset_hears_of_a_watch_and_of_its_end_before_it_is_stopped(workshop: Workshop, how: str) -> None:
    peer = started(
        workshop,
        """
        from longshore import Server, Toolset, resource
        app = Server("watched")

        def note(text):
            with open("log", "a") as file:
                file.write(text + "\\n")

        class Files(Toolset):
            def start(self): note("start")
            def stop(self): note("stop")
            def watched(self, uri): note("+" + uri)
            def unwatched(self, uri): note("-" + uri)
            @resource("files://{path}")
            def read(self, path: str) -> str: return path

        app.add_toolset(Files())
        """,
    )
    peer.ask({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "files://a"}})
    eventually("the watch", lambda: log(workshop) == ["start", "+files://a"])
    if how == "end of input":
        peer.close_input()
    else:
        os.kill(peer.pid, signal.SIGTERM)
    peer.wait()
    assert log(workshop) == ["start", "+files://a", "-files://a", "stop"]


@pytest.mark.parametrize("how", ["end", "signal"])
def test_the_tasks_of_a_toolset_run_until_it_has_stopped(workshop: Workshop, how: str) -> None:
    peer = workshop.serve("""
        import asyncio
        from longshore import Server, Toolset, tool
        app = Server("worker")

        class Worker(Toolset):
            async def start(self):
                self.ending = asyncio.Event()
                self.work = asyncio.create_task(self.ending.wait())
            async def stop(self):
                self.ending.set()
                await self.work
                open("stopped", "w").close()
            @tool
            async def use(self) -> str: return "used"

        app.add_toolset(Worker())
    """)
    peer.start()
    peer.call("use")
    if how == "end":
        peer.close_input()
    else:
        os.kill(peer.pid, signal.SIGTERM)
    peer.wait()
    assert (workshop.folder / "stopped").exists(), peer.stderr
    assert peer.stderr == ""
