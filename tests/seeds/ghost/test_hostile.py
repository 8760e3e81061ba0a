"""The hostile frames for the ContextGraph dialect: exactly one answer each, and the process lives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostile.frames import FAILED, LIMIT, PARSE, TABLE, Row, call_of_size
from hostile.test_live import Victim
from seeds.browseros.test_hostile import ARRAYS, summary

from .document import CODES

VERSIONS = {"2024-11-05": {}, "2025-03-26": ARRAYS}
"""The handshakes of the dialect, each with the rows that it answers otherwise: only 2025-03-26 has batches."""


@pytest.fixture(params=VERSIONS)
def victim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Victim, dict[str, Any]]]:
    with Victim(tmp_path, request.param, "--dialect", "ghost") as process:
        yield process, VERSIONS[request.param]


def expected(row: Row, others: dict[str, Any]) -> list[Any]:
    if row.name in others:
        return [others[row.name]]
    if row.code is None:
        return []
    # A call that can't be read is an error here, not a result.
    return [(row.id, PARSE if row.code == FAILED else row.code)]


def test_every_hostile_frame_gets_its_one_answer_and_the_process_lives(
    victim: tuple[Victim, dict[str, Any]],
) -> None:
    process, others = victim
    for row in TABLE:
        process.put(row.frame)
        answers = process.answers_before_sentinel(row.name)
        assert [summary(json.loads(each)) for each in answers] == expected(row, others), (row.name, answers)


def test_a_cancelled_and_a_doubled_request_are_each_answered_once(victim: tuple[Victim, dict[str, Any]]) -> None:
    process, _ = victim
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "hold", "arguments": {"key": "k"}}}
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    for each in (call, call, cancel, cancel):
        process.put(json.dumps(each).encode())
    answers = [summary(json.loads(process.get())) for _ in range(2)]
    assert sorted(answers) == [(7, CODES["request cancelled"]), (7, CODES["invalid request"])]
    assert process.answers_before_sentinel("after") == []


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_frame_limit_is_exact(victim: tuple[Victim, dict[str, Any]], over: int) -> None:
    process, _ = victim
    frame, size = call_of_size(LIMIT + over)
    process.put(frame)
    answer = json.loads(process.get())
    if over > 0:
        assert summary(answer) == (5, CODES["invalid request"])
    else:
        assert answer["result"]["content"] == [{"type": "text", "text": str(size)}]
    assert process.answers_before_sentinel("after") == []


@pytest.mark.parametrize(
    "tool", ["crash", "crash_on_thread", "crash_inline", "wrong_type", "interrupt", "quit_process"]
)
def test_the_text_of_an_exception_never_reaches_the_client(victim: tuple[Victim, dict[str, Any]], tool: str) -> None:
    process, _ = victim
    process.put(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}}).encode())
    line = process.get()
    assert b"AKIA" not in line and b"secret" not in line and b"Traceback" not in line
    assert json.loads(line)["result"]["isError"] is True
    assert process.answers_before_sentinel("after") == []
