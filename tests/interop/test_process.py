"""The process behind the connection: it ends when its client leaves, with code 0 and with every call answered."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from .peer import ERAS, LEGACY, PATIENCE, SERVER, command, connect, run, text

both_eras = pytest.mark.parametrize("mode", ERAS)


@both_eras
def test_the_server_exits_cleanly_when_the_client_closes(mode: str, tmp_path: Path) -> None:
    status, stderr = tmp_path / "status", tmp_path / "stderr"
    script = '"$@" 2>"$ERR"; echo $? >"$STATUS"'
    params = StdioServerParameters(
        command="sh",
        args=["-c", script, "sh", *command()],
        env={"STATUS": str(status), "ERR": str(stderr)},
    )

    async def main() -> None:
        async with Client(stdio_client(params), mode=mode, read_timeout_seconds=PATIENCE) as client:
            assert text(await client.call_tool("echo", {"text": "hi"})) == "hi"
            assert text(await client.call_tool("measure", {"width": 1, "height": 1})) != ""

    run(main)
    assert status.read_text() == "0\n"
    assert stderr.read_text() == ""


@both_eras
def test_a_server_run_as_a_script_is_the_same_server(mode: str) -> None:
    target = Path(SERVER.removesuffix(":app"))
    script = f"import sys; sys.path.insert(0, {str(target.parent)!r}); from server import app; app.run()"
    params = StdioServerParameters(command=sys.executable, args=["-c", script])

    async def main() -> None:
        async with Client(stdio_client(params), mode=mode, read_timeout_seconds=PATIENCE) as client:
            assert text(await client.call_tool("echo", {"text": "hi"})) == "hi"

    run(main)


def converse(*messages: Any) -> tuple[list[Any], int]:
    """What a process says to these lines and the end of its input, and its exit code."""
    lines = b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)
    done = subprocess.run(command(), input=lines, capture_output=True, timeout=PATIENCE, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


def handshake(**capabilities: Any) -> list[dict[str, Any]]:
    info = {"name": "t", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info}
    return [{"id": 0, "method": "initialize", "params": params}, {"method": "notifications/initialized"}]


@pytest.mark.parametrize(
    "call", [{"name": "refund", "arguments": {"order": "A9"}}, {"name": "book", "arguments": {"guests": 2}}]
)
def test_a_call_that_waits_for_an_answer_is_answered_when_the_input_ends(call: dict[str, Any]) -> None:
    frames, code = converse(*handshake(elicitation={}), {"id": 1, "method": "tools/call", "params": call})
    assert code == 0
    assert [frame["id"] for frame in frames if "method" not in frame] == [0, 1]
    assert "notifications/cancelled" not in [frame.get("method") for frame in frames]
    assert frames[-1]["result"]["isError"] is True
    assert "disconnected" in frames[-1]["result"]["content"][0]["text"]


def test_a_question_that_stays_open_ends_with_the_input() -> None:
    call = {"id": 1, "method": "tools/call", "params": {"name": "refund", "arguments": {"order": "A9"}}}
    with subprocess.Popen(command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for message in (*handshake(elicitation={}), call):
                process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == 0
            assert json.loads(process.stdout.readline())["method"] == "elicitation/create"
            process.stdin.close()
            reply = json.loads(process.stdout.readline())
            assert reply["id"] == 1
            assert "disconnected" in reply["result"]["content"][0]["text"]
            assert process.stdout.read() == b""
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def test_a_question_of_the_modern_era_leaves_nothing_to_wait_for() -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    params = {"name": "refund", "arguments": {"order": "A9"}, "_meta": meta}
    frames, code = converse({"id": 1, "method": "tools/call", "params": params})
    assert code == 0
    assert [frame["result"]["resultType"] for frame in frames] == ["input_required"]


def test_many_clients_come_and_go_one_after_the_other() -> None:
    async def main() -> None:
        for mode in (*ERAS, "auto", LEGACY):
            async with connect(mode) as client:
                assert text(await client.call_tool("add", {"a": 1, "b": 1})) == "2"

    run(main)
