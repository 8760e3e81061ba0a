"""Tab: what shells are told, how they ask, and what is never started for it."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from longshore import Server
from serving import serve
from waiting import PATIENCE, is_alive

from .conftest import Quay

PATIENT = """
import sys
import longshore.__main__, longshore.cli.completing
longshore.cli.completing.ASK_SECONDS = float(sys.argv.pop())
longshore.__main__.main()
"""


def patient(seconds: float = PATIENCE) -> list[str]:
    """The command, with more time for a server to answer: on a busy machine its start alone may take longer."""
    return [sys.executable, "-c", PATIENT, str(seconds)]


def tab(quay: Quay, line: str, shell: str = "bash", seconds: float = PATIENCE) -> list[str]:
    """The values that a shell is offered after this line."""
    env = {"_LONGSHORE_COMPLETE": f"{shell}_complete"}
    if shell == "bash":
        env |= {"COMP_LINE": line, "COMP_POINT": str(len(line.encode())), "COMP_BREAKS": " \t\n\"'><=;|&(:"}
    else:
        words = line.split(" ")
        env |= {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1) if shell == "zsh" else words[-1]}
    argv = patient(seconds)
    done = subprocess.run(argv, cwd=quay.folder, env={**quay.env, **env}, capture_output=True, timeout=2 * PATIENCE)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    lines = done.stdout.decode().splitlines()
    if shell == "zsh":
        return lines[1::3]
    return [each.partition(",")[2].partition("\t")[0] for each in lines if each.startswith("plain")]


def test_commands(quay: Quay) -> None:
    assert tab(quay, "longshore c") == ["config", "call", "completion"]
    assert tab(quay, "longshore call --ti") == ["--timeout"]
    assert tab(quay, "longshore nonsense x") == []


def test_servers_of_the_configuration(quay: Quay) -> None:
    quay.write(".mcp.json", json.dumps({"mcpServers": {"github": {"command": "x"}, "a b": {"command": "x"}}}))
    quay.write("home/.gemini/settings.json", json.dumps({"mcpServers": {"gitlab": {"command": "x"}}}))
    assert tab(quay, "longshore list ") == ["github", "gitlab", "builtin"]
    assert tab(quay, "longshore list gitl") == ["gitlab"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_tools_arguments_and_values(quay: Quay, shell: str) -> None:
    assert tab(quay, "longshore call server.py ec", shell) == ["echo"]
    assert tab(quay, "longshore call server.py echo ", shell)[:2] == ["text=", "loud="]
    assert tab(quay, "longshore call server.py echo text=1 tags=a t", shell) == ["tags="]
    small = tab(quay, "longshore call server.py echo size=", shell)
    assert sorted(small) == (["large", "small"] if shell == "bash" else ["size=large", "size=small"])
    assert tab(quay, "longshore call server.py echo loud=t", shell) == ["true" if shell == "bash" else "loud=true"]
    assert tab(quay, "longshore call server.py none ", shell) == []


def test_resources(quay: Quay) -> None:
    assert tab(quay, "longshore read server.py ") == ["note://text", "note://bytes"]
    assert tab(quay, "longshore read server.py note://t") == ["//text"], "bash holds on to what is before the colon"


def test_the_cursor_may_be_inside_the_line(quay: Quay) -> None:
    line = "longshore call server.py ec text=1"
    env = {"_LONGSHORE_COMPLETE": "bash_complete", "COMP_LINE": line, "COMP_POINT": "27", "COMP_BREAKS": "=:"}
    done = subprocess.run(patient(), cwd=quay.folder, env={**quay.env, **env}, capture_output=True, timeout=PATIENCE)
    assert done.stdout == b"plain,echo\n"


def test_a_server_is_not_asked_twice_at_once(quay: Quay) -> None:
    quay.write("server.py", "from pathlib import Path\nfrom longshore import Server\napp = Server('s')\n"
               "with Path(__file__).with_name('starts').open('a') as f: f.write('x')\n"
               "@app.tool\ndef one() -> str: return ''\n")  # fmt: skip
    for _ in range(3):
        assert tab(quay, "longshore call server.py ") == ["one"]
    assert (quay.folder / "starts").read_text() == "x"
    [kept] = (quay.home / ".cache/longshore/offers").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    record = json.loads(kept.read_text())
    kept.write_text(json.dumps({**record, "at": {"tools": 1.0}}))
    assert tab(quay, "longshore call server.py ") == ["one"]
    assert (quay.folder / "starts").read_text() == "xx", "what is old is asked for anew"
    kept.write_bytes(b"{broken")
    assert tab(quay, "longshore call server.py ") == ["one"]


def test_tab_starts_nothing_that_nobody_ran(quay: Quay) -> None:
    command = f"{sys.executable} starter.py"
    quay.write("starter.py", "open('started', 'a').close()\nfrom longshore import Server\napp = Server('s')\n"
               "@app.tool\ndef one() -> str: return ''\napp.run()\n")  # fmt: skip
    quay.write(".mcp.json", json.dumps({"mcpServers": {"mine": {"command": sys.executable, "args": ["starter.py"]}}}))
    mark = quay.folder / "started"
    for target in (f"'{command}'", "mine"):
        assert tab(quay, f"longshore call {target} ") == []
        assert not mark.exists()
    for target, spoken in ((command, f"'{command}'"), ("mine", "mine")):
        assert quay.run("list", target).returncode == 0
        assert tab(quay, f"longshore call {spoken} ") == ["one"], "it was run on purpose"
        mark.unlink()
        assert tab(quay, f"longshore call {spoken} ") == ["one"] and not mark.exists()


def test_tab_sends_nothing_to_a_url_of_a_project_that_nobody_visited(quay: Quay) -> None:
    app = Server("far", version="1")

    @app.tool
    def greet() -> str:
        return ""

    asked: list[Any] = []
    served_app = app.asgi()

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            asked.append(dict(scope["headers"]).get(b"x-key"))
        await served_app(scope, receive, send)

    quay.env["SECRET"] = "s3cret"
    with serve(watched, shut=[served_app]) as served:
        far = {"url": served.url, "headers": {"X-Key": "${SECRET}"}}
        quay.write(".mcp.json", json.dumps({"mcpServers": {"far": far}}))
        for line in ("longshore call far ", "longshore call --config .mcp.json far ", "longshore read far "):
            assert tab(quay, line) == []
        assert asked == []
        assert quay.run("list", "far").returncode == 0
        assert set(asked) == {b"s3cret"}
        assert tab(quay, "longshore call far ") == ["greet"], "it was visited on purpose"


def test_a_resource_that_was_read_is_a_visit(quay: Quay) -> None:
    entry = {"command": sys.executable, "args": ["-m", "longshore", "serve", "server.py"]}
    quay.write(".mcp.json", json.dumps({"mcpServers": {"mine": entry}}))
    assert tab(quay, "longshore read mine ") == []
    assert quay.run("read", "mine", "note://text").returncode == 0
    assert tab(quay, "longshore read mine ") == ["note://text", "note://bytes"]


def test_a_pipe_for_a_configuration_is_not_waited_for(quay: Quay) -> None:
    os.mkfifo(quay.folder / "pipe")
    assert tab(quay, "longshore list --config pipe ") == []
    assert tab(quay, "longshore call --config pipe a ") == []


def test_a_server_of_the_persons_own_configuration_is_asked(quay: Quay) -> None:
    entry = {"command": sys.executable, "args": ["-m", "longshore", "serve", str(quay.folder / "server.py")]}
    quay.write("home/.claude.json", json.dumps({"mcpServers": {"mine": entry}}))
    assert tab(quay, "longshore call mine ad") == ["add"]


HANGING = """
    import os, signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open("pids", "a") as file:
        file.write(f"{os.getpid()}\\n")
    while True:
        time.sleep(1)
"""


def test_a_server_that_fails_completes_nothing_and_is_left_alone_for_a_minute(quay: Quay) -> None:
    quay.write("server.py", "open('starts', 'a').write('x')\nraise SystemExit(3)")
    assert tab(quay, "longshore call server.py a") == []
    starts = (quay.folder / "starts").read_text()
    assert starts, "it was tried, perhaps once for each era"
    assert tab(quay, "longshore call server.py a") == []
    assert (quay.folder / "starts").read_text() == starts


def test_a_server_that_hangs_completes_nothing_and_is_killed(quay: Quay) -> None:
    quay.write("server.py", HANGING)
    assert tab(quay, "longshore call server.py a", seconds=8.0) == []
    pids = (quay.folder / "pids").read_text().split()
    assert pids and not any(is_alive(int(pid)) for pid in pids), "Tab is over when it is"
    assert tab(quay, "longshore call server.py a") == []
    assert (quay.folder / "pids").read_text().split() == pids, "it is left alone for a minute"


def test_a_url_that_nobody_serves(quay: Quay) -> None:
    assert tab(quay, "longshore call http://127.0.0.1:1/mcp a") == []


@pytest.mark.parametrize(("shell", "line"), [("bash", "~/.bashrc"), ("zsh", "~/.zshrc"), ("fish", "config.fish")])
def test_the_script_says_where_it_goes(quay: Quay, shell: str, line: str) -> None:
    done = quay.run("completion", shell)
    assert done.returncode == 0
    first = done.stdout.decode().splitlines()[:2]
    assert any(each.startswith("# ") and line in each for each in first)
    assert b"_LONGSHORE_COMPLETE" in done.stdout


def test_another_shell_is_refused(quay: Quay) -> None:
    assert quay.run("completion", "tcsh").returncode == 2


def test_in_a_real_bash(quay: Quay) -> None:
    bash = shutil.which("bash")
    script = Path(sys.executable).with_name("longshore")
    if bash is None or not script.exists():
        if os.environ.get("CI") == "true":
            pytest.fail("bash and the installed longshore command are needed")
        pytest.skip("install bash, and longshore into this environment")
    env = {
        **quay.env,
        "PATH": f"{script.parent}:{quay.env['PATH']}",
        "TERM": "dumb",
        "PS1": "READY> ",
        "INPUTRC": "/dev/null",
    }
    assert quay.run("list", "server.py").returncode == 0  # so that it is known, and no Tab has to wait for its start
    main, side = pty.openpty()
    shell = subprocess.Popen([bash, "--norc", "--noprofile", "-i"], cwd=quay.folder, env=env, stdin=side, stdout=side,
                             stderr=side, start_new_session=True)  # fmt: skip
    os.close(side)
    seen = ""

    def until(text: str) -> None:
        nonlocal seen
        deadline = time.monotonic() + PATIENCE
        while text not in seen:
            ready = select.select([main], [], [], max(0.0, deadline - time.monotonic()))[0]
            assert ready, f"{text!r} did not come: {seen!r}"
            seen += os.read(main, 65536).decode()
        seen = seen.partition(text)[2]

    try:
        until("READY> ")
        os.write(main, b'eval "$(longshore completion bash)"\n')
        until("READY> ")
        os.write(main, b"longshore ca\t")
        until("longshore call ")
        os.write(main, b"server.py ec\t")
        until("echo ")
        os.write(main, b"te\t")
        until("text=")
        os.write(main, b"hi size=la\t")
        until("large ")
        os.write(main, b"\n")
        until("'hi' False [] large")
    finally:
        shell.kill()
        shell.wait(PATIENCE)
        os.close(main)
