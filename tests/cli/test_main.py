"""`longshore` and `longshore serve` as click sees them."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import click
import pytest

from longshore import __version__
from longshore.cli.main import COMMANDS, cli, run
from longshore.config.keys import sections
from longshore.config.sections import CONFIG_OPTION, FLAGS, HTTP_FLAGS, HTTP_OPTION, SET_OPTION
from longshore.errors import TargetError

from .conftest import Workspace

PAGE = Path(__file__).parents[2] / "docs/configuration.md"


NOISY = """
    import os, subprocess, sys
    from longshore import Server

    print("NOISE")
    print("NOISE", file=sys.__stdout__)
    os.write(1, b"NOISE")
    subprocess.run(["echo", "NOISE"], check=True)
    app = Server("noisy")

    @app.tool
    def add(a: int) -> int:
        "Add one."
        return a + 1

    @app.resource("note://text")
    def note() -> str:
        return "text"

    app.run()
"""


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """An entry point that records its calls."""
    seen: list[Any] = []

    def serve(
        target: str | None, *, flags: dict[str, Any], config_path: str | None, profile: str | None, http_option: str
    ) -> None:
        if target == "missing":
            raise TargetError("missing: no such file")
        seen.append((target, flags, config_path, profile, http_option))

    entry_point = types.ModuleType("longshore.__main__")
    entry_point.serve = serve  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "longshore.__main__", entry_point)
    return seen


@pytest.mark.parametrize(
    "argv",
    [
        ["tools", "noisy.py", "--json"],
        ["list", "noisy.py", "--json"],
        ["call", "noisy.py", "add", "a=1", "--json"],
        ["read", "noisy.py", "note://text", "--json"],
        ["lint", "noisy.py", "--format", "json"],
        ["schema", "snapshot", "noisy.py"],
        ["schema", "diff", "noisy.py", "noisy.py", "--format", "json"],
    ],
    ids=lambda argv: " ".join(argv[:2]),
)
def test_output_of_a_loaded_module_is_not_in_the_json(workspace: Workspace, argv: list[str]) -> None:
    workspace.write("noisy.py", NOISY)
    done = workspace.run(*argv)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout), "nothing else is on stdout"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["--version"], ["serve", "--profile", "ghost", "--version"]):
        assert run(argv) == 0
        assert capsys.readouterr().out == f"longshore {__version__}\n"


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name}" in out for name in COMMANDS)


def test_help_loads_no_command() -> None:
    program = "import sys; from longshore.cli.main import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert not {"longshore.cli.serve", "longshore.cli.config", "rich"} & set(done.stderr.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_overview_says_what_the_command_says(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert (command.help or "").splitlines()[0] == COMMANDS[name][1]


def test_an_unknown_command_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serv"]) == 2
    assert "no command 'serv'; did you mean serve?" in capsys.readouterr().err
    assert run(["zzz"]) == 2
    assert "no command 'zzz'; there are serve, new, dev, install, " in capsys.readouterr().err


def test_serve_help_lists_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--help"]) == 0
    out = capsys.readouterr().out
    for option in [CONFIG_OPTION, HTTP_OPTION, SET_OPTION, *FLAGS, *HTTP_FLAGS]:
        assert f"{option} " in out
        assert f"`{option}`" in PAGE.read_text()
    assert "TARGET" in out


def test_every_flag_sets_a_key_that_exists() -> None:
    for key in (FLAGS | HTTP_FLAGS).values():
        section, _, name = key.partition(".")
        assert name in sections()[section].keys


def test_serve_hands_over_what_was_given(served: list[Any]) -> None:
    argv = ["serve", "app.py:app", "--eof-grace", "1", "--timeout=0", "--config", "x.toml", "--log-level", "debug"]
    assert run(argv) == 0
    assert run(["serve", "--profile", "bb", "--port", "0"]) == 0
    assert served == [
        (
            "app.py:app",
            {"server.eof_grace": "1", "server.timeout": "0", "server.log_level": "debug"},
            "x.toml",
            None,
            "",
        ),
        (None, {"http.port": "0"}, None, "bb", "--port"),
    ]


def test_an_error_is_a_line_on_stderr(served: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "missing"]) == 2
    assert capsys.readouterr() == ("", "missing: no such file\n")


@pytest.mark.parametrize("argv", [["serve", "--nope"], ["serve", "a", "b"], ["serve", "--timeout"], ["config", "nope"]])
def test_wrong_usage_exits_with_two(served: list[Any], argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == 2
    assert "Error: " in capsys.readouterr().err
    assert served == []


def test_an_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise click.Abort

    monkeypatch.setattr(cli, "main", interrupted)
    assert run([]) == 130


def test_a_toolset_that_can_not_run_here_is_described_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "absent.py").write_text(
        "from longshore import Server, Toolset, tool\n"
        "class Terminal(Toolset):\n"
        "    def available(self): return 'install bubblewrap'\n"
        "    @tool\n"
        "    def run_command(self) -> str: return 'ran'\n"
        "app = Server('absent')\n"
        "app.add_toolset(Terminal())\n"
    )
    assert run(["tools", str(tmp_path / "absent.py"), "--json"]) == 0
    assert [tool["name"] for tool in json.loads(capsys.readouterr().out)] == ["run_command"]
