"""`longshore doctor TARGET`: broken servers, each named with its fix."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import sys
import time
from pathlib import Path

import pytest

from longshore import Server, Tool
from longshore.cli import url_checks
from longshore.cli.check import Check
from longshore.cli.server_checks import Command, Patience, check_server, judge_start
from longshore.cli.target import locate
from longshore.install.clients import CLIENTS
from serving import serve
from waiting import eventually

from .conftest import Workspace

PAGE = Path(__file__).parents[2] / "docs" / "doctor.md"
BROKEN = Path(__file__).parent / "broken_server.py"
SHORT = Patience(start=20.0, answer=20.0, exit=1.0)
"""For servers that do not end: what runs on for a second is named, whatever else is slow here."""
PYTHON = sys.executable


def command(*argv: str) -> Command:
    return Command((PYTHON, str(BROKEN), *argv))


def checks(server: Command, patience: Patience = Patience(), clock: object = time.monotonic) -> dict[str, Check]:  # noqa: B008
    return {each.name: each for each in check_server(server, patience, clock)}  # type: ignore[arg-type]


def failed(found: dict[str, Check]) -> list[str]:
    return [each.name for each in found.values() if each.state == "failed"]


def test_a_server_without_a_fault_has_no_finding() -> None:
    found = checks(command("none"))
    assert [each for each in found.values() if each.state != "ok" and not each.name.startswith("start in")] == []
    assert found["start"].detail.startswith("broken 1 answered after ")
    assert found["MCP 2026-07-28"].detail == "not spoken; clients fall back to initialize"


def test_an_answer_that_lists_no_revision_is_not_the_newest_revision() -> None:
    found = checks(command("any answer"))
    assert found["MCP 2026-07-28"].detail == "not spoken; clients fall back to initialize"


@pytest.mark.parametrize(
    ("fault", "name", "what", "fix"),
    [
        ("stdout", "stdout", "1 line which no client can read, such as 'Server", "to stderr: print("),
        ("last words", "stdout", "such as 'Bye!'", "write it to stderr: print("),
        ("end", "end of input", "it runs on 1 s after its input has ended", "end when reading stdin gives nothing"),
        ("signal", "SIGTERM", "it runs on 1 s after SIGTERM, so clients have to kill it", "leave its default handler"),
        ("ids", "ids", "the request 'tools0' was answered under the id \"tools0!\"", "the id of the request as it"),
        ("malformed", "malformed line", "a line that is no JSON ends it: it ended with", "with the error -32700"),
        ("version", "MCP 2025-11-25", 'it answered "2099-01-01"; Gemini CLI ends such', "the version of the client"),
        ("crash", "start", "answered: RuntimeError: the database is locked", "mend that, then try it"),
        ("flood", "start", "it wrote more than 16,777,216 bytes on stdout", "only the answers to requests on stdout"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_fix(fault: str, name: str, what: str, fix: str) -> None:
    found = checks(command(fault), SHORT)
    assert name in failed(found), found
    assert what in found[name].detail and fix in found[name].fix
    also = [each for each in failed(found) if each != name and not each.startswith(("start in", "MCP "))]
    assert also == []


def test_a_schema_that_makes_clients_drop_every_tool_is_named_for_each_of_them() -> None:
    found = checks(command("schema"))
    for client in ("Claude Code", "Gemini CLI"):
        check = found[f"tools in {client}"]
        assert check.state == "failed" and check.detail.startswith("all tools are lost: odd ")
        assert "longshore lint --explain E0" in check.fix
    assert "tools in Codex" not in found


def test_a_slow_start_is_held_against_each_deadline(tmp_path: Path) -> None:
    """It waits on a pipe. The clock is put forward by 12 s before the pipe is opened for it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    waited = 0.0

    def clock() -> float:
        nonlocal waited
        try:
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            waited += 12.0
        except OSError:
            pass  # it does not wait there
        return time.monotonic() + waited

    found = checks(command("slow", str(pipe)), clock=clock)
    check = found["start in Codex"]
    assert check.state == "failed"
    assert "s, and after 10 s (reported) the server is given up, unless startup_timeout_sec is longer" in check.detail
    assert check.fix.startswith("start faster: import and connect at the first call")


def test_each_deadline_is_judged() -> None:
    deadlines = [(client.title, each) for client in CLIENTS for each in client.deadlines]
    assert [check.state for check in judge_start(2.0)] == ["ok"] * len(deadlines)
    assert [check.state for check in judge_start(30.1)] == ["failed"] * len(deadlines)


def test_a_server_that_says_nothing_is_named() -> None:
    found = checks(command("silent"), Patience(start=0.5))
    assert found["start"].detail.startswith("no answer to initialize within 0.5 s")
    assert found["start"].fix.startswith("run it by itself and see what it waits for: ")


def test_a_missing_command_is_named() -> None:
    found = checks(Command(("no-such-program", "--x")))
    assert failed(found) == ["start"] and "No such file" in found["start"].detail
    assert found["start"].fix.startswith("install no-such-program, or write the full path of the program")


def test_a_python_without_the_package_is_named() -> None:
    found = checks(Command((PYTHON, "-I", "-S", "-c", "import msgspec.json")))
    assert found["start"].detail == f"it ended with exit code 1: {PYTHON} has no module 'msgspec'"
    assert found["start"].fix.startswith(f"install it there ({PYTHON} -m pip install msgspec), or name the Python")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says whose child a process was")
def test_a_child_that_is_left_is_named_and_ended() -> None:
    found = checks(command("child"))
    assert failed(found) == ["processes left"]
    assert found["processes left"].detail.startswith("still there after its end: sleep 1000")
    assert found["processes left"].fix.startswith("end what you start")
    eventually("the sleep is ended", lambda: not marked())


def marked() -> list[str]:
    """Processes that a doctor started."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"MCP_DOCTOR_MARK=" in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(Path(f"/proc/{pid}/cmdline").read_text())
        except OSError:
            pass
    return [each for each in found if "1000" in each]


# -- the command


def doctor(workspace: Workspace, *argv: str) -> tuple[int, dict[str, dict[str, str]], str]:
    done = workspace.run("doctor", "--json", *argv, env={"HOME": str(workspace.home)})
    found = json.loads(done.stdout or b"[]")
    return done.returncode, {each["name"]: each for each in found}, done.stderr.decode()


def test_a_command_is_checked_without_this_machine(workspace: Workspace) -> None:
    code, found, _ = doctor(workspace, "--", PYTHON, str(BROKEN), "crash")
    assert code == 1 and list(found) == ["start"]


def test_an_entry_of_a_clients_file_is_started_with_its_variables(workspace: Workspace) -> None:
    source = "import os, sys; sys.exit(os.environ['SAY'])"
    entry = {"command": PYTHON, "args": ["-c", source], "env": {"SAY": "from the entry"}}
    (workspace.home / ".cursor").mkdir()
    (workspace.home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"mine": entry}}))
    code, found, _ = doctor(workspace, "mine")
    assert code == 1 and found["start"]["detail"].endswith("before it answered: from the entry")


def test_a_file_of_ours_is_checked_with_this_machine(workspace: Workspace) -> None:
    code, found, _ = doctor(workspace, "server.py")
    assert code == 0, failed({name: Check(**each) for name, each in found.items()})
    assert {"configuration", "port", "store", "seccomp", "start", "MCP 2026-07-28", "SIGTERM"} <= set(found)
    assert found["start"]["detail"].startswith("harbour 1.2 answered after ")


def test_a_file_that_can_not_be_imported_is_a_failure_and_its_prints_stay_out_of_the_output(
    workspace: Workspace,
) -> None:
    workspace.write("crash.py", "print('starting')\nimport no_such_sdk\n")
    code, found, err = doctor(workspace, "crash.py")
    assert code == 1 and "starting" in err
    assert found["server"]["detail"].endswith("ModuleNotFoundError: No module named 'no_such_sdk'")
    assert "has no module 'no_such_sdk'" in found["start"]["detail"] and "rlimits" in found


def test_a_url_is_checked(workspace: Workspace) -> None:
    app = Server("far", version="1")
    app.add_tool(
        Tool(name="odd", description="x", input_schema={"type": "object", "anyOf": [{"required": ["x"]}]}),
        lambda a, c: "x",
    )
    with serve(app.asgi()) as served:
        code, found, _ = doctor(workspace, served.url)
    assert code == 1
    assert found["connect"]["detail"].startswith("far 1 answered after ")
    assert [name for name in found if name.startswith("MCP ")] == [
        "MCP 2024-11-05", "MCP 2025-03-26", "MCP 2025-06-18", "MCP 2025-11-25", "MCP 2026-07-28",
    ]  # fmt: skip
    assert found["tools in Claude Code"]["detail"].startswith("1 tool of 1 lost, such as odd: ")


def test_a_url_where_nobody_listens_is_a_failure(workspace: Workspace) -> None:
    code, found, _ = doctor(workspace, "http://127.0.0.1:1/mcp")
    assert code == 1 and found["connect"]["state"] == "failed" and found["connect"]["fix"]


def test_a_url_that_does_not_answer_gets_no_advice_of_the_python_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url_checks, "SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = locate(f"http://127.0.0.1:{silent.getsockname()[1]}/mcp")
        [check] = url_checks.check_url(place, (), None)
    assert check.detail == "it did not answer within 0.1 s"
    assert check.fix.startswith("see that the server runs")


@pytest.mark.parametrize("line", re.findall(r"^longshore doctor[^#\n]*", PAGE.read_text(), re.MULTILINE))
def test_the_lines_of_the_page_find_their_targets(workspace: Workspace, line: str) -> None:
    """They are programs that end at once, and a URL where nobody listens: that is found, with code 1."""
    workspace.write(".mcp.json", '{"mcpServers": {"github": {"command": "true"}}}')
    (workspace.folder / "npx").symlink_to("/bin/true")
    words = shlex.split(line.replace("https://mcp.example.com", "http://127.0.0.1:1"))
    variables = {"PATH": f"{workspace.folder}:{workspace.env['PATH']}", "TOKEN": "t", "HOME": str(workspace.home)}
    done = workspace.run(*words[1:], env=variables)
    here = words[-1] in ("doctor", "--json", "server.py")
    assert done.returncode == (0 if here else 1) and not done.stderr, done.stdout + done.stderr


def test_a_target_that_is_nowhere_exits_with_two(workspace: Workspace) -> None:
    code, _, err = doctor(workspace, "no-such-server")
    assert code == 2 and "no server 'no-such-server' in" in err


def test_the_clients_of_this_machine_are_listed_with_their_servers(workspace: Workspace) -> None:
    workspace.write("home/.cursor/mcp.json", '{"mcpServers": {"a": {"command": "/gone/python"}}}')
    workspace.write("home/.codex/config.toml", "a = ")
    workspace.write("home/.config/goose/config.yaml", "extensions:\n  b:\n    cmd: uvx\n")
    code, found, _ = doctor(workspace)
    assert code == 1
    assert found["Cursor"]["state"] == "missing"
    assert "a starts a program that is not there: /gone/python" in found["Cursor"]["detail"]
    assert found["Cursor"]["fix"] == "install it, or delete a from the file"
    assert found["Codex"]["state"] == "failed" and "config.toml: line 1" in found["Codex"]["detail"]
    assert found["Goose"]["detail"].endswith("config.yaml: b")
    assert "Zed" not in found
