"""The commands of `brooklyn`: what starts, what says the state, and the two that check a server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from longshore import __version__
from process.conftest import Workshop
from process.peer import LONGSHORE, PYTHON, encode, initialize
from toolsets.browser.conftest import browser_path as browser_path
from waiting import PATIENCE, eventually, is_alive

from .document import COMMAND, LIST, SCRIPTS
from .test_document import TOOLS

LOADED = """
import sys
sys.argv = ["brooklyn", "mcp", "start", "--log-level", "warning"]
from longshore.__main__ import brooklyn
try:
    brooklyn()
finally:
    print(*sys.modules, file=sys.stderr)
"""
RAW = """
import json, sys
for line in sys.stdin:
    request = json.loads(line) if line.startswith('{"') else {}
    if "id" in request:
        result = {"tools": [TOOL]} if request["method"] == "tools/list" else {"success": True, "browserId": "b"}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))
print("server stopped")
"""
"""A server that makes the mistakes of the document: raw results, logs on stdout, MCP's key in lists."""
NAMED = {"name": "navigate_to_url", "description": "URL navigation functionality", "inputSchema": {"anyOf": []}}
RAW_TOOLS = RAW.replace("TOOL", f'{json.dumps(NAMED)}, {{"name": "brooklyn_status"}}')


def run(workshop: Workshop, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *argv],
        cwd=workshop.folder,
        env=workshop.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
    )


@pytest.fixture
def raw(workshop: Workshop) -> list[str]:
    """The command of a server that does everything wrong."""
    return [sys.executable, str(workshop.write(RAW_TOOLS, "raw.py"))]


@pytest.fixture
def broken(workshop: Workshop) -> None:
    """The server has no browser, and says so."""
    workshop.write('[toolsets.browser]\npath = "/no/such/browser"\n', "longshore.toml")


# -- starting


def test_mcp_start_reaches_stdio_without_the_library_of_the_command_line(workshop: Workshop) -> None:
    """S-21."""
    done = workshop.run([*PYTHON, str(workshop.write(LOADED))], initialize(), LIST)
    assert len(done.stdout.splitlines()) == 2, done.stderr
    assert not {"click", "rich", "longshore.cli", "asyncio"} & set(done.stderr.decode().split())


def test_mcp_start_and_mcp_status_are_for_stdio_whatever_the_project_serves(workshop: Workshop) -> None:
    http = '[server]\ntransport = "http"\n[http]\nport = 0\n'
    workshop.write(f'{http}[toolsets.browser]\npath = "/no/such/browser"\n', "longshore.toml")
    done = workshop.run([COMMAND, "mcp", "start"], LIST)
    assert "result" in json.loads(done.stdout), done.stderr
    assert json.loads(run(workshop, "mcp", "status").stdout)["success"] is True


def test_the_web_server_has_a_port_of_its_own_and_the_options_of_serve(workshop: Workshop) -> None:
    shown = workshop.run([*LONGSHORE, "config", "show", "--json", "--profile", "brooklyn"])
    assert json.loads(shown.stdout)["http"]["port"] == 3000
    done = run(workshop, "web", "start", "--port", "x")
    assert done.returncode == 2 and '--port: expected a whole number, got "x"' in done.stderr


@pytest.mark.parametrize(
    ("command", "argv", "defaults"),
    [
        ("brooklyn", ["web", "start"], ["http.port; default: 3000]", "eof_grace; default: 60]"]),
        ("brooklyn", ["mcp", "start"], ['default: "brooklyn"]']),
        ("bb-mcp-server", [], ["http.port; default: 9100]", 'default: "bb"]']),
        ("contextgraph-ghost", [], ["eof_grace; default: 3.0]", 'default: "ghost"]']),
        ("python -m browseros.mcp.server", [], ["eof_grace; default: 60]", 'default: "browseros"]']),
    ],
)
def test_the_help_of_an_entry_point_has_its_name_its_defaults_and_no_target(
    workshop: Workshop, command: str, argv: list[str], defaults: list[str]
) -> None:
    program, *words = command.split()
    env = workshop.env | {"COLUMNS": "200"}
    done = subprocess.run(
        [str(SCRIPTS / program), *words, *argv, "--help"],
        env=env, cwd=workshop.folder, capture_output=True, text=True, timeout=4 * PATIENCE,
    )  # fmt: skip
    said = " ".join(done.stdout.split())
    assert said.startswith(f"Usage: {' '.join((command, *argv))} [OPTIONS] Serve MCP ")
    assert all(default in said for default in defaults), said
    assert "--profile NAME" not in said and ("--host" in said) == (argv != ["mcp", "start"])


@pytest.mark.parametrize("group", ["mcp", "web"])
@pytest.mark.parametrize(
    ("given", "says"), [(["--profile", "bb"], "No such option '--profile'"), (["foo.py"], "extra argument (foo.py)")]
)
def test_start_serves_no_other_profile_and_no_target(
    workshop: Workshop, group: str, given: list[str], says: str
) -> None:
    done = run(workshop, group, "start", *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr and f"Try 'brooklyn {group} start --help'" in done.stderr


@pytest.mark.parametrize("argv", [[], ["--help"], ["mcp"], ["check", "--help"]])
def test_the_commands_are_listed(workshop: Workshop, argv: list[str]) -> None:
    done = run(workshop, *argv)
    expected = ["schema", "protocol"] if "check" in argv else ["start", "status"] if "mcp" in argv else ["mcp", "web"]
    assert all(f"\n  {name} " in done.stdout + done.stderr for name in expected)


def test_an_unknown_command_is_refused_and_the_version_printed(workshop: Workshop) -> None:
    done = run(workshop, "mcp", "stop")
    assert done.returncode == 2 and "No such command 'stop'" in done.stderr
    assert run(workshop, "--version").stdout == f"brooklyn {__version__}\n"


# -- the state


def test_mcp_status_prints_what_brooklyn_status_answers(workshop: Workshop, browser_path: str) -> None:
    done = run(workshop, "mcp", "status")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["status"], found["server"]["name"]) == ("ok", "brooklyn")


def test_mcp_status_exits_with_1_where_something_is_unavailable(workshop: Workshop, broken: None) -> None:
    done = run(workshop, "mcp", "status")
    assert done.returncode == 1
    assert json.loads(done.stdout)["unavailable"].keys() == {"browser"}


def test_mcp_status_says_why_a_server_does_not_start(workshop: Workshop) -> None:
    workshop.write("[server]\ntimeout = 'soon'\n", "longshore.toml")
    done = run(workshop, "mcp", "status")
    assert (done.returncode, done.stdout) == (2, "")
    assert "longshore.toml:2: server.timeout" in done.stderr


def test_status_says_what_works_and_what_does_not(workshop: Workshop, broken: None) -> None:
    done = run(workshop, "status")
    assert done.returncode == 1 and "failed  browser: " in done.stdout
    checks = {each["name"]: each["state"] for each in json.loads(run(workshop, "status", "--json").stdout)}
    assert (checks["discovery"], checks["browser"]) == ("ok", "failed")
    assert "filesystem" not in checks


@pytest.mark.parametrize("argv", [["mcp", "status"], ["check", "schema"], ["check", "protocol"]])
def test_no_file_of_the_working_directory_is_run_in_place_of_a_library(
    workshop: Workshop, broken: None, argv: list[str]
) -> None:
    workshop.write("open('was-run', 'w').close()\nraise SystemExit(9)\n", "msgspec.py")
    done = run(workshop, *argv)
    assert not (workshop.folder / "was-run").exists()
    assert done.stdout, done.stderr


def test_a_closed_stdout_is_reported(workshop: Workshop, broken: None) -> None:
    argv = ["sh", "-c", 'exec "$@" >&-', "sh", COMMAND, "mcp", "status"]
    done = workshop.run(argv)
    assert (done.returncode, done.stderr) == (1, b"brooklyn: stdout is closed\n")


# -- the two checks


def states(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return {each["name"]: each["state"] for each in json.loads(done.stdout)}


def test_the_protocol_of_our_server_is_as_the_document_says(workshop: Workshop, browser_path: str) -> None:
    """S-22, S-23, S-120."""
    done = run(workshop, "check", "protocol")
    assert done.returncode == 0, done.stdout
    assert all(line.startswith("ok ") for line in done.stdout.splitlines())
    assert "a result is wrapped in content, and its items have a type" in done.stdout


def test_the_schemas_of_our_server_break_no_rule(workshop: Workshop, browser_path: str) -> None:
    """S-22, S-116, S-120: at no level, so warnings count too."""
    done = run(workshop, "check", "schema", "--strict")
    assert done.returncode == 0 and "nothing found in 13 tools" in done.stdout, done.stdout
    assert json.loads(run(workshop, "check", "schema", "--json").stdout)["findings"] == []


def test_each_mistake_of_the_document_is_found_in_a_server_that_makes_it(workshop: Workshop, raw: list[str]) -> None:
    """S-4, S-12, S-19, S-23, S-24, S-119."""
    done = run(workshop, "check", "protocol", "--json", "--", *raw)
    assert done.returncode == 1, done.stderr
    found = states(done)
    assert {name for name, state in found.items() if state == "ok"} == {"the server ends with its input"}
    said = {each["name"]: each["detail"] for each in json.loads(done.stdout)}
    assert '"browserId":"b"' in said["a result is wrapped in content, and its items have a type"]
    assert "server stopped" in said["every line on stdout is a message"]
    assert said["a list has input_schema"] == "not so for navigate_to_url, brooklyn_status"


def test_each_bad_schema_is_found_in_a_server_that_lists_it(workshop: Workshop, raw: list[str]) -> None:
    """S-22, S-93, S-119."""
    done = run(workshop, "check", "schema", "--", *raw)
    assert done.returncode == 1
    assert "E04" in done.stdout and "B51" in done.stdout


def test_without_a_browser_no_tool_can_be_made_to_fail(workshop: Workshop, broken: None) -> None:
    found = states(run(workshop, "check", "protocol", "--json"))
    assert found.pop("a failed tool is -32603 with toolName and error") == "missing"
    assert set(found.values()) == {"ok"}


@pytest.mark.parametrize(
    "line",
    ["b'\\xff\\xfe'", "b'[' * 200_000", "b'{\"jsonrpc\":\"2.0\",\"id\":' + b'[' * 900 + b']' * 900 + b'}'"],
    ids=["no UTF-8", "only brackets", "a deep id"],
)
def test_a_line_that_can_not_be_decoded_is_a_finding(workshop: Workshop, raw: list[str], line: str) -> None:
    workshop.write(f"import sys\nsys.stdout.buffer.write({line} + b'\\n')\nsys.stdout.flush()\n" + RAW_TOOLS, "raw.py")
    done = run(workshop, "check", "protocol", "--json", "--", *raw)
    assert done.returncode == 1, done.stderr
    said = {each["name"]: each["detail"] for each in json.loads(done.stdout)}
    assert said["every line on stdout is a message"].startswith("2 lines are none, such as ")
    assert "B51" in run(workshop, "check", "schema", "--", *raw).stdout


@pytest.mark.parametrize(
    ("given", "instead", "says"),
    [
        ('"tools": [TOOL]', '"tools": [TOOL], "nextCursor": "2"', "lists its tools in pages; longshore lint"),
        ('"tools": [TOOL]', '"tools": []', "lists no tools without a handshake"),
        ('request["id"]', "True", "lists no tools without a handshake"),
        ('request["id"]', "1.0", "lists no tools without a handshake"),
    ],
)
def test_schemas_are_not_said_to_be_right_where_not_all_tools_were_seen(
    workshop: Workshop, given: str, instead: str, says: str
) -> None:
    path = workshop.write(RAW.replace(given, instead).replace("TOOL", json.dumps(NAMED)))
    done = run(workshop, "check", "schema", "--", sys.executable, str(path))
    assert (done.returncode, done.stdout) == (2, "") and says in done.stderr


@pytest.mark.parametrize(("id", "state"), [('request["id"]', "ok"), ('str(request["id"])', "failed")])
def test_an_answer_under_an_id_of_another_type_is_none(workshop: Workshop, id: str, state: str) -> None:
    refusal = 'print(json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": ""}}))'
    path = workshop.write(RAW_TOOLS.replace('print("server stopped")', refusal).replace('request["id"]', id))
    found = states(run(workshop, "check", "protocol", "--json", "--", sys.executable, str(path)))
    assert found["each request is answered once, notifications are not"] == state


def test_what_was_found_is_said_though_the_server_refuses_a_handshake(workshop: Workshop) -> None:
    path = workshop.write(
        RAW_TOOLS.replace("    if ", '    if "initialize" in line: sys.exit("no initialize here")\n    if ')
    )
    done = run(workshop, "check", "protocol", "--json", "--", sys.executable, str(path))
    assert done.returncode == 1, done.stderr
    said = {each["name"]: each["detail"] for each in json.loads(done.stdout)}
    assert '"browserId":"b"' in said["a result is wrapped in content, and its items have a type"]
    assert "answered nothing; it said: no initialize here" in said["a handshake agrees on 2025-11-25"]
    assert said["a request of 2026-07-28 gets MCP"] == "resultType is None"


def test_results_are_not_checked_by_a_tool_that_is_not_in_the_list(workshop: Workshop) -> None:
    weather = json.dumps({"name": "get_weather", "description": "Get the weather", "input_schema": {"type": "object"}})
    path = workshop.write(RAW.replace("TOOL", weather))
    done = run(workshop, "check", "protocol", "--json", "--", sys.executable, str(path))
    found = {each["name"]: each for each in json.loads(done.stdout)}
    for name in ("a result is wrapped in content, and its items have a type", "an object is JSON text"):
        assert (found[name]["state"], found[name]["fix"]) == ("missing", "")
        assert found[name]["detail"] == "brooklyn_status is not on offer, so no result can be looked at"
    assert found["a failed tool is -32603 with toolName and error"]["state"] == "missing"


@pytest.mark.parametrize("check", ["schema", "protocol"])
def test_what_can_not_be_checked_exits_with_2(workshop: Workshop, check: str) -> None:
    ends = ["sh", "-c", "echo no configuration >&2; exit 3"]
    done = run(workshop, "check", check, "--", *ends)
    assert (done.returncode, done.stdout) == (2, "")
    assert "sh ended with 3 and answered nothing; it said: no configuration" in done.stderr
    missing = run(workshop, "check", check, "--", "/no/such/program")
    assert missing.returncode == 2 and "/no/such/program: No such file or directory" in missing.stderr


def test_a_server_that_needs_a_handshake_is_for_lint(workshop: Workshop) -> None:
    path = workshop.write(TOOLS, "mine.py")
    done = run(workshop, "check", "schema", "--", *LONGSHORE, "serve", str(path))
    assert done.returncode == 2 and "lists no tools without a handshake; longshore lint" in done.stderr


def test_a_server_that_does_not_end_with_its_input_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from longshore.cli import exchange
    from longshore.cli.brooklyn import run_brooklyn

    pid = tmp_path / "pid"

    def late_once_started() -> float:
        return time.monotonic() + (1000 if pid.exists() and pid.read_text() else 0)

    monkeypatch.setattr(exchange, "monotonic", late_once_started)
    assert run_brooklyn(["check", "protocol", "--", "sh", "-c", f"sleep 600 & echo $! > {pid}; wait"]) == 2
    assert "sh did not end within 90 s of the end of its input" in capsys.readouterr().err
    eventually("its child has ended", lambda: not is_alive(int(pid.read_text())))


def test_what_a_server_leaves_behind_is_ended_and_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The child has the server's stdout, which so has no end."""
    from longshore.cli.brooklyn import run_brooklyn

    pid = tmp_path / "pid"
    assert run_brooklyn(["check", "protocol", "--", "sh", "-c", f"sleep 600 & echo $! > {pid}; exit 3"]) == 2
    assert "sh ended with 3 and answered nothing" in capsys.readouterr().err
    eventually("it has ended", lambda: not is_alive(int(pid.read_text())))


def test_output_without_end_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    from longshore.cli.brooklyn import run_brooklyn

    assert run_brooklyn(["check", "schema", "--", "yes"]) == 2
    assert "yes wrote more than 16,777,216 bytes on stdout" in capsys.readouterr().err


def test_the_document_names_are_those_of_the_list(workshop: Workshop, browser_path: str) -> None:
    """S-119: a tool that is missing from the list is one that cannot be found."""
    from longshore.dialects.brooklyn import DOCUMENT_TOOLS

    done = workshop.run([COMMAND, "mcp", "start"], data=encode(LIST))
    listed: list[Any] = json.loads(done.stdout)["result"]["tools"]
    assert [each["name"] for each in listed] == [*DOCUMENT_TOOLS]
