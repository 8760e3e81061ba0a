"""`longshore trust`: what it shows, records and lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from longshore.cli.main import run
from longshore.config.trust import read_record


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path.resolve() / "project"
    (folder / ".git").mkdir(parents=True)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("LONGSHORE_CONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(folder)
    return folder


def trusted(project: Path) -> dict[str, str]:
    return read_record(str(project.parent / "home" / "longshore" / "trust.json"))


def test_it_shows_what_the_file_sets_without_its_secrets(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "[server]\ntimeout = 9\n[toolsets.terminal]\nlevel = 'none'\napi_key = 'hidden-1'\n"
        "[tokens.ann]\ntoken = 'hidden-2'\n[tools.\"a\\u001b[2J\"]\nenabled = true\n"
    )
    (project / "longshore.toml").write_text(text)
    assert run(["trust"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{project}/longshore.toml sets\n") and out.endswith("trusted\n")
    lines = [line.split() for line in out.splitlines()]
    assert ["server.timeout", "9.0"] in lines
    assert ["toolsets.terminal.level", '"none"'] in lines
    assert ["tokens.ann.token", "…"] in lines
    assert "hidden" not in out and "\x1b" not in out
    assert trusted(project) == {f"{project}/longshore.toml": text}


def test_any_file_can_be_named_also_one_of_another_program(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "theirs.json").write_text(json.dumps({"timeout": 7}))
    (project / "empty.toml").write_text("")
    assert run(["trust", "./theirs.json"]) == 0
    assert ["server.timeout", "7.0"] in [line.split() for line in capsys.readouterr().out.splitlines()]
    assert run(["trust", "empty.toml"]) == 0
    assert capsys.readouterr().out == f"{project}/empty.toml sets nothing\ntrusted\n"
    assert list(trusted(project)) == [f"{project}/theirs.json", f"{project}/empty.toml"]


@pytest.mark.parametrize(("text", "said"), [("[server", "longshore.toml:1: "), ("[servr]\n", "no such section")])
def test_a_file_with_mistakes_is_not_trusted(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (project / "longshore.toml").write_text(text)
    assert run(["trust"]) == 2
    assert said in capsys.readouterr().err
    assert trusted(project) == {}


def test_a_file_that_is_not_there_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trust"]) == 2
    assert capsys.readouterr().err == f"{project}/longshore.toml: can't be read: no such file or directory\n"


def test_the_list_says_what_became_of_each_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("same", "changed", "deleted", "broken"):
        path = project / f"{name}.toml"
        path.write_text("")
        assert run(["trust", str(path)]) == 0
    (project / "changed.toml").write_text("[server]\n")
    (project / "deleted.toml").unlink()
    (project / "broken.toml").write_bytes(b"\xff")
    capsys.readouterr()
    assert run(["trust", "--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{project}/same.toml: unchanged",
        f"{project}/changed.toml: changed since",
        f"{project}/deleted.toml: deleted since",
        f"{project}/broken.toml: changed since",
    ]


def test_trust_is_removed_also_of_a_file_that_is_gone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "longshore.toml"
    path.write_text("")
    assert run(["trust"]) == 0
    path.unlink()
    capsys.readouterr()
    assert run(["trust", "--remove"]) == 0
    assert run(["trust", "--remove"]) == 0
    assert capsys.readouterr().out == f"{path} is trusted no longer\n{path} was not trusted\n"
    assert trusted(project) == {}


def test_config_show_says_what_was_not_read(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "longshore.toml").write_text("[server]\ntimeout = 9\n")
    assert run(["config", "show", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["server"]["timeout"] != 9
    assert shown.err.startswith(f"warning: {project}/longshore.toml: not read, because tools of this server can write")
    assert run(["trust"]) == 0
    capsys.readouterr()
    assert run(["config", "show", "--json"]) == 0
    shown = capsys.readouterr()
    assert (json.loads(shown.out)["server"]["timeout"], shown.err) == (9, "")
