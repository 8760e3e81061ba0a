"""Every block of code of README.md and docs/ is run: by the test of its page, or here, or there is a reason why not."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from longshore import Server, config
from longshore.cli.main import cli
from longshore.toolsets.context.records import NewItem, NewSource
from longshore.toolsets.context.store import open_store
from pages.blocks import ROOT, Block, blocks, commands, matches
from services import free_port
from waiting import PATIENCE, eventually

ALL = "every kind"
PAGE_TESTS: dict[str, dict[str, str]] = {
    "README": {"python": "tests/interop/test_examples.py"},
    "artifacts-and-roots": {ALL: "tests/app/test_docs.py"},
    "authorization": {"toml": "tests/auth/test_page.py"},
    "middleware": {ALL: "tests/pages/test_extension.py"},
    "state": {ALL: "tests/pages/test_extension.py"},
    "browser": {"toml": "tests/toolsets/browser/test_tools.py"},
    "cli": {ALL: "tests/cli/test_reference.py"},
    "client": {ALL: "tests/client/test_docs.py"},
    "client-views": {ALL: "tests/cli/test_client_view.py"},
    "code-mode": {ALL: "tests/toolsets/code/test_docs.py"},
    "configuration": {"toml": "tests/config/test_schema.py"},
    "deployment": {"nginx": "tests/test_deployment.py", "plain": "tests/test_deployment.py"},
    "doctor": {"sh": "tests/cli/test_server_checks.py"},
    "evolution": {"python": "tests/registry/test_evolution_page.py"},
    "files": {"toml": "tests/toolsets/filesystem/test_tools.py"},
    "from-fastmcp": {ALL: "tests/interop/test_coming_from.py"},
    "from-official-sdk": {ALL: "tests/interop/test_coming_from.py"},
    "http": {"python": "tests/interop/test_examples.py"},
    "install": {"sh": "tests/install/test_page.py"},
    "lint": dict.fromkeys(("sh", "python", "text", "toml"), "tests/cli/test_lint_page.py"),
    "lint-rules": {ALL: "tests/schema/lint/test_page.py"},
    "mounting": {"python": "tests/interop/test_examples.py"},
    "questions": {ALL: "tests/client/test_docs.py"},
    "schemas": {"json": "tests/schema/test_schemas_page.py"},
    "seeds": {"console": "tests/seeds", "json": "tests/seeds"},
    "signing-in": {ALL: "tests/client/test_docs.py"},
    "standards": {ALL: "tests/registry/test_standards_page.py"},
    "testing": {"python": "tests/testing/test_docs.py", "toml": "tests/testing/test_docs.py"},
    "tool-search": dict.fromkeys(("toml", "python", "plain"), "tests/toolsets/catalog/test_page.py"),
    "tutorial": dict.fromkeys(("text", "python"), "tests/pages/test_tutorial.py"),
    "validation": dict.fromkeys(("python", "mcp", "text"), "tests/app/test_docs.py"),
    "writing-a-server": {ALL: "tests/app/test_docs.py"},
}
"""The tests that run the blocks of a page, by the kind of the block."""

NOT_RUN = {
    ("README", "make serve "): "sets up a clone; these tests run in one, and `.ci/run` calls `make test`",
    ("README", "pipx install "): "tests/test_wheel.py installs the wheel in an environment without pipx",
    ("tutorial", "python3 -m venv "): "tests/test_wheel.py installs the wheel; this needs an index of packages",
    ("deployment", "sudo useradd "): "needs root and systemd; tests/test_deployment.py checks the unit and the names",
    ("deployment", "docker build "): "needs a docker daemon; tests/test_deployment.py builds it where one answers",
    ("deployment", "export LONGSHORE_HTTP_STATE_KEY"): "needs a Redis elsewhere; tests/workers has one",
    ("deployment", "export CONTEXTGRAPH_DB"): "needs a PostgreSQL elsewhere; tests/toolsets/context has one",
    (
        "context-postgresql",
        "pip install ",
    ): "needs an index of packages and a PostgreSQL; tests/toolsets/context has one",
    ("context-postgresql", "longshore context copy FROM"): "a synopsis; tests/cli/test_context.py copies",
    ("context-postgresql", "LISTEN "): "needs a PostgreSQL; tests/toolsets/context has one",
    (
        "browser",
        "[b1 t1 ",
    ): "part of an answer, with a word that differs in each; tests/toolsets/browser compares others",
    ("doctor", "$ longshore doctor -- python slow.py"): "takes 12 s; tests/cli/test_server_checks.py has a slow server",
    ("testing", "the server does not offer"): "a failure of pytest; tests/testing/test_docs.py brings it about",
    ("testing", "# a comment"): "part of a transcript; tests/testing/test_docs.py records a whole one",
    ("mounting", "mounted server 'x' has been down"): "a message after 12 s; tests/mounting has servers that die",
    ("validation", '"_meta": {'): "part of a result; tests/schema/test_repair.py has such notes",
    ("http-endpoints", "scrape_configs:"): "a file of Prometheus; it is only parsed here",
    ("lint", "- run: "): "a step of a workflow; its command is only parsed here",
    ("telemetry", "$ longshore serve --log-level"): "a line of the log with times; only its keys are compared here",
}
"""By the page and how the block begins: why it is not run, or not whole."""

HERE = [
    ("README", "$ longshore call "),
    ("authorization", "openssl rand "),
    ("authorization", "WWW-Authenticate: "),
    ("authorization", "mcp = app.asgi"),
    ("authorization", "class KeyTable:"),
    ("configuration", "$ longshore config show"),
    ("configuration", "[toolsets.notes]"),
    ("configuration", "longshore.toml:2: "),
    ("context-postgresql", "watcher = "),
    ("evolution", "$ longshore schema snapshot"),
    ("http-endpoints", "$ curl "),
    ("install", "$ longshore install "),
    ("security", "$ longshore trust"),
    ("seeds", "from browseros.mcp "),
    ("serving", "$ echo "),
    ("telemetry", "from longshore"),
]
"""Blocks that a test below runs, beside every block of TOML and every line that serves."""
SERVING = ("serving", "http", "console", "tool-search", "deployment", "dialects")
SERVER = """from longshore import Server

app = name = Server("weather", version="1.0.0")


@app.tool(effects="read")
def add(a: int, b: int) -> int:
    \"\"\"Add two numbers.

    a: the first
    b: the second
    \"\"\"
    return a + b


if __name__ == "__main__":
    app.run()
"""

CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
HELLO = "".join(
    json.dumps({"jsonrpc": "2.0", **each}) + "\n"
    for each in (
        {"id": 0, "method": "initialize", "params": CLIENT},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": {"name": "hello", "arguments": {}}},
    )
)
"""What a client says that calls `hello`."""

BLOCKS = blocks()


def block(page: str, first: str) -> str:
    [found] = [each.text for each in BLOCKS if each.page == page and each.first.startswith(first)]
    return found


def serving_lines() -> list[str]:
    """Lines that start a server. `make serve` is that of a clone."""
    texts = [each.text for each in BLOCKS if each.page in SERVING and each.kind in ("indented", "console")]
    lines = [line.removeprefix("$ ").partition(" #")[0].strip() for text in texts for line in text.splitlines()]
    served = ("longshore serve", "longshore dev", "python ", "bb-mcp", "brooklyn", "contextgraph")
    return sorted({line for line in lines if line.startswith(served) and "redis://" not in line})


def is_run(each: Block) -> bool:
    tests = PAGE_TESTS.get(each.page, {})
    if each.kind in tests or ALL in tests or each.kind == "toml":
        return True
    begins = [*HERE, *NOT_RUN]
    if any(page == each.page and each.first.startswith(first) for page, first in begins):
        return True
    lines = [line.removeprefix("$ ").partition(" #")[0].strip() for line in each.text.splitlines()]
    return any(line in serving_lines() for line in lines)


@pytest.mark.parametrize("each", BLOCKS, ids=lambda each: f"{each.page}: {each.first[:40]}")
def test_a_block_is_run_or_has_its_reason(each: Block) -> None:
    assert is_run(each), "run it in the test of its page, or name it here"


def test_the_tests_and_the_blocks_that_are_named_exist() -> None:
    for page, tests in PAGE_TESTS.items():
        assert all((ROOT / test).exists() for test in tests.values()), page
    for page, first in [*HERE, *NOT_RUN]:
        assert [each for each in BLOCKS if each.page == page and each.first.startswith(first)], (page, first)


# -- run here


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    (tmp_path / "server.py").write_text(SERVER)
    path = f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    return {"HOME": str(tmp_path / "home"), "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def shell(line: str, folder: Path, env: dict[str, str], given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        line, shell=True, cwd=folder, env=env, input=given or "", capture_output=True, text=True, timeout=PATIENCE
    )


def run_session(text: str, folder: Path, env: dict[str, str]) -> None:
    for command, shown in commands(text):
        done = shell(command, folder, env)
        assert matches(shown, done.stdout + done.stderr), f"{command}\n{done.stdout}{done.stderr}"


def test_the_call_in_the_readme(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "weather.py").write_text((ROOT / "examples" / "weather.py").read_text())
    run_session(block("README", "$ longshore call "), tmp_path, env)


def test_the_sources_of_values(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "longshore.toml").write_text("[server]\ntimeout = 60\n")
    [(command, shown)] = commands(block("configuration", "$ longshore config show"))
    done = shell(command, tmp_path, env)
    assert matches(" ".join(shown.split()), " ".join(done.stdout.split())), done.stdout + done.stderr


def test_the_trusted_file(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "longshore.toml").write_text("[server]\ntimeout = 60\n")
    [(command, shown)] = commands(block("security", "$ longshore trust"))
    done = shell(command, tmp_path, env)
    assert done.stdout.replace(str(tmp_path), "/home/me/project").strip() == shown.strip(), done.stdout + done.stderr


def test_the_request_from_a_shell(tmp_path: Path, env: dict[str, str]) -> None:
    [command] = [text.removeprefix("$ ") for text in [block("serving", "$ echo ")]]
    done = shell(command, tmp_path, env)
    assert json.loads(done.stdout)["result"]["protocolVersion"] == "2025-11-25", done.stderr


def test_the_installation(tmp_path: Path, env: dict[str, str]) -> None:
    """Without its question: stdin is no terminal."""
    [(command, shown)] = commands(block("install", "$ longshore install "))
    done = shell(f"{command} --yes", tmp_path, env)
    said = (done.stdout + done.stderr).replace(str(tmp_path / "home"), "/home/me")
    assert matches(re.sub(r"Write it.*\n", "", shown).replace("0.31", "…"), said), said


def test_the_breaking_change(tmp_path: Path, env: dict[str, str]) -> None:
    tool = '@app.tool(effects="read")\ndef get_forecast(city: str{}) -> str:\n    """Tell."""\n    return city\n'
    before, after = (SERVER.partition("@app.tool")[0] + tool.format(more) for more in ("", ", hour: int"))
    server = tmp_path / "server.py"
    server.write_text(before)
    snapshot, compare, (diff, shown) = commands(block("evolution", "$ longshore schema snapshot"))
    for command, _ in (snapshot, compare):
        done = shell(command, tmp_path, env)
        assert done.returncode == 0, done.stderr
    server.write_text(after)
    done = shell(diff, tmp_path, env)
    assert done.returncode == 1 and matches(shown, done.stdout), done.stdout + done.stderr


def test_the_token(tmp_path: Path, env: dict[str, str]) -> None:
    assert shell(block("authorization", "openssl rand "), tmp_path, env).returncode == 0
    assert len((tmp_path / "token").read_text().strip()) == 64 and (tmp_path / "token").stat().st_mode & 0o077 == 0


def test_the_app_in_another_one() -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount, Route

    names: dict[str, Any] = {"app": Server("agents"), "Starlette": Starlette, "Mount": Mount, "Route": Route}
    exec(block("authorization", "mcp = app.asgi"), names)
    assert [route.path for route in names["web"].routes] == [names["metadata"].path, "/agents"]


def test_the_program_that_listens_and_reads(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = shell("longshore serve --set telemetry.history=history.sqlite", tmp_path, env, HELLO)
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(tmp_path)
    for each in BLOCKS:
        if each.page == "telemetry" and each.kind == "python":
            exec(each.text, {})
    assert "tool='hello'" in capsys.readouterr().out


def test_the_watcher(tmp_path: Path) -> None:
    lines = block("context-postgresql", "watcher = ").replace("\n", "\n    ")
    store = open_store(str(tmp_path / "context.db"))
    names: dict[str, Any] = {"asyncio": asyncio, "last": 0, "store": store}

    class Shown(Exception):
        pass

    def show(events: Any) -> None:
        raise Shown

    exec(f"async def watch():\n    {lines}", names | {"show": show}, names)

    async def main() -> None:
        watching = asyncio.create_task(names["watch"]())
        for number in range(1000):
            if watching.done():
                break
            await asyncio.to_thread(store.add, [NewItem(kind="fact", name=f"f{number}", text="x")], NewSource())
            await asyncio.wait([watching], timeout=0.1)
        with pytest.raises(Shown):
            await asyncio.wait_for(watching, PATIENCE)

    try:
        asyncio.run(main())
    finally:
        store.close()


def test_the_server_of_another_import_path(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "echo.py").write_text(block("seeds", "from browseros.mcp "))
    done = shell(f"{sys.executable} echo.py", tmp_path, env, '{"jsonrpc":"2.0","method":"tools/list","id":1}\n')
    assert json.loads(done.stdout)["result"]["tools"][0]["name"] == "echo", done.stderr


def test_the_line_of_the_log(tmp_path: Path, env: dict[str, str]) -> None:
    shown = json.loads(block("telemetry", "$ longshore serve --log-level").splitlines()[1])
    done = shell("longshore serve --log-level info", tmp_path, env, HELLO)
    [line] = [json.loads(each) for each in done.stderr.splitlines() if '"tool_completed"' in each]
    assert line.keys() == shown.keys()
    assert {key: line[key] for key in shown if key not in ("session", "at", "seconds")} == {
        key: value for key, value in shown.items() if key not in ("session", "at", "seconds")
    }


def test_the_rest_calls(tmp_path: Path, env: dict[str, str]) -> None:
    port = free_port()
    log = (tmp_path / "log").open("wb")
    argv = ["longshore", "serve", "server.py", "--http", "--port", str(port)]
    serving = subprocess.Popen(argv, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, stderr=log)
    log.close()
    try:
        eventually("it serves", lambda: b"serves MCP at" in (tmp_path / "log").read_bytes())
        texts = [each.text for each in BLOCKS if each.page == "http-endpoints" and each.first.startswith("$ curl")]
        for command, shown in [pair for text in texts for pair in commands(text)]:
            done = shell(command.replace("9100", str(port)), tmp_path, env)
            assert matches(shown.replace("0.412", "…"), done.stdout), done.stdout + done.stderr
    finally:
        serving.terminate()
        serving.wait(PATIENCE)


@pytest.mark.parametrize("line", serving_lines())
def test_a_line_serves(line: str, tmp_path: Path, env: dict[str, str]) -> None:
    """On stdio until its input ends, over HTTP until a signal."""
    for name in ("path/to/server.py", "package/module.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(SERVER)
    over_http = "--http" in line or "browseros" in line  # which serves both
    argv = re.sub(r" --port \d+", "", line).split()
    variables = env | {"LONGSHORE_HTTP_PORT": str(free_port())}
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen(argv, cwd=tmp_path, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    log.close()
    try:
        if over_http:
            eventually("it serves", lambda: b"http://127.0.0.1" in (tmp_path / "log").read_bytes() or process.poll())
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) in (0, 128 + signal.SIGTERM), (tmp_path / "log").read_text()
    finally:
        process.kill()
        process.wait(PATIENCE)


TOML = [
    each for each in BLOCKS if (each.kind == "toml" and each.page != "testing") or each.first.startswith("[toolsets.")
]


@pytest.mark.parametrize("each", TOML, ids=lambda each: f"{each.page}: {each.first}")
def test_a_configuration_loads(each: Block, tmp_path: Path) -> None:
    text = each.text.replace('"…"', json.dumps("0" * 64))
    path = tmp_path / "longshore.toml"
    path.write_text(text)
    for name in ("token", "alice.token"):
        (tmp_path / name).write_text("s3cret-s3cret-s3cret\n")
    assert config.load(path=str(path), environ={}, cwd=str(tmp_path)).origins
    assert tomllib.loads(text)


@pytest.mark.parametrize("each", [each for each in BLOCKS if each.kind == "yaml"], ids=lambda each: each.page)
def test_a_file_of_yaml_is_read(each: Block) -> None:
    assert yaml.safe_load(each.text)


LINES = sorted(
    {
        line.removeprefix("- run: ").removeprefix("$ ").partition(" #")[0].strip()
        for each in BLOCKS
        for line in each.text.splitlines()
        if re.match(r"(- run: |\$ )?longshore [a-z]", line) and "…" not in line and "FROM" not in line
    }
)


@pytest.mark.parametrize("line", LINES)
def test_a_line_can_be_typed(line: str) -> None:
    """Its command and its options are there."""
    words = shlex.split(line.partition(" | ")[0].partition(" > ")[0])[1:]
    context, command = click.Context(cli), cli
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert found is not None
        context, command = click.Context(found, info_name=name, parent=context), found  # type: ignore[assignment]
    command.make_context(command.name, list(words), parent=context.parent)
