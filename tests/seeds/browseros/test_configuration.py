"""The settings of BrowserOS's document: its variables and its file, as settings of ours."""

from __future__ import annotations

import json
import os
import pty
import socket
from pathlib import Path
from typing import Any

import pytest

from process.conftest import Workshop
from process.peer import LONGSHORE, Peer, call
from trusting import Trusting
from waiting import PATIENCE, eventually

from .document import SERVER, error_of, read, text_of

PING = read("ping_request.json")


def write_config(workshop: Workshop, config: Any) -> Path:
    """Write the document's file; a text as it is."""
    path = workshop.folder / "home" / ".config" / "browseros" / "mcp_config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(config if isinstance(config, str) else json.dumps(config, indent=2))
    return path


def show(workshop: Workshop) -> dict[str, tuple[Any, str]]:
    """Each key of `longshore config show --origin`, with its value and where that came from."""
    argv = [*LONGSHORE, "config", "show", "--origin", "--json", "--profile", "browseros"]
    done = workshop.run(argv)
    assert done.returncode == 0, done.stderr
    return {key: (each["value"], each["where"]) for key, each in json.loads(done.stdout).items()}


def refusal(workshop: Workshop) -> str:
    """What the server says of its configuration."""
    done = workshop.run([*SERVER], PING)
    assert (done.returncode, done.stdout) == (2, b"")
    return done.stderr.decode()


def test_the_file_of_the_document_is_read_and_each_value_says_so(workshop: Workshop) -> None:
    """S-59, S-60, S-61, S-62, S-66, S-67, S-68."""
    path = write_config(workshop, text_of("mcp_config.json"))
    found = show(workshop)
    shown = str(path.relative_to(workshop.folder))
    assert found["server.transport"] == ("stdio", f"{shown}:2")
    assert found["server.log_level"] == ("warning", f"{shown}:3")
    assert found["server.timeout"] == (30.0, f"{shown}:4")
    assert found["toolsets.browser.enabled"] == (True, f"{shown}:7")
    assert found["toolsets.browser.timeout"] == (60.0, f"{shown}:8")
    assert found["toolsets.filesystem.timeout"] == (30.0, f"{shown}:4")
    assert found["toolsets.filesystem.max_file_size"] == (10_000_000, f"{shown}:12")


def test_the_variables_of_the_document_are_read_and_each_value_says_so(workshop: Workshop) -> None:
    """S-63, S-64, S-65, S-67: a tool's own limit stays."""
    write_config(workshop, text_of("mcp_config.json"))
    workshop.env |= {
        "BROWSEROS_MCP_TRANSPORT": "http",
        "BROWSEROS_MCP_DEBUG": "true",
        "BROWSEROS_MCP_TIMEOUT": "5",
    }
    found = show(workshop)
    assert found["server.transport"] == ("http", "BROWSEROS_MCP_TRANSPORT")
    assert found["server.log_level"] == ("debug", "BROWSEROS_MCP_DEBUG")
    assert found["server.timeout"] == (5.0, "BROWSEROS_MCP_TIMEOUT")
    assert found["toolsets.terminal.timeout"] == (5.0, "BROWSEROS_MCP_TIMEOUT")
    assert found["toolsets.browser.timeout"][0] == 60.0
    workshop.env["LONGSHORE_SERVER_TIMEOUT"] = "7"
    assert show(workshop)["server.timeout"] == (7.0, "LONGSHORE_SERVER_TIMEOUT")


def test_the_file_switches_debug_logging_on(workshop: Workshop) -> None:
    """S-61."""
    write_config(workshop, {"debug": True})
    assert b'"request_received"' in workshop.run([*SERVER], PING).stderr


def test_our_files_override_the_file_of_the_document(workshop: Workshop) -> None:
    write_config(workshop, {"timeout": 30})
    workshop.write("[server]\ntimeout = 9\n", "longshore.toml")
    assert show(workshop)["server.timeout"] == (9.0, "longshore.toml:2")


def test_other_servers_read_nothing_of_it(workshop: Workshop) -> None:
    write_config(workshop, "no json")
    workshop.env["BROWSEROS_MCP_TIMEOUT"] = "no number"
    done = workshop.run([*LONGSHORE, "config", "show"])
    assert done.returncode == 0


def test_a_disabled_tool_is_not_available(workshop: Workshop) -> None:
    """S-67."""
    write_config(workshop, {"tools": {"terminal": {"enabled": False}}})
    listed = workshop.spawn(*SERVER).ask(read("list_request.json"))["result"]["tools"]
    assert [each["available"] for each in listed] == [True, True, False]


def test_a_tool_is_stopped_after_its_own_time_else_after_that_of_all(workshop: Workshop) -> None:
    """S-62, S-65, S-67."""
    workshop.env["BROWSEROS_MCP_TIMEOUT"] = "0.5"
    server = workshop.spawn(*SERVER)
    assert error_of(server.ask(call(1, "terminal", command="sleep 600")))["code"] == -32002
    write_config(workshop, {"timeout": 60, "tools": {"terminal": {"timeout": 0.5}}})
    del workshop.env["BROWSEROS_MCP_TIMEOUT"]
    server = workshop.spawn(*SERVER)
    assert error_of(server.ask(call(1, "terminal", command="sleep 600")))["code"] == -32002


def test_files_over_the_limit_are_neither_read_nor_written_nor_copied(workshop: Workshop, trust: Trusting) -> None:
    """S-68: a kilobyte is a thousand bytes (C-44)."""
    trust(write_config(workshop, {"tools": {"filesystem": {"max_file_size": "1KB"}}}))  # it is within the root
    server, root = workshop.spawn(*SERVER, "--root", str(workshop.folder)), workshop.folder
    (root / "large.txt").write_text("x" * 1001)
    (root / "small.txt").write_text("x" * 1000)
    read_small = server.ask(call(0, "filesystem", action="read", path="small.txt"))
    assert read_small["result"]["result"]["content"] == "x" * 1000
    for arguments in (
        {"action": "read", "path": "large.txt"},
        {"action": "write", "path": "small.txt", "content": "y" * 1001},
        {"action": "append", "path": "small.txt", "content": "y"},
        {"action": "copy", "path": "large.txt", "to": "copy.txt"},
    ):
        error = error_of(server.ask(call(1, "filesystem", **arguments)))
        assert error["code"] == -32001
        assert "1,001 bytes, more than the limit of 1,000 (max_file_size)" in error["message"]
    assert (root / "small.txt").read_text() == "x" * 1000
    assert not (root / "copy.txt").exists()


def test_a_long_file_is_read_whole(workshop: Workshop) -> None:
    """S-51, S-68: a script has no budget of tokens."""
    content = "".join(f"line {n}\n" for n in range(100_000))
    (workshop.folder / "a.txt").write_text(content)
    server = workshop.spawn(*SERVER, "--root", str(workshop.folder))
    answer = server.ask(call(1, "filesystem", action="read", path="a.txt"))
    assert answer["result"]["result"] == {"success": True, "path": "a.txt", "content": content}


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ('{"timeout": 30,\n "debug" true}', ":2: not JSON: expecting ':' delimiter (column 10)"),
        ("[]", ":1: expected a JSON object"),
        ('{\n"timeout": "soon"}', ':2: timeout: expected seconds (a number) or false, got "soon"'),
        ('{\n"debug": "maybe"}', ':2: debug: expected true or false, got "maybe"'),
        ('{\n"transport": "pigeon"}', ':2: transport: expected stdio, http or auto, got "pigeon"'),
        ('{\n\n"timeot": 30}', ":3: timeot: no such key; did you mean timeout?"),
        ('{\n"tools": 7}', ":2: tools: expected an object"),
        ('{\n"tools": {\n"browser": true}}', ":3: tools.browser: expected an object"),
        ('{\n"tools": {\n"brwser": {}}}', ":3: tools.brwser: no such tool; did you mean browser?"),
        (
            '{\n"tools": {"browser": {\n"enabled": "yes"}}}',
            ':3: tools.browser.enabled: expected true or false, got "yes"',
        ),
        ('{"tools": {"browser": {\n"max_file_size": 7}}}', ":2: tools.browser.max_file_size: no such key"),
        ('{"tools": {"filesystem": {\n"max_file_size": "big"}}}', ":2: tools.filesystem.max_file_size: expected bytes"),
        ('{"timeout": 3,\n"timeout": 4}', ":2: timeout: set twice"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line_and_field(workshop: Workshop, config: str, problem: str) -> None:
    """S-66."""
    path = write_config(workshop, config)
    assert f"{path.relative_to(workshop.folder)}{problem}" in refusal(workshop)


def test_a_malformed_variable_is_refused_by_its_name(workshop: Workshop) -> None:
    """S-63, S-64, S-65."""
    workshop.env |= {"BROWSEROS_MCP_TIMEOUT": "soon", "BROWSEROS_MCP_DEBUG": "maybe", "BROWSEROS_MCP_TRANSPORT": "tcp"}
    said = refusal(workshop)
    for line in (
        'BROWSEROS_MCP_TIMEOUT: expected seconds (a number) or false, got "soon"',
        'BROWSEROS_MCP_DEBUG: expected true or false, got "maybe"',
        'BROWSEROS_MCP_TRANSPORT: expected stdio, http or auto, got "tcp"',
    ):
        assert line in said


# -- the choice of the transport


def serves_http(server: Peer) -> bool:
    """Whether a server listens; else it has ended with its input, as on stdio."""
    while server.process.poll() is None:
        if "serves MCP at" in server.stderr:
            return True
    assert server.process.returncode == 0, server.stderr
    return False


@pytest.mark.parametrize(("transport", "http"), [(None, True), ("auto", True), ("http", True), ("stdio", False)])
def test_without_a_client_on_stdin_it_listens_unless_it_is_told_otherwise(
    workshop: Workshop, transport: str | None, http: bool
) -> None:
    """S-59, S-60, S-63."""
    workshop.env["LONGSHORE_HTTP_PORT"] = "0"
    if transport:
        workshop.env["BROWSEROS_MCP_TRANSPORT"] = transport
    with Path(os.devnull).open("rb") as nothing:
        assert serves_http(workshop.spawn(*SERVER, stdin=nothing.fileno())) is http


@pytest.mark.parametrize("transport", [None, "auto", "http"])
def test_options_for_http_are_taken_where_it_may_listen(workshop: Workshop, transport: str | None) -> None:
    """S-59, S-63, S-69."""
    if transport:
        workshop.env["BROWSEROS_MCP_TRANSPORT"] = transport
    with Path(os.devnull).open("rb") as nothing:
        server = workshop.spawn(*SERVER, "--port", "0", "--host", "127.0.0.2", stdin=nothing.fileno())
        assert serves_http(server)
    assert "http://127.0.0.2:" in server.stderr


def test_options_for_http_are_refused_where_it_never_listens(workshop: Workshop) -> None:
    workshop.env["BROWSEROS_MCP_TRANSPORT"] = "stdio"
    done = workshop.run([*SERVER, "--port", "0"], PING)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--port is for HTTP; add --http" in done.stderr


def test_a_socket_on_stdin_is_stdio(workshop: Workshop) -> None:
    """S-69, S-76: until the peer has shut its half."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server = workshop.spawn(*SERVER, stdin=theirs.fileno(), stdout=theirs.fileno())
        theirs.close()
        ours.sendall(json.dumps(PING).encode() + b"\n")
        assert json.loads(ours.makefile().readline()) == read("ping_response.json")
        ours.shutdown(socket.SHUT_WR)
        assert server.process.wait(PATIENCE) == 0


def test_on_a_terminal_it_listens(workshop: Workshop) -> None:
    workshop.env["LONGSHORE_HTTP_PORT"] = "0"
    ours, theirs = pty.openpty()
    try:
        assert serves_http(workshop.spawn(*SERVER, stdin=theirs))
    finally:
        os.close(theirs)
        os.close(ours)


@pytest.mark.parametrize("source", ["pipe", "file"])
def test_with_anything_else_on_stdin_it_serves_that_until_its_end(workshop: Workshop, source: str) -> None:
    """S-69, S-76."""
    if source == "pipe":
        done = workshop.run([*SERVER], PING)
        assert json.loads(done.stdout) == read("ping_response.json")
        return
    path = workshop.folder / "requests"
    path.write_text(json.dumps(PING) + "\n")
    with path.open("rb") as requests:
        server = workshop.spawn(*SERVER, stdin=requests.fileno())
    assert server.answer(PING["id"]) == read("ping_response.json")
    assert server.wait() == 0


def test_the_file_chooses_the_transport_too(workshop: Workshop) -> None:
    """S-60, S-66: over HTTP, although a pipe is on stdin."""
    write_config(workshop, {"transport": "http"})
    workshop.env["LONGSHORE_HTTP_PORT"] = "0"
    assert serves_http(workshop.spawn(*SERVER))


def test_the_default_port_is_that_of_the_document(workshop: Workshop) -> None:
    """S-69."""
    assert show(workshop)["http.port"] == (9100, "")


def test_a_command_that_is_over_its_time_as_the_input_ends_leaves_nothing_to_report(workshop: Workshop) -> None:
    workshop.env["BROWSEROS_MCP_TIMEOUT"] = "1"
    done = workshop.run([*SERVER, "--root", str(workshop.folder)], call("1", "terminal", command="sleep 77"))
    assert error_of(json.loads(done.stdout))["code"] == -32002
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("value", "shown"), [("soon", '"soon"'), (None, "null")])
def test_a_wrong_value_that_holds_for_several_toolsets_is_one_problem(
    workshop: Workshop, value: Any, shown: str
) -> None:
    write_config(workshop, {"timeout": value})
    said = refusal(workshop)
    assert said.count("timeout: expected seconds (a number) or false, got") == 1, said
    assert f"got {shown}\n" in said


def test_a_page_that_takes_longer_than_the_limit_of_the_browser_is_a_timeout(
    workshop: Workshop, page: str, hanging: str
) -> None:
    """S-38, S-62, S-67."""
    write_config(workshop, {"timeout": 60, "tools": {"browser": {"timeout": 5}}})
    server = workshop.spawn(*SERVER)
    eventually("a browser", lambda: "result" in server.ask(call("1", "browser", url=page)))
    error = error_of(server.ask(call("2", "browser", url=f"{hanging}/never")))
    assert error["code"] == -32002
    assert error["message"].endswith("the server has not answered in time; try a longer toolsets.browser.timeout")
