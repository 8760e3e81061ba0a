"""A hostile peer against a live stdio process: exactly one answer each, the process alive, its memory bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from transcripts.peers import Process

from .frames import FAILED, LIMIT, TABLE, Row, call_of_size

SERVER = Path(__file__).with_name("server.py")
MB = 1 << 20
SECRET = "AKIAIOSFODNN7EXAMPLE"


class Victim(Process):
    """A server process that has shaken hands."""

    def __init__(self, home: Path, version: str = "2025-11-25", *options: str) -> None:
        super().__init__([f"{SERVER}:app", *options], home)
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
        self.ask("initialize", hello)
        self.put(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def ask(self, method: str, params: dict[str, Any] | None = None, id: int | str = "ask") -> dict[str, Any]:
        self.put(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}).encode())
        answer: dict[str, Any] = json.loads(self.get())
        assert answer["id"] == id
        return answer

    def call(self, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = self.ask("tools/call", {"name": tool, "arguments": arguments or {}})["result"]
        return result

    def answers_before_sentinel(self, name: str) -> list[bytes]:
        """What came until the answer to a ping that was sent now."""
        self.put(json.dumps({"jsonrpc": "2.0", "id": f"sentinel {name}", "method": "ping"}).encode())
        found = []
        while json.loads(line := self.get()) != {"jsonrpc": "2.0", "id": f"sentinel {name}", "result": {}}:
            found.append(line)
        return found

    def memory(self, field: str) -> int:
        """Bytes, from /proc: VmHWM is the most that it ever had, VmRSS what it has now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(field)

    def forget_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")


@pytest.fixture(params=["blocking", "loop"])
def victim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Victim]:
    """In both phases of the driver: before anything needed asyncio, and after."""
    with Victim(tmp_path) as process:
        if request.param == "loop":
            assert process.call("release", {"key": "first"})["content"][0]["text"] == "ok"
        yield process


def check(row: Row, answers: list[bytes]) -> None:
    if row.code is None:
        assert answers == [], row.name
        return
    assert len(answers) == 1, (row.name, answers)
    answer = json.loads(answers[0])
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == row.id and type(answer["id"]) is type(row.id), (row.name, answer)
    code = FAILED if "isError" in answer.get("result", {}) else answer.get("error", {}).get("code", 0)
    assert code == row.code, (row.name, answer)


def test_every_hostile_frame_gets_its_one_answer_and_the_process_lives(victim: Victim) -> None:
    for row in TABLE:
        victim.put(row.frame)
        check(row, victim.answers_before_sentinel(row.name))
    assert victim.call("echo", {"text": "alive"})["content"][0]["text"] == "alive"


def test_hostile_frames_may_all_come_at_once(victim: Victim) -> None:
    """One write of many frames: the answers come in order, none lost and none doubled."""
    rows = [row for row in TABLE if len(row.frame) < 10_000]
    victim.put_raw(b"".join(row.frame + b"\n" for row in rows))
    answers = victim.answers_before_sentinel("all")
    expected = [row for row in rows if row.code is not None]
    assert len(answers) == len(expected)
    for row, answer in zip(expected, answers, strict=True):
        check(row, [answer])


def test_a_second_request_with_an_id_in_flight_is_refused_and_the_first_completes(victim: Victim) -> None:
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "hold", "arguments": {"key": "a"}}}
    victim.put(json.dumps(call).encode())
    victim.put(json.dumps(call).encode())
    victim.put(json.dumps({**call, "id": "7", "params": {"name": "hold", "arguments": {"key": "b"}}}).encode())
    refused = json.loads(victim.get())
    assert (refused["id"], refused["error"]["code"]) == (7, -32600)
    victim.put(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"release","arguments":{"key":"b"}}}')
    assert {json.loads(victim.get())["id"] for _ in range(2)} == {1, "7"}
    victim.put(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"release","arguments":{"key":"a"}}}')
    answers = {json.loads(line)["id"]: json.loads(line) for line in (victim.get(), victim.get())}
    assert answers[7]["result"]["content"][0]["text"] == "a"
    assert victim.answers_before_sentinel("end") == []


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_frame_limit_is_exact(victim: Victim, over: int) -> None:
    frame, size = call_of_size(LIMIT + over)
    victim.put(frame)
    answer = json.loads(victim.get())
    if over > 0:
        assert answer["id"] == 5 and answer["result"]["isError"] is True
    else:
        assert answer["result"]["structuredContent"] == {"result": size}
    assert victim.answers_before_sentinel("after") == []


def test_a_call_over_the_limit_is_answered_under_its_id_where_that_comes_last(victim: Victim) -> None:
    head, tail = (
        b'{"method":"tools/call","params":{"name":"length","arguments":{"text":"',
        b'"}},"jsonrpc":"2.0","id":5}',
    )
    victim.put(head + b"x" * LIMIT + tail)
    answer = json.loads(victim.get())
    assert answer["id"] == 5 and answer["result"]["isError"] is True
    assert "16,777,216 bytes" in answer["result"]["content"][0]["text"]
    victim.put(tail.removeprefix(b'"}},') + b"x" * LIMIT)
    assert json.loads(victim.get())["id"] is None


def test_half_an_emoji_reaches_the_tool_as_the_replacement_character(victim: Victim) -> None:
    for _ in range(8):  # also once the tool is read in one pass
        victim.put(
            rb'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a\ud83d"}}}'
        )
        result = json.loads(victim.get())["result"]
        assert result["content"][0]["text"] == "a\ufffd"
        assert "U+FFFD" in result["_meta"]["longshore/notes"][0]
    assert "_meta" not in victim.call("echo", {"text": "whole 🛳"})


def test_after_a_frame_over_the_limit_the_next_line_is_read_as_ever(victim: Victim) -> None:
    victim.put_raw(b"x" * (LIMIT + 5) + b"\n" + b'{"jsonrpc":"2.0","id":6,"method":"ping"}\n')
    assert json.loads(victim.get())["error"]["code"] == -32600
    assert json.loads(victim.get()) == {"jsonrpc": "2.0", "id": 6, "result": {}}
    assert victim.answers_before_sentinel("after") == []


def test_64_mb_without_a_newline_cost_one_answer_and_bounded_memory(victim: Victim) -> None:
    before = victim.memory("VmHWM")
    victim.put_raw(b"x" * (64 * MB))
    victim.put(b"")
    assert json.loads(victim.get())["error"]["code"] == -32600
    assert victim.answers_before_sentinel("after") == []
    assert victim.memory("VmHWM") - before < 48 * MB


def test_deep_frames_of_megabytes_cost_no_memory_to_speak_of(victim: Victim) -> None:
    before = victim.memory("VmHWM")
    for frame in (b"[" * (4 * MB), b'{"a":' * (1 * MB), b"[{}," * MB + b"{}]"):
        victim.put(frame)
        assert json.loads(victim.get())["error"]["code"] in (-32700, -32600)
    assert victim.answers_before_sentinel("after") == []
    assert victim.memory("VmHWM") - before < 64 * MB


@pytest.mark.parametrize(
    ("frame", "answered"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', True),
        (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}', False),
        (b'{"jsonrpc":"2.0","method":"notifications/unknown","params":{"n":%d}}', False),
        (b'{"jsonrpc":"2.0","id":%d,"result":{}}', False),
        (b"not json", True),
    ],
    ids=["pings", "cancels of unknown ids", "unknown notifications", "unsolicited responses", "garbage"],
)
def test_ten_thousand_malformed_frames_are_answered_without_growth(
    victim: Victim, frame: bytes, answered: bool
) -> None:
    frames = [frame % n if b"%d" in frame else frame for n in range(10_000)]
    victim.put_raw(b"\n".join(frames) + b"\n")
    assert len(victim.answers_before_sentinel("first")) == (10_000 if answered else 0)
    before = victim.memory("VmRSS")
    victim.put_raw(b"\n".join(frames) + b"\n")
    assert len(victim.answers_before_sentinel("second")) == (10_000 if answered else 0)
    assert victim.memory("VmRSS") - before < 2 * MB


def test_an_argument_that_the_tool_does_not_take_is_refused_by_its_name(victim: Victim) -> None:
    for _ in range(8):  # also once the tool is read in one pass
        result = victim.call("echo", {"text": "x", "admin": True})
        assert result["isError"] is True
        assert "admin" in result["content"][0]["text"]


@pytest.mark.parametrize(
    "tool", ["crash", "crash_on_thread", "crash_inline", "wrong_type", "interrupt", "quit_process"]
)
def test_the_text_of_an_exception_never_reaches_the_client(victim: Victim, tool: str) -> None:
    victim.put(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}}).encode())
    line = victim.get()
    assert SECRET.encode() not in line and b"secret" not in line and b"Traceback" not in line
    assert json.loads(line)["result"]["isError"] is True
    assert victim.answers_before_sentinel("after") == []


def test_masked_exceptions_are_in_the_log(tmp_path: Path) -> None:
    with Victim(tmp_path) as victim:
        text = victim.call("crash")["content"][0]["text"]
        number = text.rsplit(" ", 1)[1]
        errors = victim.errors()
        assert number in errors and "RuntimeError" in errors and SECRET not in errors


@pytest.mark.parametrize(("tool", "arguments"), [("deep", {"levels": 500}), ("deep", {"levels": 100_000}), ("odd", {})])
def test_a_result_that_can_not_be_written_is_still_answered(
    victim: Victim, tool: str, arguments: dict[str, Any]
) -> None:
    assert "content" in victim.call(tool, arguments)
    assert victim.answers_before_sentinel("after") == []
