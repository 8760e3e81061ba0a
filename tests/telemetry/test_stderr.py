"""The stderr sink: JSON lines in a pipe, pretty on a terminal, and never a reason to wait."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longshore.telemetry.lines import FIELD_CHARACTERS
from longshore.telemetry.lines import LONG_CHARACTERS as TRACE_CHARACTERS
from longshore.telemetry.records import Problem, RequestCompleted, RequestReceived, ToolCompleted, ToolInvoked
from longshore.telemetry.stderr import PIECE_BYTES, StderrSink, printable

AT = 1_700_000_000.0


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        try:
            os.close(fd)
        except OSError:
            pass


def written(reader: int) -> bytes:
    os.set_blocking(reader, False)
    said = b""
    try:
        while chunk := os.read(reader, 1 << 20):
            said += chunk
    except BlockingIOError:
        pass
    return said


def test_in_a_pipe_each_record_is_a_line_of_json(pipe: tuple[int, int]) -> None:
    sink = StderrSink("debug", fd=pipe[1])
    sink(RequestReceived(method="tools/call", id=7, at=AT))
    sink(ToolInvoked(tool="add", id=7, at=AT))
    sink(ToolCompleted(tool="add", id=7, seconds=0.25, outcome="ok", at=AT))
    sink(RequestCompleted(method="tools/call", id="x", seconds=0.25, outcome="failed", at=AT))
    sink(Problem("error", "it broke", AT, "Traceback …"))
    lines = [json.loads(line) for line in written(pipe[0]).splitlines()]
    assert lines == [
        {"level": "debug", "type": "request_received", "method": "tools/call", "id": 7, "at": AT},
        {"level": "debug", "type": "tool_invoked", "tool": "add", "id": 7, "at": AT},
        {"level": "info", "type": "tool_completed", "tool": "add", "id": 7, "seconds": 0.25, "outcome": "ok", "at": AT},
        {
            "level": "notice",
            "type": "request_completed",
            "method": "tools/call",
            "id": "x",
            "seconds": 0.25,
            "outcome": "failed",
            "at": AT,
        },
        {"level": "error", "type": "problem", "text": "it broke", "at": AT, "trace": "Traceback …"},
    ]


@pytest.mark.parametrize(("level", "count"), [("debug", 5), ("info", 4), ("notice", 3), ("warning", 2), ("error", 1)])
def test_less_severe_records_are_not_written(pipe: tuple[int, int], level: Any, count: int) -> None:
    sink = StderrSink(level, fd=pipe[1])
    sink(RequestReceived(method="ping", id=1, at=AT))
    sink(ToolCompleted(tool="add", id=1, seconds=0.1, outcome="ok", at=AT))
    sink(ToolCompleted(tool="add", id=1, seconds=0.1, outcome="timeout", at=AT))
    sink(Problem("warning", "hm", AT))
    sink(Problem("error", "oh", AT))
    assert len(written(pipe[0]).splitlines()) == count


def test_records_on_a_terminal_are_pretty() -> None:
    main, terminal = pty.openpty()
    try:
        sink = StderrSink("debug", fd=terminal)
        sink(ToolCompleted(tool="add", id=7, seconds=0.00125, outcome="ok", at=AT))
        sink(Problem("error", "it broke", AT, "Traceback\n  line one\n"))
        said = written(main).decode().replace("\r\n", "\n")
    finally:
        os.close(main)
        os.close(terminal)
    assert "22:13:20" in said
    assert "add ok in 1.2 ms" in said
    assert "\x1b[31merror" in said
    assert "\n    line one\n" in said
    assert "{" not in said


def test_the_style_can_be_forced(pipe: tuple[int, int]) -> None:
    StderrSink("debug", "pretty", pipe[1])(ToolCompleted(tool="add", id=7, seconds=0.001, outcome="ok", at=AT))
    assert b"add ok in 1.0 ms" in written(pipe[0])
    main, terminal = pty.openpty()
    try:
        StderrSink("debug", "json", terminal)(ToolCompleted(tool="add", id=7, seconds=0.001, outcome="ok", at=AT))
        assert json.loads(written(main))["tool"] == "add"
    finally:
        os.close(main)
        os.close(terminal)


HOSTILE = "a\x1b[2Jb\x00c\nERROR forged\rd\u2028e\x9bf\u202eg\U000e0001h"


@pytest.mark.parametrize("style", ["pretty", "json"])
def test_control_characters_can_not_move_a_terminal_or_forge_a_line(pipe: tuple[int, int], style: Any) -> None:
    StderrSink("debug", style, pipe[1])(Problem("error", HOSTILE, AT, f"Traceback {HOSTILE}"))
    said = written(pipe[0]).decode()
    body = said.replace("\x1b[31m", "").replace("\x1b[0m", "")
    assert not [char for char in body if char != "\n" and not char.isprintable()]
    assert not any(line.startswith("ERROR") for line in body.splitlines())
    if style == "json":
        assert said.count("\n") == 1
        assert json.loads(said)["text"] == HOSTILE


@pytest.mark.parametrize("style", ["pretty", "json"])
def test_a_text_without_an_encoding_is_escaped(pipe: tuple[int, int], style: Any) -> None:
    StderrSink("debug", style, pipe[1])(Problem("error", "file \udcff.txt", AT, "in \udcff.txt"))
    said = written(pipe[0]).decode()
    assert "udcff.txt" in said or "?" in said


def test_printable_text_stays_as_it_is() -> None:
    assert printable("größer 東京 🚢 'x' \\n") == "größer 東京 🚢 'x' \\n"


def logged(pipe: tuple[int, int], text: str = "", trace: str = "") -> dict[str, Any]:
    StderrSink("debug", fd=pipe[1])(Problem("error", text, AT, trace))
    return json.loads(written(pipe[0]))


def test_a_long_text_is_cut_at_its_end(pipe: tuple[int, int]) -> None:
    for size in (FIELD_CHARACTERS - 1, FIELD_CHARACTERS):
        assert logged(pipe, "x" * size)["text"] == "x" * size
    assert logged(pipe, "a" + "x" * FIELD_CHARACTERS)["text"] == "a" + "x" * (FIELD_CHARACTERS - 1) + "…"


def test_a_long_trace_is_cut_at_its_beginning(pipe: tuple[int, int]) -> None:
    for size in (TRACE_CHARACTERS - 1, TRACE_CHARACTERS):
        assert logged(pipe, trace="x" * size)["trace"] == "x" * size
    kept = logged(pipe, trace="Traceback\n" + "x" * TRACE_CHARACTERS + "\nValueError: why")["trace"]
    assert kept.startswith("…x") and kept.endswith("x\nValueError: why")
    assert len(kept) == TRACE_CHARACTERS + 1


def test_a_full_pipe_is_never_waited_for(pipe: tuple[int, int]) -> None:
    sink = StderrSink("debug", fd=pipe[1])
    for n in range(10_000):
        sink(Problem("error", f"{n} {'x' * 200}", AT))
    assert sink.dropped > 0
    lines = written(pipe[0]).splitlines()
    assert len(lines) + sink.dropped == 10_000
    assert all(json.loads(line) for line in lines), "what was written is whole"


def test_a_long_line_to_a_nearly_full_pipe_is_never_waited_for(pipe: tuple[int, int]) -> None:
    sink = StderrSink("debug", fd=pipe[1])
    for _ in range(1000):
        sink(Problem("error", "x" * 5000, AT, "y" * 5000))
    assert sink.dropped > 0
    kept = written(pipe[0])
    sink(Problem("error", "the next", AT))
    *_, last = (kept + written(pipe[0])).splitlines()
    assert json.loads(last)["text"] == "the next", "a torn line takes no other with it"
    assert PIECE_BYTES == 4096 == os.pathconf("/", "PC_PIPE_BUF")


def test_a_closed_stderr_raises_nothing(pipe: tuple[int, int]) -> None:
    sink = StderrSink("debug", fd=pipe[1])
    os.close(pipe[0])
    sink(Problem("error", "nobody reads", AT))
    os.close(pipe[1])
    sink(Problem("error", "nothing to write to", AT))
    assert sink.dropped == 2


# -- a live server


NOISY = textwrap.dedent(
    """
    from longshore import Server, ToolError
    app = Server("noisy")

    @app.tool(run="inline")
    def broken(text: str) -> str:
        raise RuntimeError(text * 100)

    @app.tool(run="inline")
    def fine(text: str) -> str:
        return text

    @app.tool(run="inline")
    def wrong(text: str) -> str:
        raise ToolError(text)
    """
)


def serve(folder: Path, *options: str, stderr: int) -> subprocess.Popen[bytes]:
    (folder / "server.py").write_text(NOISY)
    env = {key: value for key, value in os.environ.items() if not key.startswith("LONGSHORE_")}
    return subprocess.Popen(
        [sys.executable, "-m", "longshore", "serve", str(folder / "server.py"), *options],
        cwd=folder,
        env={**env, "HOME": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
    )


def call(id: int, tool: str, text: str) -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": {"text": text}, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode() + b"\n"


def test_a_server_with_a_full_stderr_pipe_still_answers(tmp_path: Path) -> None:
    with serve(tmp_path, stderr=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None and server.stderr is not None
        end = time.monotonic() + 40
        for start in range(0, 2000, 20):
            server.stdin.write(b"".join(call(n, "broken", "x" * 100) for n in range(start, start + 20)))
            server.stdin.flush()
            for _ in range(20):
                assert b"failed unexpectedly" in server.stdout.readline()
            assert time.monotonic() < end
        server.stdin.close()
        assert server.wait(20) == 0
        assert len(server.stderr.read()) >= 1 << 15


@pytest.mark.parametrize(
    ("options", "types"),
    [
        (["--log-level", "debug"], ["request_received", "tool_invoked", "tool_completed", "request_completed"]),
        (["--log-level", "info"], ["tool_completed", "request_completed"]),
        ([], []),
    ],
)
def test_the_log_level_says_what_is_written(tmp_path: Path, options: list[str], types: list[str]) -> None:
    with serve(tmp_path, *options, stderr=subprocess.PIPE) as server:
        _, said = server.communicate(call(1, "fine", "x"), timeout=20)
    assert [json.loads(line)["type"] for line in said.splitlines()] == types


def test_no_secret_of_a_call_is_in_the_log(tmp_path: Path) -> None:
    canary = "canary-51b2"
    with serve(tmp_path, "--log-level", "debug", stderr=subprocess.PIPE) as server:
        said = server.communicate(call(1, "fine", canary) + call(2, "wrong", canary), timeout=20)
    assert said[0].count(canary.encode()) == 2
    assert len(said[1].splitlines()) == 8
    assert canary.encode() not in said[1]


def test_records_can_be_turned_off(tmp_path: Path) -> None:
    (tmp_path / "longshore.toml").write_text("[telemetry]\nrecords = false\n")
    with serve(tmp_path, "--log-level", "debug", stderr=subprocess.PIPE) as server:
        _, said = server.communicate(call(1, "fine", "x") + call(2, "broken", "x"), timeout=20)
    assert [json.loads(line)["type"] for line in said.splitlines()] == ["problem"]
