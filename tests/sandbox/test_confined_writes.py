"""Writes that are interrupted: by kill -9, a full disk, a file size limit or a read-only file system."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest

from counts import count
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.roots import Roots
from longshore.sandbox.trees import DRAFT_PREFIX

from .confined_tree import WAYS

SIZE = 4 << 20
BIG_SIZE = 50 << 20
KILLS = count(10)
_READ_ONLY, _REMOUNT, _DETACH = 1, 32, 2


def files_in(folder: Path, way: str = "kernel") -> ConfinedFiles:
    return ConfinedFiles(Roots((os.path.realpath(folder),)), open_beneath=WAYS[way])


def drafts(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(DRAFT_PREFIX)]


WRITER = """
import sys
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.roots import Roots
files = ConfinedFiles(Roots((sys.argv[1],)))
letters = b"abcdefghijklmnopqrstuvwxyz"

def chunks(letter):
    for number in range(int(sys.argv[3]) // 65_536):
        if sys.argv[2] == "pause" and number == 10:
            print("half", flush=True)
            sys.stdin.read()
        yield letter * 65_536

for number in range(1_000_000):
    letter = letters[number % 26 : number % 26 + 1]
    if sys.argv[2] == "copy":
        files.copy(letter.decode(), f"tree{sys.argv[3]}-{number}")
    else:
        files.write("file", chunks(letter))
    if number == 0:
        print("first", flush=True)
"""


def kill_writer(folder: Path, verb: str, argument: int, delay: float = 0.0) -> None:
    """Start a process that writes without end, and kill it a while after its first line of output."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, os.path.realpath(folder), verb, str(argument)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == (b"half\n" if verb == "pause" else b"first\n")
        try:
            writer.wait(delay)
        except subprocess.TimeoutExpired:
            writer.send_signal(signal.SIGKILL)
    assert writer.returncode == -signal.SIGKILL


def test_a_draft_of_a_killed_process_is_deleted_by_the_next_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    kill_writer(tmp_path, "pause", SIZE)
    assert (tmp_path / "file").read_bytes() == b"old"
    assert len(drafts(tmp_path)) == 1
    files_in(tmp_path).write("other", b"")
    assert drafts(tmp_path) == []


# -- FS-7: a write of 50 MB is killed


def test_after_kill_9_a_file_is_old_or_new_and_never_mixed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"-" * BIG_SIZE)
    chance = random.Random(7)
    for _ in range(KILLS):
        kill_writer(tmp_path, "write", BIG_SIZE, chance.uniform(0.001, 0.05))
        data = path.read_bytes()
        assert len(data) == BIG_SIZE and data == data[:1] * BIG_SIZE
        files_in(tmp_path).write("other", b"")
        assert drafts(tmp_path) == []


def test_after_kill_9_a_copied_folder_is_whole_or_absent(tmp_path: Path) -> None:
    for letter in "abcdefghijklmnopqrstuvwxyz":
        (tmp_path / letter / "inner").mkdir(parents=True)
        for name in range(20):
            (tmp_path / letter / "inner" / str(name)).write_text(letter)
    chance = random.Random(7)
    for kill in range(KILLS):
        kill_writer(tmp_path, "copy", kill, chance.uniform(0.001, 0.03))
        files_in(tmp_path).write("other", b"")  # deletes what is left of the copy
        assert drafts(tmp_path) == []
    trees = list(tmp_path.glob("tree*"))
    assert len(trees) >= KILLS
    for tree in trees:
        texts = [path.read_text() for path in (tree / "inner").iterdir()]
        assert len(texts) == 20 and len(set(texts)) == 1


# -- several writers


def test_writers_in_one_folder_leave_each_others_drafts_alone(tmp_path: Path) -> None:
    files = files_in(tmp_path)

    def write(number: int) -> None:
        for turn in range(count(25)):
            files.write(f"file{number % 4}", f"{number} {turn}\n".encode() * 100)
            files.append("log", b"line\n")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert (tmp_path / "log").read_bytes() == b"line\n" * 8 * count(25)
    for number in range(4):
        lines = (tmp_path / f"file{number}").read_text().splitlines()
        assert len(lines) == 100 and len(set(lines)) == 1
    assert drafts(tmp_path) == []


def test_one_of_many_writers_that_know_the_same_content_succeeds(tmp_path: Path) -> None:
    files = files_in(tmp_path)

    def write(number: int) -> bool:
        try:
            files.write("file", b"%d" % number, expected_hash=known)
        except FileError as error:
            assert error.kind == "changed"
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        for turn in range(count(10)):
            files.write("file", b"known %d" % turn)
            known = sha256(b"known %d" % turn).hexdigest()
            assert sum(pool.map(write, range(8))) == 1
    assert drafts(tmp_path) == []


# -- file systems


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Path]:
    """A file system of 1 MB. Only root may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not sys.platform.startswith("linux") or not mount(folder, 0):
        pytest.skip("may not mount a tmpfs here")
    yield folder
    ctypes.CDLL(None).umount2(os.fsencode(folder), _DETACH)


def mount(folder: Path, flags: int) -> bool:
    options = ctypes.c_char_p(b"size=1m")
    result = ctypes.CDLL(None).mount(b"tmpfs", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(flags), options)
    return bool(result == 0)


def refused(kind: str) -> pytest.RaisesExc[FileError]:
    return pytest.RaisesExc(FileError, check=lambda error: error.kind == kind)


@pytest.mark.parametrize("way", WAYS)
def test_on_a_full_disk_the_old_file_is_intact(disk: Path, way: str) -> None:
    files = files_in(disk, way)
    files.write("file", b"old" * 1000)
    files.make_folder("big")
    files.write("big/part", b"x" * 600_000)
    with refused("no_space"):
        files.write("file", b"n" * 2_000_000)
    with refused("no_space"):
        files.append("file", b"n" * 2_000_000)
    with refused("no_space"):
        files.append("new", b"n" * 2_000_000)
    with refused("no_space"):
        files.copy("big", "copied")
    with refused("no_space"):
        files.copy("big/part", "copied")
    assert (disk / "file").read_bytes() == b"old" * 1000
    assert sorted(os.listdir(disk)) == ["big", "file"]
    files.write("file", b"there is room for this")
    assert (disk / "file").read_bytes() == b"there is room for this"


@pytest.mark.parametrize("way", WAYS)
def test_a_read_only_file_system_is_reported_as_such(disk: Path, way: str) -> None:
    files = files_in(disk, way)
    files.write("file", b"old")
    assert mount(disk, _REMOUNT | _READ_ONLY)
    changes = [
        lambda: files.write("file", b"new"),
        lambda: files.append("file", b"new"),
        lambda: files.make_folder("new"),
        lambda: files.move("file", "new"),
        lambda: files.copy("file", "new"),
        lambda: files.delete("file"),
    ]
    for change in changes:
        with refused("read_only"):
            change()
    with files.open_file("file") as file:
        assert file.read() == b"old"


@pytest.mark.parametrize("way", WAYS)
def test_a_move_to_another_file_system(disk: Path, tmp_path: Path, way: str) -> None:
    files = files_in(tmp_path, way)
    (tmp_path / "tree/inner").mkdir(parents=True)
    (tmp_path / "tree/inner/file").write_bytes(b"content")
    (tmp_path / "tree/link").symlink_to("inner/file")
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "file").chmod(0o640)
    files.move("tree", "disk/tree")
    files.move("file", "disk/file")
    files.move("disk/tree/link", "link")
    assert sorted(os.listdir(tmp_path)) == ["disk", "link"]
    assert (disk / "tree/inner/file").read_bytes() == b"content"
    assert (disk / "file").stat().st_mode & 0o777 == 0o640
    assert os.readlink(tmp_path / "link") == "inner/file"
    (tmp_path / "file").write_bytes(b"other")
    with refused("exists"):
        files.move("file", "disk/file")
    assert (tmp_path / "file").read_bytes() == b"other"
    files.move("file", "disk/file", overwrite=True)
    assert (disk / "file").read_bytes() == b"other"
    (tmp_path / "big").write_bytes(b"x" * 2_000_000)
    with refused("no_space"):
        files.move("big", "disk/big")
    assert (tmp_path / "big").stat().st_size == 2_000_000
    assert sorted(os.listdir(disk)) == ["file", "tree"]


LIMITED = """
import resource, sys
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.roots import Roots
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
files = ConfinedFiles(Roots((sys.argv[1],)))
for size in (999, 1_000, 1_001):
    for change in (lambda: files.write("file", b"n" * size), lambda: files.append("log", b"n" * (size - 10))):
        try:
            change()
            print("fits")
        except FileError as error:
            print(error.kind)
    files.write("log", b"0123456789")
"""


def test_a_file_beyond_the_size_limit_of_the_process_is_refused_whole(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "log").write_bytes(b"0123456789")
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, os.path.realpath(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert run.stdout.split() == ["fits"] * 4 + ["no_space"] * 2, run.stderr
    assert (tmp_path / "file").read_bytes() == b"n" * 1_000
    assert (tmp_path / "log").read_bytes() == b"0123456789"
    assert drafts(tmp_path) == []


# -- another user's files

AS_NOBODY = """
import os, sys
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.roots import Roots
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
files = ConfinedFiles(Roots((sys.argv[1],)))
changes = {
    "unreadable": lambda: files.open_file("private").close(),
    "copy of it": lambda: files.copy("private", "copied"),
    "copy to": lambda: files.copy("passage/inner", "closed/copied"),
    "unwritable folder": lambda: files.write("closed/new", b"new"),
    "unwritable file": lambda: files.append("theirs", b"new"),
    "folder to pass through": lambda: files.open_file("passage/inner").close(),
    "folder to list": lambda: files.list_folder("passage"),
    "replace": lambda: files.write("theirs", b"new"),
    "delete": lambda: files.delete("closed", tree=True),
}
for name, change in changes.items():
    try:
        change()
        print(name, "done", sep=": ")
    except FileError as error:
        print(name, f"{error.kind} {error.path}", sep=": ")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_what_the_operating_system_denies_is_refused_and_replaced_files_lose_special_modes() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # pytest's own folders are closed to other users
        folder = Path(os.path.realpath(name))
        folder.chmod(0o777)
        for path, mode in {"private": 0o600, "theirs": 0o4755, "closed/file": 0o644, "passage/inner": 0o644}.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(b"old")
            (folder / path).chmod(mode)
        (folder / "closed").chmod(0o755)
        (folder / "passage").chmod(0o711)
        run = subprocess.run([sys.executable, "-c", AS_NOBODY, folder], capture_output=True, text=True, timeout=60)
        assert run.stdout.splitlines() == [
            "unreadable: permission private",
            "copy of it: permission private",
            "copy to: permission closed/copied",
            "unwritable folder: permission closed/new",
            "unwritable file: permission theirs",
            "folder to pass through: done",
            "folder to list: permission passage",
            "replace: done",
            "delete: permission closed",
        ], run.stderr
        status = (folder / "theirs").stat()
        assert (status.st_mode & 0o7777, status.st_uid) == (0o755, 65534)
        assert (folder / "closed/file").read_bytes() == b"old"
        assert drafts(folder) == [] == drafts(folder / "closed")
