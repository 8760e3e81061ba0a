"""Requests run one after the other: what is queued ends with its connection, with the input, and at the limit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from signal import SIGTERM
from socket import SHUT_WR, SO_LINGER, SOL_SOCKET
from threading import Thread
from typing import Any

import pytest

from http_process.serverproc import ServerProcess, start
from http_process.test_lines import Lines
from process.conftest import Workshop
from process.peer import LONGSHORE, call, encode, notification, request
from services import need_command
from waiting import eventually

from .document import SERVER, error_of

SOURCE = """
import asyncio
from pathlib import Path
from longshore import Server

app = Server("mine")
state = {"begun": 0, "ended": 0}

@app.tool(timeout=60)
async def wait() -> str:
    '''Wait for a file named `go`.'''
    Path("begun").touch()
    state["begun"] += 1
    try:
        while not Path("go").exists():
            await asyncio.sleep(0.01)
    finally:
        state["ended"] += 1
    return "waited"

@app.tool(run="inline")
def add(text: str) -> str:
    with open("added", "a") as file:
        file.write(text)
    return text

@app.tool(run="inline")
def look() -> dict[str, int]:
    return state

@app.tool
async def hold(text: str = "") -> str:
    for _ in range(100):  # in each the loop reads what there is
        await asyncio.sleep(0)
    return "held"
"""
BIG = "x" * 60_000
MANY = (2 << 20) // len(BIG) + 2
"""Requests with so much text that more than `limits.output_bytes` wait, even if the first of them runs."""
DIALECT = ("--dialect", "browseros")
JSON_TYPE = (("Content-Type", "application/json"),)
RESET = (SOL_SOCKET, SO_LINGER, b"\1\0\0\0\0\0\0\0")
"""The option by which a socket that is closed resets its connection."""


def serve_lines(*options: str) -> Any:
    return start(SOURCE, "--lines", *DIALECT, *options)


def value_of(answer: Any) -> Any:
    return answer["result"]["result"]


def look(other: Lines) -> dict[str, int]:
    """What calls have done, as another connection learns it."""
    other.say(call("look", "look"))
    state: dict[str, int] = value_of(other.hear())
    return state


def let_go(server: ServerProcess) -> None:
    (server.folder / "go").touch()


def added(folder: Path) -> str:
    path = folder / "added"
    return path.read_text() if path.exists() else ""


# -- the order


WRITES = [call(1, "filesystem", action="write", path="a.txt", content="a\n")]
APPENDS = [call(2, "filesystem", action="append", path="a.txt", content=f"{n}\n") for n in range(8)]
COMMANDS = [call(3, "terminal", command=f"sleep 0.0{8 - n}; echo {n} >>b.txt") for n in range(8)]
READ = call(4, "filesystem", action="read", path="a.txt")


@pytest.mark.parametrize("form", ["lines", "batch"])
def test_piped_requests_see_what_the_ones_before_have_done(workshop: Workshop, form: str) -> None:
    """S-33, S-54: a script writes all its lines at once."""
    messages: list[Any] = [*WRITES, *APPENDS, *COMMANDS, READ]
    argv = [*SERVER, "--root", str(workshop.folder)]
    done = workshop.run(argv, *messages) if form == "lines" else workshop.run(argv, messages)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    answers = found if form == "lines" else found[0]
    assert [each["id"] for each in answers] == [each["id"] for each in messages]
    assert answers[-1]["result"]["result"]["content"] == "a\n0\n1\n2\n3\n4\n5\n6\n7\n"
    assert (workshop.folder / "b.txt").read_text().split() == [str(n) for n in range(8)]


def test_posts_do_not_wait_for_one_another_and_the_requests_of_a_batch_do() -> None:
    """S-33: each POST is a connection of its own to the dialect."""
    with start(SOURCE, *DIALECT) as server:
        waiting = server.connect().send("POST", "/mcp", JSON_TYPE, encode([call(1, "wait"), call(2, "add", text="a")]))
        eventually("the call", (server.folder / "begun").exists)
        posted = server.send("POST", "/mcp", JSON_TYPE, encode(call(3, "add", text="b"))).finish()
        assert value_of(json.loads(posted.body)) == "b"
        let_go(server)
        assert [value_of(each) for each in json.loads(waiting.finish().body)] == ["waited", "a"]
        assert added(server.folder) == "ba"


# -- the end of the input, of the connection and of the server


def test_what_a_peer_has_sent_before_the_end_of_its_input_is_all_answered() -> None:
    """S-80: `nc -N` closes its half after the last line."""
    with serve_lines() as server, Lines(server) as lines:
        lines.say(call(1, "wait"), call(2, "add", text="a"), b"no json\n")
        lines.wire.shutdown(SHUT_WR)
        eventually("the call", (server.folder / "begun").exists)
        let_go(server)
        assert [lines.hear()["id"] for _ in range(3)] == [1, 2, None]
        assert lines.hear() is None


def test_two_lines_by_nc_are_both_answered(workshop: Workshop) -> None:
    """S-80."""
    nc = need_command("nc", "netcat-openbsd")
    with start(None, argv=(*SERVER, "--set", "http.port=0", "--root", str(workshop.folder))) as server:
        given = encode(call(1, "filesystem", action="list", path="."), request(2, "ping"))
        argv = [nc, "-N", "localhost", str(server.port)]
        done = subprocess.run(argv, input=given, capture_output=True, timeout=60)
        assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]


def test_a_server_that_is_stopped_answers_what_waits() -> None:
    """S-80."""
    with serve_lines("--set", "server.eof_grace=30", "--set", "http.grace=30") as server, Lines(server) as lines:
        lines.say(call(1, "wait"), call(2, "hold"), call(3, "add", text="a"), request(4, "ping"))
        eventually("the call", (server.folder / "begun").exists)
        server.kill(SIGTERM)
        let_go(server)
        assert [value_of(lines.hear()) for _ in range(3)] == ["waited", "held", "a"]
        assert lines.hear()["id"] == 4
        assert lines.hear() is None
        server.wait()


@pytest.mark.parametrize("transport", ["stdio", "lines"])
def test_what_has_not_begun_within_the_grace_is_answered_and_never_runs(workshop: Workshop, transport: str) -> None:
    """S-76, C-46."""
    messages = [call(1, "wait"), call(2, "add", text="a"), [call(3, "add", text="b")]]
    grace = ("--set", "server.eof_grace=0.5")
    if transport == "stdio":
        folder = workshop.folder
        done = workshop.run([*LONGSHORE, "serve", str(workshop.write(SOURCE)), *DIALECT, *grace], *messages)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
    else:
        with serve_lines(*grace) as server, Lines(server) as lines:
            folder = server.folder
            lines.say(*messages)
            lines.wire.shutdown(SHUT_WR)
            answers = [lines.hear() for _ in range(3)]
            assert lines.hear() is None
            assert added(folder) == ""
    said = [error_of(each)["message"] for each in (*answers[:2], *answers[2])]
    assert "wait was stopped: the input ended" in said[0]
    assert all("it was not run: the input ended" in each for each in said[1:])
    assert added(folder) == ""


def test_what_a_peer_that_is_gone_has_sent_is_dropped() -> None:
    with serve_lines() as server, Lines(server) as other:
        with Lines(server) as gone:
            gone.say(call(1, "wait"), call(2, "add", text="a"))
            eventually("the call", lambda: look(other)["begun"])
            gone.wire.setsockopt(*RESET)
        eventually("the end of the call", lambda: look(other)["ended"])
        assert added(server.folder) == ""


def test_a_line_that_is_not_json_ends_the_connection_and_what_came_after_it_never_runs() -> None:
    """C-29."""
    with serve_lines() as server, Lines(server) as lines, Lines(server) as other:
        lines.say(call(1, "wait"), call(2, "add", text="a"), b"POST /mcp HTTP/1.1\n", call(3, "add", text="b"))
        eventually("the call", lambda: look(other)["begun"])
        let_go(server)
        assert [lines.hear()["id"] for _ in range(3)] == [1, 2, None]
        assert lines.hear() is None
        look(other)
        assert added(server.folder) == "a"


# -- the limit


def over_the_limit() -> list[Any]:
    """A call that takes a while, more than may wait for it, and its cancellation, which is not read in time."""
    return [call(0, "hold"), *(call(id, "hold", text=BIG) for id in range(1, MANY))]


@pytest.mark.parametrize("stdin", ["pipe", "file"])
def test_stdio_reads_no_more_while_too_much_waits(workshop: Workshop, tmp_path: Path, stdin: str) -> None:
    """All the same, every request is answered, in order."""
    given = encode(*over_the_limit(), notification("notifications/cancelled", requestId=0), request("last", "ping"))
    argv = [*LONGSHORE, "serve", str(workshop.write(SOURCE)), *DIALECT, "--set", "server.eof_grace=60"]
    if stdin == "pipe":
        done = workshop.run(argv, data=given)
    else:
        path = tmp_path / "given"
        path.write_bytes(given)
        with path.open("rb") as reader:
            done = subprocess.run(
                argv, cwd=workshop.folder, env=workshop.env, stdin=reader, capture_output=True, timeout=60
            )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["id"] for each in answers] == [*range(MANY), "last"]
    assert value_of(answers[0]) == "held"


def test_lines_are_not_read_while_too_much_waits() -> None:
    with serve_lines() as server, Lines(server) as greedy, Lines(server) as other:
        messages = [call(0, "wait"), *over_the_limit()[1:], notification("notifications/cancelled", requestId=0)]
        sender = Thread(target=greedy.say, args=messages)
        sender.start()
        eventually("the call", lambda: look(other)["begun"])
        for _ in range(30):
            look(other)
        let_go(server)
        answers = [greedy.hear() for _ in range(MANY)]
        sender.join()
        assert [each["id"] for each in answers] == [*range(MANY)]
        assert value_of(answers[0]) == "waited"
