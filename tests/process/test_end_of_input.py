"""End of input: what was asked is answered, calls in flight get their grace, and the exit code is 0."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

import pytest

from .conftest import Workshop
from .peer import LONGSHORE, call, encode, failed, initialize, modern, request, text_of

WORKING = """
    import asyncio, threading, time
    from longshore import Context, Limits, Server
    app = Server("working", limits=Limits(running=2, eof_grace_seconds=GRACE))

    @app.tool(run="inline")
    def inline(text: str) -> str:
        return text

    @app.tool
    def thread(text: str) -> str:
        return text

    @app.tool
    async def suspend(text: str) -> str:
        await asyncio.sleep(0.01)
        return text

    @app.tool
    async def hang() -> str:
        await asyncio.Event().wait()

    @app.tool
    def sleep() -> str:
        time.sleep(60)

    @app.tool
    async def stubborn() -> str:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass

    if __name__ == "__main__":
        app.run()
"""


def working(grace: float = 3.0) -> str:
    return WORKING.replace("GRACE", str(grace))


def answers_of(done: subprocess.CompletedProcess[bytes]) -> dict[Any, Any]:
    frames = [json.loads(line) for line in done.stdout.splitlines()]
    answers = {frame["id"]: frame for frame in frames}
    assert len(answers) == len(frames), "an id was answered twice"
    return answers


EVERY_KIND = ["inline", "thread", "suspend"]


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("last", [b"\n", b""], ids=["newline", "no newline"])
def test_a_piped_request_is_answered_and_the_process_ends(workshop: Workshop, kind: str, last: bytes) -> None:
    workshop.write(working())
    data = encode(modern(call(1, kind, text="hi"))).rstrip() + last
    done = workshop.run([*LONGSHORE, "serve", "server.py"], data=data)
    assert text_of(answers_of(done)[1]) == "hi"
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_piped_handshake_and_call_are_answered(workshop: Workshop, kind: str) -> None:
    workshop.write(working())
    done = workshop.run([*LONGSHORE, "serve", "server.py"], initialize(), call(1, kind, text="hi"))
    answers = answers_of(done)
    assert answers["init"]["result"]["protocolVersion"] == "2025-11-25"
    assert text_of(answers[1]) == "hi"
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_builtin_server_answers_a_pipe(workshop: Workshop) -> None:
    done = workshop.run([*LONGSHORE, "serve"], modern(call(1, "hello")), modern(request(2, "tools/list")))
    answers = answers_of(done)
    assert text_of(answers[1]).startswith("This is longshore")
    assert {tool["name"] for tool in answers[2]["result"]["tools"]} >= {"hello", "server_status", "tool_help"}
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_empty_input_is_not_an_error(workshop: Workshop) -> None:
    done = workshop.run([*LONGSHORE, "serve"], data=b"")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("out", ["pipe", "file"])
def test_a_regular_file_can_be_the_input(workshop: Workshop, out: str) -> None:
    workshop.write(working())
    calls = [call(n, EVERY_KIND[n % 3], text="x" * 1000) for n in range(300)]
    asked = workshop.folder / "asked.jsonl"
    asked.write_bytes(encode(initialize(), *calls).rstrip(b"\n"))
    answered = workshop.folder / "answered.jsonl"
    with asked.open("rb") as given, answered.open("wb") as taken:
        done = subprocess.run(
            [*LONGSHORE, "serve", "server.py"],
            cwd=workshop.folder,
            env=workshop.env,
            stdin=given,
            stdout=subprocess.PIPE if out == "pipe" else taken,
            timeout=30,
        )
    done.stdout = done.stdout or answered.read_bytes()
    answers = answers_of(done)
    assert set(answers) == {"init", *range(300)}
    assert not any(failed(answers[n]) for n in range(300))
    assert done.returncode == 0


@pytest.mark.parametrize("command", ["serve", "dev server.py --port 0"], ids=["blocking", "on the event loop"])
def test_dev_null_can_be_the_input(workshop: Workshop, command: str) -> None:
    workshop.write(working())
    argv = [*LONGSHORE, *command.split()]
    done = subprocess.run(argv, cwd=workshop.folder, env=workshop.env, stdin=subprocess.DEVNULL, timeout=30)
    assert done.returncode == 0


def test_calls_in_flight_may_finish_within_the_grace(workshop: Workshop) -> None:
    source = working() + (
        """
    @app.tool
    async def after_the_end() -> str:
        import os
        while not os.path.exists("go"):
            await asyncio.sleep(0.01)
        return "finished"
    """
    )
    peer = workshop.serve(source.replace('if __name__ == "__main__":', "if False:"))
    peer.start()
    peer.send(call(1, "after_the_end"))
    peer.close_input()
    (workshop.folder / "go").touch()
    assert text_of(peer.answer(1)) == "finished"
    assert peer.wait() == 0


@pytest.mark.parametrize("kind", ["hang", "sleep", "stubborn"])
def test_calls_left_after_the_grace_period_are_answered_with_the_reason(workshop: Workshop, kind: str) -> None:
    workshop.write(working(grace=60).replace(", eof_grace_seconds=60", "").replace(", limits=Limits(running=2)", ""))
    before = time.monotonic()
    done = workshop.run(
        [*LONGSHORE, "serve", "server.py", "--eof-grace", "0.3"], initialize(), *(call(n, kind) for n in range(70))
    )
    took = time.monotonic() - before
    answers = answers_of(done)
    assert set(answers) == {"init", *range(70)}  # 64 were running, the rest parked
    assert all(failed(answers[n]) and "--eof-grace" in text_of(answers[n]) for n in range(70))
    assert done.returncode == 0
    assert took >= 0.3


def test_the_grace_of_the_servers_own_limits_holds(workshop: Workshop) -> None:
    workshop.write(working(grace=0.2))
    done = workshop.run([*LONGSHORE, "serve", "server.py"], initialize(), call(1, "hang"))
    assert "within 0.2 s" in text_of(answers_of(done)[1])


def test_queued_calls_run_within_the_grace_period(workshop: Workshop) -> None:
    """Two places, a hundred calls: all of them finish, for nothing hangs."""
    workshop.write(working())
    calls = [call(n, EVERY_KIND[n % 3], text=str(n)) for n in range(100)]
    done = workshop.run([*LONGSHORE, "serve", "server.py"], initialize(), *calls)
    answers = answers_of(done)
    assert [text_of(answers[n]) for n in range(100)] == [str(n) for n in range(100)]
    assert done.returncode == 0


def test_a_call_that_was_cancelled_is_not_answered_at_the_end(workshop: Workshop) -> None:
    workshop.write(working(grace=0.2))
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    done = workshop.run([*LONGSHORE, "serve", "server.py"], initialize(), call(1, "hang"), cancel, call(2, "hang"))
    assert set(answers_of(done)) == {"init", 2}


def test_a_listen_gets_its_final_result(workshop: Workshop) -> None:
    workshop.write(working())
    listen = modern(request("listen", "subscriptions/listen", notifications={"toolsListChanged": True}))
    done = workshop.run([*LONGSHORE, "serve", "server.py"], listen)
    frames = [json.loads(line) for line in done.stdout.splitlines()]
    assert [frame.get("method") or frame["id"] for frame in frames] == [
        "notifications/subscriptions/acknowledged",
        "listen",
        "notifications/cancelled",
    ]
    assert frames[1]["result"]["resultType"] == "complete"
    assert done.returncode == 0


def test_a_question_without_an_answer_ends_its_call(workshop: Workshop) -> None:
    peer = workshop.serve(
        """
        from typing import Annotated
        from longshore import Ask, Server
        app = Server("asking")

        @app.tool
        async def refund(order: str, ok: Annotated[bool, Ask("Refund {order}?")]) -> str:
            return "refunded" if ok else "kept"
        """
    )
    peer.start(elicitation={})
    peer.send(call(1, "refund", order="A1"))
    peer.notice("elicitation/create")
    peer.close_input()
    answer = peer.answer(1)
    assert failed(answer)
    assert "without an answer" in text_of(answer)
    assert peer.wait() == 0


def test_what_a_thread_has_posted_is_sent_although_the_thread_has_ended(workshop: Workshop) -> None:
    peer = workshop.serve(
        """
        import threading
        from longshore import Server
        app = Server("changing")

        @app.resource("file://log")
        def log() -> str:
            return ""

        @app.tool(run="inline")
        def change() -> None:
            thread = threading.Thread(target=app.resource_changed, args=("file://log",))
            thread.start()
            thread.join()
        """
    )
    peer.start()
    peer.ask(request(1, "resources/subscribe", uri="file://log"))
    peer.ask(call(2, "change"))
    assert peer.notice("notifications/resources/updated")["params"]["uri"] == "file://log"


def test_a_thread_that_was_there_before_may_speak_while_the_server_only_reads(workshop: Workshop) -> None:
    peer = workshop.serve(
        """
        import os, threading, time
        from longshore import Server
        app = Server("watching")

        @app.resource("file://log")
        def log() -> str:
            return ""

        def watch():
            while not os.path.exists("changed"):
                time.sleep(0.005)
            app.resource_changed("file://log")

        threading.Thread(target=watch, daemon=True).start()
        """
    )
    peer.start()
    peer.ask(request(1, "resources/subscribe", uri="file://log"))
    (workshop.folder / "changed").touch()
    assert peer.notice("notifications/resources/updated")["params"]["uri"] == "file://log"


@pytest.mark.parametrize("seconds", [0, 0.2])
def test_a_last_line_without_a_newline_is_answered(workshop: Workshop, seconds: float) -> None:
    """Also by a thread, before there is an event loop."""
    source = """
        import time
        from longshore import Server
        app = Server("working")

        @app.tool
        def thread(seconds: float) -> str:
            time.sleep(seconds)
            return "x"
    """
    message = modern(call(1, "thread", seconds=seconds))
    done = workshop.run([*LONGSHORE, "serve", str(workshop.write(source))], data=encode(message).rstrip())
    assert text_of(json.loads(done.stdout)) == "x"
