"""Servers by the names that other clients' configuration files give them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from longshore import Server
from serving import serve

from .conftest import Workspace


def entry(workspace: Workspace, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-m", "longshore", "serve", "server.py"], **more}


def test_a_server_of_the_project(workspace: Workspace) -> None:
    workspace.write(".mcp.json", json.dumps({"mcpServers": {"dock": entry(workspace, type="stdio")}}))
    inner = workspace.folder / "sub"
    inner.mkdir()
    done = workspace.run("call", "dock", "add", "a=1", cwd=inner)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"3\n", b"")


def test_a_server_of_a_named_file_with_variables(workspace: Workspace) -> None:
    workspace.write("vars.py", "import os\nfrom longshore import Server\napp = Server('v')\n"
               "@app.tool\ndef show() -> str: return os.environ['GOT']\n")  # fmt: skip
    args = ["-m", "longshore", "serve", "${FILE:-vars.py}"]
    entries = {"v": entry(workspace, args=args, env={"GOT": "<${SECRET}>"})}
    workspace.write("mine.json", json.dumps({"mcpServers": entries}))
    done = workspace.run("call", "v", "show", "--config", "mine.json")
    assert done.returncode == 2
    assert done.stderr.startswith(b"mine.json: v.env.GOT: the variable SECRET is not set")
    done = workspace.run("call", "v", "show", "--config", "mine.json", env={"SECRET": "x"})
    assert (done.returncode, done.stdout) == (0, b"<x>\n"), done.stderr


def test_a_url_of_a_file_with_its_headers(workspace: Workspace) -> None:
    app = Server("far", version="1")

    @app.tool
    def hi() -> str:
        return "hi"

    with serve(app.asgi()) as served:
        far = {"type": "http", "url": served.url, "headers": {"Authorization": "Bearer ${T}"}}
        workspace.write(".mcp.json", json.dumps({"mcpServers": {"far": far}}))
        done = workspace.run("call", "far", "hi", env={"T": "t"})
        assert (done.returncode, done.stdout) == (0, b"hi\n"), done.stderr


def test_env_and_cwd_over_what_the_file_says(workspace: Workspace) -> None:
    workspace.write("deep/place.py", "import os\nfrom longshore import Server\napp = Server('p')\n"
               "@app.tool\ndef show() -> str: return os.environ['X'] + os.path.basename(os.getcwd())\n")  # fmt: skip
    args = ["-m", "longshore", "serve", "place.py"]
    workspace.write(".mcp.json", json.dumps({"mcpServers": {"p": entry(workspace, args=args, env={"X": "a"})}}))
    done = workspace.run("call", "p", "show", "--env", "X=b=", "--cwd", str(workspace.folder / "deep"))
    assert (done.returncode, done.stdout) == (0, b"b=deep\n"), done.stderr


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"nothing": 1}, b'has a "command" or a "url"; this one has nothing'),
        ({"command": ""}, b'has a "command" or a "url"'),
        ({"command": "x", "args": "y"}, b'"args" of an entry of mcpServers is a list'),
        ({"url": "ftp://x"}, b"dock: a URL begins with http:// or https://"),
        ({"command": "x", "env": {"T": "${GONE}"}}, b"the variable GONE is not set"),
    ],
)
def test_an_entry_that_can_not_be_used_starts_no_program_of_its_name(
    workspace: Workspace, broken: dict[str, Any], said: bytes
) -> None:
    workspace.write(".mcp.json", json.dumps({"mcpServers": {"dock": broken}}))
    workspace.write("bin/dock", "#!/bin/sh\ntouch started\n").chmod(0o755)
    workspace.env["PATH"] = f"{workspace.folder / 'bin'}:{workspace.env['PATH']}"
    done = workspace.run("list", "dock")
    assert done.returncode == 2
    assert said in done.stderr and b"Traceback" not in done.stderr
    assert not (workspace.folder / "started").exists()


def test_variables_of_a_configuration_file_are_not_printed(workspace: Workspace) -> None:
    failing = {"command": "sh", "args": ["-c", "exit 9", "--token=${TOKEN}"]}
    workspace.write(".mcp.json", json.dumps({"mcpServers": {"dock": failing}}))
    done = workspace.run("list", "dock", env={"TOKEN": "s3cret"})
    assert done.returncode == 3
    assert done.stderr.startswith(b"dock: ") and b"s3cret" not in done.stderr


def test_a_configuration_may_be_a_process_substitution(workspace: Workspace) -> None:
    workspace.write("mine.json", json.dumps({"mcpServers": {"dock": entry(workspace)}}))
    line = f"{sys.executable} -m longshore call dock add a=1 --config <(cat mine.json)"
    done = subprocess.run(
        ["bash", "-c", line], cwd=workspace.folder, env=workspace.env, capture_output=True, timeout=45
    )
    assert (done.returncode, done.stdout) == (0, b"3\n"), done.stderr


def test_an_unknown_server_name_gets_the_nearest(workspace: Workspace) -> None:
    workspace.write(".mcp.json", json.dumps({"mcpServers": {"harbour": entry(workspace)}}))
    done = workspace.run("list", "harbor")
    assert done.returncode == 2
    assert b"did you mean 'harbour'?" in done.stderr


def test_a_broken_file_is_an_error(workspace: Workspace) -> None:
    workspace.write(".mcp.json", "{")
    done = workspace.run("list", "harbour")
    assert done.returncode == 2
    assert b".mcp.json: it can't be read" in done.stderr
