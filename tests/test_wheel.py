"""The wheel and the sdist, installed into empty environments that have only what they depend on.

Each entry point works there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from longshore import __version__
from seeds.bb import document as bb
from seeds.brooklyn import document as brooklyn
from seeds.browseros import document as browseros
from seeds.ghost import document as ghost
from waiting import PATIENCE

ROOT = Path(__file__).parents[1]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "-q", "--no-cache-dir"]
BUILD_SECONDS = 120.0
FIRST_REQUESTS: dict[str, tuple[list[str], Any]] = {
    "brooklyn": (["brooklyn", "mcp", "start"], brooklyn.LIST),
    "browseros": (["python", "-m", "browseros.mcp.server"], browseros.read("list_request.json")),
    "ghost": (["contextgraph-ghost"], ghost.read("initialize_request")),
    "bb": (["bb-mcp-server"], bb.INITIALIZE),
    "longshore": (["longshore", "serve"], ghost.read("initialize_request")),
}
"""Each entry point's command, and a request that it answers first."""


def dependencies(name: str) -> Iterator[Distribution]:
    """What a package depends on without extras, and what that depends on."""
    for line in distribution(name).requires or ():
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            yield distribution(wanted.name)
            yield from dependencies(wanted.name)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(build, check=True, cwd=ROOT, timeout=BUILD_SECONDS, stdout=subprocess.DEVNULL)
    [archive] = folder.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel_of_sdist(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pip makes of the sdist when it installs that."""
    return build_wheel(sdist, tmp_path_factory.mktemp("wheel_of_sdist"))


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(wheel, tmp_path_factory.mktemp("env"))


def build_wheel(source: Path, folder: Path) -> Path:
    build = [*PIP, "wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", str(folder), str(source)]
    subprocess.run(build, check=True, timeout=BUILD_SECONDS, stdout=subprocess.DEVNULL)
    [wheel] = folder.glob("*.whl")
    return wheel


def install(wheel: Path, home: Path) -> Path:
    """The folder of programs of an environment with this wheel. The dependencies are linked: there is no network."""
    venv.create(home, symlinks=True)
    [site] = home.glob("lib/python*/site-packages")
    for each in dependencies("longshore"):
        for top in {file.parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(each.locate_file(top))))
    python = str(home / "bin" / "python")
    argv = [*PIP, "--python", python, "install", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(argv, check=True, timeout=BUILD_SECONDS)
    return home / "bin"


def contents(wheel: Path) -> dict[str, int]:
    """The files of a wheel, each with its checksum."""
    with ZipFile(wheel) as archive:
        return {each.filename: each.CRC for each in archive.infolist()}


def run(scripts: Path, folder: Path, *argv: str, given: str = "") -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("LONGSHORE_", "PYTHON", "VIRTUAL_"))}
    return subprocess.run(
        [str(scripts / argv[0]), *argv[1:]],
        cwd=folder,
        env=env | {"HOME": str(folder), "PATH": f"{scripts}{os.pathsep}{env['PATH']}"},
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("name", FIRST_REQUESTS)
def test_each_entry_point_answers(scripts: Path, tmp_path: Path, name: str) -> None:
    argv, message = FIRST_REQUESTS[name]
    done = run(scripts, tmp_path, *argv, given=json.dumps(message) + "\n")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["id"] == message["id"] and answer["result"], done.stdout


def test_the_programs_of_the_command_line_are_there(scripts: Path, tmp_path: Path) -> None:
    assert run(scripts, tmp_path, "brooklyn", "check", "schema").returncode == 0
    assert run(scripts, tmp_path, "longshore", "tools", "--json").returncode == 0


def test_what_is_imported_is_that_of_the_wheel(scripts: Path, tmp_path: Path) -> None:
    program = """
import browseros.mcp, longshore, sys
server = browseros.mcp.create_stdio_server()
server.add_tool("echo", lambda params: params)
print(server.handle_request('{"jsonrpc":"2.0","method":"tools/list","id":1}'))
assert browseros.mcp.__file__.startswith(sys.prefix) and longshore.__file__.startswith(sys.prefix)
"""
    done = run(scripts, tmp_path, "python", "-c", program)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["tools"] == [{"name": "echo", "available": True}]


def test_the_sdist_makes_the_same_wheel(wheel: Path, wheel_of_sdist: Path) -> None:
    made = contents(wheel)
    assert {"longshore/py.typed", "longshore/console/static/index.html"} <= set(made)
    assert contents(wheel_of_sdist) == made


def test_the_sdist_is_installed(wheel_of_sdist: Path, tmp_path: Path) -> None:
    scripts = install(wheel_of_sdist, tmp_path / "env")
    done = run(scripts, tmp_path, "longshore", "--version")
    assert (done.returncode, done.stdout) == (0, f"longshore {__version__}\n")
    done = run(scripts, tmp_path, "longshore", "list", "builtin", "--tools")
    assert done.returncode == 0, done.stderr
    assert "browser_open" in done.stdout


def test_the_sdist_holds_what_its_tests_and_documents_need(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "Makefile", "docs/deployment.md"} <= held
    assert {"deploy/Containerfile", "deploy/longshore.service", "tests/test_wheel.py", "requirements/dev.txt"} <= held
    assert not [name for name in held if "__pycache__" in name or name.startswith((".venv", ".git/"))]
