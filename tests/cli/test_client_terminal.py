"""`longshore call`, `list` and `read` on a real terminal: progress, questions, no escape sequences of a server."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from rich.cells import cell_len

from longshore.cli.screen import progress_line
from waiting import eventually, is_alive

from .conftest import Workspace

OURS = re.compile(r"\x1b\[K|\x1b\[[0-9;]*m")
"""The only escape sequences that we write: clear the line, and text styles."""


def plain(seen: str) -> str:
    """The shown text; fails on escape sequences that are not ours."""
    text = OURS.sub("", seen)
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}, repr(seen)
    return text.replace("\r\n", "\n")


def test_a_result_is_shown(workspace: Workspace) -> None:
    terminal = workspace.terminal("call", "server.py", "add", "a=1")
    assert terminal.end() == 0
    assert plain(terminal.seen) == "3\n"


REFUSER = """
    import json, sys
    for line in sys.stdin:
        asked = json.loads(line)
        said = {"error": {"code": -32603, "message": "broken"}}
        if asked["method"] == "initialize":
            info = {"name": "no", "version": "1"}
            said = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
"""


def test_a_refused_list_is_not_reported_as_empty(workspace: Workspace) -> None:
    workspace.write("refuser.py", REFUSER)
    terminal = workspace.terminal("list", "--tools", f"{sys.executable} refuser.py", columns=300)
    assert terminal.end() == 1
    assert "its tools can't be listed: broken" in plain(terminal.seen) and "offers no" not in plain(terminal.seen)


def test_hostile_text_is_spelled_out(workspace: Workspace) -> None:
    terminal = workspace.terminal("call", "server.py", "hostile")
    assert terminal.end() == 0
    assert plain(terminal.seen) == "\\x1b]0;owned\\x07 red \\x9b31m \\u202e\n"


def test_progress_and_log_are_beside_the_result(workspace: Workspace) -> None:
    terminal = workspace.terminal("call", "server.py", "work", "steps=4", pipe_out=True)
    assert terminal.child.stdout is not None
    assert terminal.child.stdout.read() == b"worked\n"
    assert terminal.end() == 0
    shown = plain(terminal.seen)
    assert "0%  0/4  loading \\x1b[5m0" in shown and "╌" in shown
    assert "\x1b[2minfo: " in terminal.seen and "did \\x1b[5mstep 3" in shown
    assert terminal.seen.endswith("\r\x1b[K"), "the line is taken away in the end"


def test_the_progress_line_is_removed_before_a_pipe_writes_to_the_terminal(workspace: Workspace) -> None:
    terminal = workspace.terminal("call", "server.py", "work", "steps=4", through_cat=True)
    assert terminal.end() == 0
    assert "loading" in terminal.seen
    assert re.search(r"\r\x1b\[K(?:[^\r\n]*\r\n)*worked\r\n", terminal.seen), repr(terminal.seen)
    assert not re.search(r"loading[^\r\n]*worked", terminal.seen), repr(terminal.seen)


def test_json_is_shown_as_the_server_wrote_it(workspace: Workspace) -> None:
    workspace.write("exact.py", "from longshore import Server\napp = Server('exact')\n@app.tool\ndef get() -> str:\n"
               "    return '{\"n\": 1.0e400, \"n\": 12345678901234567890.10}'\n")  # fmt: skip
    terminal = workspace.terminal("call", "exact.py", "get")
    assert terminal.end() == 0
    assert plain(terminal.seen) == '{\n  "n": 1.0e400,\n  "n": 12345678901234567890.10\n}\n'


@pytest.mark.parametrize(
    ("done", "total", "shown"),
    [
        (5_242_880, 10_485_760, "50%  5,242,880/10,485,760"),
        (1 / 3, 1, "33%  0.33/1"),
        (1_234_567.0, None, "… 1,234,567"),
    ],
)
def test_progress_is_shown_in_plain_numbers(done: float, total: float | None, shown: str) -> None:
    assert progress_line(done, total, None, 80).endswith(shown)


def test_a_message_of_any_length_is_one_line() -> None:
    shown = progress_line(1, 4, "漢" * 5_000_000, 40)
    assert cell_len(shown) <= 39 and "漢" in shown


@pytest.mark.parametrize("columns", [30, 60, 100])
def test_a_list_fits_the_width(workspace: Workspace, columns: int) -> None:
    terminal = workspace.terminal("list", "server.py", columns=columns)
    assert terminal.end() == 0
    lines = plain(terminal.seen).splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[0].startswith("harbour 1.2, MCP 2026")
    assert "───" in terminal.seen


def test_a_picture_is_described(workspace: Workspace) -> None:
    terminal = workspace.terminal("call", "server.py", "pixels")
    assert terminal.end() == 0
    assert plain(terminal.seen) == "[image, image/png, 9 bytes; --save DIR writes it to a file]\n"


def test_bytes_of_a_resource_stay_off_the_screen(workspace: Workspace) -> None:
    terminal = workspace.terminal("read", "server.py", "note://bytes")
    assert terminal.end() == 0
    assert plain(terminal.seen).startswith("[note://bytes, application/x-thing, 256 bytes; --save")


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize(("answer", "told"), [("y", "refund of 5: True"), ("n", "refund of 5: False")])
def test_a_question_is_asked(workspace: Workspace, era: str, answer: str, told: str) -> None:
    terminal = workspace.terminal("call", "server.py", "refund", "order=5", "--era", era)
    terminal.until("server.py asks: Refund 5?").until("[y/n] ").type(f"{answer}\n")
    assert terminal.end() == 0, terminal.seen
    assert told in plain(terminal.seen)


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_missing_answer_declines(workspace: Workspace, era: str) -> None:
    terminal = workspace.terminal("call", "server.py", "refund", "order=5", "--era", era)
    terminal.until("[y/n] ").type("\x04")
    assert terminal.end() == 1
    assert "refund failed" in plain(terminal.seen)


def test_a_form_is_asked_field_by_field_until_it_is_right(workspace: Workspace) -> None:
    terminal = workspace.terminal("call", "server.py", "pack", "order=5")
    terminal.until("Which box?").until("1) small").until("2) large").until("a number: ").type("3\n")
    terminal.until("expected a number from 1 to 2").type("2\n")
    terminal.until("How many?").until("an integer: ").type("many\n")
    terminal.until('expected an integer, got "many"').type("12\n")
    assert terminal.end() == 0, terminal.seen
    assert "12 large" in plain(terminal.seen)


def test_the_deadline_stops_while_the_user_answers(workspace: Workspace) -> None:
    """In the handshake era the call is under way while the question is asked."""
    terminal = workspace.terminal("call", "server.py", "refund", "order=5", "--era", "legacy", "--timeout", "2.5")
    terminal.until("[y/n] ")
    with pytest.raises(subprocess.TimeoutExpired):
        terminal.child.wait(3)
    terminal.type("y\n")
    assert terminal.end() == 0, terminal.seen
    assert "refund of 5: True" in plain(terminal.seen)


def test_a_page_is_shown_and_never_opened(workspace: Workspace) -> None:
    workspace.write(
        "visit.py",
        """
        from typing import Annotated
        from longshore import Ask, Server

        app = Server("visit")

        @app.tool
        def enter(ok: Annotated[bool, Ask("Sign in", url="https://example.test/sign-in?x=1")]) -> str:
            return "entered"
        """,
    )
    workspace.write("browser.sh", "#!/bin/sh\ntouch opened\n").chmod(0o755)
    workspace.env["BROWSER"] = str(workspace.folder / "browser.sh")
    terminal = workspace.terminal("call", "visit.py", "enter")
    terminal.until("https://example.test/sign-in?x=1").until("[y/n] ").type("y\n")
    assert terminal.end() == 0, terminal.seen
    assert "entered" in plain(terminal.seen)
    assert not (workspace.folder / "opened").exists()


@pytest.mark.parametrize("tool", ["hang", "refund"])
def test_ctrl_c_ends_everything(workspace: Workspace, tool: str) -> None:
    mark = workspace.folder / "hanging"
    if tool == "hang":
        terminal = workspace.terminal("call", "server.py", "hang")
        pid = int(eventually("the call", lambda: mark.exists() and mark.read_text()))
        assert terminal.type("\x03").end() == 130
        assert (workspace.folder / "cancelled").exists()
        eventually("the server's end", lambda: not is_alive(pid))
    else:
        terminal = workspace.terminal("call", "server.py", "refund", "order=1", "--era", "legacy")
        assert terminal.until("[y/n] ").type("\x03").end() == 130
        assert terminal.seen.endswith("\r\n"), "the shell's prompt begins on a line of its own"
    assert "Traceback" not in terminal.seen and "Fatal" not in terminal.seen


def test_a_dumb_terminal_gets_no_progress_line(workspace: Workspace) -> None:
    workspace.env["TERM"] = "dumb"
    terminal = workspace.terminal("call", "server.py", "work", "steps=2")
    assert terminal.end() == 0
    assert "\x1b" not in terminal.seen
    assert "worked" in terminal.seen
