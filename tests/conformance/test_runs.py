"""What is run of the suite, and the client that it is run with: nothing is left out, and nobody is left behind."""

from __future__ import annotations

import ast
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import PATIENCE, eventually, is_alive

from . import __main__
from .process import finish, served
from .runs import CLIENT, RUNS, Run
from .verdict import Client

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
PUBLIC = ("longshore", "longshore.client", "longshore.client.auth")


@pytest.fixture(scope="module")
def served_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("fixtures") / "log") as url:
        yield url


def run_client(scenario: str, url: str, *options: str) -> Client:
    known = {"MCP_CONFORMANCE_SCENARIO": scenario, "MCP_CONFORMANCE_PROTOCOL_VERSION": "2026-07-28"}
    argv = [sys.executable, "-W", "error", str(CLIENT), *options, url]
    done = subprocess.run(argv, env=os.environ | known, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode == 0) == (not done.stderr), done
    return Client(done.stdout, done.stderr)


def test_a_client_is_run_at_every_revision_and_without_saying_one() -> None:
    runs = {run.options: run.pinned for run in RUNS if run.side == "client"}
    assert runs == {
        **{("--requirements", revision): False for revision in REVISIONS[2:]},
        **{("--suite", "all", "--spec-version", revision): True for revision in REVISIONS},
        ("--suite", "all"): False,
    }


def test_every_run_has_a_name_of_its_own() -> None:
    assert len({run.name for run in RUNS}) == len(RUNS)


@pytest.mark.parametrize("run", [run for run in RUNS if run.side == "client"], ids=lambda run: run.what)
def test_a_client_is_run_with_a_limit_and_in_turn(run: Run, tmp_path: Path) -> None:
    arguments = run.arguments(tmp_path / "a folder")
    command = arguments[arguments.index("--command") + 1]
    assert command.startswith("flock -w ") and "'" + str(tmp_path / "a folder.turn") + "'" in command
    assert " timeout --foreground " in command and command.endswith(" --pinned") == run.pinned


def test_the_client_is_written_with_public_names_alone() -> None:
    ours = [
        node
        for node in ast.walk(ast.parse(CLIENT.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("longshore")
    ]
    assert {node.module for node in ours} == set(PUBLIC)
    for node in ours:
        public = importlib.import_module(str(node.module)).__all__
        assert {name.name for name in node.names} <= set(public)


def test_the_client_comes_to_its_end(served_url: str) -> None:
    assert run_client("json-schema-ref-no-deref", served_url).problem() is None
    assert run_client("json-schema-ref-no-deref", served_url, "--pinned").out == "done in 2026-07-28\n"


def test_the_client_does_not_call_it_done_where_it_is_not(served_url: str) -> None:
    nobody = run_client("json-schema-ref-no-deref", "http://127.0.0.1:9/mcp")
    assert "ConnectError" in str(nobody.problem())
    missing = run_client("tools_call", served_url)
    assert "add_numbers" in str(missing.problem())
    trusted = run_client("auth/iss-wrong-issuer", served_url)
    assert "this server is to be refused" in str(trusted.problem())
    unknown = run_client("a-new-one", served_url)
    assert "KeyError: 'a-new-one'" in str(unknown.problem())


def test_a_run_that_fails_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(__main__, "RESULTS", tmp_path)
    plays, node = tmp_path / "plays", tmp_path / "node"
    node.write_text(f"#!/bin/sh\necho played >> '{plays}'\nexit 1\n")
    node.chmod(0o755)
    [result] = __main__.play_all([run for run in RUNS if run.side == "client"][:1], str(node))
    assert result.problems() and plays.read_text() == "played\n"
    assert __main__.report([result]) == 1


def test_what_a_run_leaves_behind_is_ended(tmp_path: Path) -> None:
    left = tmp_path / "pid"
    assert finish(["sh", "-c", f"sleep 600 & echo $! > '{left}'"], tmp_path / "log", PATIENCE) == 0
    eventually("the orphan has ended", lambda: not is_alive(int(left.read_text())))


def test_a_run_that_does_not_end_is_ended(tmp_path: Path) -> None:
    assert finish(["sh", "-c", "sleep 600"], tmp_path / "log", 0.01) == -signal.SIGKILL
