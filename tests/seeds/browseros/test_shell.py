"""The shell lines of BrowserOS's document as they stand, with port 9100 in a network of their own."""

from __future__ import annotations

import json
import subprocess

import pytest

from process.conftest import Workshop
from services import need_command
from waiting import PATIENCE

from .document import read, text_of, with_python

WAIT = "until nc -z localhost 9100; do sleep 0.01; done"
"""The document sends its request to a server that may not listen yet."""


PRIVATE = ("--dev-bind", "/", "/", "--proc", "/proc", "--unshare-net", "--unshare-pid", "--die-with-parent")
"""Options of bubblewrap: a network of its own, and no process that outlives the script."""


def run_shell(workshop: Workshop, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run lines of the document."""
    return _run(workshop, ["sh", "-eu", "-c", script], variables)


def run_with_port(workshop: Workshop, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run lines of the document that need port 9100."""
    need_command("nc", "netcat-openbsd")
    bwrap = need_command("bwrap", "bubblewrap")
    return _run(workshop, [bwrap, *PRIVATE, "sh", "-eu", "-c", script], variables)


def _run(workshop: Workshop, argv: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        cwd=workshop.folder,
        env=with_python(workshop.env) | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_a_background_server_answers_nc_on_port_9100_and_ends_by_a_signal(workshop: Workshop) -> None:
    """S-69, S-80."""
    script = text_of("integration_test.sh").replace("SERVER_PID=$!", f"SERVER_PID=$!\n{WAIT}")
    script += '\nstatus=0; wait "$SERVER_PID" || status=$?; echo "ended: $status"'
    # nc waits until the server closes the connection, which is when nothing has come for this long.
    done = run_with_port(workshop, script, LONGSHORE_LIMITS_IDLE_SECONDS="0.2")
    answer, ended = done.stdout.splitlines()
    assert json.loads(answer) == read("ping_response.json") | {"id": "1"}, done.stderr
    assert ended == "ended: 143"


@pytest.mark.parametrize("after", ["In another terminal", "With jq"])
def test_a_line_piped_in_is_answered_and_the_process_ends(workshop: Workshop, after: str) -> None:
    """S-31, S-52, S-76, S-77: pure JSON, also for jq."""
    need_command("jq", "jq")
    script = text_of("command_line.sh").partition(after)[2]
    script = "#" + script if after == "With jq" else "#" + script.partition("# With jq")[0]
    done = run_shell(workshop, script)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == read("list_response.json")


def test_a_ping_piped_in_is_a_sign_of_life(workshop: Workshop) -> None:
    """S-81."""
    script = text_of("not_responding.sh").partition("# Test with")[2]
    assert json.loads(run_shell(workshop, f"#{script}").stdout)["result"] == {"status": "ok"}


def test_the_details_of_an_error_are_in_the_file_that_takes_stderr(workshop: Workshop) -> None:
    """S-82."""
    command = text_of("parse_errors.txt").partition("# Check stderr for error details\n")[2]
    done = run_shell(workshop, f"echo '{{no json' | {command}", BROWSEROS_MCP_DEBUG="true")
    assert json.loads(done.stdout)["error"]["code"] == -32700
    records = [json.loads(line) for line in (workshop.folder / "error.log").read_text().splitlines()]
    assert "refused" in [each["type"] for each in records], records


def test_the_tools_are_listed_where_one_was_not_found(workshop: Workshop) -> None:
    """S-83."""
    assert json.loads(run_shell(workshop, text_of("tool_not_found.sh")).stdout) == read("list_response.json")


def test_the_process_is_found_by_the_name_of_its_module(workshop: Workshop) -> None:
    """S-82: `ps aux | grep browseros.mcp.server`."""
    script = f"python -m browseros.mcp.server & {WAIT}; tr '\\0' ' ' </proc/$!/cmdline; kill $!"
    assert "-m browseros.mcp.server" in run_with_port(workshop, script).stdout


def test_debug_details_go_to_a_file_by_redirection(workshop: Workshop) -> None:
    """S-61, S-64, S-82: `2>error.log`."""
    echo = """echo '{"jsonrpc":"2.0","method":"ping","id":"1"}' | python -m browseros.mcp.server 2>error.log"""
    quiet = run_shell(workshop, echo)
    assert (workshop.folder / "error.log").read_text() == ""
    script = f"{text_of('environment.sh')}\n{echo}"
    assert run_shell(workshop, script).stdout == quiet.stdout
    assert '"request_received"' in (workshop.folder / "error.log").read_text()


def test_a_busy_port_does_not_concern_a_server_on_stdio(workshop: Workshop) -> None:
    """S-69: no port is needed. A second server that listens says why it can't."""
    ping = """echo '{"jsonrpc":"2.0","method":"ping","id":"1"}' | python -m browseros.mcp.server"""
    second = "python -m browseros.mcp.server </dev/null || echo $?"
    script = f"python -m browseros.mcp.server & first=$!; {WAIT}; {ping}; {second}; kill $first"
    done = run_with_port(workshop, script)
    answer, code = done.stdout.splitlines()
    assert json.loads(answer)["result"] == {"status": "ok"}
    assert code == "2"
    assert "9100 is in use" in done.stderr
