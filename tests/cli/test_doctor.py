"""`longshore doctor`: what works on this machine, and the fix for what does not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from longshore.cli.doctor import doctor as doctor_command
from longshore.sandbox.mechanisms import detect_host
from trusting import Trusting

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
    assert names[-6:] == ["bubblewrap:", "landlock:", "seccomp:", "mounts:", "cgroups:", "rlimits:"]
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
    at = next(index for index, line in enumerate(lines) if "ripgrep:" in line)
    assert lines[at].startswith("missing ripgrep: not installed")
    assert lines[at + 1] == "        fix: install ripgrep (sudo apt-get install ripgrep)"


@pytest.mark.parametrize(
    ("level", "by"),
    [
        ("none", "without confinement"),
        ("limits", "by (cgroups|rlimits)"),
        ("read-only", r"by bubblewrap \+ (cgroups|rlimits)"),
        ("workspace", r"by bubblewrap \+ (cgroups|rlimits)"),
    ],
)
def test_the_level_of_the_terminal_is_named_with_what_enforces_it(project: Path, level: str, by: str) -> None:
    _, out = doctor(project, LONGSHORE_TOOLSETS_TERMINAL_LEVEL=level)
    assert re.search(f"^ok      terminal: 5 tools, level {level} {by}$", out, re.MULTILINE), out


def test_the_browser_is_started_and_named_with_its_version(project: Path) -> None:
    _, out = doctor(project)
    assert re.search(r"^ok      browser: 16 tools, /\S+ \(\w[^)]* \d+\.[\d.]+\) starts$", out, re.MULTILINE), out


def test_a_browser_that_does_not_start_is_a_failure_with_a_fix(project: Path) -> None:
    program = project / "broken"
    program.write_text("#!/bin/sh\necho libnss3.so is missing >&2\nexit 127\n")
    program.chmod(0o755)
    project.chmod(0o755)
    code, out = doctor(project, LONGSHORE_TOOLSETS_BROWSER_PATH=str(program))
    assert code == 1
    assert f"failed  browser: {program} did not start" in out
    assert "        fix: mend what it says, or name another program in CHROME_PATH" in out


def test_a_browser_that_is_not_there_is_a_failure_with_the_command_that_installs_it(project: Path) -> None:
    code, out = doctor(project, CHROME_PATH=str(project / "absent"))
    assert code == 1
    assert "failed  browser: the environment variable CHROME_PATH names" in out
    assert "        fix: run `longshore browser install`" in out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to start it as another user")
def test_a_browser_without_its_own_sandbox_is_reported(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setattr("longshore.toolsets.browser.launch._unprivileged_user", lambda: None)
    done = CliRunner().invoke(doctor_command, [], standalone_mode=False)
    assert done.return_value == 0, done.output
    assert "missing browser: 16 tools" in done.output and "without its own sandbox" in done.output


@pytest.fixture
def without_bubblewrap(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine that has no bubblewrap."""
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(project.parent / "home"))
    monkeypatch.setattr("longshore.sandbox.bubblewrap.SYSTEM_PATH", "/nonexistent")
    detect_host.cache_clear()
    yield
    detect_host.cache_clear()


def test_without_bubblewrap_the_kernel_enforces_the_level(without_bubblewrap: None) -> None:
    done = CliRunner().invoke(doctor_command, [], standalone_mode=False)
    assert done.return_value == 0, done.output
    assert "ok      terminal: 5 tools, level workspace by landlock + seccomp + " in done.output
    assert "missing bubblewrap: bwrap is not installed\n        fix: install bubblewrap (sudo apt-get" in done.output


def test_a_level_that_can_not_be_enforced_is_a_failure_with_its_fix(
    without_bubblewrap: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.sandbox.landlock.version", lambda: 0)
    done = CliRunner().invoke(doctor_command, [], standalone_mode=False)
    assert done.return_value == 1
    assert "failed  terminal: the level workspace can't be enforced: bwrap is not installed" in done.output
    assert "        fix: install bubblewrap (sudo apt-get" in done.output


def test_a_toolset_that_can_not_run_is_a_failure(project: Path) -> None:
    (project / "longshore.toml").write_text('[toolsets.logs]\nprogram = "no-such-program"\n')
    code, out = doctor(project, str(LOGS))
    assert code == 1
    assert "failed  logs: no-such-program is not installed; install it, or set toolsets.logs.program" in out


def write_trusted(project: Path, text: str, trust: Trusting) -> None:
    """Write the configuration, and trust it in the home that `doctor` has."""
    (project / "longshore.toml").write_text(text)
    trust(project / "longshore.toml", {"HOME": str(project.parent / "home")})


def test_a_configuration_that_is_not_trusted_is_reported(project: Path) -> None:
    (project / "longshore.toml").write_text("[server]\ntimeout = 9\n")
    code, out = doctor(project)
    assert code == 0
    assert f"missing trust: {project}/longshore.toml: not read, because tools of this server can write it" in out
    assert f"fix: look at it, then run: longshore trust {project}/longshore.toml" in out


def test_an_invalid_configuration_is_a_failure_and_the_rest_is_still_checked(project: Path, trust: Trusting) -> None:
    write_trusted(project, "[server]\ntimeout = 'soon'\n", trust)
    code, out = doctor(project)
    assert code == 1
    assert "failed  configuration: " in out
    assert "server.timeout" in out
    assert "rlimits: " in out


def test_a_configured_folder_that_does_not_exist_is_a_failure(project: Path, trust: Trusting) -> None:
    write_trusted(project, "[server]\nroots = ['nowhere']\n", trust)
    code, out = doctor(project)
    assert code == 1
    assert "nowhere" in out
