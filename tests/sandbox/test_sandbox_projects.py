"""A project's own tools work in the sandbox: its virtual environment, git, npm and make, and version managers."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sandbox.confined_commands import MECHANISMS, PYTHON, SECRET, Place

from longshore.sandbox.git_identity import write_git_settings
from longshore.sandbox.visible import VisiblePaths

both = pytest.mark.parametrize("mechanism", MECHANISMS)
SETTINGS = f"""
[user]
    name = Ada \\"the first\\" Lovelace
    email = ada@example.org
[alias]
    st = status --short
[init]
    defaultBranch = trunk
[commit]
    gpgSign = true
[core]
    sshCommand = ssh -i {SECRET}
[credential]
    helper = "!echo password={SECRET}"
[url "https://{SECRET.replace(" ", "-")}@example.org/"]
    insteadOf = https://example.org/
[http]
    extraHeader = "Authorization: {SECRET}"
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    (place.home / ".gitconfig").write_text(SETTINGS)
    return place


def make_environment(folder: Path) -> None:
    """A virtual environment whose Python is a link, with pytest in it."""
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", "--symlinks", folder], check=True)
    packages = next((folder / "lib").glob("python*")) / "site-packages"
    shutil.copy(importlib.import_module("py").__file__ or "", packages)
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        found = importlib.util.find_spec(name)
        assert found is not None and found.origin is not None
        shutil.copytree(Path(found.origin).parent, packages / name, ignore=shutil.ignore_patterns("__pycache__"))


@both
def test_pytest_runs_in_the_projects_virtual_environment(place: Place, mechanism: str) -> None:
    make_environment(place.root / ".venv")
    (place.root / "test_sum.py").write_text("def test_sum(tmp_path): assert 1 + 1 == 2")
    sandbox = place.sandbox("workspace", mechanism, read_paths=())
    done = place.shell(sandbox, ".venv/bin/python -m pytest -q test_sum.py")
    assert done.code == 0 and "1 passed" in done.text, done


@both
def test_git_commits_with_the_users_name_and_without_credentials(place: Place, mechanism: str) -> None:
    sandbox = place.sandbox("workspace", mechanism)
    script = "git init -q && echo x > file && git add file && git commit -qm first && git st"
    done = place.shell(sandbox, f"{script} && git log --format='%an %ae %s %D'")
    assert done == (0, 'Ada "the first" Lovelace ada@example.org first HEAD -> trunk\n')
    done = place.shell(sandbox, "git config --list; cat ~/.gitconfig; cat $GIT_CONFIG_GLOBAL; git commit --allow-empty")
    assert SECRET not in done.text and "-i" not in done.text and "Aborting commit" in done.text


@both
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed; install node to see this test")
def test_npm_and_make_run(place: Place, mechanism: str) -> None:
    (place.root / "package.json").write_text('{"name": "x", "scripts": {"test": "node -e \'console.log(6 * 7)\'"}}')
    (place.root / "Makefile").write_text("all: out\nout:\n\techo built > out\n")
    sandbox = place.sandbox("workspace", mechanism)
    done = place.shell(sandbox, "npm test && make && cat out")
    assert done.code == 0 and "42" in done.text and done.text.endswith("built\n"), done


def write_program(path: Path, text: str = "echo from $0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@both
def test_toolchains_of_the_home_folder_are_visible_and_their_credentials_are_not(place: Place, mechanism: str) -> None:
    cargo, tools = place.home / ".cargo", place.home / ".local/share/uv/tools/black"
    write_program(cargo / "bin" / "cargo", 'cat "$HOME/.rustup/settings.toml"')
    (cargo / "credentials.toml").write_text(SECRET)
    (place.home / ".rustup").mkdir()
    (place.home / ".rustup" / "settings.toml").write_text("stable\n")
    write_program(tools / "bin" / "black", 'cat "$(dirname $(readlink -f $0))/../lib/black.py"')
    (tools / "lib").mkdir()
    (tools / "lib" / "black.py").write_text("formatted\n")
    (place.home / ".local/share/uv/credentials").mkdir()
    (place.home / ".local/share/uv/credentials" / "token").write_text(SECRET)
    (place.home / ".local" / "bin").mkdir()
    (place.home / ".local" / "bin" / "black").symlink_to(tools / "bin" / "black")
    place.environ["PATH"] = f"{cargo}/bin:{place.home}/.local/bin:/usr/bin:/bin"
    sandbox = place.sandbox("workspace", mechanism, read_paths=())
    assert place.shell(sandbox, "cargo && black") == (0, "stable\nformatted\n")
    assert SECRET not in place.shell(sandbox, "cat ~/.cargo/credentials.toml ~/.local/share/uv/credentials/token").text
    assert place.shell(sandbox, "echo x >> ~/.cargo/bin/cargo").code != 0


def test_what_lies_beside_a_folder_of_programs_is_visible_only_in_an_installation(tmp_path: Path) -> None:
    home = tmp_path / "home"
    node, scripts = home / "node-20", home / "work"
    for program in (node / "bin" / "node", scripts / "bin" / "deploy"):
        write_program(program)
    (node / "lib").mkdir()
    (scripts / "secret").write_text(SECRET)
    linked = write_program(home / "projects" / "tool" / "run")
    (scripts / "bin" / "tool").symlink_to(linked)
    paths = VisiblePaths({"HOME": str(home), "PATH": f"{node}/bin:{scripts}/bin:{home}/gone:relative:/usr/bin"}).find(
        []
    )
    shown = {path for path in paths.paths if path.startswith(str(tmp_path))}
    assert shown == {str(node), str(scripts / "bin"), str(linked)}


@both
@pytest.mark.parametrize("installed", ["versions", "installs"])
def test_a_version_manager_outside_of_the_home_folder_is_found_by_its_shims(
    place: Place, mechanism: str, installed: str
) -> None:
    manager = place.other / ".pyenv"
    write_program(manager / installed / "3.9" / "bin" / "interpreter", "echo started")
    write_program(manager / "shims" / "interpreter", f"exec {manager}/{installed}/3.9/bin/interpreter")
    (manager / ".git").mkdir()  # as installed by git clone
    place.environ["PATH"] = f"{manager}/shims:{manager}/bin:/usr/bin:/bin"
    sandbox = place.sandbox("workspace", mechanism, read_paths=())
    assert place.shell(sandbox, "interpreter") == (0, "started\n")
    assert SECRET not in place.shell(sandbox, f"cat {place.other}/plan").text


def test_shims_do_not_make_the_home_folder_visible(tmp_path: Path) -> None:
    for name in ("shims", "versions"):
        (tmp_path / name).mkdir()
    shown = VisiblePaths({"HOME": str(tmp_path), "PATH": f"{tmp_path}/shims"}).find([]).paths
    assert [path for path in shown if path.startswith(str(tmp_path))] == [str(tmp_path / "shims")]


def test_no_variable_makes_the_home_folder_visible(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:{tmp_path}", "PYENV_ROOT": str(tmp_path), "GOROOT": "/"}
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    shown = VisiblePaths(environ).find([]).paths
    assert "/" not in shown and str(tmp_path.parent) not in shown
    assert [path for path in shown if path.startswith(str(tmp_path))] == [str(tmp_path / "bin")]


@pytest.mark.parametrize("bait", ["link", "settings", "copied program"])
def test_a_virtual_environment_shows_nothing_but_an_installation_of_python(tmp_path: Path, bait: str) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    (root / ".venv" / "bin").mkdir(parents=True)
    program = write_program(other / "bin" / "python3")
    (other / "secret").write_text(SECRET)
    (other / "lib").mkdir()
    if bait == "copied program":  # an installation by its look: its programs and libraries are shown
        (other / "lib" / "python3.11").mkdir()
        (other / "lib" / "python3.11" / "os.py").touch()
    (root / ".venv" / "pyvenv.cfg").write_text(f"home = {other}/bin\n" if bait == "settings" else "")
    target = program if bait != "link" else other / "secret"
    (root / ".venv" / "bin" / "python").symlink_to(target)
    shown = VisiblePaths({"HOME": "", "PATH": "/usr/bin"}).find([str(root)]).paths
    expected = [str(other / "bin"), str(other / "lib")] if bait == "copied program" else []
    assert [path for path in shown if path.startswith(str(tmp_path))] == expected


def install_python(folder: Path) -> Path:
    """A folder that looks like an installation of Python."""
    (folder / "lib" / "python3.11").mkdir(parents=True)
    (folder / "lib" / "python3.11" / "os.py").touch()
    return write_program(folder / "bin" / "python3")


@pytest.mark.parametrize("bait", ["part", "folder on the path", "program on the path", "program by way of a root"])
def test_a_link_that_a_command_wrote_makes_nothing_visible(tmp_path: Path, bait: str) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    other.mkdir()
    (other / "lib").mkdir()
    secret = write_program(other / "bin" / "secret")
    (root / ".venv").mkdir(parents=True)
    (root / ".venv" / "pyvenv.cfg").touch()
    environ = {"HOME": "", "PATH": f"{root}/.venv/bin:{tmp_path}/alias/.venv/bin:{tmp_path}/programs:/usr/bin"}
    (tmp_path / "alias").symlink_to(root)
    (tmp_path / "programs").mkdir()
    if bait == "part":
        program = install_python(root / "fake")
        (root / "fake" / "include").symlink_to(other)
        (root / ".venv" / "bin").mkdir()
        (root / ".venv" / "bin" / "python").symlink_to(program)
    elif bait == "folder on the path":
        (root / ".venv" / "bin").symlink_to(other / "bin")
    elif bait == "program on the path":
        (root / ".venv" / "bin").mkdir()
        (root / ".venv" / "bin" / "x").symlink_to(secret)
    else:
        (tmp_path / "programs" / "x").symlink_to(root / "x")
        (root / "x").symlink_to(secret)
    shown = VisiblePaths(environ).find([str(root)]).paths
    assert [path for path in shown if path.startswith(str(tmp_path))] == [str(tmp_path / "programs")]


@pytest.mark.parametrize("bait", ["pipe", "device", "folder", "loop", "bytes"])
def test_settings_that_a_command_made_unreadable_are_left_out(tmp_path: Path, bait: str) -> None:
    path = tmp_path / "pyvenv.cfg"
    match bait:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path)
        case _:
            path.write_bytes(b"home = \xff\0/bin\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("python3")
    (tmp_path / "bin" / "python3").symlink_to("python")
    shown = VisiblePaths({"HOME": "", "PATH": "/usr/bin"}).find([str(tmp_path)]).paths
    assert "/usr" in shown and not [path for path in shown if path.startswith(str(tmp_path))]


def test_a_new_virtual_environment_is_found_by_the_next_command(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    paths = VisiblePaths({"HOME": "", "PATH": "/usr/bin"})
    first = paths.find([str(root)])
    assert paths.find([str(root)]) is first
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", "--symlinks", root / ".venv"], check=True)
    shown = paths.find([str(root)]).paths
    assert any(os.path.commonpath((path, PYTHON)) == path for path in shown)


def test_read_paths_are_visible_and_links_to_them_too(place: Place, tmp_path: Path) -> None:
    (tmp_path / "shared").symlink_to(place.other)
    sandbox = place.sandbox("workspace", read_paths=[str(tmp_path / "shared")])
    assert place.shell(sandbox, f"cat {tmp_path}/shared/plan {place.other}/plan") == (0, SECRET * 2)
    assert place.shell(sandbox, f"echo x > {place.other}/plan").code != 0


def test_a_root_within_a_read_path_stays_writable(place: Place) -> None:
    sandbox = place.sandbox("workspace", read_paths=[str(place.home / "work")])
    assert place.shell(sandbox, "cat ../notes/plan && touch here") == (0, SECRET)
    assert place.shell(sandbox, "touch ../notes/there").code != 0


def test_git_settings_are_written_once_and_absent_without_a_home(place: Place) -> None:
    path = write_git_settings(place.environ)
    assert path is not None and path == write_git_settings(place.environ) and os.stat(path).st_mode & 0o777 == 0o600
    assert write_git_settings({"PATH": place.environ["PATH"]}) is None
    (place.home / ".gitconfig").write_text("[credential]\n\thelper = store\n")
    assert write_git_settings(place.environ) is None


def test_a_program_that_a_command_planted_on_the_path_is_not_run_outside(place: Place) -> None:
    planted = f"touch {place.other}/pwned"
    for name in ("git", "bwrap", "sh", "setsid"):
        write_program(place.root / "bin" / name, planted)
    place.environ["PATH"] = f"{place.root}/bin:/usr/bin:/bin"
    done = subprocess.run(
        [sys.executable, "-c", "from longshore.sandbox.mechanisms import detect_host; print(detect_host().bubblewrap)"],
        env=place.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Bubblewrap(" in done.stdout and "bin/bwrap" in done.stdout and str(place.root) not in done.stdout
    place.run(place.sandbox("workspace"), "true")
    assert not (place.other / "pwned").exists()
