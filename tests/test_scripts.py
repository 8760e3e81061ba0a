"""The scripts that run the tests: whatever fails once fails the run, and every Python that is there has its turn."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 150.0
"""For a run of pytest inside of one: three starts of Python with all its plugins, while the cores do other things."""

pytestmark = pytest.mark.timeout(2 * SECONDS)
SCRIPTS = Path(__file__).parent.parent / "scripts"
FIRST_TIME = """
import os, resource, signal
from pathlib import Path

def is_first():
    mark = Path(__file__).with_name("ran")
    first = not mark.exists()
    mark.touch()
    return first

def crash():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)
"""
PASSING = "def test_passing(): pass"
FLAKY = FIRST_TIME + "def test_flaky(): assert not is_first()"
CRASHING = FIRST_TIME + "def test_crashing(): is_first() and crash()"
UNREADABLE = "import there_is_no_such_module"


def run_script(name: str, *arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "MAKE"))}
    script = ["sh", str(SCRIPTS / name), *arguments]
    return subprocess.run(script, cwd=cwd, env=environment | variables, capture_output=True, text=True, timeout=SECONDS)


@pytest.mark.parametrize(
    ("files", "failed", "expected"),
    [
        ({"good": PASSING}, False, "1 passed"),
        ({"good": PASSING, "flaky": FLAKY}, True, "1 failed, 1 passed"),
        ({"good": PASSING, "crashing": CRASHING}, True, "crashed while running"),
        ({"flaky": FLAKY, "unreadable": UNREADABLE}, True, "there_is_no_such_module"),
    ],
    ids=["all pass", "one fails the first time", "a worker crashes", "a test fails and one can't be collected"],
)
def test_what_fails_once_fails_the_run(files: dict[str, str], failed: bool, expected: str, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name, text in files.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    done = run_script("tests", "-n", "1", cwd=tmp_path, VENV=sys.prefix)
    assert (done.returncode != 0) == failed and expected in done.stdout, done


def fake_python(path: Path, version: str) -> None:
    """A program that says of itself, to whoever asks, whether it is this version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ncase $2 in *\"'{version}'\"*) exit 0;; esac\nexit 1\n")
    path.chmod(0o755)


@pytest.mark.parametrize("broken", ["", "3.11", "3.12", "3.14"])
def test_the_tests_are_run_on_every_python_that_is_there(broken: str, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    fake_python(tmp_path / ".venv/bin/python", "3.11")
    fake_python(programs / "python3.12", "3.12")
    fake_python(programs / "python3.13", "3.12")  # a stand-in for what is not there
    fake_python(tmp_path / "pyenv/versions/3.14.2/bin/python", "3.14")
    for name in ("sh", "make", "grep", "mkdir", "cp"):
        (programs / name).symlink_to(shutil.which(name) or name)
    (tmp_path / "Makefile").write_text(
        "setup:\n\t@mkdir -p $(VENV)/bin\n"
        '\t@[ -e $(VENV)/bin/python ] || cp "$$(command -v $(PYTHON))" $(VENV)/bin/python\n'
    )
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPTS.parent / "pyproject.toml", tmp_path)
    version = 'for version in 3.11 3.12 3.14; do "$VENV/bin/python" -c "\'$version\'" && break; done'
    (tmp_path / "scripts/tests").write_text(f'{version}\necho "$VENV $version $@"\n[ "$version" != "{broken}" ]\n')

    done = run_script(
        "test-all", "-k", "a name", cwd=tmp_path, PATH=str(programs), PYENV_ROOT=str(tmp_path / "pyenv"), VENV=".venv"
    )
    assert done.stdout.splitlines() == [
        ".venv 3.11 -k a name", ".venv-3.12 3.12 -k a name", ".venv-3.14 3.14 -k a name"
    ]  # fmt: skip
    assert done.returncode == bool(broken)
    assert ("FAILED on Python: " + broken in done.stderr) == bool(broken), done.stderr
    assert "not installed on this machine: 3.13" in done.stderr
