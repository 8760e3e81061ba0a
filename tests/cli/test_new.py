"""`longshore new`: the project that it makes passes its own test and the linter, and can be installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from waiting import PATIENCE

from .conftest import Workspace


def in_folder(workspace: Workspace, folder: str, *argv: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = workspace.env | {
        "HOME": str(workspace.home),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_STATE_HOME": "",
        **variables,
    }
    cwd = workspace.folder / folder
    return subprocess.run(
        argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
    )


@pytest.fixture
def project(workspace: Workspace) -> Workspace:
    done = workspace.run("new", "word-tools")
    assert done.returncode == 0, done.stderr
    return workspace


def test_its_files_are_named(project: Workspace) -> None:
    assert {each.name for each in (project.folder / "word-tools").iterdir()} == {
        ".gitignore", "README.md", "pyproject.toml", "test_word_tools.py", "word_tools.py",
    }  # fmt: skip


def test_it_passes_its_own_test_and_the_linters(project: Workspace) -> None:
    done = in_folder(
        project, "word-tools", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"
    )
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr
    done = in_folder(project, "word-tools", sys.executable, "-m", "longshore", "lint", "word_tools.py", "--strict")
    assert done.returncode == 0 and "nothing found" in done.stdout, done.stdout
    ruff = Path(sys.executable).with_name("ruff")
    done = in_folder(
        project, "word-tools", str(ruff), "check", "--isolated", "--no-cache", "--select", "E,F,W,UP,B", "."
    )
    assert done.returncode == 0, done.stdout


def test_the_lines_of_its_readme_install_it(project: Workspace) -> None:
    readme = (project.folder / "word-tools" / "README.md").read_text()
    lines = [line.split() for line in readme.splitlines() if line.startswith("    longshore install ")]
    assert len(lines) == 9
    for _, command, client, target in lines:
        argv = [sys.executable, "-m", "longshore", command, client, target, "--dry-run"]
        done = in_folder(project, "word-tools", *argv)
        assert done.returncode == 0, done.stderr
        assert str(project.folder / "word-tools" / "word_tools.py") in done.stdout and "word-tools" in done.stdout
    done = in_folder(project, "word-tools", sys.executable, "-m", "longshore", *lines[0][1:], "--yes")
    assert done.returncode == 0 and "connected to word-tools 0.1.0" in done.stdout, done.stderr


def test_its_package_has_the_server_and_a_command(project: Workspace) -> None:
    folder = project.folder / "word-tools"
    scripts = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"word-tools": "word_tools:main"}
    argv = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "-q",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
    ]
    done = in_folder(
        project, "word-tools", *argv, "--no-index", "-w", str(project.folder / "built"), ".", PYTHONWARNINGS=""
    )
    assert done.returncode == 0, done.stderr
    [wheel] = (project.folder / "built").iterdir()
    program = "import runpy, sys; sys.argv = ['word-tools']; import word_tools; word_tools.main()"
    env = project.env | {"PYTHONPATH": os.fspath(wheel)}
    request = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}\n'
    ran = subprocess.run([sys.executable, "-c", program], input=request, env=env, capture_output=True, timeout=PATIENCE)
    assert ran.returncode == 0 and b'"id":1' in ran.stdout, ran.stderr


def test_a_folder_that_is_there_is_left(project: Workspace) -> None:
    before = (project.folder / "word-tools" / "README.md").read_bytes()
    done = project.run("new", "word-tools")
    assert done.returncode == 2 and b"word-tools is there already; choose another name" in done.stderr
    assert (project.folder / "word-tools" / "README.md").read_bytes() == before


@pytest.mark.skipif(sys.platform != "linux", reason="nobody may make a folder in /proc, root neither")
def test_where_no_folder_can_be_made_it_says_so(workspace: Workspace) -> None:
    done = in_folder(workspace, "/proc", sys.executable, "-P", "-m", "longshore", "new", "word-tools")
    assert done.returncode == 2
    assert "word-tools can't be made in /proc: No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("a b", "a b: expected letters, digits, - and _, at most 40"),
        ("../up", "expected letters, digits"),
        ("9lives", "a letter first"),
        ("word-tools-", "a letter or digit last"),
        ("word_tools_", "a letter or digit last"),
        ("x" * 41, "at most 40"),
        ("class", "class is taken by Longshore or Python's tools; try class-server"),
        ("tests", "tests is taken by Longshore or Python's tools"),
        ("json", "there is a Python module json already, which this would hide; try json-server"),
        ("longshore", "longshore is taken by Longshore or Python's tools"),
    ],
)
def test_a_name_that_some_tool_would_refuse_is_refused(workspace: Workspace, name: str, what: str) -> None:
    before = sorted(workspace.folder.iterdir())
    done = workspace.run("new", name)
    assert done.returncode == 2 and what in done.stderr.decode()
    assert sorted(workspace.folder.iterdir()) == before
