"""The first calls of `def` tools on stdio run on threads before asyncio is imported."""

from __future__ import annotations

import json
from itertools import count

import pytest

from waiting import eventually

from .conftest import Workshop
from .peer import LONGSHORE, Peer, call, failed, initialize, notification, request, text_of

SERVER = """
    import os, sys, time
    from longshore import Context, Limits, Server, WouldBlock
    app = Server("first", limits=Limits(LIMITS))

    @app.tool
    def has_asyncio() -> bool:
        return "asyncio" in sys.modules

    @app.tool(run="inline_first")
    def read(ctx: Context) -> bool:
        if not ctx.may_block:
            raise WouldBlock
        return "asyncio" in sys.modules

    @app.tool(run="inline")
    def has_loop() -> bool:
        return app.engine.executor.loop is not None

    @app.tool
    def block() -> str:
        while not os.path.exists("gate"):
            time.sleep(0.005)
        return "opened"

    @app.tool
    def report(ctx: Context) -> str:
        ctx.progress(1, 2)
        ctx.info("half")
        return "done"

    @app.tool(timeout=0.2)
    def late() -> str:
        time.sleep(30)
        return "never"

    @app.tool
    def fail() -> str:
        raise ValueError("no")
"""


def serve(workshop: Workshop, limits: str = "") -> Peer:
    return workshop.serve(SERVER.replace("LIMITS", limits))


@pytest.fixture
def first(workshop: Workshop) -> Peer:
    return serve(workshop)


def test_the_first_calls_are_answered_without_asyncio(workshop: Workshop) -> None:
    """However slowly their threads get a processor: a server that gives up on them imports it meanwhile."""
    patient = "    import longshore.transports.stdio\n    longshore.transports.stdio.THREAD_SECONDS = 30\n"
    peer = workshop.serve(SERVER.replace("LIMITS", "") + patient)
    peer.send(initialize(), call(1, "has_asyncio"), call(2, "has_asyncio"))
    assert [text_of(peer.answer(id)) for id in (1, 2)] == ["false", "false"]


def test_asyncio_is_imported_once_the_client_waits_for_nothing(first: Peer) -> None:
    first.start()
    ids = count()
    eventually("the import", lambda: text_of(first.call("has_asyncio", next(ids))) == "true")


def test_a_tool_that_is_tried_inline_opens_no_loop_after_the_import(workshop: Workshop) -> None:
    """Its calls that can be answered at once are answered faster without one."""
    patient = "    import longshore.transports.stdio\n    longshore.transports.stdio.THREAD_SECONDS = 30\n"
    peer = workshop.serve(SERVER.replace("LIMITS", "") + patient)
    peer.start()
    ids = count()
    eventually("the import", lambda: text_of(peer.call("read", next(ids))) == "true")
    assert text_of(peer.call("has_loop", next(ids))) == "false"


def test_the_input_may_end_right_after_the_first_call(workshop: Workshop) -> None:
    path = str(workshop.write(SERVER.replace("LIMITS", "")))
    done = workshop.run([*LONGSHORE, "serve", path], initialize(), call(1, "has_asyncio"), call(2, "report"))
    assert {json.loads(line).get("id") for line in done.stdout.splitlines()} >= {"init", 1, 2}
    assert done.returncode == 0 and done.stderr == b""


def test_a_slow_first_call_does_not_stop_the_reading(first: Peer, workshop: Workshop) -> None:
    first.send(initialize(), call(1, "block"), call(2, "has_asyncio"))
    first.answer(2)
    assert first.ask(request(3, "ping"))["result"] == {}
    (workshop.folder / "gate").touch()
    assert text_of(first.answer(1)) == "opened"


def test_progress_and_logs_of_the_first_call_precede_its_answer(first: Peer) -> None:
    message = call(1, "report")
    message["params"]["_meta"] = {"progressToken": "p"}
    first.send(initialize(), notification("notifications/initialized"), message)
    assert text_of(first.answer(1)) == "done"
    methods = [frame.get("method", "answer") for frame in first.seen if frame.get("id") != "init"]
    assert sorted(methods[:-1]) == ["notifications/message", "notifications/progress"] and methods[-1] == "answer"


def test_a_cancelled_first_call_gets_no_answer(first: Peer, workshop: Workshop) -> None:
    first.send(initialize(), call(1, "block"), notification("notifications/cancelled", requestId=1))
    assert text_of(first.call("has_asyncio", 2))
    (workshop.folder / "gate").touch()
    first.ask(request(3, "ping"))
    assert 1 not in [frame.get("id") for frame in first.seen]


def test_a_first_call_is_stopped_at_its_deadline(first: Peer) -> None:
    first.send(initialize(), call(1, "late"))
    answer = first.answer(1)
    assert failed(answer) and "0.2 s" in text_of(answer)


def test_a_first_call_that_fails_is_answered(first: Peer) -> None:
    first.send(initialize(), call(1, "fail"))
    assert failed(first.answer(1))


def test_first_calls_beyond_the_limit_wait_for_a_place(workshop: Workshop) -> None:
    peer = serve(workshop, "running=2")
    peer.send(initialize(), *(call(id, "block") for id in range(5)))
    (workshop.folder / "gate").touch()
    assert [text_of(peer.answer(id)) for id in range(5)] == ["opened"] * 5
