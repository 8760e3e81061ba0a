"""The hostile frames for the dialect of bb-mcp-server: exactly one answer each, and the process lives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostile.frames import ANSWERED, FAILED, LIMIT, METHOD, PARAMS, PARSE, REQUEST, TABLE, Row, call_of_size
from hostile.test_live import SERVER
from process.peer import call, notification
from seeds.browseros.test_hostile import summary
from transcripts.peers import Process

from .document import INITIALIZE, MESSAGES


class Victim(Process):
    """A server process, before the handshake of the document or after it."""

    def __init__(self, home: Path, handshake: bool) -> None:
        super().__init__([f"{SERVER}:app", "--dialect", "bb"], home)
        if handshake:
            self.put(json.dumps(INITIALIZE).encode())
            assert json.loads(self.get())["result"]["protocolVersion"] == "1.0"

    def answers_before_sentinel(self, name: str) -> list[Any]:
        """What came until the answer to a method that does not exist, which was sent now."""
        id = f"sentinel {name}"
        self.put(json.dumps({"jsonrpc": "2.0", "id": id, "method": "sentinel"}).encode())
        found: list[Any] = []
        while (answer := json.loads(self.get())).get("id") != id:
            found.append(answer)
        return found


@pytest.fixture(params=["before the handshake", "after it"])
def victim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Victim]:
    with Victim(tmp_path, handshake=request.param == "after it") as process:
        yield process


@pytest.fixture
def initialized(tmp_path: Path) -> Iterator[Victim]:
    with Victim(tmp_path, handshake=True) as process:
        yield process


CODES = {ANSWERED: METHOD, PARAMS: METHOD, FAILED: PARSE}
"""There is no ping here, and a call that can't be read is an error, not a result."""


def expected(row: Row) -> list[Any]:
    return [] if row.code is None else [(row.id, CODES.get(row.code, row.code))]


def test_every_hostile_frame_gets_its_one_answer_and_the_process_lives(victim: Victim) -> None:
    """S-158, S-164, S-165: with the message of the document's table."""
    for row in TABLE:
        victim.put(row.frame)
        answers = victim.answers_before_sentinel(row.name)
        assert [summary(each) for each in answers] == expected(row), (row.name, answers)
        assert all(each["error"]["message"] == MESSAGES[each["error"]["code"]] for each in answers), (row.name, answers)


def test_hostile_frames_may_all_come_at_once(victim: Victim) -> None:
    """S-158: one write of many frames."""
    rows = [row for row in TABLE if len(row.frame) < 10_000]
    victim.put_raw(b"".join(row.frame + b"\n" for row in rows))
    answers = victim.answers_before_sentinel("all")
    assert [summary(each) for each in answers] == [each for row in rows for each in expected(row)]


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_frame_limit_is_exact(initialized: Victim, over: int) -> None:
    frame, size = call_of_size(LIMIT + over)
    initialized.put(frame)
    answer = json.loads(initialized.get())
    if over > 0:
        assert summary(answer) == (5, REQUEST)
    else:
        assert answer["result"]["content"] == [{"type": "text", "text": str(size)}]
    assert initialized.answers_before_sentinel("after") == []


def test_a_doubled_request_is_refused_and_a_cancelled_one_not_answered(initialized: Victim) -> None:
    """C-16: of cancellation the document says nothing, so it is MCP's."""
    hold, cancel = call(7, "hold", key="k"), notification("notifications/cancelled", requestId=7)
    for each in (hold, hold, cancel, cancel):
        initialized.put(json.dumps(each).encode())
    assert [summary(each) for each in initialized.answers_before_sentinel("after")] == [(7, REQUEST)]


@pytest.mark.parametrize(
    "tool", ["crash", "crash_on_thread", "crash_inline", "wrong_type", "interrupt", "quit_process"]
)
def test_a_tool_that_crashes_is_an_execution_failure_and_the_process_lives(initialized: Victim, tool: str) -> None:
    """S-186."""
    initialized.put(json.dumps(call(1, tool)).encode())
    assert summary(json.loads(initialized.get())) == (1, -32001)
    assert initialized.answers_before_sentinel("after") == []
