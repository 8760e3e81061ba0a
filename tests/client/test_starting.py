"""Commands that can't be run, or that are no servers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from client.scripted import run, script
from longshore.client import Client
from longshore.errors import ConnectError


def refused(target: Any, says: str, **options: Any) -> ConnectError:
    found: list[ConnectError] = []

    async def test() -> None:
        with pytest.raises(ConnectError, match=says) as caught:
            await Client(target, **{"timeout": 5.0, **options}).open()
        found.append(caught.value)

    run(test)
    return found[0]


def test_a_program_that_does_not_exist() -> None:
    problem = refused(["no-such-program", "--x"], "there is no program 'no-such-program'; install it")
    assert str(problem).startswith("no-such-program --x: ")


def test_a_program_that_may_not_be_run(tmp_path: Path) -> None:
    path = tmp_path / "server"
    path.write_text("#!/bin/sh\n")
    refused([str(path)], "can't be started: .*Permission denied")
    path.chmod(0o755)
    path.write_text("no program at all \x00")
    refused([str(path)], "can't be started|ended with exit code")
    refused([str(tmp_path)], "can't be started")


def test_an_interpreter_that_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "server"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    refused([str(path)], "no program|can't be started")


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    refused([sys.executable], "there is no folder '.*missing' to start it in", cwd=str(tmp_path / "missing"))


def test_a_file_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused([sys.executable], "no folder|can't be started", cwd=str(tmp_path / "file"))


@pytest.mark.parametrize("word", ["a\0b", "\ud800"])
def test_words_that_no_program_can_be_given(word: str) -> None:
    refused([sys.executable, word], "can't be started|can't be")


def test_an_environment_that_no_program_can_be_given() -> None:
    refused([sys.executable], "can't be started", env={"A": "b\0c"})
    refused([sys.executable], "can't be started", env={"A=B": "c"})


@pytest.mark.parametrize("era", ["auto", "legacy", "modern"])
def test_a_server_that_ends_at_once_is_explained(era: str) -> None:
    code = "import sys; print('usage: x', file=sys.stderr); sys.exit(64)"
    problem = refused([sys.executable, "-c", code], "exit code 64", era=era)
    assert str(problem).endswith("| usage: x")


def test_a_server_that_ends_at_once_without_output_is_explained() -> None:
    refused(["true"], "exit code 0")


def test_a_program_that_is_no_server_is_explained() -> None:
    refused(["cat"], "no method 'initialize'")  # our own refusal, which came back
    refused(["sleep", "100"], "did not answer within 0.3 s; is it an MCP server", timeout=0.3)
    refused(["yes"], r"does not speak MCP: 1,000 lines in a row are no messages .*: y", timeout=10)


def test_a_script_that_can_not_be_read_as_python(tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    path.write_text("def (:\n")
    assert "| SyntaxError" in str(refused(str(path), "exit code 1"))


DECLARED = """
import subprocess
from longshore import Server
app = Server("declared")

@app.tool
def who() -> str:
    return subprocess.run(["echo", app.name, __name__], capture_output=True, text=True).stdout.strip()
"""
TWO = DECLARED + "other = Server('other')\n"
MADE = """
from longshore import Server

def make():
    app = Server("made")

    @app.tool
    def who() -> str:
        return f"{app.name} {__name__}"

    return app

"""


@pytest.mark.parametrize(
    ("source", "name", "says"),
    [
        (DECLARED, "", "declared server"),
        (DECLARED.replace("app =", "app: Server ="), "", "declared server"),
        (
            DECLARED.replace("from longshore import Server", "import longshore as sea").replace("= S", "= sea.S"),
            "",
            "declared server",
        ),
        (DECLARED + "app.run()\n", "", "declared __main__"),
        (DECLARED + "def main():\n    app.run()\nmain()\n", "", "declared __main__"),
        (DECLARED + "if __name__ == '__main__':\n    app.run()\n", "", "declared __main__"),
        (TWO, ":app", "declared server"),
        (MADE + "make().run()\n", "", "made __main__"),
        (MADE + "app = make()\napp.run()\n", "", "made __main__"),
        (DECLARED + "servers = [app]\nservers[0].run()\n", "", "declared __main__"),
    ],
)
@pytest.mark.parametrize("kind", ["text", "path"])
async def test_a_file_is_run_if_it_runs_its_server_and_else_served(
    tmp_path: Path, source: str, name: str, says: str, kind: str
) -> None:
    path = tmp_path / "server.py"
    path.write_text(source)
    if kind == "path" and name:
        pytest.skip("a path has no name of a server in it")
    async with Client(path if kind == "path" else str(path) + name) as client:
        assert (await client.call_tool("who")).text == says


def test_a_served_file_that_fails_says_why(tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    path.write_text("from longshore import Server\napp = Server('x')\nraise KeyError('inside')\n")
    problem = refused(str(path), "exit code 2")
    assert str(path) in str(problem) and "KeyError: 'inside'" in str(problem)


async def test_a_whole_configuration_with_one_server(tmp_path: Path) -> None:
    command = script(tmp_path, "for m in calls(): reply(m, text('here'))")
    config = {"mcpServers": {"only": {"command": command[0], "args": command[1:]}}}
    async with Client(config) as client:
        assert client.name == "only"
        assert (await client.call_tool("x")).text == "here"


@pytest.mark.parametrize(
    ("servers", "says"),
    [
        (
            {"git": {"command": "x"}, "jira": {"url": "https://x"}},
            r'several servers \(git, jira\), and a client is for one; write Client\(config\["mcpServers"\]\["git"\]\)',
        ),
        ({}, "an object of servers by name"),
        ([{"command": "x"}], "an object of servers by name"),
        ({"git": "x"}, "an object of servers by name"),
    ],
)
def test_a_whole_configuration_that_names_no_one_server(servers: Any, says: str) -> None:
    with pytest.raises(ConnectError, match=says):
        Client({"mcpServers": servers})


@pytest.mark.parametrize(
    "target", ["", "  ", [], "python 'unclosed", {}, {"command": ""}, {"command": "x", "args": 5}, 5]
)
def test_targets_that_are_none(target: Any) -> None:
    with pytest.raises(ConnectError):
        Client(target)


async def test_a_child_inherits_the_environment_and_gets_env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "1")
    code = "for m in calls(): reply(m, text(f\"{os.environ['OURS']} {os.environ['GIVEN']} {os.getcwd()}\"))"
    command = script(tmp_path, code)
    async with Client(command, env={"GIVEN": "2"}, cwd=str(tmp_path)) as client:
        assert (await client.call_tool("x")).text == f"1 2 {os.path.realpath(tmp_path)}"
    entry = {"command": command[0], "args": command[1:], "env": {"GIVEN": "3"}, "cwd": str(tmp_path)}
    async with Client(entry) as client:
        assert (await client.call_tool("x")).text == f"1 3 {os.path.realpath(tmp_path)}"


async def test_a_child_inherits_no_descriptor_of_ours(tmp_path: Path) -> None:
    code = "for m in calls(): reply(m, text(' '.join(sorted(os.listdir('/proc/self/fd'), key=int)[:-1])))"
    with open(tmp_path / "secret", "w") as secret:
        os.set_inheritable(secret.fileno(), True)
        async with Client(script(tmp_path, code)) as client:
            assert (await client.call_tool("x")).text == "0 1 2"
