"""`longshore config`: text for people, JSON for programs."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from longshore.builtin import make
from longshore.cli.config import rows
from longshore.cli.main import run
from longshore.cli.screen import aligned, print_table
from longshore.config import load
from longshore.config.reference import list_values, markdown, schema_text

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith("LONGSHORE_") or name == "XDG_CONFIG_HOME"]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def longshore(project: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*argv: str) -> tuple[int, str, str]:
        code = run(list(argv))
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_show_in_a_pipe_is_plain_aligned_text(project: Path, longshore: Run) -> None:
    (project / "longshore.toml").write_text("[server]\ntimeout = 60\n[tools.'a.b']\nenabled = false\n")
    code, out, err = longshore("config", "show", "--origin")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].split() == ["server.timeout", "60.0", "project", "longshore.toml:2"]
    assert lines[1].split() == ["server.eof_grace", "3.0", "default"]
    assert 'tools."a.b".enabled' in out
    assert len({line.index(line.split(maxsplit=1)[1]) for line in lines}) == 1
    assert "\x1b" not in out
    assert not any(line.endswith(" ") for line in lines)


def test_show_without_origin_has_two_columns(longshore: Run) -> None:
    code, out, _ = longshore("config", "show")
    assert code == 0
    assert "default" not in out
    assert ["server.instructions", "unset"] in [line.split() for line in out.splitlines()]


def test_show_json_nests_like_the_file(project: Path, longshore: Run) -> None:
    (project / "longshore.toml").write_text("[tools.'a.b']\ntimeout = 0\n[toolsets.x]\nsince = 2020-01-01\n")
    _, out, _ = longshore("config", "show", "--json")
    found = json.loads(out)
    assert found["tools"] == {"a.b": {"timeout": False}}
    assert found["toolsets"]["x"] == {"since": "2020-01-01"}
    assert "instructions" not in found["server"]


def test_show_json_with_origin_is_flat(project: Path, longshore: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHORE_LIMITS_RUNNING", "8")
    _, out, _ = longshore("config", "show", "--json", "--origin")
    found = json.loads(out)
    assert found["limits.running"] == {"value": 8, "kind": "env", "where": "LONGSHORE_LIMITS_RUNNING"}
    assert found["server.timeout"] == {"value": 30.0, "kind": "default", "where": ""}


def test_show_reads_the_given_file(project: Path, longshore: Run) -> None:
    (project / "other.toml").write_text("[server]\ntimeout = 1\n")
    _, out, _ = longshore("config", "show", "--origin", "--config", "other.toml")
    assert "project other.toml:2" in out


def test_show_has_the_defaults_of_a_profile_and_of_a_server(project: Path, longshore: Run) -> None:
    (project / "longshore.toml").write_text("[server]\nlog_level = 'error'\n")
    _, out, _ = longshore("config", "show", "--origin", "--profile", "bb")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert 'server.dialect "bb" server bb-mcp-server' in lines
    assert 'server.log_level "error" project longshore.toml:2' in lines
    (project / "mine.py").write_text(
        "from longshore import Server\napp = Server('m', defaults={'server.timeout': 5})\n"
    )
    _, out, _ = longshore("config", "show", "--origin", "mine.py")
    assert "server.timeout 5.0 server m" in [" ".join(line.split()) for line in out.splitlines()]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_table_fits_the_terminal_and_loses_nothing(project: Path, width: int) -> None:
    (project / "longshore.toml").write_text(
        "[server]\ninstructions = '''"
        + "[bold]long[/] " * 30
        + "'''\n[tools.a_tool_with_a_very_long_name_indeed]\nenabled = true\n"
    )
    found = rows(list_values(load()), with_origin=True)
    out = io.StringIO()
    print_table(
        found, ["key", "value", "origin"], Console(file=out, width=width, force_terminal=True, color_system=None)
    )
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert out.getvalue().count("[bold]") + out.getvalue().count("[/]") > 0
    assert "…" not in out.getvalue()


def test_a_terminal_gets_the_table(longshore: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.cli.config.sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "70")
    code, out, _ = longshore("config", "show", "--origin")
    assert code == 0
    assert "origin" in out
    assert "───" in out


@pytest.mark.parametrize("command", [("show",), ("show", "--json"), ("check",), ("check", "longshore.toml")])
def test_a_mistake_exits_with_two_and_a_plain_message(project: Path, longshore: Run, command: tuple[str, ...]) -> None:
    (project / "longshore.toml").write_text("[server]\ntimout = 1\n")
    code, out, err = longshore("config", *command)
    assert (code, out) == (2, "")
    assert err == "longshore.toml:2: server.timout: no such key; did you mean timeout?\n"


def test_check_names_what_it_read(project: Path, longshore: Run) -> None:
    assert longshore("config", "check") == (0, "no longshore.toml here; nothing to check\n", "")
    file = project / "longshore.toml"
    file.write_text("")
    assert longshore("config", "check") == (0, f"{file}: ok\n", "")
    assert longshore("config", "check", "longshore.toml") == (0, f"{file}: ok\n", "")


def test_check_of_a_path_looks_at_nothing_else(project: Path, longshore: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHORE_ZZZ", "1")
    (project / "good.toml").write_text("")
    assert longshore("config", "check", "good.toml")[0] == 0
    assert longshore("config", "check")[0] == 2
    assert longshore("config", "check", "none.toml") == (2, "", "--config: no such file: none.toml\n")


def test_schema_prints_what_is_checked_in(longshore: Run) -> None:
    toolsets = make().catalog.toolsets
    assert longshore("config", "schema") == (0, schema_text(toolsets), "")
    assert longshore("config", "schema", "--markdown") == (0, markdown(toolsets), "")


def test_aligned_columns() -> None:
    assert aligned([["a", "bb", "c"], ["aaa", "b", ""]]) == "a    bb  c\naaa  b"


def test_a_reader_that_leaves_early_gets_no_traceback(project: Path) -> None:
    program = "import sys; from longshore.cli.main import run; sys.exit(run(['config', 'schema']))"
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=project
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    said = child.stderr.read()
    child.stderr.close()
    assert child.wait(timeout=30) == 1
    assert said == b""


SERVER = """
from msgspec import Struct
from longshore import Server, Size, Toolset

class NotesOptions(Struct, frozen=True):
    most_bytes: Size = 10
    \"\"\"The largest note.\"\"\"

class Notes(Toolset):
    Options = NotesOptions

app = Server("n")
app.add_toolset(Notes)
"""


def test_the_options_of_a_target_are_shown_checked_and_in_its_schema(project: Path, longshore: Run) -> None:
    (project / "noted.py").write_text(SERVER)
    (project / "longshore.toml").write_text("[toolsets.notes]\nmost_bytes = '1kB'\n")
    _, out, _ = longshore("config", "show", "noted.py", "--origin")
    assert ["toolsets.notes.most_bytes", "1000", "project", "longshore.toml:2"] in [
        line.split() for line in out.splitlines()
    ]
    _, out, _ = longshore("config", "schema", "noted.py")
    known = json.loads(out)["properties"]["toolsets"]["properties"]["notes"]["properties"]
    assert known["most_bytes"]["description"] == "The largest note."
    (project / "longshore.toml").write_text("[toolsets.notes]\nmost_byte = 1\n")
    assert longshore("config", "check")[0] == 0
    code, _, err = longshore("config", "check", "--for", "noted.py")
    assert (code, err) == (2, "longshore.toml:2: toolsets.notes.most_byte: no such key; did you mean most_bytes?\n")
