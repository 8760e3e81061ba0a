"""`longshore browser`: installing a browser, and saying which one is used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from longshore.cli.browser import browser as command

from .conftest import Workspace

INSTALLER = """#!/bin/sh
echo "$@" >> {log}
[ "$1" = install ] || exit 0
printf '#!/bin/sh\\necho Chromium 141.0.7390.37 built on a test\\n' > {folder}/chromium
/bin/chmod 755 {folder}/chromium
"""


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of programs of a machine that has a package manager and no browser."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder / "apt-get", INSTALLER.format(log=tmp_path / "log", folder=folder))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CHROME_PATH", raising=False)
    monkeypatch.setattr("longshore.toolsets.browser.executable._LINUX_PLACES", ())
    return folder


def act_as(uid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)


def invoke(*argv: str) -> Result:
    return CliRunner().invoke(command, list(argv), standalone_mode=False)


def test_root_installs_and_the_program_is_tried(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act_as(0, monkeypatch)
    done = invoke("install")
    assert done.return_value == 0, done.output
    assert (bare.parent / "log").read_text().splitlines() == ["update", "install -y chromium"]
    assert f"installed {bare}/chromium, Chromium 141.0.7390.37\n" in done.stdout
    assert "running apt-get install -y chromium" in done.stderr
    again = invoke("install")
    assert again.return_value == 0 and "there already" in again.stdout
    assert len((bare.parent / "log").read_text().splitlines()) == 2


def test_who_may_not_install_gets_the_line_to_run(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act_as(1000, monkeypatch)
    done = invoke("install")
    assert done.return_value == 1
    assert "\nsudo apt-get install -y chromium\n" in done.stderr
    assert not (bare.parent / "log").exists()


def test_a_package_manager_that_fails_is_named(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act_as(0, monkeypatch)
    program(bare / "apt-get", "#!/bin/sh\nexit 100\n")
    done = invoke("install")
    assert done.return_value == 1
    assert "apt-get update failed (100)" in done.stderr


@pytest.mark.parametrize(
    ("installed", "said"),
    [("", "was installed, but there is no Chrome"), ("#!/bin/sh\nexit 3\n", "was installed, but does not run")],
)
def test_an_installation_without_a_browser_that_runs_is_a_failure(
    bare: Path, monkeypatch: pytest.MonkeyPatch, installed: str, said: str
) -> None:
    act_as(0, monkeypatch)
    program(bare / "made", installed)
    copy = f"/bin/cp -p {bare}/made {bare}/chromium" if installed else "exit 0"
    program(bare / "apt-get", f"#!/bin/sh\n[ $1 = update ] || {copy}\n")
    done = invoke("install")
    assert done.return_value == 1
    assert said in done.stderr


def test_nothing_is_installed_while_a_wrong_program_is_named(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act_as(0, monkeypatch)
    monkeypatch.setenv("CHROME_PATH", "/absent/chrome")
    done = invoke("install")
    assert done.return_value == 1
    assert "CHROME_PATH names '/absent/chrome'" in done.stderr
    assert not (bare.parent / "log").exists()


def test_the_status_without_a_browser_says_how_to_get_one(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act_as(1000, monkeypatch)
    done = invoke("status")
    assert done.return_value == 1
    assert "install one (sudo apt-get install -y chromium)" in done.stderr


def test_the_status_names_a_browser_that_starts(workspace: Workspace) -> None:
    done = workspace.run("browser", "status")
    assert done.returncode == 0, done.stderr
    assert b"\nit starts" in done.stdout


def test_the_status_follows_the_configuration(workspace: Workspace) -> None:
    workspace.write("longshore.toml", "[toolsets.browser]\npath = '/bin/false'\n")
    done = workspace.run("browser", "status")
    assert done.returncode == 1
    assert b"/bin/false did not start" in done.stderr
