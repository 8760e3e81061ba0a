"""The trash: what is deleted can be restored, from any file system, by several processes, after kill -9."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.services import skip

from counts import SOAK, count
from longshore.errors import Cancelled
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.roots import Roots
from longshore.sandbox.trees import DRAFT_PREFIX, MOST_DEPTH
from longshore.toolsets.filesystem.trash import DAY_SECONDS, Trash

from . import trash_kills
from .trees import make_tree

CONTENT = {"file.txt": "text", "folder/inner/one": "1", "folder/two": "22"}
DISTANT = Path("/dev/shm")
"""A file system that is not the one of temporary files, on Linux."""


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "root"
    make_tree(root, CONTENT)
    (root / "link").symlink_to("/etc/hostname")
    return root


@pytest.fixture
def distant(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system."""
    if not DISTANT.is_dir() or DISTANT.stat().st_dev == tmp_path.stat().st_dev:
        skip("a second file system at /dev/shm")
    with tempfile.TemporaryDirectory(dir=DISTANT) as folder:
        yield Path(folder) / "trash"


@pytest.fixture(params=["same file system", "another file system"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "same file system":
        return tmp_path / "trash"
    distant: Path = request.getfixturevalue("distant")
    return distant


def files_in(root: Path, **settings: list[str]) -> ConfinedFiles:
    read_only, deny = settings.get("read_only", []), settings.get("deny", [])
    return ConfinedFiles(Roots((os.path.realpath(root),)), read_only=read_only, deny=deny)


def trash_in(folder: Path, clock: Clock | None = None, **bounds: int) -> Trash:
    most_bytes, most_entries = bounds.get("most_bytes", 1 << 20), bounds.get("most_entries", 100)
    options = {"clock": clock} if clock else {}
    return Trash(str(folder), most_bytes=most_bytes, most_days=7, most_entries=most_entries, **options)


def left_in(folder: Path) -> set[str]:
    """The names in a trash, without its lock."""
    return set(os.listdir(folder)) - {"lock"}


def contents(path: Path) -> dict[str, str]:
    return {str(file.relative_to(path)): file.read_text() for file in path.rglob("*") if file.is_file()}


# -- there and back


def test_a_file_is_restored_with_its_mode(root: Path, folder: Path) -> None:
    files, trash = files_in(root), trash_in(folder)
    (root / "file.txt").chmod(0o751)
    entry = trash.put(files, "file.txt")
    assert not (root / "file.txt").exists()
    assert (entry.path, entry.size) == (str(root / "file.txt"), 4)
    assert re.fullmatch("[0-9a-f]{8}", entry.id)
    assert trash.restore(files, entry.id) == str(root / "file.txt")
    assert (root / "file.txt").read_text() == "text"
    assert (root / "file.txt").stat().st_mode & 0o777 == 0o751
    assert left_in(folder) == set()


def test_a_folder_is_restored_with_all_it_holds(root: Path, folder: Path) -> None:
    files, trash = files_in(root), trash_in(folder)
    before = contents(root / "folder")
    (root / "folder/inner").chmod(0o555)
    entry = trash.put(files, "folder/")
    assert (entry.path, entry.size) == (str(root / "folder"), 3)
    assert not (root / "folder").exists()
    trash.restore(files, entry.id)
    assert contents(root / "folder") == before
    assert (root / "folder/inner").stat().st_mode & 0o777 == 0o555
    assert left_in(folder) == set()
    assert [name for name in os.listdir(root) if name.startswith(DRAFT_PREFIX)] == []


@pytest.mark.parametrize("target", ["/etc/hostname", "folder", "missing", ".."])
def test_a_link_is_moved_and_not_followed(root: Path, folder: Path, target: str) -> None:
    files, trash = files_in(root), trash_in(folder)
    (root / "to").symlink_to(target)
    entry = trash.put(files, "to")
    assert not (root / "to").is_symlink()
    assert entry.path == str(root / "to")
    assert contents(root / "folder") == {"inner/one": "1", "two": "22"}
    trash.restore(files, entry.id)
    assert os.readlink(root / "to") == target


def test_a_name_that_is_no_text_is_restored(root: Path, folder: Path) -> None:
    files, trash = files_in(root), trash_in(folder)
    name = os.fsdecode(b"caf\xe9 \xf0\x9f\x8c\x8a")
    (root / name).write_text("text")
    entry = trash.put(files, name)
    assert trash.restore(files, entry.id) == entry.path == str(root / name)
    assert (root / name).read_text() == "text"


def test_missing_folders_are_made_for_a_restored_file(root: Path, folder: Path) -> None:
    files, trash = files_in(root), trash_in(folder)
    entry = trash.put(files, "folder/inner/one")
    trash.put(files, "folder")
    trash.restore(files, entry.id)
    assert contents(root / "folder") == {"inner/one": "1"}


def test_a_file_is_restored_to_another_path(root: Path, folder: Path) -> None:
    files, trash = files_in(root), trash_in(folder)
    entry = trash.put(files, "file.txt")
    assert trash.restore(files, f" {entry.id.upper()}\n", "new/place.txt") == "new/place.txt"
    assert (root / "new/place.txt").read_text() == "text"
    assert not (root / "file.txt").exists()


def test_the_entries_are_listed_latest_first(root: Path, folder: Path) -> None:
    files, clock = files_in(root), Clock()
    trash = trash_in(folder, clock)
    assert trash.list(files) == []
    first = trash.put(files, "file.txt")
    clock.now += 1.5
    second = trash.put(files, "folder")
    assert trash.list(files) == [second, first]
    assert second.deleted - first.deleted == 1.5
    trash.restore(files, first.id)
    assert trash.list(files) == [second]


def test_only_the_owner_can_look_into_the_trash(root: Path, folder: Path) -> None:
    folder.mkdir(mode=0o755)
    trash_in(folder).put(files_in(root), "file.txt")
    assert folder.stat().st_mode & 0o777 == 0o700


# -- refusals


def refused(action: str, trash: Trash, files: ConfinedFiles, *arguments: str) -> FileError:
    with pytest.raises(FileError) as caught:
        getattr(trash, action)(files, *arguments)
    return caught.value


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".", "root"),
        ("missing", "missing"),
        ("../trash", "outside"),
        ("out/passwd", "outside"),
        ("folder/.env", "denied"),
        ("folder", "denied"),
        ("fixed/file", "read_only"),
        ("fixed", "read_only"),
        ("file.txt/", "not_a_folder"),
    ],
)
def test_put_refuses_as_other_deletions_do(root: Path, folder: Path, path: str, kind: str) -> None:
    make_tree(root, {"folder/.env": "key", "fixed/file": "x"})
    (root / "out").symlink_to("/etc")
    before = contents(root)
    files = files_in(root, read_only=[str(root / "fixed")], deny=[".env"])
    problem = refused("put", trash_in(folder), files, path)
    assert (problem.kind, problem.path) == (kind, path)
    assert contents(root) == before
    assert not folder.exists() or left_in(folder) == set()


@pytest.mark.parametrize("path", ["state", "state/trash", "state/trash/lock"])
def test_the_trash_itself_is_not_deleted(root: Path, path: str) -> None:
    files, trash = files_in(root), trash_in(root / "state/trash")
    trash.put(files, "file.txt")
    assert "the trash is there" in str(refused("put", trash, files, path))


def test_a_move_to_and_from_another_file_system_can_be_cancelled(root: Path, distant: Path) -> None:
    files, trash = files_in(root), trash_in(distant)

    def cancel() -> None:
        raise Cancelled("cancelled")

    before = contents(root)
    with pytest.raises(Cancelled):
        trash.put(files, "folder", cancel)
    assert contents(root) == before and left_in(distant) == set() and trash.list(files) == []
    entry = trash.put(files, "folder")
    with pytest.raises(Cancelled):
        trash.restore(files, entry.id, check=cancel)
    assert trash.list(files) == [entry] and not (root / "folder").exists()
    trash.restore(files, entry.id)
    assert contents(root) == before


def test_restore_refuses_to_overwrite(root: Path, folder: Path) -> None:
    files, trash = files_in(root), trash_in(folder)
    entry = trash.put(files, "file.txt")
    (root / "file.txt").write_text("new")
    for target in ([], ["folder"]):
        problem = refused("restore", trash, files, entry.id, *target)
        assert str(problem).endswith("exists already; restore it to another path")
    assert (root / "file.txt").read_text() == "new"
    trash.restore(files, entry.id, "old.txt")
    assert (root / "old.txt").read_text() == "text"


@pytest.mark.parametrize(
    ("target", "kind"),
    [("../beside", "outside"), ("out/made", "outside"), (".env", "denied"), ("fixed/new", "read_only")],
)
def test_restore_refuses_a_place_that_may_not_be_changed(root: Path, folder: Path, target: str, kind: str) -> None:
    (root / "out").symlink_to(root.parent)
    (root / "fixed").mkdir()
    files, trash = files_in(root, read_only=[str(root / "fixed")], deny=[".env"]), trash_in(folder)
    entry = trash.put(files, "file.txt")
    assert refused("restore", trash, files, entry.id, target).kind == kind
    assert trash.list(files) == [entry]


def test_an_original_place_that_became_a_link_to_the_outside_is_not_written(root: Path, folder: Path) -> None:
    files, trash = files_in(root), trash_in(folder)
    entry = trash.put(files, "folder/two")
    (root / "folder").rename(root / "moved")
    (root.parent / "outside").mkdir()
    (root / "folder").symlink_to(root.parent / "outside")
    refused("restore", trash, files, entry.id)
    assert os.listdir(root.parent / "outside") == []


@pytest.mark.parametrize("id", ["", "0", "lock", "../root/file.txt", "00000000", "file.txt", "\0"])
def test_an_unknown_id_is_refused_with_the_fix(root: Path, folder: Path, id: str) -> None:
    problem = refused("restore", trash_in(folder), files_in(root), id)
    assert problem.kind == "missing"
    assert str(problem).endswith("list the trash to see what can be restored")


def test_entries_from_outside_the_roots_are_neither_listed_nor_restored(root: Path, folder: Path) -> None:
    trash = trash_in(folder)
    entry = trash.put(files_in(root), "file.txt")
    narrow = files_in(root / "folder")
    assert trash.list(narrow) == []
    assert refused("restore", trash, narrow, entry.id, "stolen").kind == "missing"
    denying = files_in(root, deny=["*.txt"])
    assert trash.list(denying) == []
    assert refused("restore", trash, denying, entry.id, "stolen").kind == "missing"
    assert trash.list(files_in(root)) == [entry]


def test_a_trash_that_cannot_be_made_is_named(root: Path) -> None:
    problem = refused("put", trash_in(root / "file.txt/trash"), files_in(root), "folder")
    assert f"the trash {root}/file.txt/trash can't be used (Not a directory)" in str(problem)
    assert problem.path == "folder"


# -- bounds


@pytest.mark.parametrize(("size", "fits"), [(9, True), (10, True), (11, False)])
def test_an_item_larger_than_the_whole_trash_is_refused(root: Path, folder: Path, size: int, fits: bool) -> None:
    files, trash = files_in(root), trash_in(folder, most_bytes=10)
    kept = trash.put(files, "link")
    make_tree(root, {"big/a": "x" * 6, "big/b": "x" * (size - 6)})
    if fits:
        assert trash.put(files, "big").size == size
        return
    problem = refused("put", trash, files, "big")
    assert "11 bytes, and the trash takes 10; delete a part of it, or ask the user" in str(problem)
    assert len(contents(root / "big")) == 2
    assert trash.list(files) == [kept]


@pytest.mark.parametrize(("most", "left"), [(11, ["c", "b"]), (12, ["c", "b", "a"]), (13, ["c", "b", "a"])])
def test_beyond_the_size_the_oldest_entries_are_deleted(root: Path, folder: Path, most: int, left: list[str]) -> None:
    files, clock = files_in(root), Clock()
    trash = trash_in(folder, clock, most_bytes=most)
    make_tree(root, {"a/inner/file": "1234", "b/file": "1234", "c": "1234"})
    for name in "abc":
        trash.put(files, name)
        clock.now += 1
    assert [os.path.basename(entry.path) for entry in trash.list(files)] == left
    assert len(left_in(folder)) == 2 * len(left)


@pytest.mark.parametrize(("number", "left"), [(2, ["1", "0"]), (3, ["2", "1", "0"]), (4, ["3", "2", "1"])])
def test_beyond_the_number_the_oldest_entries_are_deleted(
    root: Path, folder: Path, number: int, left: list[str]
) -> None:
    files, clock = files_in(root), Clock()
    trash = trash_in(folder, clock, most_entries=3)
    for name in map(str, range(number)):
        (root / name).touch()
        trash.put(files, name)
        clock.now += 1
    assert [os.path.basename(entry.path) for entry in trash.list(files)] == left


@pytest.mark.parametrize(("seconds", "listed"), [(-1, True), (0, True), (1, False)])
def test_entries_beyond_the_age_are_deleted(root: Path, folder: Path, seconds: int, listed: bool) -> None:
    files, clock = files_in(root), Clock()
    trash = trash_in(folder, clock)
    entry = trash.put(files, "folder")
    clock.now += 7 * DAY_SECONDS + seconds
    assert trash.list(files) == ([entry] if listed else [])
    assert len(left_in(folder)) == 2 * listed
    if not listed:
        assert refused("restore", trash, files, entry.id).kind == "missing"


def test_a_clock_set_back_does_not_make_the_latest_entry_the_oldest(root: Path, folder: Path) -> None:
    files, clock = files_in(root), Clock()
    trash = trash_in(folder, clock, most_bytes=4)
    trash.put(files, "folder")
    clock.now -= 3600
    entry = trash.put(files, "file.txt")
    assert trash.list(files) == [entry]


@pytest.mark.parametrize(("depth", "fits"), [(MOST_DEPTH - 1, True), (MOST_DEPTH, False)])
def test_a_folder_too_deep_to_be_deleted_later_is_refused(root: Path, tmp_path: Path, depth: int, fits: bool) -> None:
    (root / "deep" / "/".join("d" * depth)).mkdir(parents=True)
    files, clock = files_in(root), Clock()
    trash = trash_in(tmp_path / "trash", clock)
    if not fits:
        assert f"nested more than {MOST_DEPTH} deep" in str(refused("put", trash, files, "deep"))
        return
    trash.put(files, "deep")
    clock.now += 8 * DAY_SECONDS
    assert trash.list(files) == []
    assert left_in(tmp_path / "trash") == set()


def test_other_files_in_the_folder_are_left_alone(root: Path, folder: Path) -> None:
    make_tree(folder, {"notes.txt": "mine", "0123abcd": "mine too"})
    files, trash = files_in(root), trash_in(folder)
    trash.restore(files, trash.put(files, "file.txt").id)
    assert contents(folder) == {"notes.txt": "mine", "0123abcd": "mine too", "lock": ""}


# -- as another user than root, for whom permissions count

UNPRIVILEGED = """
import os, sys
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.roots import Roots
from longshore.toolsets.filesystem.trash import Trash
root, folder, action = sys.argv[1:]
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
os.umask(0o022)
now = 0.0
files = ConfinedFiles(Roots((root,)))
trash = Trash(folder, most_bytes=1000, most_days=1, clock=lambda: now)
if action == "read-only folders inside":
    os.mkdir(f"{root}/top")
    os.mkdir(f"{root}/top/fixed")
    open(f"{root}/top/fixed/file", "w").close()
    os.chmod(f"{root}/top/fixed", 0o555)
    entry = trash.put(files, "top")
    trash.restore(files, entry.id)
    assert os.listdir(f"{root}/top/fixed") == ["file"]
    assert os.stat(f"{root}/top/fixed").st_mode & 0o777 == 0o555
    trash.put(files, "top")
    now = 100_000.0
    assert trash.list(files) == []
    assert os.listdir(folder) == ["lock"], os.listdir(folder)
    assert os.listdir(root) == []
else:
    os.mkdir(f"{root}/fixed")
    open(f"{root}/fixed/file", "w").close()
    os.chmod(f"{root}/fixed", 0o555)
    try:
        trash.put(files, "fixed/file")
    except FileError as problem:
        assert (problem.kind, problem.path) == ("permission", "fixed/file"), problem
        assert os.listdir(folder) == ["lock"], os.listdir(folder)
        assert os.listdir(f"{root}/fixed") == ["file"]
    else:
        raise AssertionError
"""


@pytest.mark.parametrize("action", ["read-only folders inside", "in a folder without write permission"])
def test_permissions_of_a_user_who_is_not_root(folder: Path, action: str) -> None:
    folder.parent.chmod(0o777)
    with tempfile.TemporaryDirectory() as base:
        Path(base).chmod(0o777)
        Path(base, "root").mkdir()
        Path(base, "root").chmod(0o777)
        place = Path(base, "trash") if folder.parent.parent != DISTANT else folder
        run_python("-c", UNPRIVILEGED, os.path.realpath(Path(base, "root")), str(place), action)
        subprocess.run(["chmod", "-R", "u+rwx", base], check=True)  # so that it can be deleted by that user too


def run_python(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, timeout=170 * SOAK)


# -- several processes, and kill -9


def test_threads_and_processes_share_a_trash(root: Path, folder: Path) -> None:
    code = """
import sys
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.roots import Roots
from longshore.toolsets.filesystem.trash import Trash
root, folder, name, turns = sys.argv[1:]
files = ConfinedFiles(Roots((root,)))
trash = Trash(folder, most_bytes=1000, most_days=1)
for turn in range(int(turns)):
    entry = trash.put(files, name)
    assert entry in trash.list(files)
    assert trash.restore(files, entry.id) == entry.path
"""
    names = ["file.txt", "folder", "link", "other"]
    (root / "other").write_text("other")
    before = contents(root)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: run_python("-c", code, str(root), str(folder), name, str(count(10))), names))
        files, trash = files_in(root), trash_in(folder)
        for entry in list(pool.map(lambda name: trash.put(files, name), names)):
            trash.restore(files, entry.id)
    assert contents(root) == before
    assert os.readlink(root / "link") == "/etc/hostname"
    assert left_in(folder) == set()


@pytest.mark.parametrize("path", ["file.txt", "folder", "link"])
def test_kill_9_at_any_line_loses_nothing(root: Path, folder: Path, path: str) -> None:
    run_python(trash_kills.__file__, str(root), str(folder), path, str(count(40)))
