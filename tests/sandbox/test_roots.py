"""Roots: where they come from, and what a client's roots leave of them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from longshore.errors import ConfigError
from longshore.sandbox.roots import Roots, configured_roots, default_roots, is_within


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Folders a, a/b, a/b/c, a_evil and other; a link to a; a link in a that leads out of it."""
    for name in ("a/b/c", "a_evil", "other", "home/project"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "a/out").symlink_to(tmp_path / "other")
    return Path(os.path.realpath(tmp_path))


def folders(tree: Path, *names: str) -> tuple[str, ...]:
    return tuple(str(tree / name) for name in names)


# -- the server's own


@pytest.mark.parametrize(
    ("given", "merged"),
    [
        (["a"], ["a"]),
        (["a", "other"], ["a", "other"]),
        (["a", "a/", "./a", "link"], ["a"]),
        (["a/b/c", "a", "a/b"], ["a"]),
        (["a", "a_evil"], ["a", "a_evil"]),
        (["other", "a", "a/b"], ["other", "a"]),
    ],
)
def test_configured_folders_are_real_and_none_lies_in_another(tree: Path, given: list[str], merged: list[str]) -> None:
    assert configured_roots([f"{tree}/{name}" for name in given]).folders == folders(tree, *merged)


def test_roots_know_how_the_user_wrote_them(tree: Path) -> None:
    roots = configured_roots([f"{tree}/{name}" for name in ("link", "a", "other")])
    assert roots.given == folders(tree, "link")
    assert roots.narrow([f"file://{tree}/link/b", "file:///"]).given == folders(tree, "link", "link/b")
    assert roots.narrow([f"file://{tree}/other"]) == Roots(folders(tree, "other"))


def test_the_shell_says_how_the_user_wrote_the_working_directory(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree / "link")
    environ = {"HOME": str(tree / "home"), "PWD": str(tree / "link")}
    assert default_roots(environ) == Roots(folders(tree, "a"), given=folders(tree, "link"))
    assert default_roots(environ | {"PWD": str(tree / "other")}) == Roots(folders(tree, "a"))


@pytest.mark.parametrize("name", ["missing", "file.txt", ""])
def test_a_configured_root_that_is_no_folder_is_named(tree: Path, name: str) -> None:
    (tree / "file.txt").write_text("")
    path = f"{tree}/{name}" if name else ""
    with pytest.raises(ConfigError, match=r"server.roots \(flag --root\): '.*' is no folder") as caught:
        configured_roots([str(tree / "a"), path], "flag --root")
    assert repr(path) in str(caught.value)


def test_a_configured_root_may_begin_with_the_home(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tree / "home"))
    assert configured_roots(["~/project"]).folders == folders(tree, "home/project")


def default(tree: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch, home: str = "home") -> Roots:
    monkeypatch.chdir(cwd)
    return default_roots({"HOME": str(tree / home), "XDG_DATA_HOME": str(tree / "data")})


@pytest.mark.parametrize("name", ["a", "link", "home/project"])
def test_the_working_directory_is_the_default(tree: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = default(tree, tree / name, monkeypatch)
    assert roots == Roots((os.path.realpath(tree / name),))
    assert not (tree / "data").exists()


@pytest.mark.parametrize(("home", "cwd"), [("home", "home"), ("home", "/"), ("a/b", "a"), ("link", "a")])
def test_in_the_home_folder_or_above_it_a_workspace_is_made(
    tree: Path, home: str, cwd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = default(tree, tree / cwd, monkeypatch, home)
    workspace = tree / "data/longshore/workspace"
    assert roots.folders == (str(workspace),)
    assert workspace.stat().st_mode & 0o777 == 0o700
    assert f"started in {(tree / cwd).resolve()}, so it uses a folder of its own" in roots.why
    assert default(tree, tree / cwd, monkeypatch, home) == roots


def test_where_the_working_directory_was_deleted_a_workspace_is_made(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tree / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    roots = default_roots({"HOME": str(tree / "home"), "XDG_DATA_HOME": str(tree / "data")})
    assert roots.folders == folders(tree, "data/longshore/workspace")
    assert "was deleted" in roots.why


@pytest.mark.parametrize(
    ("environ", "why"),
    [({}, "the user has no home"), ({"XDG_DATA_HOME": "{tree}/file.txt"}, "can't be made (Not a directory)")],
)
def test_without_a_workspace_there_is_no_folder_and_the_reason_is_given(
    tree: Path, environ: dict[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "file.txt").write_text("")
    monkeypatch.chdir("/")
    roots = default_roots({name: value.format(tree=tree) for name, value in environ.items()})
    assert roots.folders == ()
    assert why in roots.why


@pytest.mark.parametrize(
    ("path", "folder", "within"),
    [("/a", "/a", True), ("/a/b", "/a", True), ("/a_evil", "/a", False), ("/", "/a", False), ("/a", "/", True)],
)
def test_paths_are_compared_by_components(path: str, folder: str, within: bool) -> None:
    assert is_within(path, folder) is within


def test_a_root_that_a_link_in_another_root_leads_to_is_refused(tree: Path) -> None:
    """Tools could replace the link, or a folder by a link, and have any folder as a root at the next start."""
    with pytest.raises(ConfigError, match=f"name {tree}/other itself"):
        configured_roots([str(tree / "a"), str(tree / "a/out")], "--root")
    (tree / "other/back").symlink_to(tree / "a")
    with pytest.raises(ConfigError, match=f"name {tree}/a itself"):
        configured_roots([str(tree / "other"), str(tree / "other/back/b/..")])
    assert configured_roots([str(tree / "a"), str(tree / "a/b")]).folders == folders(tree, "a")
    assert configured_roots([str(tree / "link"), str(tree / "other")]).folders == folders(tree, "a", "other")
    assert configured_roots([str(tree), str(tree / "a/out")]).folders == (str(tree),)


def test_a_root_that_is_mounted_twice_is_known_by_both_names(tree: Path) -> None:
    """Where a file system ignores case, a root has other names too."""
    ask = "import sys; from longshore.sandbox.roots import leads_through as leads; _, root, *asked = sys.argv"
    program = [sys.executable, "-c", f"{ask}; print([leads(path, [root]) for path in asked])", str(tree / "a")]
    asked = [str(tree / "other/longshore.toml"), str(tree / "other/b/c"), str(tree / "a_evil/x")]
    command = f"mount --bind {tree}/a {tree}/other || exit 77; exec {shlex.join([*program, *asked])}"
    if shutil.which("unshare") is None:
        pytest.skip("nothing can be mounted here")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", command], capture_output=True, text=True, timeout=60)
    if done.returncode != 0 and "leads" not in done.stderr:
        pytest.skip("nothing can be mounted here")
    assert done.stdout == "[True, True, False]\n", done.stderr


# -- narrowing


@pytest.mark.parametrize(
    ("server", "client", "left"),
    [
        (["a"], ["a"], ["a"]),
        (["a"], ["a/b"], ["a/b"]),
        (["a/b"], ["a"], ["a/b"]),
        (["a"], ["link"], ["a"]),
        (["a", "other"], ["a/b", "other"], ["other", "a/b"]),
        (["a", "other"], [""], ["a", "other"]),
        (["a"], ["a/b", "a/b/c"], ["a/b"]),
        (["a"], ["a_evil"], []),
        (["a"], ["other"], []),
        (["a"], ["a/out"], []),
        (["a"], ["a/missing"], []),
        (["a"], ["a/../other"], []),
        (["a"], ["a/b/../b/c"], ["a/b/c"]),
        (["a"], [], []),
    ],
)
def test_a_clients_roots_narrow_the_servers(tree: Path, server: list[str], client: list[str], left: list[str]) -> None:
    roots = configured_roots([f"{tree}/{name}" for name in server])
    narrowed = roots.narrow([f"file://{tree}/{name}" for name in client])
    assert narrowed.folders == folders(tree, *left)
    assert bool(narrowed.why) is (not left)


@pytest.mark.parametrize(
    "uri",
    ["file://{}/a", "FILE://{}/a", "file://localhost{}/a", "file://{}/%61", "file://{}/a/"],
)
def test_the_spellings_of_a_file_uri(tree: Path, uri: str) -> None:
    assert configured_roots([str(tree / "a")]).narrow([uri.format(tree)]).folders == folders(tree, "a")


@pytest.mark.parametrize(
    "uri", ["https://example.com{}/a", "{}/a", "file:{}/a", "file://elsewhere{}/a", "file://{}/a%00", "file://", ""]
)
def test_other_uris_hold_no_folder(tree: Path, uri: str) -> None:
    narrowed = configured_roots([str(tree / "a")]).narrow([uri.format(tree)])
    assert narrowed.folders == ()
    assert f"hold nothing of this server's folders ({tree / 'a'})" in narrowed.why


def test_what_is_narrowed_to_nothing_stays_without_folders() -> None:
    none = Roots((), "no home")
    assert none.narrow(["file:///"]) == none
