"""`longshore call`, `list` and `read` with pipes: output and exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from longshore import Server
from longshore.cli.main import run
from serving import serve
from waiting import PATIENCE, eventually, is_alive

from .conftest import LONGSHORE, Workspace


def test_a_result_is_its_text_and_nothing_else(workspace: Workspace) -> None:
    done = workspace.run("call", "server.py", "add", "a=40")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"42\n", b"")


def test_json_is_the_whole_record(workspace: Workspace) -> None:
    done = workspace.run("call", "server.py", "add", "a=1", "b=1", "--json")
    record = json.loads(done.stdout)
    assert record.pop("structuredContent") == {"result": 2}
    assert record.pop("content") == [{"type": "text", "text": "2"}]
    assert record.pop("_meta", {}) is not None
    assert record == {"resultType": "complete"}, "and nothing else"


@pytest.mark.parametrize("given", ['{"a": 1, "b": 5}', "@args.json", "-"])
def test_arguments_as_json_and_words_over_them(workspace: Workspace, given: str) -> None:
    workspace.write("args.json", '{"a": 1, "b": 5}')
    done = workspace.run("call", "server.py", "add", "--args", given, "a=2", data=b'{"a": 1, "b": 5}')
    assert done.stdout == b"7\n"


CRASHING = """
    from longshore import Server
    app = Server("crashing")

    @app.tool
    def divide(by: int) -> int:
        \"\"\"Divide.\"\"\"
        return 1 // by

    @app.resource("note://broken")
    def broken() -> int:
        return 1 // 0
"""


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize("log_format", ["json", "pretty"])
def test_a_call_shows_the_traceback_of_a_tool_that_raises(
    workspace: Workspace, form: list[str], log_format: str
) -> None:
    workspace.write("crashing.py", CRASHING)
    env = {"LONGSHORE_SERVER_LOG_FORMAT": log_format}
    done = workspace.run("call", "crashing.py", "divide", "by=0", *form, env=env)
    said = done.stderr.decode()
    assert done.returncode == 1
    assert said.count("ZeroDivisionError: ") == 1
    assert "    return 1 // by\n" in said
    assert b"ZeroDivisionError" not in done.stdout
    assert "divide failed unexpectedly" in (done.stdout.decode() if form else said.partition("Traceback")[0])


def test_a_read_shows_the_traceback_of_a_resource_that_raises(workspace: Workspace) -> None:
    workspace.write("crashing.py", CRASHING)
    done = workspace.run("read", "crashing.py", "note://broken")
    assert done.returncode == 1
    assert "  |     return 1 // 0\n" in done.stderr.decode()


def test_all_wrong_arguments_are_reported_at_once(workspace: Workspace) -> None:
    done = workspace.run("call", "server.py", "echo", "txt=x", "loud=maybe", "size=huge")
    assert (done.returncode, done.stdout) == (2, b"")
    said = done.stderr.decode()
    assert "echo was not called" in said
    assert "txt: there is no such argument; did you mean 'text'?" in said
    assert 'loud: expected a boolean, got "maybe"' in said
    assert 'size: must be one of "small", "large"; got "huge"' in said
    assert "text: missing, a string" in said


@pytest.mark.parametrize("word", ["oops", "=1", "text=@none.txt"])
def test_a_malformed_word_starts_no_server(workspace: Workspace, word: str) -> None:
    done = workspace.run("call", "false", "echo", word)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_stdin_can_be_one_argument(workspace: Workspace) -> None:
    assert workspace.run("call", "server.py", "echo", "text=@-", data=b"piped").stdout.startswith(b"'piped'")
    done = workspace.run("call", "false", "echo", "--args", "-", "text=@-", data=b'{"loud": true}')
    assert (done.returncode, done.stderr) == (2, b"text: --args has read the standard input already\n")


def test_an_unknown_tool_gets_the_nearest(workspace: Workspace) -> None:
    done = workspace.run("call", "server.py", "ad")
    assert (done.returncode, done.stderr) == (2, b"server.py: there is no tool 'ad'; did you mean 'add'?\n")


def test_unchecked_sends_arguments_of_earlier_versions(workspace: Workspace) -> None:
    workspace.write(
        "evolved.py",
        "from typing import Annotated\n"
        "from longshore import Server, Alias\n"
        "app = Server('evolved')\n"
        "@app.tool(aliases=['old'])\n"
        "def new(city: Annotated[str, Alias('town')], days: list[int] = []) -> str: return f'{city} {days}'\n",
    )
    assert workspace.run("call", "evolved.py", "old", "town=Oslo").returncode == 2
    done = workspace.run("call", "evolved.py", "old", "town=Oslo", 'days:="[1, 2]"', "--unchecked")
    assert (done.returncode, done.stdout) == (0, b"Oslo [1, 2]\n")
    done = workspace.run("call", "evolved.py", "older", "--unchecked")
    assert (done.returncode, b"older" in done.stderr) == (1, True), "the server has the last word"


def test_a_tool_that_fails_says_so_on_stderr(workspace: Workspace) -> None:
    done = workspace.run("call", "server.py", "broken")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"broken failed: the crane broke\n")
    done = workspace.run("call", "server.py", "broken", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["isError"] is True


def test_a_pipe_gets_what_the_server_said_and_no_escapes_of_ours(workspace: Workspace) -> None:
    assert workspace.run("call", "server.py", "hostile").stdout.decode() == "\x1b]0;owned\x07 red \x9b31m \u202e\n"
    printed = workspace.run("call", "server.py", "hostile", "--json").stdout.decode()
    assert not {"\x1b", "\x9b", "\u202e", "\x07"} & set(printed)
    assert json.loads(printed)["content"][0]["text"] == "\x1b]0;owned\x07 red \x9b31m \u202e"
    assert b"\x1b" not in workspace.run("call", "server.py", "work", "steps=3").stderr


def test_the_log_is_shown_with_log_level(workspace: Workspace) -> None:
    assert workspace.run("call", "server.py", "work", "steps=2").stderr == b""
    said = workspace.run("call", "server.py", "work", "steps=2", "--log-level", "debug").stderr.decode()
    assert "info: " in said and "did \\x1b[5mstep 1" in said


def test_images_are_noted_and_saved(workspace: Workspace) -> None:
    done = workspace.run("call", "server.py", "pixels")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"[image, image/png, 9 bytes, left out; --save DIR" in done.stderr
    for n in (1, 2):
        done = workspace.run("call", "server.py", "pixels", "--save", "out/deep")
        assert (workspace.folder / f"out/deep/pixels-{n}.png").read_bytes() == b"\x89PNG-data"
    assert b"saved as out/deep/pixels-2.png" in done.stderr


def test_a_save_folder_that_can_not_be_made_is_refused_before_the_call(workspace: Workspace) -> None:
    done = workspace.run("call", "server.py", "hang", "--save", "server.py/x")
    assert done.returncode == 2
    assert b"--save" in done.stderr


def test_a_resource_is_printed_byte_by_byte(workspace: Workspace) -> None:
    assert workspace.run("read", "server.py", "note://text").stdout == b"no line end"
    assert workspace.run("read", "server.py", "note://bytes").stdout == bytes(range(256))
    record = json.loads(workspace.run("read", "server.py", "note://text", "--json").stdout)
    assert record["contents"][0]["text"] == "no line end"
    workspace.run("read", "server.py", "note://bytes", "--save", "out")
    assert (workspace.folder / "out/bytes-1.bin").read_bytes() == bytes(range(256))


def test_an_unknown_resource_fails(workspace: Workspace) -> None:
    done = workspace.run("read", "server.py", "note://none")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"no resource 'note://none'" in done.stderr


def test_a_list_is_plain_columns(workspace: Workspace) -> None:
    done = workspace.run("list", "server.py")
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (0, b"")
    assert ["tool", "add", "a", "b?", "Add", "two", "numbers."] in [line.split() for line in lines]
    assert any(line.startswith("resource  note://bytes") for line in lines)
    only = workspace.run("list", "server.py", "--resources").stdout.decode()
    assert "tool" not in only and "note://text" in only


def test_a_wide_cell_does_not_widen_all_rows(workspace: Workspace) -> None:
    workspace.write(
        "wide.py",
        """
        from longshore import Server, Tool

        app = Server("wide")
        for n in range(300):
            schema = {"type": "object", "properties": {"x" * 60_000: {}} if n == 5 else {}}
            app.add_tool(Tool(name=f"t{n}", description="It is.", input_schema=schema), lambda arguments, ctx: "")
        """,
    )
    done = workspace.run("list", "wide.py", "--tools")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"\n") == 300 and len(done.stdout) < 200_000


def test_a_list_as_json_is_one_object(workspace: Workspace) -> None:
    record = json.loads(workspace.run("list", "server.py", "--json").stdout)
    assert {"server", "tools", "resources", "resourceTemplates", "prompts"} == set(record)
    assert record["server"]["name"] == "harbour"
    assert next(t for t in record["tools"] if t["name"] == "add")["inputSchema"]["required"] == ["a"]
    assert set(json.loads(workspace.run("list", "server.py", "--tools", "--json").stdout)) == {"server", "tools"}


@pytest.mark.parametrize("era", ["modern", "legacy", "2024-11-05"])
def test_an_era_can_be_chosen(workspace: Workspace, era: str) -> None:
    record = json.loads(workspace.run("list", "server.py", "--prompts", "--json", "--era", era).stdout)
    wanted = {"modern": "2026-07-28", "legacy": "2025-11-25"}.get(era, era)
    assert record["server"]["protocolVersion"] == wanted


# -- targets


def test_targets_of_every_kind(workspace: Workspace) -> None:
    import sys

    for target in ("server.py", "server.py:app", "./server.py", "server:app",
                   f"{sys.executable} -m longshore serve server.py"):  # fmt: skip
        done = workspace.run("call", target, "add", "a=1")
        assert (done.returncode, done.stdout) == (0, b"3\n"), (target, done.stderr)
    assert workspace.run("list", "builtin").returncode == 0


def test_a_file_in_the_folder_is_not_taken_for_a_library(workspace: Workspace) -> None:
    workspace.write("msgspec.py", "raise SystemExit('the wrong one')")
    workspace.write("longshore/__init__.py", "raise SystemExit('the wrong one')")
    assert (workspace.folder / "elsewhere").mkdir() is None
    workspace.write("elsewhere/plain.py", "from longshore import Server\napp = Server('plain')\n")
    argv = [*_script(), "list", "elsewhere/plain.py", "--json"]
    done = subprocess.run(argv, cwd=workspace.folder, env=workspace.env, capture_output=True, timeout=45)
    assert json.loads(done.stdout)["server"]["name"] == "plain", done.stderr


def _script() -> list[str]:
    import sys

    return [sys.executable, "-P", "-m", "longshore"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["none.py", "x"], b"none.py: there is no such file"),
        (["localhost:9100/mcp", "x"], b"a URL begins with http:// or https://"),
        (["localhost:9100", "x"], b"a URL begins with http:// or https://"),
        (["example.test/mcp", "x"], b"a URL begins with http:// or https://"),
        (["ftp://example.test/mcp", "x"], b"a URL begins with http:// or https://"),
        (["./notes.md", "x"], b"./notes.md is a file that can't be run; TARGET is a URL"),
        (["notes.md", "x"], b"notes.md is a file that can't be run; TARGET is a URL"),
        (["home", "x"], b"home is a folder; TARGET is a URL"),
        (["./home", "x"], b"./home is a folder; TARGET is a URL"),
        (["", "x"], b"an empty TARGET"),
        (["no-such-program-here", "x"], b"no server 'no-such-program-here'"),
        (["'unbalanced quote", "x"], b"can't be read"),
        (["npx", "-y", "server"], b"A command line is one word"),
        (["server.py", "add", "--header", "a: b"], b"--header is for a URL"),
        (["http://127.0.0.1:1", "x", "--cwd", "/"], b"--cwd is for a command"),
        (["server.py", "add", "--timeout", "nan"], b"--timeout"),
        (["server.py", "add", "--era", "stone"], b"--era"),
        (["http://127.0.0.1:1", "x", "--auth", "env:NOT_SET"], b"the variable NOT_SET is not set"),
    ],
)
def test_wrong_usage_exits_with_two(
    workspace: Workspace,
    argv: list[str],
    said: bytes,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    workspace.write("notes.md", "# Notes")
    monkeypatch.chdir(workspace.folder)
    monkeypatch.setenv("HOME", str(workspace.home))
    assert run(["call", *argv]) == 2
    assert said.decode() in capfd.readouterr().err


def test_tools_of_a_url_names_the_list_command(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "HTTP://127.0.0.1:1/mcp"]) == 2
    assert "longshore list HTTP://127.0.0.1:1/mcp --tools" in capfd.readouterr().err


def test_a_url_is_called(workspace: Workspace) -> None:
    app = Server("far", version="1")

    @app.tool
    def greet(name: str) -> str:
        return f"hello {name}"

    with serve(app.asgi()) as served:
        done = workspace.run("call", served.url, "greet", "name=you")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"hello you\n", b"")
        done = workspace.run(
            "call", served.url.replace("http:", "HTTP:"), "greet", "name=you", "--header", "X-A: b", "--auth", "abc"
        )
        assert done.returncode == 0, done.stderr


# -- failures


def test_no_connection_exits_with_three(workspace: Workspace) -> None:
    workspace.write("grumpy.sh", "echo 'no cargo today' >&2; exit 9")
    done = workspace.run("call", "sh grumpy.sh", "x")
    assert done.returncode == 3
    assert b"it ended with exit code 9" in done.stderr
    assert b"| no cargo today" in done.stderr
    done = workspace.run("list", "http://127.0.0.1:1/mcp")
    assert done.returncode == 3
    assert b"127.0.0.1:1" in done.stderr and b"Traceback" not in done.stderr


def test_a_server_that_dies_exits_with_three_and_shows_its_stderr(workspace: Workspace) -> None:
    done = workspace.run("call", "server.py", "die")
    assert done.returncode == 3
    assert b"it ended with exit code 7" in done.stderr
    assert b"| the ship sank" in done.stderr


def test_a_python_file_that_is_no_server_of_ours_is_explained(workspace: Workspace) -> None:
    workspace.write("other.py", "print('hi')")
    done = workspace.run("list", "other.py")
    assert done.returncode == 3
    assert b"no Server there" in done.stderr and b"serves by itself" in done.stderr


def test_no_answer_in_time_exits_with_four(workspace: Workspace) -> None:
    done = workspace.run("call", "server.py", "hang", "--timeout", "1.5")
    assert done.returncode == 4
    assert b"within 1.5 s" in done.stderr and b"--timeout" in done.stderr
    assert (workspace.folder / "cancelled").exists()


def test_a_server_that_never_answers_exits_with_four(workspace: Workspace) -> None:
    done = workspace.run("list", "sleep 100", "--timeout", "0.5")
    assert done.returncode == 4
    assert b"it did not answer within 0.5 s; is it an MCP server?" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupt_cancels_the_call_and_ends_the_server(workspace: Workspace, number: int, code: int) -> None:
    child = workspace.start("call", "server.py", "hang", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    mark = workspace.folder / "hanging"
    pid = int(eventually("the call", lambda: mark.exists() and mark.read_text()))
    os.kill(child.pid, number)
    out, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, out, err) == (code, b"", b"")
    assert (workspace.folder / "cancelled").exists()
    eventually("the server's end", lambda: not is_alive(pid))


def test_a_closed_output_pipe_ends_without_a_message(workspace: Workspace) -> None:
    child = workspace.start("list", "server.py", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    said = child.stderr.read()
    assert child.wait(PATIENCE) == 1
    assert said == b""


def test_without_a_terminal_no_question_is_offered(workspace: Workspace) -> None:
    done = workspace.run("call", "server.py", "refund", "order=5")
    assert done.returncode == 1
    assert b"on a terminal only" in done.stderr


def test_utf8_arguments_pass_in_the_c_locale(workspace: Workspace) -> None:
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = workspace.run("call", "server.py", "echo", "text=ü€", env=env)
    assert (done.returncode, done.stdout.decode()) == (0, "'ü€' False [] small\n"), done.stderr


def test_a_full_disk_is_reported(workspace: Workspace) -> None:
    with Path("/dev/full").open("wb") as full:
        for argv in (["call", "server.py", "add", "a=1"], ["list", "server.py"], ["read", "server.py", "note://text"]):
            child = workspace.start(*argv, stdout=full, stderr=subprocess.PIPE)
            _, said = child.communicate(timeout=PATIENCE)
            assert (child.returncode, said) == (1, b"the output could not be written: No space left on device\n")


STUBBORN = """
    import json, os, signal, sys
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    CAN = {"tools": {}, "logging": {}}
    INFO = {"name": "stubborn", "version": "1"}
    TOOL = {"name": "hang", "inputSchema": {"type": "object"}}
    for line in sys.stdin:
        asked = json.loads(line)
        answers = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": CAN, "serverInfo": INFO},
            "tools/list": {"tools": [TOOL]},
            "logging/setLevel": {},
        }
        if asked.get("method") in answers:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers[asked["method"]]}), flush=True)
        elif asked.get("method") == "tools/call":
            for level in ("debug", "error"):
                told = {"level": level, "data": f"it is {level}"}
                print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": told}), flush=True)
            open("hanging", "w").write(str(os.getpid()))
        elif asked.get("method") == "notifications/cancelled":
            open("cancelled", "w").write("yes")
        elif "id" in asked:
            told = {"code": -32601, "message": "no"}
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": told}), flush=True)
    while True:
        signal.pause()
"""


@pytest.mark.parametrize("times", [1, 2])
def test_a_server_that_ignores_signals_is_killed(workspace: Workspace, times: int) -> None:
    import sys

    workspace.write("stubborn.py", STUBBORN)
    if times == 2:  # the second Ctrl-C may come before asyncio has closed its pipes, and leaves that to the system
        workspace.env["PYTHONWARNINGS"] += ",ignore::ResourceWarning"
    child = workspace.start(
        "call", f"{sys.executable} stubborn.py", "hang", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    mark = workspace.folder / "hanging"
    pid = int(eventually("the call", lambda: mark.exists() and mark.read_text()))
    os.kill(child.pid, signal.SIGINT)
    eventually("the cancel", (workspace.folder / "cancelled").exists)
    if times == 2:
        os.kill(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, out) == (130, b"")
    assert b"Traceback" not in err
    eventually("the server's end", lambda: not is_alive(pid))


def test_an_old_servers_log_is_cut_at_the_level(workspace: Workspace) -> None:
    import sys

    workspace.write("old.py", STUBBORN.partition("while True:")[0].replace("SIG_IGN", "SIG_DFL"))
    argv = ["call", f"{sys.executable} old.py", "hang", "--timeout", "0.5"]
    assert b"it is error" not in workspace.run(*argv).stderr, "nobody asked for it"
    said = workspace.run(*argv, "--log-level", "warning").stderr
    assert b"error: it is error" in said and b"it is debug" not in said


@pytest.mark.parametrize(("closed", "code"), [("<&-", 0), (">&-", 1), ("2>&-", 0)])
def test_a_closed_standard_stream_is_reported_or_ignored(workspace: Workspace, closed: str, code: int) -> None:
    argv = ["sh", "-c", f'exec "$@" {closed}', "sh", *LONGSHORE, "call", "server.py", "add", "a=1"]
    done = subprocess.run(argv, cwd=workspace.folder, env=workspace.env, capture_output=True, timeout=45)
    assert done.returncode == code
    assert done.stdout == (b"" if code else b"3\n")
    assert done.stderr == (b"the output could not be written: stdout is closed\n" if code else b"")


def test_a_word_that_is_no_utf8_is_refused(workspace: Workspace) -> None:
    argv = [*map(os.fsencode, LONGSHORE), b"call", b"server.py", b"echo", b"text=\xff"]
    done = subprocess.run(argv, cwd=workspace.folder, env=workspace.env, capture_output=True, timeout=45)
    assert done.returncode == 2
    assert b"is no UTF-8" in done.stderr


def test_values_are_read_as_the_schema_says(workspace: Workspace) -> None:
    argv = ["call", "server.py", "echo", "text=007", "loud=yes", "tags=a", "tags=b", "size=large"]
    assert workspace.run(*argv).stdout == b"'007' True ['a', 'b'] large\n"


def test_a_missing_argument_is_described(workspace: Workspace) -> None:
    done = workspace.run("call", "server.py", "add")
    assert (done.returncode, done.stderr) == (2, b"add was not called:\n  a: missing, an integer: the first one\n")


@pytest.mark.parametrize("given", ["{", "[1]", "@none.json"])
def test_args_must_be_an_object(workspace: Workspace, given: str) -> None:
    done = workspace.run("call", "server.py", "add", "--args", given)
    assert done.returncode == 2
    assert done.stderr.startswith(b"--args: ")


def test_json_among_the_words_is_shown_where_it_goes(workspace: Workspace) -> None:
    assert b"--args" in workspace.run("call", "false", "add", '{"a": 1}').stderr


def test_a_huge_result_passes(workspace: Workspace) -> None:
    workspace.write("big.py", "from longshore import Server\napp = Server('big')\n@app.tool\ndef much() -> str:\n"
                         "    return 'x' * 3_000_000\n")  # fmt: skip
    assert len(workspace.run("call", "big.py", "much").stdout) == 3_000_001
