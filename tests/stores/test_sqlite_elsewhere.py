"""The SQLite file under circumstances that need a process of their own: no permission, no room, no end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from services import skip

PREAMBLE = """
import asyncio, ctypes, os, resource, sys
from longshore.errors import StoreError
from longshore.stores.sqlite import SqliteStore

path = sys.argv[1]

async def attempt(use):
    try:
        print("done", await asyncio.wait_for(use, 20))
    except StoreError as error:
        print(error)

def run(body):
    asyncio.run(asyncio.wait_for(body(), 20))
"""


def lines_of(source: str, path: Path) -> list[str]:
    argv = [sys.executable, "-c", PREAMBLE + textwrap.dedent(source), str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=50, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_file_without_write_permission_is_reported() -> None:
    """As a user who is not root, whom no permission stops."""
    source = """
    async def make():
        store = SqliteStore(path)
        await store.set("s:1", b"v", 600)
        await store.close()

    async def use():
        store = SqliteStore(path)
        await attempt(store.set("s:2", b"v", 60))
        await attempt(SqliteStore(path + ".new").check())
        await attempt(SqliteStore(os.path.dirname(path) + "/sub/new.db").check())

    run(make)
    os.chmod(path, 0o444)
    os.chmod(os.path.dirname(path), 0o555)
    if os.getuid() == 0:
        os.setgroups([]), os.setegid(65534), os.seteuid(65534)
    run(use)
    """
    with tempfile.TemporaryDirectory() as folder:  # every start of pytest shuts the folder above `tmp_path` to others
        Path(folder).chmod(0o755)
        path = Path(folder, "shut", "store.db")
        path.parent.mkdir()
        lines = lines_of(source, path)
    fix = "mend that, or name another file in http.store"
    assert lines == [
        f"store {path}: this user may not write the file or its folder; {fix}",
        f"store {path}.new: it can't be made (Permission denied); {fix}",
        f"store {path.parent}/sub/new.db: it can't be made (Permission denied); {fix}",
    ]


def test_the_store_recovers_with_the_disk(tmp_path: Path) -> None:
    """A file may not grow beyond a limit, which for SQLite is a disk that does not write."""
    source = """
    async def body():
        store = SqliteStore(path)
        await store.set("s:1", b"before", 600)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        results = await asyncio.gather(
            *(store.set(f"x:{n}", bytes(50_000), 600) for n in range(10)), return_exceptions=True
        )
        print(any(isinstance(result, StoreError) for result in results), next(filter(None, results)))
        await attempt(store.get("s:1"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await attempt(store.set("s:2", bytes(300_000), 600))
        await attempt(store.get("s:1"))
        await store.close()

    run(body)
    """
    path = tmp_path / "store.db"
    failed, *rest = lines_of(source, path)
    assert failed == f"True store {path}: the disk failed to read or write; check the disk and the room on it"
    assert rest == ["done b'before'", "done None", "done b'before'"]


def test_a_full_disk_is_reported_and_the_store_recovers(tmp_path: Path) -> None:
    """A real one: a small file system in a mount namespace of its own."""
    source = """
    libc = ctypes.CDLL(None, use_errno=True)
    if os.getuid() != 0 and libc.unshare(0x10000000):
        sys.exit(print("no namespace") or 0)
    if libc.unshare(0x00020000) or libc.mount(None, b"/", None, 0x44000, None):
        sys.exit(print("no namespace") or 0)
    folder = os.path.dirname(path)
    if libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, b"size=1m"):
        sys.exit(print("no namespace") or 0)

    async def body():
        with open(folder + "/filler", "wb") as filler:
            filler.write(bytes(500_000))
        store = SqliteStore(path)
        await store.set("s:1", b"before", 600)
        results = await asyncio.gather(
            *(store.set(f"x:{n}", bytes(50_000), 600) for n in range(20)), return_exceptions=True
        )
        print(next(filter(None, results)))
        await attempt(store.get("s:1"))
        os.unlink(folder + "/filler")
        await attempt(store.set("s:2", b"after", 600))
        await attempt(store.get("s:2"))
        await store.close()

    run(body)
    """
    (tmp_path / "small").mkdir()
    path = tmp_path / "small" / "store.db"
    lines = lines_of(source, path)
    if lines == ["no namespace"]:
        skip("this kernel lets nobody mount a file system of his own; run as root to see this test", by_kernel=True)
    full = f"store {path}: the disk is full; make room on it, or name a file elsewhere in http.store"
    assert lines == [full, "done b'before'", "done None", "done b'after'"]


def test_a_store_used_after_a_fork_raises_and_does_not_hang(tmp_path: Path) -> None:
    source = """
    store = SqliteStore(path)
    run(lambda: attempt(store.check()))
    sys.stdout.flush()
    if os.fork() == 0:
        run(lambda: attempt(store.check()))
        sys.stdout.flush()
        os._exit(0)
    os.wait()
    run(lambda: attempt(store.check()))
    run(store.close)
    """
    path = tmp_path / "store.db"
    refused = f"store {path}: the store was opened before a fork, by another process; open a new one"
    assert lines_of(source, path) == ["done None", refused, "done None"]


def test_a_program_may_end_without_closing(tmp_path: Path) -> None:
    source = """
    async def body():
        store = SqliteStore(path)
        await store.listen("t", print)
        await store.set("s:1", b"v", 600)
        print("end")

    run(body)
    """
    assert lines_of(source, tmp_path / "store.db") == ["end"]


def test_a_store_without_free_descriptors_polls(tmp_path: Path) -> None:
    """Without descriptors no socket can be made, so the store polls until there is one."""
    source = """
    import socket

    def sockets():
        return [name for name in os.listdir(path + ".bus") if name != "other.sock"]

    async def until(condition):
        while not condition():
            await asyncio.sleep(0.005)

    async def body():
        store = SqliteStore(path)
        await attempt(store.check())
        os.mkdir(path + ".bus")
        other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        other.bind(path + ".bus/other.sock")
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
        heard = []
        await store.listen("t", heard.append)
        await store.post("t", b"m")
        await until(lambda: heard)
        await attempt(store.check())
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        print(heard)
        await until(sockets)
        print(len(sockets()))
        await store.close()

    run(body)
    """
    path = tmp_path / "store.db"
    assert lines_of(source, path) == ["done None", "done None", "[b'm']", "1"]
