"""`longshore doctor`: what works on this machine, and the fix for what does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LOGS = Path(__file__).parents[2] / "examples" / "toolsets" / "logs.py"


def doctor(folder: Path, *argv: str, **environ: str) -> tuple[int, str]:
    """The exit code and output of the command in a folder, with a home of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("LONGSHORE_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-m", "longshore", "doctor", *argv],
        cwd=folder,
        env=kept | {"HOME": str(folder.parent / "home")} | environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def test_each_check_has_a_line_with_its_state(project: Path) -> None:
    code, out = doctor(project)
    assert code == 0, out
    names = [line.split()[1] for line in out.splitlines() if not line.startswith(" ")]
    assert names[:4] == ["longshore:", "configuration:", "folders:", "discovery:"]
    assert names[-6:] == ["ripgrep:", "bubblewrap:", "landlock:", "seccomp:", "cgroups:", "rlimits:"]
    assert f"ok      folders: {project}\n" in out


def test_json_has_the_same_checks(project: Path) -> None:
    code, out = doctor(project, "--json")
    checks = {check["name"]: check for check in json.loads(out)}
    assert code == 0
    assert checks["rlimits"]["state"] == "ok"
    assert checks["folders"]["detail"] == str(project)


def test_a_missing_program_is_named_with_the_package_that_has_it(project: Path) -> None:
    (project / "empty").mkdir()
    _, out = doctor(project, PATH=str(project / "empty"))
    lines = out.splitlines()
    at = next(index for index, line in enumerate(lines) if "bubblewrap:" in line)
    assert lines[at] == "missing bubblewrap: bwrap is not installed"
    assert lines[at + 1].startswith("        fix: install bubblewrap (sudo apt-get install bubblewrap")
    assert "missing ripgrep: " in out


def test_a_toolset_that_can_not_run_is_a_failure(project: Path) -> None:
    (project / "longshore.toml").write_text('[toolsets.logs]\nprogram = "no-such-program"\n')
    code, out = doctor(project, str(LOGS))
    assert code == 1
    assert "failed  logs: no-such-program is not installed; install it, or set toolsets.logs.program" in out


def test_an_invalid_configuration_is_a_failure_and_the_rest_is_still_checked(project: Path) -> None:
    (project / "longshore.toml").write_text("[server]\ntimeout = 'soon'\n")
    code, out = doctor(project)
    assert code == 1
    assert "failed  configuration: " in out
    assert "server.timeout" in out
    assert "rlimits: " in out


def test_a_configured_folder_that_does_not_exist_is_a_failure(project: Path) -> None:
    (project / "longshore.toml").write_text("[server]\nroots = ['nowhere']\n")
    code, out = doctor(project)
    assert code == 1
    assert "nowhere" in out
