"""Answers that wait for an earlier one are unread output: beyond `limits.output_bytes` nothing more is read."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from http_process.serverproc import start
from http_process.test_lines import Lines
from process.conftest import Workshop
from process.peer import LONGSHORE, call, encode, request
from waiting import eventually

SOURCE = """
import asyncio
from longshore import Server

app = Server("mine")
go = asyncio.Event()
given = 0

@app.tool(run="inline")
def big(size: int) -> str:
    global given
    given += 1
    return "x" * size

@app.tool(run="inline")
def count() -> int:
    return given

@app.tool(timeout=60)
async def wait() -> str:
    await go.wait()
    return "waited"

@app.tool
async def release() -> str:
    go.set()
    return "ok"

@app.tool
async def hold() -> int:
    for _ in range(100):  # in each the loop reads what there is
        await asyncio.sleep(0)
    return given
"""
SIZE = 60_000
MOST = (2 << 20) // SIZE + 1
LIMITS = ("--dialect", "browseros", "--set", "limits.running=2")


def bigs(first: int, count: int) -> list[dict[str, Any]]:
    return [call(id, "big", size=SIZE) for id in range(first, first + count)]


def value_of(answer: Any) -> Any:
    return answer["result"]["result"]


@pytest.mark.parametrize("stdin", ["pipe", "file"])
def test_stdio_reads_no_more_while_the_answers_that_wait_are_over_the_limit(
    workshop: Workshop, tmp_path: Path, stdin: str
) -> None:
    given = tmp_path / "given"
    given.write_bytes(encode(call(0, "hold"), *bigs(1, 300), call(301, "hold")))
    if stdin == "file":
        reader = os.open(given, os.O_RDONLY)
    else:
        reader, writer = os.pipe()
        assert os.write(writer, given.read_bytes()) == given.stat().st_size
        os.close(writer)
    argv = [*LONGSHORE, "serve", str(workshop.write(SOURCE)), *LIMITS]
    done = subprocess.run(argv, cwd=workshop.folder, env=workshop.env, stdin=reader, stdout=subprocess.PIPE, timeout=60)
    os.close(reader)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["id"] for each in answers] == [*range(302)]
    assert value_of(answers[0]) <= MOST
    assert value_of(answers[-1]) == 300


@pytest.mark.parametrize(
    ("messages", "read"),
    [
        (bigs(1, 300), MOST),
        ([[call("a", "wait"), *bigs(1, 99)], [call("b", "wait"), *bigs(100, 99)]], 99),
    ],
    ids=["requests", "batches"],
)
def test_lines_are_not_read_while_the_answers_that_wait_are_over_the_limit(messages: Any, read: int) -> None:
    with start(SOURCE, "--lines", *LIMITS) as server, Lines(server) as greedy, Lines(server) as other:

        def given() -> int:
            other.say(call("count", "count"))
            return int(value_of(other.hear()))

        greedy.say(call(0, "wait"), *messages)
        eventually("the limit", lambda: given() >= read)
        assert {given() for _ in range(30)} == {read}
        other.say(call("go", "release"))
        assert value_of(other.hear()) == "ok"
        ids = [greedy.hear() for _ in range(1 + len(messages))]
        assert [each["id"] for each in ids if isinstance(each, dict)] == [
            0,
            *(each["id"] for each in messages if isinstance(each, dict)),
        ]
        assert given() in (300, 198)


def test_a_queued_call_that_others_wait_for_is_started_all_the_same() -> None:
    """Else it would wait for the answers that wait for it."""
    with start(SOURCE, "--lines", *LIMITS) as server, Lines(server) as greedy, Lines(server) as other:
        other.say(call(1, "wait"))
        greedy.say(call(0, "wait"), call(1, "wait"), *bigs(2, 300), request("last", "ping"))
        with Lines(server) as third:

            def given() -> int:
                third.say(call("count", "count"))
                return int(value_of(third.hear()))

            eventually("the limit", lambda: given() >= MOST)
            other.wire.close()  # which ends its call; now both of the others may run
            third.say(call("go", "release"))
            assert value_of(third.hear()) == "ok"
        assert [greedy.hear()["id"] for _ in range(303)] == [*range(302), "last"]
