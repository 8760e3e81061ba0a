"""The hostile frames for Brooklyn's dialect: exactly one answer each, and the process lives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostile.frames import FAILED, LIMIT, PARSE, REQUEST, TABLE, Row, call_of_size
from hostile.test_live import SERVER
from seeds.browseros.test_hostile import summary
from transcripts.peers import Process


class Bare(Process):
    """A server process whose peer never makes a handshake."""

    def __init__(self, home: Path) -> None:
        super().__init__([f"{SERVER}:app", "--dialect", "brooklyn"], home)

    def answers_before_sentinel(self, name: str) -> list[Any]:
        """What came until the answer to a ping that was sent now."""
        self.put(json.dumps({"jsonrpc": "2.0", "id": f"sentinel {name}", "method": "ping"}).encode())
        found: list[Any] = []
        while (line := json.loads(self.get())) != {"jsonrpc": "2.0", "id": f"sentinel {name}", "result": {}}:
            found.append(line)
        return found


@pytest.fixture(params=["blocking", "loop"])
def victim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bare]:
    """In both phases of the driver: before anything needed asyncio, and after."""
    with Bare(tmp_path) as process:
        if request.param == "loop":
            process.put(
                b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"release","arguments":{"key":"a"}}}'
            )
            assert json.loads(process.get())["result"]["content"][0]["text"] == "ok"
        yield process


def expected(row: Row) -> list[Any]:
    # A call that can't be read is an error here, not a result.
    return [] if row.code is None else [(row.id, PARSE if row.code == FAILED else row.code)]


def test_every_hostile_frame_gets_its_one_answer_and_the_process_lives(victim: Bare) -> None:
    """S-11, S-29."""
    for row in TABLE:
        victim.put(row.frame)
        answers = victim.answers_before_sentinel(row.name)
        assert [summary(each) for each in answers] == expected(row), (row.name, answers)


def test_hostile_frames_may_all_come_at_once(victim: Bare) -> None:
    """S-13: one write of many lines."""
    rows = [row for row in TABLE if len(row.frame) < 10_000]
    victim.put_raw(b"".join(row.frame + b"\n" for row in rows))
    answers = victim.answers_before_sentinel("all")
    assert [summary(each) for each in answers] == [each for row in rows for each in expected(row)]


def test_a_second_request_with_an_id_in_flight_is_refused_and_the_first_completes(victim: Bare) -> None:
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "hold", "arguments": {"key": "k"}}}
    release = call | {"id": 8, "params": {"name": "release", "arguments": {"key": "k"}}}
    for each in (call, call, release):
        victim.put(json.dumps(each).encode())
    answers = [summary(json.loads(victim.get())) for _ in range(3)]
    assert sorted(answers) == [(7, REQUEST), (7, 0), (8, 0)]


def test_a_cancelled_request_is_not_answered(victim: Bare) -> None:
    """C-16."""
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "hold", "arguments": {"key": "k"}}}
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    for each in (call, cancel, cancel):
        victim.put(json.dumps(each).encode())
    assert victim.answers_before_sentinel("after") == []


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_frame_limit_is_exact(victim: Bare, over: int) -> None:
    frame, size = call_of_size(LIMIT + over)
    victim.put(frame)
    answer = json.loads(victim.get())
    if over > 0:
        assert summary(answer) == (5, REQUEST)
    else:
        assert answer["result"]["structuredContent"] == {"result": size}
    assert victim.answers_before_sentinel("after") == []


@pytest.mark.parametrize(
    "tool", ["crash", "crash_on_thread", "crash_inline", "wrong_type", "interrupt", "quit_process"]
)
def test_the_text_of_an_exception_never_reaches_the_client(victim: Bare, tool: str) -> None:
    victim.put(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}}).encode())
    line = victim.get()
    assert b"AKIA" not in line and b"secret" not in line and b"Traceback" not in line
    assert summary(json.loads(line)) == (1, -32603)
    assert victim.answers_before_sentinel("after") == []
