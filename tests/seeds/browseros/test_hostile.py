"""The hostile frames for BrowserOS's dialect: exactly one answer each, in order, and the process lives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostile.frames import FAILED, LIMIT, PARSE, REQUEST, TABLE, Row, call_of_size
from hostile.test_live import SERVER
from process.peer import call, encode, modern
from transcripts.peers import Process

ALIVE = {"status": "ok"}
ARRAYS = {
    "an array of a number": [(None, REQUEST)],
    "a batch": [(3, 0)],
    "a batch of a thousand": (None, REQUEST),
    "a batch of a million": (None, REQUEST),
    "an empty array": (None, REQUEST),
    "depth 127 arrays": [(None, REQUEST)],
    "depth 128 arrays": [(None, REQUEST)],
}
"""The rows of the table that hold an array, which this dialect takes: the id and code of each answer."""


class Bare(Process):
    """A server process whose peer never makes a handshake."""

    def __init__(self, home: Path) -> None:
        super().__init__([f"{SERVER}:app", "--dialect", "browseros"], home)

    def answers_before_sentinel(self, name: str) -> list[Any]:
        """What came until the answer to a ping that was sent now."""
        self.put(json.dumps({"jsonrpc": "2.0", "id": f"sentinel {name}", "method": "ping"}).encode())
        found: list[Any] = []
        while (line := json.loads(self.get())) != {"jsonrpc": "2.0", "id": f"sentinel {name}", "result": ALIVE}:
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
            assert json.loads(process.get())["result"] == {"tool": "release", "result": "ok"}
        yield process


def summary(answer: Any) -> Any:
    """The id and code of an answer, or of each in an array."""
    if isinstance(answer, list):
        return [summary(each) for each in answer]
    assert answer["jsonrpc"] == "2.0"
    return answer["id"], answer["error"]["code"] if "error" in answer else 0


def expected(row: Row) -> list[Any]:
    if row.name in ARRAYS:
        return [ARRAYS[row.name]]
    if row.code is None:
        return []
    # A call that can't be read is an error here, not a result.
    return [(row.id, PARSE if row.code == FAILED else row.code)]


def test_every_hostile_frame_gets_its_one_answer_and_the_process_lives(victim: Bare) -> None:
    """S-33, S-37."""
    for row in TABLE:
        victim.put(row.frame)
        answers = victim.answers_before_sentinel(row.name)
        assert [summary(each) for each in answers] == expected(row), (row.name, answers)


def test_hostile_frames_may_all_come_at_once_and_are_answered_in_order(victim: Bare) -> None:
    """S-33: one write of many frames."""
    rows = [row for row in TABLE if len(row.frame) < 10_000]
    victim.put_raw(b"".join(row.frame + b"\n" for row in rows))
    answers = victim.answers_before_sentinel("all")
    assert [summary(each) for each in answers] == [each for row in rows for each in expected(row)]


def test_a_second_request_with_an_id_in_flight_runs_after_the_first(victim: Bare) -> None:
    for key in ("a", "b"):
        victim.put(encode(call(7, "hold", key=key)).strip())
    for key in ("b", "a"):
        victim.put(encode(modern(call(key, "release", key=key))).strip())
    answers = [json.loads(victim.get()) for _ in range(4)]
    assert [each["result"]["result"] for each in answers if each["id"] == 7] == ["a", "b"]


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_frame_limit_is_exact(victim: Bare, over: int) -> None:
    frame, size = call_of_size(LIMIT + over)
    victim.put(frame)
    answer = json.loads(victim.get())
    if over > 0:
        assert summary(answer) == (5, REQUEST)
    else:
        assert answer["result"] == {"tool": "length", "result": size}
    assert victim.answers_before_sentinel("after") == []


@pytest.mark.parametrize(
    "tool", ["crash", "crash_on_thread", "crash_inline", "wrong_type", "interrupt", "quit_process"]
)
def test_the_text_of_an_exception_never_reaches_the_client(victim: Bare, tool: str) -> None:
    victim.put(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}}).encode())
    line = victim.get()
    assert b"AKIA" not in line and b"secret" not in line and b"Traceback" not in line
    assert summary(json.loads(line)) == (1, -32001)
    assert victim.answers_before_sentinel("after") == []
