"""Reads on the serving thread: only of what is in memory, and only of ordinary files that are where their path says."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from longshore.errors import WouldBlock
from longshore.sandbox import cached_reads, syscalls
from longshore.sandbox.cached_reads import local_devices, read_cached
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.roots import Roots
from longshore.sandbox.syscalls import FREE_DEVICES, has_cached_open, read_cached_status

from .confined_tree import SECRET, make_tree
from .test_confined_attacks import SWAPS, Swapper

pytestmark = pytest.mark.skipif(not has_cached_open(), reason="needs Linux 5.12")

MOST = 1_000
TMPFS = 0x01021994


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = make_tree(tmp_path)
    if not local_devices((str(base),)):
        pytest.skip("the temporary folder is on a file system that is not read without waiting")
    return base


@pytest.fixture
def memory() -> str:
    """A folder on a tmpfs."""
    if not os.path.ismount("/dev/shm") or device_of("/dev/shm") > FREE_DEVICES:
        pytest.skip("there is no tmpfs")
    return "/dev/shm"


def confine(*roots: Path | str, deny: tuple[str, ...] = ()) -> ConfinedFiles:
    return ConfinedFiles(Roots(tuple(map(str, roots))), deny=deny)


def device_of(path: str) -> int:
    descriptor = os.open(path, os.O_PATH)
    try:
        return read_cached_status(descriptor)[2]
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("path", ["file.txt", "sub/inner.txt", "{base}/allow/file.txt"])
def test_a_file_that_is_in_memory_is_read(base: Path, path: str) -> None:
    path = path.format(base=base)
    assert confine(base / "allow").read_cached(path, MOST) == Path(base / "allow", path).read_bytes()


def test_the_limit_counts_bytes(base: Path) -> None:
    files = confine(base)
    for size in (0, 1, MOST - 1, MOST):
        (base / "sized").write_bytes(b"x" * size)
        assert files.read_cached("sized", MOST) == b"x" * size
    (base / "sized").write_bytes(b"x" * (MOST + 1))
    with pytest.raises(WouldBlock):
        files.read_cached("sized", MOST)


@pytest.mark.parametrize(
    "path",
    [
        "l/secret", "to_secret", "abs_secret", "to_inner", "in/inner.txt", "abs_in/inner.txt", "../secret",
        "sub/../file.txt", "./file.txt", "sub//inner.txt", "file.txt/", "{base}/secret", "{base}/allow_evil/secret",
        "{base}/allow/../secret", "~/file.txt", "file://{base}/allow/file.txt", "", ".", "sub", "fifo", "missing",
        "file.txt/x", "denied.pem", "a\nb", "x" * 256, "sub/" * 200 + "file.txt",
    ],
)  # fmt: skip
def test_every_other_path_is_left_to_the_thread(base: Path, path: str) -> None:
    os.mkfifo(base / "allow/fifo")
    (base / "allow/denied.pem").write_bytes(SECRET)
    files = confine(base / "allow", deny=("*.pem",))
    with pytest.raises(WouldBlock):
        files.read_cached(path.format(base=base), MOST)


def test_without_roots_nothing_is_read() -> None:
    with pytest.raises(WouldBlock):
        confine().read_cached("file.txt", MOST)


def test_pages_that_are_not_in_memory_are_left_to_the_thread(base: Path) -> None:
    size = 64 * os.sysconf("SC_PAGESIZE")
    path = base / "large"
    path.write_bytes(b"x" * size)
    files = confine(base)
    assert len(files.read_cached("large", size)) == size
    with path.open("rb") as file:
        if syscalls._file_system_type(file.fileno()) == TMPFS:
            pytest.skip("all pages of a tmpfs are in memory")
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with pytest.raises(WouldBlock):
        files.read_cached("large", size)
    assert path.read_bytes() == b"x" * size
    assert len(files.read_cached("large", size)) == size, "and afterwards it is in memory again"


def test_a_name_that_is_not_in_memory_is_not_looked_up(base: Path) -> None:
    # Nobody has ever looked for this name, so only the disk knows that it does not exist.
    with pytest.raises(OSError) as caught:
        read_cached(str(base / "never looked for"), local_devices((str(base),)), MOST)
    assert caught.value.errno == errno.EAGAIN


def test_files_of_the_kernel_are_refused_even_if_their_device_is_taken_for_a_disk(
    memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not local_devices(("/proc",))
    with pytest.raises((WouldBlock, BlockingIOError)):
        read_cached("/proc/version", frozenset({device_of("/proc/version")}), MOST)

    # The number of a file system in memory is given to another one when it was unmounted.
    with TemporaryDirectory(dir=memory) as folder:
        path = Path(folder, "file")
        path.write_bytes(b"x")
        devices = local_devices((folder,))
        try:
            assert read_cached(str(path), devices, MOST) == b"x"
        except OSError as problem:
            assert problem.errno == errno.EOPNOTSUPP, "an older tmpfs"
        monkeypatch.setattr(syscalls, "_LOCAL_FILE_SYSTEMS", frozenset[int]())
        with pytest.raises(WouldBlock):
            read_cached(str(path), devices, MOST)


def test_another_file_system_is_left_to_the_thread(base: Path) -> None:
    with pytest.raises(WouldBlock):
        read_cached(str(base / "secret"), frozenset({device_of("/proc")}), MOST)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_file_that_is_not_ours_is_left_to_the_thread() -> None:
    """The kernel lets only the owner read without a new access time, which would be written."""
    code = "\n".join(
        (
            "import os, sys",
            "from longshore.sandbox.cached_reads import local_devices, read_cached",
            "os.setuid(65534)",
            "try: read_cached(sys.argv[1], local_devices((os.path.dirname(sys.argv[1]),)), 1000)",
            "except PermissionError: print('left', open(sys.argv[1]).read())",
        )
    )
    with TemporaryDirectory() as folder:  # that of the test is closed to others
        os.chmod(folder, 0o755)
        path = Path(os.path.realpath(folder), "file")
        path.write_text("of root")
        command = [sys.executable, "-c", code, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "left of root", done.stderr


def test_a_forked_process_reads_by_its_own_descriptors(base: Path) -> None:
    """Those of its parent, whose folder in /proc was open when it forked, are other files or none."""
    code = "\n".join(
        (
            "import os, sys",
            "from longshore.sandbox.cached_reads import local_devices, read_cached",
            "read = lambda: read_cached(sys.argv[1], local_devices((os.path.dirname(sys.argv[1]),)), 1000).decode()",
            "before = read()",
            "if os.fork() == 0:",
            "    print(before, read(), flush=True)",
            "else:",
            "    os.wait()",
        )
    )
    path = base / "allow/forked"
    path.write_text("same")
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["same", "same"], done.stderr


def test_nothing_is_read_where_the_kernel_can_not_say_what_is_in_memory(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_reads, "has_cached_open", lambda: False)
    with pytest.raises(WouldBlock):
        confine(base / "allow").read_cached("file.txt", MOST)


def test_no_descriptor_is_left_open(base: Path) -> None:
    files = confine(base / "allow")
    os.mkfifo(base / "allow/fifo")
    before = os.listdir("/proc/self/fd")
    for path in ("file.txt", "fifo", "to_secret", "missing", "sub"):
        try:
            files.read_cached(path, 2)
        except WouldBlock:
            pass
    assert os.listdir("/proc/self/fd") == before


def test_a_file_that_grows_and_shrinks_is_read_as_it_was_at_some_moment_or_left(base: Path) -> None:
    path, stop = base / "allow/log", threading.Event()
    path.write_bytes(b"")

    def write() -> None:
        with path.open("r+b", buffering=0) as file:
            while not stop.is_set():
                file.seek(0)
                file.truncate()
                for _ in range(20):
                    file.write(b"line\n")

    writer = threading.Thread(target=write)
    writer.start()
    files, read = confine(base / "allow"), list[bytes]()
    try:
        for _ in range(SWAPS):
            try:
                read.append(files.read_cached("log", MOST))
            except WouldBlock:
                continue
    finally:
        stop.set()
        writer.join(60)
    assert read
    assert not [content for content in read if content != b"line\n" * content.count(b"line\n")]


@pytest.mark.parametrize("name", ["swap/f", "f"])
def test_a_race_with_links_lets_nothing_out_and_reads_some_files_at_once(base: Path, name: str) -> None:
    """The folder, or the file itself, is exchanged with a link to the outside."""
    (base / "allow/swap").mkdir()
    (base / "allow" / name).write_bytes(b"inside")
    (base / "outside/f").write_bytes(SECRET)
    swapped = base / "allow" / name.partition("/")[0]
    (base / "allow/spare").symlink_to(base / "outside/f" if name == "f" else base / "outside")
    files, read, left = confine(base / "allow"), list[bytes](), 0
    with Swapper(swapped, base / "allow/spare") as swapper:
        while swapper.swaps < SWAPS or not (read and left):
            try:
                read.append(files.read_cached(name, MOST))
            except WouldBlock:
                left += 1
    assert set(read) == {b"inside"}


def test_only_a_regular_file_is_opened(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that waits for a reader of its pipe must not find us."""
    os.mkfifo(base / "allow/fifo")
    opened = list[object]()
    real = os.open

    def count(path: str, flags: int, dir_fd: int | None = None) -> int:
        if not flags & os.O_PATH:
            opened.append(path)
        return real(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(cached_reads.os, "open", count)
    with pytest.raises(WouldBlock):
        confine(base / "allow").read_cached("fifo", MOST)
    assert opened == []
    confine(base / "allow").read_cached("file.txt", MOST)
    assert len(opened) == 1
