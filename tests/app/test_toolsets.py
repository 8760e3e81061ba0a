"""Toolsets: state on `self`, opened once at first use, and changed while the server runs."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import pytest

from longshore import Context, RegistrationError, Server, ToolError, Toolset, prompt, resource, tool
from talk import ERAS, WAIT_SECONDS, Client, Refused, call, converse, result, talk, text, until

from . import reloaded


class Counter(Toolset):
    """Counts what is done with it."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.stopped = threading.Event()
        self.value = 0

    def start(self) -> None:
        self.events.append("start")
        self.value = 100

    def stop(self) -> None:
        self.events.append("stop")
        self.stopped.set()

    def status(self) -> dict[str, Any]:
        return {"value": self.value}

    @tool
    def add(self, n: int = 1) -> int:
        """Add to the number."""
        self.value += n
        return self.value

    @tool(run="inline")
    def look(self) -> int:
        return self.value

    @tool
    async def wait(self, ctx: Context) -> str:
        await asyncio.sleep(0)
        return f"{ctx.name} {self.value}"

    @resource("counter://{name}")
    def page(self, name: str) -> str:
        return f"{name} {self.value}"

    @prompt
    def ask(self, how: str) -> str:
        return f"{how} {self.value}"


class Slow(Counter):
    """Opens as a coroutine, when it is let."""

    name = "slow"

    def __init__(self) -> None:
        super().__init__()
        self.begun = False
        self.gate = asyncio.Event()

    async def start(self) -> None:  # type: ignore[override]
        self.begun = True
        await self.gate.wait()
        super().start()

    async def stop(self) -> None:  # type: ignore[override]
        super().stop()


def names(app: Server) -> list[str]:
    return [found["name"] for found in result(app, "tools/list")["tools"]]


@pytest.mark.parametrize(
    ("method", "params", "answer"),
    [
        ("tools/call", {"name": "add"}, "101"),
        ("tools/call", {"name": "look"}, "100"),
        ("tools/call", {"name": "wait"}, "wait 100"),
        ("resources/read", {"uri": "counter://x"}, "x 100"),
        ("prompts/get", {"name": "ask", "arguments": {"how": "why"}}, "why 100"),
    ],
)
def test_whatever_is_used_first_opens_the_state(method: str, params: Any, answer: str) -> None:
    app, counter = Server("t"), Counter()
    app.add_toolset(counter)
    talk(app, ("tools/list", {}), ("resources/templates/list", {}), ("prompts/list", {}))
    assert counter.events == []
    [found] = talk(app, (method, params))
    assert answer in str(found["result"])
    assert counter.events == ["start"]


def test_the_state_of_a_toolset_is_shared_by_its_calls() -> None:
    app, counter = Server("t"), Counter()
    app.add_toolset(counter)

    async def script(client: Client) -> None:
        assert [text(await client.call_tool("add", n=5)) for _ in range(6)] == [
            "105",
            "110",
            "115",
            "120",
            "125",
            "130",
        ]
        assert text(await client.call_tool("look")) == "130"

    converse(app, script)
    assert counter.events == ["start"]


def test_twenty_calls_at_once_open_it_once() -> None:
    async def script(client: Client) -> None:
        slow = Slow()
        client.app.add_toolset(slow)
        ids = [client.send("tools/call", {"name": "wait"}) for _ in range(20)]
        ids += [client.send("tools/call", {"name": "look"}) for _ in range(5)]
        await until(lambda: slow.begun)
        await client.request("tools/list")
        assert slow.events == [] and client.answers == {}
        slow.gate.set()
        answers = [await client.response(id) for id in ids]
        assert all("100" in text(answer["result"]) for answer in answers)
        assert slow.events == ["start"]

    converse(Server("t"), script)


def test_a_blocking_start_runs_once_and_off_the_loop() -> None:
    app = Server("t")
    started, let = threading.Event(), threading.Event()
    threads: list[bool] = []

    class Blocking(Toolset):
        def start(self) -> None:
            threads.append(threading.current_thread() is threading.main_thread())
            started.set()
            assert let.wait(WAIT_SECONDS)

        @tool(run="inline")
        def use(self) -> str:
            return "used"

    app.add_toolset(Blocking())

    async def script(client: Client) -> None:
        ids = [client.send("tools/call", {"name": "use"}) for _ in range(20)]
        assert await asyncio.to_thread(started.wait, WAIT_SECONDS)
        await client.request("tools/list")  # the server goes on meanwhile
        let.set()
        assert [text((await client.response(id))["result"]) for id in ids] == ["used"] * 20

    converse(app, script)
    assert threads == [False]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_start_that_fails_is_tried_again_by_the_next_call(is_async: bool) -> None:
    app = Server("t")
    attempts: list[int] = []

    class Shaky(Toolset):
        def _open(self) -> None:
            attempts.append(1)
            if len(attempts) == 1:
                raise ToolError("the database is away")

        if is_async:

            async def start(self) -> None:
                self._open()
        else:

            def start(self) -> None:
                self._open()

        @tool
        def use(self) -> str:
            return "used"

    app.add_toolset(Shaky())

    async def script(client: Client) -> None:
        failed = await client.call_tool("use")
        assert failed["isError"] is True and text(failed) == "the database is away"
        assert text(await client.call_tool("use")) == "used"
        assert text(await client.call_tool("use")) == "used"

    converse(app, script)
    assert len(attempts) == 2


@pytest.mark.parametrize("kind", [StopIteration, SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_whatever_a_blocking_start_raises_the_call_is_answered(kind: type[BaseException]) -> None:
    """`next` of what is empty raises StopIteration, which no future takes."""

    class Broken(Toolset):
        def start(self) -> None:
            raise kind

        @tool
        def use(self) -> str:
            return "used"

    app = Server("t")
    app.add_toolset(Broken())
    assert call(app, "use")["isError"] is True


def test_calls_that_wait_for_a_failing_start_fail() -> None:
    app = Server("t")

    async def script(client: Client) -> None:
        gate = asyncio.Event()

        class Shaky(Toolset):
            async def start(self) -> None:
                await gate.wait()
                raise KeyError("secret")

            @tool
            def use(self) -> str:
                return "used"

        app.add_toolset(Shaky())
        ids = [client.send("tools/call", {"name": "use"}) for _ in range(5)]
        await client.request("tools/list")
        gate.set()
        answers = [(await client.response(id))["result"] for id in ids]
        assert all(answer["isError"] is True and "secret" not in text(answer) for answer in answers)

    converse(app, script)


def test_a_call_that_gives_up_leaves_the_start_to_the_others() -> None:
    async def script(client: Client) -> None:
        slow = Slow()
        client.app.add_toolset(slow)
        first = client.send("tools/call", {"name": "wait"})
        second = client.send("tools/call", {"name": "wait"})
        await until(lambda: slow.begun)
        client.notify("notifications/cancelled", {"requestId": first})
        await client.request("tools/list")
        slow.gate.set()
        assert text((await client.response(second))["result"]) == "wait 100"
        assert slow.events == ["start"]

    converse(Server("t"), script)


# -- coming and going


async def happens(event: threading.Event) -> None:
    """Wait for an event while the server goes on."""
    assert await asyncio.to_thread(event.wait, WAIT_SECONDS)


@pytest.mark.parametrize("revision", ERAS)
def test_adding_and_removing_a_toolset_notifies_the_client_and_closes_it(revision: str) -> None:
    async def script(client: Client) -> None:
        app, counter = client.app, Counter()
        if client.modern:
            client.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await asyncio.to_thread(app.add_toolset, counter)
        await client.heard("notifications/tools/list_changed")
        assert text(await client.call_tool("add")) == "101"
        await asyncio.to_thread(app.remove_toolset, "counter")
        await client.heard("notifications/tools/list_changed")
        await happens(counter.stopped)
        assert counter.events == ["start", "stop"]
        assert (await client.request("tools/list"))["tools"] == []
        with pytest.raises(Refused):
            await client.call_tool("add")
        for method in ("resources/list", "prompts/list"):
            with pytest.raises(Refused):
                await client.request(method)

    converse(Server("t"), script, revision)


def test_a_toolset_that_was_never_used_is_never_stopped() -> None:
    app, counter = Server("t"), Counter()
    app.add_toolset(counter)
    app.remove_toolset("counter")
    assert counter.events == []


class Stateless(Toolset):
    def __init__(self) -> None:
        self.stopped = False

    async def stop(self) -> None:
        self.stopped = True

    @tool(run="inline")
    def use(self) -> str:
        return "used"


def test_one_without_a_start_is_stopped_wherever_it_is_removed_from() -> None:
    app, before = Server("t"), Stateless()
    app.add_toolset(before)
    app.remove_toolset("stateless")
    assert before.stopped

    async def inside() -> bool:
        app.add_toolset(there := Stateless())
        app.remove_toolset("stateless")
        return there.stopped

    assert asyncio.run(inside())


def test_one_that_is_removed_while_it_opens_is_closed_when_it_is_open() -> None:
    async def script(client: Client) -> None:
        slow = Slow()
        client.app.add_toolset(slow)
        client.send("tools/call", {"name": "wait"})
        await until(lambda: slow.begun)
        client.app.remove_toolset("slow")
        slow.gate.set()
        await happens(slow.stopped)
        assert slow.events == ["start", "stop"]

    converse(Server("t"), script)


def test_a_call_that_comes_too_late_does_not_open_it_again() -> None:
    async def script(client: Client) -> None:
        slow = Slow()
        client.app.add_toolset(slow)
        id = client.send("tools/call", {"name": "wait"})
        client.app.remove_toolset("slow")  # before the loop has had a turn
        answer = (await client.response(id))["result"]
        assert answer["isError"] is True and text(answer) == "the toolset 'slow' was removed"
        assert not slow.begun

    converse(Server("t"), script)


def test_a_stop_that_fails_is_a_line_in_the_log() -> None:
    class Bad(Toolset):
        def start(self) -> None: ...

        def stop(self) -> None:
            raise OSError("gone")

        @tool
        def use(self) -> str:
            return "used"

    async def script(client: Client) -> None:
        told = threading.Event()

        def listen(record: Any) -> None:
            if "'bad' did not close" in getattr(record, "text", ""):
                told.set()

        client.app.listen(listen)
        client.app.add_toolset(Bad())
        await client.call_tool("use")
        client.app.remove_toolset("bad")
        await happens(told)

    converse(Server("t"), script)


def test_replace_swaps_a_toolset_and_closes_the_old_one() -> None:
    async def script(client: Client) -> None:
        app, old, new = client.app, Counter(), Counter()
        app.add_toolset(old)
        await client.call_tool("add")
        app.add_toolset(new, replace=True)
        assert text(await client.call_tool("add", n=7)) == "107"
        await happens(old.stopped)
        assert old.events == ["start", "stop"]
        assert new.events == ["start"]

    converse(Server("t"), script)


def test_reload_imports_the_module_again() -> None:
    async def script(client: Client) -> None:
        app, first = client.app, reloaded.Reloaded()
        app.add_toolset(first)
        before = text(await client.call_tool("which"))
        new = app.reload("reloaded")
        assert type(new) is reloaded.Reloaded and type(new) is not type(first)
        assert app.catalog.toolsets["reloaded"].toolset is new
        assert text(await client.call_tool("which")) != before
        await client.heard("notifications/tools/list_changed")

    converse(Server("t"), script)


def test_a_module_that_no_longer_loads_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    app, first = Server("t"), reloaded.Reloaded()
    app.add_toolset(first)

    def broken(module: Any) -> Any:
        raise SyntaxError("half-written")

    monkeypatch.setattr(importlib, "reload", broken)
    with pytest.raises(SyntaxError):
        app.reload("reloaded")
    assert app.catalog.toolsets["reloaded"].toolset is first
    assert names(app) == ["which"]


# -- how a class is read


def test_the_name_is_the_class_in_snake_case_or_what_it_says() -> None:
    class WebSearch(Toolset): ...

    class Other(Toolset):
        name = "mine"

    app = Server("t")
    app.add_toolset(WebSearch())
    app.add_toolset(Other())
    assert list(app.catalog.toolsets) == ["web_search", "mine"]


def test_tools_stand_in_the_order_in_which_they_are_written_the_bases_first() -> None:
    class Base(Toolset):
        @tool
        def zebra(self) -> str:
            return "base"

        @tool
        def ant(self) -> str:
            return "base"

        @tool
        def gone(self) -> str:
            return "base"

    class Derived(Base):
        @tool
        def bear(self) -> str:
            return "derived"

        @tool(title="Ant")
        def ant(self) -> str:
            return "derived"

        def gone(self) -> str:
            """Not offered any more."""
            return "derived"

    app = Server("t")
    app.add_toolset(Derived())
    assert names(app) == ["zebra", "ant", "bear"]
    assert text(call(app, "ant")) == "derived"
    assert text(call(app, "zebra")) == "base"


def test_static_and_class_methods_are_tools_and_properties_are_left_alone() -> None:
    class Odd(Toolset):
        @property
        def trap(self) -> str:
            raise AssertionError("nobody asked")

        @tool
        @staticmethod
        def outside(x: int) -> int:
            return x

        @staticmethod
        @tool
        def inside(x: int) -> int:
            return x

        @tool
        @classmethod
        def of_class(cls, x: int) -> str:
            return f"{cls.__name__} {x}"

    app = Server("t")
    app.add_toolset(Odd())
    assert names(app) == ["outside", "inside", "of_class"]
    assert text(call(app, "outside", {"x": 1})) == text(call(app, "inside", {"x": 1})) == "1"
    assert text(call(app, "of_class", {"x": 1})) == "Odd 1"


def test_marked_methods_are_still_plain_methods() -> None:
    counter = Counter()
    assert counter.add(3) == 3
    assert asyncio.run(Counter().wait.__func__(counter, type("C", (), {"name": "n"})())) == "n 3"  # type: ignore[attr-defined]


def test_two_instances_of_a_class_need_two_names() -> None:
    class Shelf(Toolset):
        def __init__(self, name: str) -> None:
            self.name = name  # type: ignore[misc]

        @resource("shelf://{book}")
        def read(self, book: str) -> str:
            return self.name

    app = Server("t")
    app.add_toolset(Shelf("a"))
    with pytest.raises(Exception, match=r"there is a resource 'shelf://\{book\}' already"):
        app.add_toolset(Shelf("b"))
    assert list(app.catalog.toolsets) == ["a"]


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), "5"])
def test_a_deadline_of_stop_is_a_number_of_seconds(seconds: Any) -> None:
    class Wrong(Toolset):
        stop_seconds = seconds

    with pytest.raises(RegistrationError, match=r"Wrong\n  stop_seconds = .* is no number of seconds"):
        Server("t").add_toolset(Wrong())


class ExitsOnAThread(Counter):
    name = "exits"

    def start(self) -> None:
        sys.exit(7)


class ExitsOnTheLoop(Counter):
    name = "exits"

    async def start(self) -> None:  # type: ignore[override]
        sys.exit(7)


@pytest.mark.parametrize("make", [ExitsOnAThread, ExitsOnTheLoop])
def test_a_toolset_that_exits_at_its_start_fails_the_call(make: type[Toolset]) -> None:
    app = Server("t")
    app.add_toolset(make())
    assert "look failed unexpectedly" in text(call(app, "look"))
