"""Bounded: how many calls run, wait and are refused; how long one may take; which results can't be sent."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from longshore.server.call import MEDIUM_BYTES
from waiting import eventually

from .conftest import Workshop
from .peer import Peer, call, encode, failed, initialize, notification, request, text_of

GATED = """
    import asyncio, os, time
    from typing import Annotated
    from longshore import Ask, Context, Limits, Server
    app = Server("gated", limits=Limits(LIMITS))

    begun = []

    async def opened():
        while not os.path.exists("gate"):
            await asyncio.sleep(0.005)

    @app.tool
    async def wait(pad: str = "") -> str:
        await opened()
        return "done"

    @app.tool
    def block(pad: str = "") -> str:
        begun.append(pad)
        while not os.path.exists("gate"):
            time.sleep(0.005)
        return "done"

    @app.tool
    async def confirm(ok: Annotated[bool, Ask("Really?")]) -> str:
        return f"{ok}"

    @app.tool(run="inline")
    def load() -> list[int]:
        executor = app.engine.executor
        return [executor.running, executor.queued, executor.abandoned, len(begun)]
"""


def gated(workshop: Workshop, limits: str = "") -> Peer:
    peer = workshop.serve(GATED.replace("LIMITS", limits))
    peer.start(elicitation={})
    return peer


def load(peer: Peer) -> list[int]:
    found: list[int] = peer.call("load")["result"]["structuredContent"]["result"]
    return found


def until_load(peer: Peer, *expected: int) -> None:
    eventually(f"load {expected}", lambda: load(peer)[: len(expected)] == list(expected))


def is_busy(answer: dict[str, Any]) -> bool:
    return failed(answer) and "busy" in text_of(answer)


@pytest.mark.parametrize("tool", ["wait", "block"])
@pytest.mark.parametrize(
    ("limits", "running", "parked"),
    [("", 64, 1024), ("running=2, parked=3", 2, 3), ("running=1, parked=0", 1, 0)],
    ids=["default", "few", "none parked"],
)
def test_so_many_run_so_many_wait_and_the_next_is_refused(
    workshop: Workshop, tool: str, limits: str, running: int, parked: int
) -> None:
    peer = gated(workshop, limits)
    most = running + parked
    peer.send(*(call(n, tool) for n in range(running)))
    until_load(peer, running, 0)
    peer.send(*(call(n, tool) for n in range(running, most - 1)))
    until_load(peer, running, max(parked - 1, 0))
    if parked:
        peer.send(call(most - 1, tool))  # the last that fits
    until_load(peer, running, parked)
    assert is_busy(peer.ask(call("over", tool)))
    (workshop.folder / "gate").touch()
    assert all(text_of(peer.answer(n)) == "done" for n in range(most))
    assert text_of(peer.ask(call("after", tool))) == "done"
    until_load(peer, 0, 0)


def test_the_frames_of_calls_that_run_or_wait_are_bounded_by_their_size(workshop: Workshop) -> None:
    padding = "x" * 1000
    size = len(encode(call(10, "wait", pad=padding))) - 1
    peer = gated(workshop, f"running=1, held_bytes={3 * size}")
    peer.send(call(10, "wait", pad=padding))
    until_load(peer, 1, 0)
    peer.send(call(11, "wait", pad=padding))
    until_load(peer, 1, 1)
    assert is_busy(peer.ask(call(13, "wait", pad=padding + "x")))  # a byte more than is left
    peer.send(call(14, "wait", pad=padding))  # exactly what is left
    until_load(peer, 1, 2)
    assert is_busy(peer.ask(call(15, "wait")))
    (workshop.folder / "gate").touch()
    assert all(text_of(peer.answer(n)) == "done" for n in (10, 11, 14))


def padded(id: int, tool: str, size: int) -> dict[str, Any]:
    """A call whose frame has exactly this size."""
    return call(id, tool, pad="x" * (size + 1 - len(encode(call(id, tool, pad="")))))


@pytest.mark.parametrize("tool", ["wait", "block"])
def test_a_large_call_starts_only_while_the_running_ones_hold_less_than_the_bound(
    workshop: Workshop, tool: str
) -> None:
    bound, large = 100_000, MEDIUM_BYTES + 1
    peer = gated(workshop, f"held_bytes={bound}")
    peer.send(padded(10, tool, bound - 1))
    until_load(peer, 1, 0)
    peer.send(padded(11, tool, large))  # a byte was left
    until_load(peer, 2, 0)
    assert is_busy(peer.ask(padded(12, tool, large)))
    peer.send(padded(13, tool, MEDIUM_BYTES), padded(14, tool, MEDIUM_BYTES - 1))
    until_load(peer, 4, 0)
    (workshop.folder / "gate").touch()
    assert all(text_of(peer.answer(n)) == "done" for n in (10, 11, 13, 14))
    peer.send(padded(15, tool, 2 * bound))  # alone it may be larger
    assert text_of(peer.answer(15)) == "done"
    until_load(peer, 0, 0)


@pytest.mark.parametrize("tool", ["wait", "block"])
def test_a_cancel_gets_through_while_every_place_is_taken(workshop: Workshop, tool: str) -> None:
    peer = gated(workshop, "running=4, abandoned=2")
    peer.send(*(call(n, tool) for n in range(6)))
    until_load(peer, 4, 2, 0, 4 if tool == "block" else 0)
    peer.send(notification("notifications/cancelled", requestId=5))  # one that waits
    until_load(peer, 4)
    peer.send(notification("notifications/cancelled", requestId=0))  # one that runs
    until_load(peer, 4, 0, int(tool == "block"))
    (workshop.folder / "gate").touch()
    assert all(text_of(peer.answer(n)) == "done" for n in (1, 2, 3, 4))
    until_load(peer, 0, 0, 0)
    assert not {0, 5} & {frame.get("id") for frame in peer.seen}


def test_the_clients_answers_get_through_while_every_place_is_taken(workshop: Workshop) -> None:
    peer = gated(workshop, "running=2")
    peer.send(call("ask", "confirm"))
    question = peer.notice("elicitation/create")
    until_load(peer, 0)  # whoever waits for the client holds no place
    peer.send(*(call(n, "wait") for n in range(10)))
    until_load(peer, 2, 8)
    answer = {"action": "accept", "content": {next(iter(question["params"]["requestedSchema"]["properties"])): True}}
    peer.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
    assert text_of(peer.answer("ask")) == "True"
    (workshop.folder / "gate").touch()
    assert all(text_of(peer.answer(n)) == "done" for n in range(10))


# -- abandoned threads


@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_threads_that_will_not_stop_are_counted_and_then_no_more_are_started(workshop: Workshop, how: str) -> None:
    peer = gated(workshop, "abandoned=2" + (", timeout_seconds=0.05" if how == "timeout" else ""))
    for n in range(2):
        assert load(peer)[2] == n
        peer.send(call(n, "block"))
        if how == "cancel":
            until_load(peer, 1, 0, n, n + 1)  # a thread is in it: one that is not yet would never begin
            peer.send(notification("notifications/cancelled", requestId=n))
        else:
            assert failed(peer.answer(n))
        until_load(peer, 0, 0, n + 1)
    refused = peer.ask(call(2, "block"))
    assert failed(refused)
    assert "2 earlier calls have ended but do not stop" in text_of(refused)
    (workshop.folder / "gate").touch()  # now they stop, late: their results are dropped
    until_load(peer, 0, 0, 0)
    assert text_of(peer.ask(call(3, "block"))) == "done"
    late = [frame for frame in peer.seen if frame.get("id") in (0, 1)]
    assert len(late) == (2 if how == "timeout" else 0)
    assert not any("done" in text_of(frame) for frame in late)


# -- time

TIMED = """
    import asyncio, os, time
    from longshore import Context, Server
    app = Server("timed")

    def forever():
        while not os.path.exists("gate"):
            time.sleep(0.005)
        return "late"

    @app.tool(timeout=0.1)
    async def own_async() -> str:
        await asyncio.Event().wait()

    @app.tool(timeout=0.1)
    def own_thread() -> str:
        return forever()

    @app.tool(timeout=0.1)
    async def own_swallowing() -> str:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass

    @app.tool
    async def default_async() -> str:
        await asyncio.Event().wait()

    @app.tool
    def default_thread() -> str:
        return forever()

    @app.tool(timeout=False)
    async def off() -> str:
        await asyncio.sleep(0.5)
        return "unhurried"

    @app.tool(timeout=0.3)
    def polite(ctx: Context) -> str:
        while not ctx.cancelled:
            time.sleep(0.005)
        open("polite", "w").close()
        ctx.raise_if_cancelled()

    @app.tool(timeout=60)
    def remaining(ctx: Context) -> float:
        return ctx.remaining
"""


@pytest.mark.parametrize("tool", ["default_async", "default_thread"])
@pytest.mark.parametrize("by", ["flag", "variable", "file", "author"])
def test_the_servers_default_timeout_can_be_set_and_turned_off_by_a_tool(
    workshop: Workshop, tool: str, by: str
) -> None:
    options: list[str] = []
    source = TIMED
    match by:
        case "flag":
            options = ["--timeout", "0.1"]
        case "variable":
            workshop.env["LONGSHORE_SERVER_TIMEOUT"] = "0.1"
        case "file":
            workshop.write("[server]\ntimeout = 0.1\n", "longshore.toml")
        case _:
            source = TIMED.replace('Server("timed")', 'Server("timed", limits=Limits(timeout_seconds=0.1))').replace(
                "import Context", "import Context, Limits"
            )
    peer = workshop.serve(source, *options)
    peer.start()
    peer.send(call("off", "off"))
    assert "within 0.1 s" in text_of(peer.call(tool))
    assert text_of(peer.answer("off")) == "unhurried"
    (workshop.folder / "gate").touch()


STUCK = """
    from pathlib import Path
    from longshore import Server
    app = Server("stuck")

    @app.tool
    async def download() -> str:
        return Path("pipe").read_text()

    @app.tool
    async def other() -> str:
        return "done"
"""


def test_an_async_tool_that_blocks_is_named_on_stderr_while_it_does(workshop: Workshop) -> None:
    os.mkfifo(workshop.folder / "pipe")
    peer = workshop.serve(STUCK)
    peer.start()
    peer.send(call(1, "download"), call(2, "other"))
    eventually("the report", lambda: "blocked the event loop" in peer.stderr)
    (record,) = [json.loads(line) for line in peer.stderr.splitlines()]
    assert (record["level"], record["type"]) == ("warning", "problem")
    assert record["text"].startswith("download has blocked the event loop for 1 s at server.py:8 download: ")
    (workshop.folder / "pipe").write_text("unblocked")
    assert text_of(peer.answer(1)) == "unblocked"
    assert text_of(peer.answer(2)) == "done"


def test_a_thread_can_see_that_its_time_is_up(workshop: Workshop) -> None:
    peer = workshop.serve(TIMED)
    peer.start()
    assert "within 0.3 s" in text_of(peer.call("polite"))
    eventually("the tool noticed", (workshop.folder / "polite").exists)
    assert 50 < float(text_of(peer.call("remaining", id=2))) <= 60


# -- results that can't be sent

ODD = """
    import asyncio, sys
    from typing import Any
    from longshore import Limits, Server, ToolError
    app = Server("odd", limits=Limits(frame_bytes=FRAME))

    def make(kind: str) -> Any:
        match kind:
            case "deep":
                value: Any = []
                for _ in range(200_000):
                    value = [value]
                return value
            case "cyclic":
                value = {}
                value["self"] = value
                return value
            case "nan":
                return {"x": float("nan")}
            case "infinity":
                return [float("inf")]
            case "bytes":
                return {"x": b"\\xff\\x00"}
            case "surrogate":
                return "\\ud800"
            case "surrogate inside":
                return {"x": ["\\udfff"]}
            case "object":
                return object()
            case "huge integer":
                return {"x": 10 ** 5000}
            case "large":
                return "x" * (64 << 20)
            case "exit":
                sys.exit(3)
            case "interrupt":
                raise KeyboardInterrupt
            case "base":
                raise BaseException("odd")
            case "group":
                raise ExceptionGroup("two", [ToolError("a"), ValueError("b")])
            case "cancelled":
                raise asyncio.CancelledError
            case "generator exit":
                raise GeneratorExit
            case "stop iteration":
                raise StopIteration
            case "recursion":
                def again(): return again()
                return again()
            case "memory":
                raise MemoryError
            case "unprintable":
                class Unprintable(Exception):
                    def __str__(self): raise ValueError("no text")
                raise Unprintable
            case _:
                return "fine"

    app.tool(name="inline", run="inline")(make)
    app.tool(name="thread")(make)

    @app.tool(name="async")
    async def make_async(kind: str) -> Any:
        return make(kind)

    @app.tool(run="inline")
    def sized(size: int) -> str:
        return "x" * size
"""
UNSENDABLE = ["deep", "cyclic", "nan", "infinity", "surrogate", "surrogate inside", "object", "huge integer"]
RAISED = ["exit", "interrupt", "base", "group", "cancelled", "generator exit", "stop iteration", "recursion", "memory"]


@pytest.mark.parametrize("tool", ["inline", "thread", "async"])
def test_an_unencodable_result_and_a_broken_exception_fail_only_their_call(workshop: Workshop, tool: str) -> None:
    peer = workshop.serve(ODD.replace("FRAME", str(16 << 20)))
    peer.start()
    for kind in [*UNSENDABLE, *RAISED, "unprintable"]:
        answer = peer.call(tool, id=kind, kind=kind)
        assert failed(answer), (kind, answer)
        assert "Traceback" not in text_of(answer)
        assert text_of(peer.call(tool, id=f"after {kind}", kind="fine")) == "fine"
    assert [frame["id"] for frame in peer.seen].count("exit") == 1


def test_the_frame_limit_holds_to_the_byte(workshop: Workshop) -> None:
    limit = 10_000
    peer = workshop.serve(ODD.replace("FRAME", str(limit)))
    peer.start()
    empty = b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":""}]}}'
    room = limit - len(empty)
    for size, fits in [(room - 1, True), (room, True), (room + 1, False)]:
        answer = peer.call("sized", id=7, size=size)
        assert failed(answer) is not fits
    filled = call(8, "sized", size=1)
    filled["params"]["pad"] = ""
    room = limit - len(encode(filled)) + 1
    for size, fits in [(room - 1, True), (room, True), (room + 1, False)]:
        filled["params"]["pad"] = "x" * size
        peer.send(filled)
        answer = peer.receive(lambda frame: frame.get("id") == 8, "an answer")
        assert failed(answer) is not fits


def test_a_configured_limit_holds_on_a_live_server(workshop: Workshop) -> None:
    workshop.env["LONGSHORE_LIMITS_RUNNING"] = "1"
    workshop.env["LONGSHORE_LIMITS_PARKED"] = "1"
    peer = gated(workshop)
    peer.send(call(1, "wait"), call(2, "wait"))
    until_load(peer, 1, 1)
    assert is_busy(peer.ask(call(3, "wait")))


def test_a_small_frame_limit_from_the_environment_refuses_larger_frames(workshop: Workshop) -> None:
    workshop.env["LONGSHORE_LIMITS_FRAME_BYTES"] = "2000"
    done = workshop.run([*_serve()], initialize(), request(1, "ping", pad="x" * 3000), request(2, "ping"))
    lines = [__import__("json").loads(line) for line in done.stdout.splitlines()]
    assert [line.get("id") for line in lines] == ["init", 1, 2]
    assert os.WEXITSTATUS(done.returncode) == 0


def _serve() -> list[str]:
    from .peer import LONGSHORE

    return [*LONGSHORE, "serve"]


def test_more_handlers_than_places_may_wait_for_the_client(workshop: Workshop) -> None:
    peer = gated(workshop, "running=2")
    peer.send(*(call(n, "confirm") for n in range(20)))
    questions = [peer.notice("elicitation/create") for _ in range(20)]
    key = next(iter(questions[0]["params"]["requestedSchema"]["properties"]))
    for question in questions:
        result = {"action": "accept", "content": {key: True}}
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": result})
    assert all(text_of(peer.answer(n)) == "True" for n in range(20))
    until_load(peer, 0, 0)


@pytest.mark.parametrize("tool", ["own_async", "own_thread", "own_swallowing"])
def test_a_tool_is_stopped_after_its_own_timeout(workshop: Workshop, tool: str) -> None:
    peer = workshop.serve(TIMED)
    peer.start()
    answer = peer.call(tool)
    assert failed(answer)
    assert text_of(answer) == f"{tool} did not finish within 0.1 s and was stopped (its `timeout`)"
    (workshop.folder / "gate").touch()
    assert text_of(peer.call("off", id=2)) == "unhurried"
    assert [frame.get("id") for frame in peer.seen] == ["init", "call", 2], "a late result is dropped"


@pytest.mark.parametrize("tool", ["inline", "thread", "async"])
def test_a_result_over_the_frame_limit_is_a_failure_that_says_so(workshop: Workshop, tool: str) -> None:
    peer = workshop.serve(ODD.replace("FRAME", str(16 << 20)))
    peer.start()
    answer = peer.call(tool, kind="large")
    assert failed(answer)
    assert "the limit is 16,777,216" in text_of(answer)
    assert text_of(peer.call(tool, id=2, kind="fine")) == "fine"
