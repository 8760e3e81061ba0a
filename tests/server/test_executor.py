"""The executor where calls meet: threads that end at once, peers that don't read, types that raise, timers."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64encode
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import pydantic
import pytest

from longshore import Limits, Server, Tool
from longshore.protocol.peer import Peer as ProtocolPeer
from longshore.protocol.revisions import REVISIONS
from longshore.protocol.session import Session
from longshore.server.call import read_long_call
from longshore.server.engine import Rates
from longshore.server.link import Link
from longshore.telemetry.records import Problem, RequestCompleted, RequestReceived

from .test_engine import SECONDS, Peer, run, text_of

OLD_PEER = ProtocolPeer(REVISIONS["2025-11-25"], {}, {})


class Odd(pydantic.BaseModel):
    """What has no JSON Schema."""

    act: Callable[[int], int]


class Meeting(deque[Any]):
    """Results whose first two are added by two threads before either goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.both = threading.Barrier(2)
        self.added = count()

    def append(self, result: Any) -> None:
        super().append(result)
        if next(self.added) < 2:
            self.both.wait(SECONDS)


def test_threads_that_end_at_the_same_moment_are_all_answered() -> None:
    async def body() -> None:
        app = Server("t")

        @app.tool
        def quick() -> str:
            return "x"

        peer = Peer(app)
        peer.call("first", "quick")
        await peer.get()
        threads = app.engine.executor._threads
        assert threads is not None
        threads._results = Meeting()
        for round in range(50):
            for id in range(32):
                peer.call(id, "quick")
            assert sorted([(await peer.get())["id"] for _ in range(32)]) == list(range(32)), f"round {round}"

    run(body())


def test_a_result_that_can_not_be_delivered_holds_up_no_other() -> None:
    async def body() -> None:
        app = Server("t")
        problems = list[Any]()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context["exception"]))

        @app.tool
        def quick() -> str:
            return "x"

        class Broken(Link):
            def send(self, frame: bytes) -> None:
                raise OSError("gone")

        peer, broken = Peer(app), Broken(Session(OLD_PEER))
        for id in range(20):
            frame = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "quick"}}
            app.engine.handle(json.dumps(frame).encode(), broken)
            peer.call(id, "quick")
        assert sorted([(await peer.get())["id"] for _ in range(20)]) == list(range(20))
        while len(problems) < 20:
            await asyncio.sleep(0.001)
        assert {str(problem) for problem in problems} == {"gone"}

    run(body())


def test_a_peer_that_does_not_read_delays_no_other() -> None:
    async def body() -> None:
        app, gate = Server("t"), asyncio.Event()

        @app.tool
        async def hold() -> str:
            await gate.wait()
            return "x"

        slow, quick, held = Peer(app), Peer(app), Peer(app)
        executor = app.engine.executor
        held.call(0, "hold")
        await held.turn()
        slow.link.congested = True
        for id in (1, 2):
            slow.call(id, "hold")
        quick.call(3, "hold")
        await quick.turn()
        assert (executor.running, executor.queued) == (2, 2)
        gate.set()
        assert [answer["id"] for answer in await quick.turn()] == [3]
        assert await slow.turn() == []
        slow.link.congested = False
        executor.start_queued()
        assert [answer["id"] for answer in await slow.turn()] == [1, 2]

    run(body())


def test_a_call_that_waits_behind_those_of_a_peer_that_does_not_read_gets_the_next_place() -> None:
    async def body() -> None:
        app, gate = Server("t", limits=Limits(running=1)), asyncio.Event()

        @app.tool
        async def hold() -> str:
            await gate.wait()
            return "x"

        slow, quick = Peer(app), Peer(app)
        for peer, id in ((quick, 1), (slow, 2), (quick, 3)):
            peer.call(id, "hold")
        slow.link.congested = True
        await quick.turn()
        gate.set()
        assert [answer["id"] for answer in await quick.turn()] == [1, 3]
        assert app.engine.executor.queued == 1

    run(body())


@pytest.mark.parametrize("end", ["by a task", "by a thread", "cancelled", "too late", "refused"])
def test_a_call_that_has_ended_is_no_longer_counted_among_the_bytes_held(end: str) -> None:
    data = "x" * 600_000
    params = {"name": "hold", "arguments": {"data": data}}
    size = len(json.dumps({"jsonrpc": "2.0", "method": "tools/call", "params": params, "id": 10}))

    async def body() -> None:
        app, gate = Server("t", limits=Limits(running=1, held_bytes=2 * size)), asyncio.Event()

        @app.tool(timeout=0.001 if end == "too late" else None)
        async def take(data: str, n: int) -> int:
            if end in ("cancelled", "too late"):
                await gate.wait()
            return n

        @app.tool
        def take_on_thread(data: str, n: int) -> int:
            return n

        @app.tool
        async def hold(data: str) -> str:
            await gate.wait()
            return "x"

        peer = Peer(app)
        for id in range(5):
            name = "take_on_thread" if end == "by a thread" else "take"
            peer.call(id, name, data=data, n="none" if end == "refused" else id)
            if end == "cancelled":
                await peer.turn()
                peer.send("notifications/cancelled", requestId=id)
            else:
                answer = await peer.get()
                assert answer["id"] == id and ("isError" in answer["result"]) == (end in ("too late", "refused"))
        for id in (10, 11):  # together exactly what may be held
            peer.call(id, "hold", data=data)
            assert await peer.turn() == []
        gate.set()
        assert [text_of(await peer.get()) for _ in range(2)] == ["x", "x"]

    run(body())


def test_a_call_that_waits_keeps_its_arguments_when_the_transport_reads_on() -> None:
    """A long frame is read in place, in memory that the next one is read into."""

    async def body() -> None:
        app, gate = Server("t", limits=Limits(running=1)), asyncio.Event()

        @app.tool
        async def echo(text: str) -> str:
            await gate.wait()
            return text

        peer = Peer(app)
        peer.call(1, "echo", text="first")
        await peer.turn()
        params = {"name": "echo", "arguments": {"text": "x" * 10_000}}
        frame = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        memory = bytearray(json.dumps(frame).encode())
        assert app.engine.handle_long(memoryview(memory), peer.link) is None
        memory[:] = b"?" * len(memory)
        gate.set()
        assert [text_of(await peer.get()) for _ in range(2)] == ["first", "x" * 10_000]

    run(body())


LONG_CALLS = [
    '{"name":"size","arguments":{"text":"ab"}}',
    '{"name":"size","arguments":{"text":"\\u00e9é"}}',
    '{"_meta":{"progressToken":1,"x":{"name":"other"}},"name":"size","arguments":{"text":"ab"}}',
    '{"arguments":{"text":"ab"},"name":"size"}',
    '{"name":"other","name":"size","arguments":{"text":"ab"}}',
    '{"name":"size","name":"other","arguments":{"text":"ab"}}',
    '{"name":"\\u0073ize","arguments":{"text":"ab"}}',
    '{"name":"size","arguments":{"text":"ab","times":"2"}}',
    '{"name":"size","arguments":{"text":3}}',
    '{"name":"size","arguments":{"text":"ab","more":1}}',
    '{"name":"size","arguments":{"text":"ab"',
    '{"name":"size"}',
    '{"name":"free"}',
    '{"name":"raw","arguments":{"text":"ab"}}',
    '{"name":"none","arguments":{"name":"size","text":"ab"}}',
]


def long_call_server() -> Server:
    app = Server("t")

    @app.tool(run="inline")
    def size(text: str, times: int = 1) -> int:
        return len(text) * times

    @app.tool(run="inline")
    def other(text: str) -> str:
        return text

    @app.tool(run="inline")
    def free() -> str:
        return "free"

    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    app.add_tool(Tool(name="raw", input_schema=schema, run="inline"), lambda arguments, _: arguments["text"])
    return app


@pytest.mark.parametrize("params", LONG_CALLS)
def test_a_long_call_is_answered_like_a_short_one(params: str) -> None:
    async def body() -> None:
        app = long_call_server()
        peer = Peer(app)
        frame = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'.encode()
        answer = app.engine.handle(frame, peer.link)
        assert answer is not None
        assert app.engine.handle_long(memoryview(bytearray(frame)), peer.link) == answer

    run(body())


def test_the_arguments_of_a_long_call_are_decoded_together_with_its_frame() -> None:
    frame = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{LONG_CALLS[0]}}}'.encode()
    request: Any = read_long_call(memoryview(frame), long_call_server().engine.tools)
    assert request.params.arguments.text == "ab"


def test_one_timer_is_set_however_the_deadlines_come() -> None:
    async def body() -> None:
        app, gate = Server("t"), asyncio.Event()
        for seconds in range(1, 20):

            @app.tool(name=f"within_{seconds}", timeout=1000.0 * seconds)
            async def hold() -> str:
                await gate.wait()
                return "x"

        peer = Peer(app)
        for seconds in range(19, 0, -1):
            peer.call(seconds, f"within_{seconds}")
        await peer.turn()
        scheduled: list[Any] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        sweeps = [timer for timer in scheduled if not timer.cancelled() and "_sweep" in repr(timer)]
        assert len(sweeps) == 1
        gate.set()
        assert len(await peer.turn()) == 19

    run(body())


class Unspeakable(ValueError):
    """An exception that can't even be told."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@dataclass
class Share:
    part: int

    def __post_init__(self) -> None:
        if self.part < 0:
            raise Unspeakable
        1 / self.part


@pytest.mark.parametrize("kind", ["async", "thread", "inline"])
@pytest.mark.parametrize("part", [0, -1])
def test_an_exception_of_an_authors_type_is_answered(kind: Any, part: int) -> None:
    async def body() -> None:
        app = Server("t")
        if kind == "async":

            @app.tool(name="take")
            async def take(share: Share) -> int:
                return share.part
        else:

            @app.tool(name="take", run=kind)
            def take_now(share: Share) -> int:
                return share.part

        peer = Peer(app)
        for id in range(4):
            peer.call(f"bad {id}", "take", share={"part": part})
            answer = await peer.get()
            assert answer["id"] == f"bad {id}" and answer["result"]["isError"]
            peer.call(id, "take", share={"part": 2})
            assert text_of(await peer.get()) == "2"
        frame = {"jsonrpc": "2.0", "id": 99, "method": "tools/call"}
        frame["params"] = {"name": "take", "arguments": {"share": {"part": part}}}
        reply = app.engine.handle_long(memoryview(json.dumps(frame).encode()), peer.link)
        answer = json.loads(reply) if reply is not None else await peer.get()
        assert answer["id"] == 99 and answer["result"]["isError"]
        executor = app.engine.executor
        assert not executor.live and not peer.link.session.rows and executor.running == 0

    run(body())


def test_a_completion_declared_while_the_server_runs_has_its_time() -> None:
    async def body() -> None:
        app = Server("t")

        @app.prompt
        def greet(name: str) -> str:
            return name

        peer = Peer(app)

        @app.completion("greet", "name")
        async def names(text: str) -> list[str]:
            await asyncio.sleep(0)
            return ["Ada"]

        ref = {"type": "ref/prompt", "name": "greet"}
        peer.send("completion/complete", 1, ref=ref, argument={"name": "name", "value": ""})
        answers = [await peer.get()]
        while answers[-1].get("id") != 1:
            answers.append(await peer.get())
        assert answers[-1]["result"]["completion"]["values"] == ["Ada"]
        assert app.engine.limits.timeout_seconds == app.catalog.prompts["greet"].completions["name"].limit

    run(body())


def test_capabilities_follow_added_resources_and_prompts() -> None:
    async def body() -> None:
        app = Server("t")
        peer = Peer(app, modern=True)
        peer.send("prompts/list", 1)
        assert "no prompts" in (await peer.get())["error"]["message"]

        @app.prompt
        def greet() -> str:
            return "hello"

        peer.send("prompts/list", 2)
        assert (await peer.get())["result"]["prompts"]

    run(body())


def test_pages_begin_anywhere_and_only_whole_ones_are_cached() -> None:
    async def body() -> None:
        app = Server("t", limits=Limits(page=3))
        for number in range(10):
            app.tool(name=f"t{number}", run="inline")(lambda: "x")
        peer = Peer(app)
        for place in range(10):
            cursor = b64encode(f"{place}:t{place}".encode()).decode()
            peer.send("tools/list", place, cursor=cursor)
            assert (await peer.get())["result"]["tools"][0]["name"] == f"t{place}"
        assert sorted(start for _, _, start in app.engine.lists._cached) == [0, 3, 6, 9]

    run(body())


def test_a_call_that_comes_too_often_is_recorded_to_its_end() -> None:
    async def body() -> None:
        app = Server("t")
        records = list[Any]()
        app.listen(records.append)
        app.tool(name="often", run="inline")(lambda: "x")
        app.engine.limit_rates(Rates(1, 1, lambda: 0.0))
        peer = Peer(app)
        for id in range(2):
            peer.call(id, "often")
        assert (await peer.get())["id"] == 0
        assert (await peer.get())["result"]["isError"]
        received = {record.id for record in records if isinstance(record, RequestReceived)}
        completed = {record.id: record.outcome for record in records if isinstance(record, RequestCompleted)}
        assert received == set(completed)
        assert completed[0] == "ok" and completed[1] == "refused"

    run(body())


def test_a_tool_without_a_schema_is_not_listed_and_is_reported() -> None:
    async def body() -> None:
        app = Server("t")
        records = list[Any]()
        app.listen(records.append)

        @app.tool
        def odd(it: Odd) -> str:
            return "x"

        @app.tool
        def even() -> str:
            return "x"

        peer = Peer(app)
        peer.send("tools/list", 1)
        assert [tool["name"] for tool in (await peer.get())["result"]["tools"]] == ["even"]
        [problem] = [record for record in records if isinstance(record, Problem)]
        assert "odd" in problem.text and "test_executor.py" in problem.text

    run(body())
