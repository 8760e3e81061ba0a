"""The path cases that the official filesystem server is tested with, asked of confined files.

The official server compares texts; here every path is used on real files, by the kernel and by the walk. Its four
cases for Windows don't apply: confined files need directory descriptors, which only POSIX has, and there a backslash or
a drive letter is a character of a name like any other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from longshore.errors import ConfigError
from longshore.sandbox.beneath import OpenBeneath
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.path_text import MOST_PARTS
from longshore.sandbox.roots import Roots, configured_roots
from sandbox.confined_tree import FOLLOWING, SECRET, VERBS, WAYS

from .file_server import VERBS as TOOL_VERBS
from .file_server import refusal, serve


class Case(NamedTuple):
    """Roots, and paths that lie in them or not. `{base}` is the folder that holds the roots."""

    inside: list[str]
    refused: list[str]
    roots: Sequence[str] = ("{base}/project",)
    kind: str = "outside"


CASES = {
    "the root itself": Case(["{base}/project"], []),
    "what is in the root": Case(
        ["{base}/project/src", "{base}/project/src/index.js", "{base}/project/deeply/nested/file.txt"], []
    ),
    "names that begin like the root": Case(
        [],
        [
            "{base}/project2",
            "{base}/project_backup",
            "{base}/project-old",
            "{base}/projectile",
            "{base}/project.bak",
            "{base}/Project",
        ],
    ),
    "elsewhere": Case([], ["{base}/other", "/etc/passwd", "{base}", "/"]),
    "several roots": Case(
        ["{base}/project1/src", "{base}/project2/src", "../project2/inner/file"],
        ["{base}/project3", "{base}/project1_backup", "{base}/project2-old"],
        roots=["{base}/project1", "{base}/project2"],
    ),
    "parent and siblings": Case(
        [],
        ["{base}/test", "/", "{base}/test/allowed_sibling", "{base}/test/allowed2"],
        roots=["{base}/test/allowed"],
    ),
    "a root with parentheses": Case(
        ["{base}/my-project (v2)", "{base}/my-project (v2)/src"],
        ["{base}/my-project (v2)_backup", "{base}/my-project"],
        roots=["{base}/my-project (v2)"],
    ),
    "no path": Case([], [""], kind="bad_path"),
    "no root": Case([], ["{base}/project", "anything.txt"], roots=[]),
    "slashes at the end of a path": Case(["{base}/project/"], ["{base}/project2", "{base}/project2/"]),
    "a slash at the end of the root": Case(
        ["{base}/project", "{base}/project/"], ["{base}/project2"], roots=["{base}/project/"]
    ),
    "relative paths": Case(["relative/path", "./file"], ["../parent", "../escape.txt"]),
    "a relative root": Case(
        ["{base}/some/absolute/file", "{base}/relative/path/file"],
        ["/absolute/path/file", "{base}/path/file"],
        roots=["relative/path", "{base}/some/absolute"],
    ),
    "letters with accents": Case(
        ["{base}/caf\u00e9", "{base}/caf\u00e9/file"], ["{base}/cafe\u0301"], roots=["{base}/caf\u00e9"]
    ),
    "spaces": Case(
        ["{base}/my project", "{base}/my project/file"],
        ["{base}/my", "{base}/my proj"],
        roots=["{base}/my project"],
    ),
    "roots within roots": Case(
        ["{base}/anything", "{base}/user/anything", "{base}/user/project/anything", "{base}/other/deep/path"],
        [],
        roots=["{base}", "{base}/user", "{base}/user/project"],
    ),
    "the root of the file system": Case(["/", "{base}/any/path", "/etc/passwd"], [], roots=["/"]),
    "dots that lead out": Case(
        [],
        [
            "{base}/project/../../../../../../../../../../etc/passwd",
            "{base}/project/../../other",
            "{base}/project/../project2",
            "{base}/project/src/../../project2",
            "{base}/project/./../../other",
            "{base}/project/../project/../../../../../../../../../../etc",
        ],
    ),
    "dots in a root": Case(["{base}/safe/file"], ["{base}/project/file"], roots=["{base}/project/../safe"]),
    "dots in a root that lead back": Case(
        ["{base}/project/file"], ["{base}/other"], roots=["{base}/project/../project"]
    ),
    "dots in names": Case(
        ["{base}/project/..test", "{base}/project/test..", "{base}/project/te..st"],
        ["{base}/project/../test", "{base}/project/.."],
    ),
    "names of dots": Case(
        ["{base}/project/.", "{base}/project/...", "{base}/project/...."], ["{base}/project/..", "{base}/project/./.."]
    ),
    "NUL": Case(
        [],
        ["{base}/project\0/etc/passwd", "{base}/project/test\0.txt", "\0{base}/project", "{base}/project/\0"],
        kind="bad_path",
    ),
    "percent signs": Case(
        [
            "{base}/project/report_50%.pdf",
            "{base}/project/Q1_25%_growth",
            "{base}/project/%41",
            "{base}/project/%2e%2e",
            "{base}/project/file%20name",
        ],
        [],
    ),
    "a percent sign in the root": Case(
        ["{base}/project%20files/test"], ["{base}/project files/test"], roots=["{base}/project%20files"]
    ),
    "other spellings": Case(
        [
            "{base}/project//",
            "{base}/project///",
            "{base}/project/./src",
            "{base}/./project/src",
            "{base}/project//src//file",
            "/{base}//project//src",
        ],
        ["{base}//project2"],
    ),
    "long paths": Case(
        ["{base}/project/" + "a/" * 100 + "file.txt"],
        ["a/" * 90 + "../" * 91 + "secret", "a/" * 9 + "../" * 99 + "etc"],
    ),
    "paths of more parts than are opened": Case(
        [], ["a/" * MOST_PARTS + "file.txt", "a/" * 1000 + "../" * 1001 + "etc/passwd"], kind="bad_path"
    ),
    "the home folder": Case(["~/project/src", "~/project/new.txt"], ["~", "~/x.txt", "~/project2"]),
    "Windows paths are names": Case(
        ["C:\\Users\\project", "\\\\server\\share\\file", "D:/other", "/{base}/project"], []
    ),
}


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory and the home folder, which hold the roots."""
    real = Path(os.path.realpath(tmp_path))
    monkeypatch.chdir(real)
    monkeypatch.setenv("HOME", str(real))
    return real


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_the_official_servers_cases_of_paths(base: Path, way: str, name: str) -> None:
    case = CASES[name]
    roots = _make_roots(base, case)
    files = ConfinedFiles(roots, open_beneath=WAYS[way])
    for path in _fill(case.inside, base):
        expected = os.path.normpath(os.path.join(roots.folders[0], os.path.expanduser(path)))
        if not os.path.exists(expected):
            files.write(path, b"mine", parents=True)
        assert files.real_path(path) == "/" + expected.lstrip("/")
        assert files.status(path).status.st_ino == os.stat(expected).st_ino
    refused = _fill(case.refused, base)
    for path in refused:
        _plant_secret(base, path)
    before = dict(_files_outside(base, roots))
    for path in refused:
        with pytest.raises(FileError) as caught:
            files.open_file(path)
        assert caught.value.kind == case.kind, path
        for verb in VERBS.values():
            with pytest.raises(FileError):
                verb(files, path)
    assert dict(_files_outside(base, roots)) == before


def _fill(paths: Sequence[str], base: Path) -> list[str]:
    return [path.replace("{base}", str(base)) for path in paths]


def _make_roots(base: Path, case: Case) -> Roots:
    (base / "project/src").mkdir(parents=True)  # a path through a missing folder leads nowhere, not out
    for path in _fill(case.roots, base):
        os.makedirs(os.path.normpath(path), exist_ok=True)
    roots = configured_roots(_fill(case.roots, base))
    if case.refused and roots.folders:
        Path(roots.folders[0], "file.txt").write_bytes(b"file")  # for the verbs that have a source
    return roots


def _plant_secret(base: Path, path: str) -> None:
    """Put a secret where a path leads, if that is in the test's folder."""
    target = Path(os.path.normpath(base / "project" / path.replace("\0", ""))) if path else base
    if base in target.parents and not target.exists() and "~" not in path:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(SECRET)


def _files_outside(base: Path, roots: Roots) -> Iterator[tuple[str, bytes]]:
    for folder, folders, names in os.walk(base):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in roots.folders]
        yield folder, b""
        for name in names:
            path = Path(folder, name)
            yield str(path), path.read_bytes() if path.exists() else b""


# -- roots and paths that are none


@pytest.mark.parametrize("root", ["", "{base}/project\0", "{base}/missing"])
def test_a_root_that_is_no_folder_is_refused_at_the_start(base: Path, root: str) -> None:
    (base / "project").mkdir()
    with pytest.raises(ConfigError, match=r"server.roots: '.*' is no folder"):
        configured_roots([str(base / "project"), *_fill([root], base)])


@pytest.mark.parametrize("verb", [verb for verb, make in TOOL_VERBS.items() if "a" in make("a")[1].values()])
def test_what_is_no_text_is_no_path(base: Path, verb: str) -> None:
    (base / "file.txt").write_bytes(b"file")
    no_texts: list[Any] = [123, True, {}, [], ["file.txt"]]
    for path in no_texts:
        tool, arguments = TOOL_VERBS[verb](path)
        assert "string" in refusal(serve(), tool, **arguments)
    assert os.listdir(base) == ["file.txt"]


# -- links

LINKS_OUT: dict[str, tuple[dict[str, str], str]] = {
    "a file": ({"root/bad-link": "{base}/outside/target.txt"}, "bad-link"),
    "a file, by a relative link": ({"root/bad-link": "../outside/target.txt"}, "bad-link"),
    "a file, by its own path": ({"root/link": "{base}/outside/target.txt"}, "{base}/outside/target.txt"),
    "a chain": (
        {"first": "{base}/outside/target.txt", "second": "{base}/first", "root/seemingly-safe": "{base}/second"},
        "seemingly-safe",
    ),
    "nothing yet": ({"root/dangling": "{base}/outside/not-yet"}, "dangling"),
    "a folder": ({"root/newdir": "{base}/outside"}, "newdir"),
    "a new file in a folder": ({"root/link": "{base}/outside"}, "link/newfile.txt"),
    "new folders in a folder": ({"root/link": "{base}/outside"}, "link/a/b"),
    "a folder in the middle": ({"root/sub1": "{base}/outside"}, "sub1/sub2/file.txt"),
}


@pytest.fixture
def linked(base: Path) -> Path:
    """The folder that holds `root` and `outside`."""
    (base / "root").mkdir()
    (base / "root/file.txt").write_bytes(b"file")
    (base / "outside/sub2").mkdir(parents=True)
    for name in ("target.txt", "sub2/file.txt"):
        (base / "outside" / name).write_bytes(SECRET)
    return base


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", LINKS_OUT)
def test_a_link_that_leads_out_is_followed_by_no_verb(linked: Path, way: str, case: str) -> None:
    links, path = LINKS_OUT[case]
    for name, target in links.items():
        (linked / name).symlink_to(target.replace("{base}", str(linked)))
    files, before = _confine(linked, WAYS[way]), dict(_files_outside(linked, _roots(linked)))
    for verb in FOLLOWING.values():
        with pytest.raises(FileError) as caught:
            verb(files, path.replace("{base}", str(linked)))
        assert caught.value.kind == "outside"
    assert dict(_files_outside(linked, _roots(linked))) == before


@pytest.mark.parametrize("way", WAYS)
def test_a_link_that_stays_in_the_root_is_written_through(linked: Path, way: str) -> None:
    (linked / "root/symlink.txt").symlink_to(linked / "root/file.txt")
    _confine(linked, WAYS[way]).write("symlink.txt", b"updated")
    assert (linked / "root/symlink.txt").is_symlink()
    assert (linked / "root/file.txt").read_bytes() == b"updated"


@pytest.mark.parametrize("way", WAYS)
def test_links_that_leave_the_root_and_come_back_are_followed(linked: Path, way: str) -> None:
    (linked / "outside/back").symlink_to(linked / "root/file.txt")
    (linked / "root/around").symlink_to("../outside/../root/file.txt")
    files = _confine(linked, WAYS[way])
    assert files.real_path("around") == f"{linked}/root/file.txt"
    (linked / "root/through").symlink_to(linked / "outside/back")
    with pytest.raises(FileError, match="outside"):  # the link in between is not ours to read
        files.open_file("through")


@pytest.mark.parametrize("way", WAYS)
def test_a_root_is_known_by_the_link_that_the_user_gave_and_by_its_real_path(linked: Path, way: str) -> None:
    (linked / "given").symlink_to(linked / "root")
    roots = configured_roots([str(linked / "given")])
    assert roots.folders == (f"{linked}/root",)
    files = ConfinedFiles(roots, open_beneath=WAYS[way])
    for path in (f"{linked}/given/file.txt", f"{linked}/root/file.txt", "file.txt"):
        assert files.real_path(path) == f"{linked}/root/file.txt"
    (linked / "given").unlink()
    (linked / "given").symlink_to(linked / "outside")  # the root stays what it was
    with pytest.raises(FileError, match="does not exist"):
        files.open_file(f"{linked}/given/target.txt")


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_does_not_exist_is_judged_by_its_folder(linked: Path, way: str) -> None:
    files = _confine(linked, WAYS[way])
    assert files.real_path("new.txt") == f"{linked}/root/new.txt"
    with pytest.raises(FileError, match="does not exist"):
        files.real_path("subdir/newfile.txt")
    files.make_folder("subdir")
    assert files.real_path("subdir/newfile.txt") == f"{linked}/root/subdir/newfile.txt"


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_moved_onto_a_link_replaces_the_link(linked: Path, way: str) -> None:
    (linked / "root/target-link").symlink_to(linked / "outside/target.txt")
    _confine(linked, WAYS[way]).move("file.txt", "target-link", overwrite=True)
    assert not (linked / "root/target-link").is_symlink()
    assert (linked / "root/target-link").read_bytes() == b"file"
    assert (linked / "outside/target.txt").read_bytes() == SECRET


# -- a link that appears between the look-up and the use

RACES = {
    "a new file": ("new.txt", "new.txt", "target.txt"),
    "a file": ("file.txt", "file.txt", "target.txt"),
    "a folder": ("newdir", "newdir", "."),
    "a folder above": ("sub1/sub2/file.txt", "sub1", "."),
}
"""The path that is used, what becomes a link meanwhile, and where in the outside that leads."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("case", RACES)
def test_a_link_that_appears_meanwhile_lets_nothing_out(linked: Path, way: str, verb: str, case: str) -> None:
    path, name, target = RACES[case]
    if case == "a folder above":
        (linked / "root/sub1/sub2").mkdir(parents=True)
    before = dict(_files_outside(linked, _roots(linked)))

    def plant() -> None:
        if (linked / "root" / name).exists() and not (linked / "root" / name).is_symlink():
            (linked / "root" / name).rename(linked / "root" / "was")
        if not (linked / "root" / name).is_symlink():
            (linked / "root" / name).symlink_to(linked / "outside" / target)

    files = _confine(linked, _then(WAYS[way], plant))
    try:
        assert VERBS[verb](files, path) != SECRET
    except FileError as error:
        assert SECRET.decode() not in str(error)
    assert dict(_files_outside(linked, _roots(linked))) == before
    assert not [found for found in _regular_files(linked / "root") if found.read_bytes() == SECRET]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_link_that_appears_during_a_write_is_not_followed(linked: Path, way: str, overwrite: bool) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"new "
        (linked / "root/new.txt").symlink_to(linked / "outside/target.txt")
        yield b"content"

    files = _confine(linked, WAYS[way])
    if overwrite:
        files.write("new.txt", chunks())
        assert (linked / "root/new.txt").read_bytes() == b"new content"
        assert not (linked / "root/new.txt").is_symlink()
    else:
        with pytest.raises(FileError, match="exists already"):
            files.write("new.txt", chunks(), overwrite=False)
    assert (linked / "outside/target.txt").read_bytes() == SECRET


def _then(open_beneath: OpenBeneath, act: Callable[[], None]) -> OpenBeneath:
    """Open a folder, then act: when its descriptor is already held and nothing in it is used yet."""

    def opened(root: int, root_path: str, relative: str) -> tuple[int, str]:
        found = open_beneath(root, root_path, relative)
        act()
        return found

    return opened


def _roots(linked: Path) -> Roots:
    return Roots((str(linked / "root"),))


def _confine(linked: Path, open_beneath: OpenBeneath) -> ConfinedFiles:
    return ConfinedFiles(_roots(linked), open_beneath=open_beneath)


def _regular_files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
