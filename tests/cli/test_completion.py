"""Shell completion: the words it offers, without starting a server."""

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

import pytest

from waiting import PATIENCE

from .conftest import LONGSHORE, Workspace


def tab(workspace: Workspace, line: str, shell: str = "bash") -> list[str]:
    """The values that a shell is offered after this line."""
    words = line.split(" ")
    env = {"_LONGSHORE_COMPLETE": f"{shell}_complete", "COMP_WORDS": line}
    env["COMP_CWORD"] = words[-1] if shell == "fish" else str(len(words) - 1)
    done = subprocess.run(
        LONGSHORE, cwd=workspace.folder, env={**workspace.env, **env}, capture_output=True, timeout=2 * PATIENCE
    )
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    lines = done.stdout.decode().splitlines()
    if shell == "zsh":
        return [value for kind, value in zip(lines[::3], lines[1::3], strict=False) if kind == "plain"]
    return [each.partition(",")[2].partition("\t")[0] for each in lines if each.startswith("plain")]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_and_options_are_completed(workspace: Workspace, shell: str) -> None:
    assert tab(workspace, "longshore c", shell) == ["config", "call", "complete", "context", "completion"]
    assert tab(workspace, "longshore call --ti", shell) == ["--timeout"]
    assert tab(workspace, "longshore nonsense x", shell) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_names_of_configured_servers_are_completed(workspace: Workspace, shell: str) -> None:
    workspace.write(".mcp.json", json.dumps({"mcpServers": {"github": {"command": "x"}, "a b": {"command": "x"}}}))
    workspace.write("home/.gemini/settings.json", json.dumps({"mcpServers": {"gitlab": {"command": "x"}}}))
    assert tab(workspace, "longshore list ", shell) == ["github", "gitlab", "builtin"]
    assert tab(workspace, "longshore list gitl", shell) == ["gitlab"]


def test_completion_starts_no_server(workspace: Workspace) -> None:
    workspace.write("server.py", "open('started', 'w').close()")
    for line in ("longshore call server.py ", "longshore read server.py ", "longshore call server.py tool k"):
        assert tab(workspace, line) == []
    assert not (workspace.folder / "started").exists()


def test_a_broken_configuration_completes_builtin_only(workspace: Workspace) -> None:
    workspace.write("broken.json", "{")
    assert tab(workspace, "longshore list --config broken.json ") == ["builtin"]


def test_a_named_pipe_as_the_configuration_is_not_read(workspace: Workspace) -> None:
    os.mkfifo(workspace.folder / "pipe")
    assert tab(workspace, "longshore list --config pipe ") == []


@pytest.mark.parametrize(("shell", "line"), [("bash", "~/.bashrc"), ("zsh", "~/.zshrc"), ("fish", "config.fish")])
def test_the_script_says_where_it_goes(workspace: Workspace, shell: str, line: str) -> None:
    done = workspace.run("completion", shell)
    assert done.returncode == 0
    first = done.stdout.decode().splitlines()[:2]
    assert any(each.startswith("# ") and line in each for each in first)
    assert b"_LONGSHORE_COMPLETE" in done.stdout


def test_another_shell_is_refused(workspace: Workspace) -> None:
    assert workspace.run("completion", "tcsh").returncode == 2


def test_a_real_bash_completes(workspace: Workspace) -> None:
    bash = shutil.which("bash")
    script = Path(sys.executable).with_name("longshore")
    if bash is None or not script.exists():
        if os.environ.get("CI") == "true":
            pytest.fail("bash and the installed longshore command are needed")
        pytest.skip("install bash, and longshore into this environment")
    workspace.write(".mcp.json", json.dumps({"mcpServers": {"github": {"command": "x"}}}))
    path = f"{script.parent}:{workspace.env['PATH']}"
    env = {**workspace.env, "PATH": path, "TERM": "dumb", "PS1": "READY> ", "INPUTRC": "/dev/null"}
    main, side = pty.openpty()
    streams = {"stdin": side, "stdout": side, "stderr": side}
    command = [bash, "--norc", "--noprofile", "-i"]
    shell = subprocess.Popen(command, cwd=workspace.folder, env=env, start_new_session=True, **streams)
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
        os.write(main, b"gi\t")
        until("github ")
    finally:
        shell.kill()
        shell.wait(PATIENCE)
        os.close(main)
