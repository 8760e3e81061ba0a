"""The storage of tokens: private, always whole, shared by processes."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from longshore.client.auth import FileStorage, KeyringStorage, MemoryStorage
from longshore.client.auth.token_store import MOST_BYTES, TokenStore
from longshore.errors import AuthorizationError

from .conftest import login, run, talk
from .oauth_servers import AuthorizationServer, ProtectedServer


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_records_are_read_written_and_deleted(tmp_path: Path) -> None:
    for storage in (MemoryStorage(), FileStorage(tmp_path / "a" / "b" / "oauth.json")):
        assert storage.read("x") is None
        storage.write("x", {"a": 1})
        storage.write("y", {"b": ["ü"]})
        assert storage.read("x") == {"a": 1}
        storage.write("x", None)
        storage.write("never", None)
        assert storage.read("x") is None and storage.read("y") == {"b": ["ü"]}


def test_only_the_owner_can_read(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        FileStorage(tmp_path / "new" / "oauth.json").write("x", {"a": 1})
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o700
    assert {mode(path) for path in (tmp_path / "new").iterdir()} == {0o600}
    path = tmp_path / "new" / "oauth.json"
    path.chmod(0o644)
    assert FileStorage(path).read("x") == {"a": 1}
    assert mode(path) == 0o600


def test_the_default_file_is_in_the_config_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert FileStorage().path == str(tmp_path / "config" / "longshore" / "oauth.json")
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert FileStorage().path == str(tmp_path / ".config" / "longshore" / "oauth.json")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"x": 1}', b"\xff\xfe", b"null", b"[" * 10_000, b" " * (5 << 20)]
)
def test_a_malformed_file_is_renamed_and_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "oauth.json"
    path.write_bytes(content)
    storage = FileStorage(path)
    assert storage.read("x") is None
    assert path.read_bytes() == content
    storage.write("x", {"a": 1})
    assert storage.read("x") == {"a": 1}
    assert (tmp_path / "oauth.json.broken").read_bytes() == content


def test_a_file_never_gets_larger_than_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "oauth.json"
    storage = FileStorage(path)
    storage.write("x", {"a": ""})
    room = MOST_BYTES - path.stat().st_size
    for size in (room - 1, room):
        storage.write("x", {"a": "y" * size})
        assert storage.read("x") == {"a": "y" * size}
    assert path.stat().st_size == MOST_BYTES
    with pytest.raises(OSError, match="more than 4 MiB") as caught:
        storage.write("x", {"a": "y" * (room + 1)})
    assert caught.value.errno == errno.EFBIG and storage.read("x") == {"a": "y" * room}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["oauth.json", "oauth.json.lock"]


WRITER = """
import sys
from longshore.client.auth import FileStorage
path, name = sys.argv[1:]
sys.stdin.readline()
for n in range(15):
    FileStorage(path).write(f"{name} {n}", {"n": n})
"""


def test_processes_lose_nothing_to_each_other(tmp_path: Path) -> None:
    path = tmp_path / "oauth.json"
    command = [sys.executable, "-c", WRITER, str(path)]
    children = [subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE) for n in range(4)]
    for child in children:
        child.communicate(b"go\n", timeout=30)
    assert [child.returncode for child in children] == [0] * 4
    assert len(json.loads(path.read_bytes())) == 60
    assert sorted(each.name for each in tmp_path.iterdir()) == ["oauth.json", "oauth.json.lock"]


HOLDER = """
import sys, time
from longshore.client.auth import FileStorage
assert FileStorage(sys.argv[1]).try_lock(".lock")
print("held", flush=True)
time.sleep(60)
"""


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "oauth.json"
    FileStorage(path).write("x", {"a": 1})
    child = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"held\n"
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=10)
    FileStorage(path).write("y", {"b": 2})
    assert FileStorage(path).read("x") == {"a": 1}
    assert mode(path) == 0o600


def test_waiting_for_a_lock_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.auth.token_store.LOCK_SECONDS", 0.05)
    storage = FileStorage(tmp_path / "oauth.json")
    release = storage.try_lock(".lock")
    assert release is not None
    with pytest.raises(TimeoutError, match="held by another process"):
        storage.write("x", {})
    release()
    storage.write("x", {})


class SlowLock:
    """A storage on a slow file system: taking the lock lasts until the test says so."""

    def __init__(self) -> None:
        self.asked, self.allowed, self.released = threading.Event(), threading.Event(), threading.Event()

    def try_lock(self) -> Callable[[], None]:
        self.asked.set()
        assert self.allowed.wait(10)
        return self.released.set

    def read(self, key: str) -> None:
        return None

    def write(self, key: str, record: Any) -> None:
        pass


def test_a_lock_that_takes_long_does_not_block_the_event_loop() -> None:
    storage = SlowLock()
    store = TokenStore(storage, "")

    async def work() -> None:
        asyncio.get_running_loop().call_soon(storage.allowed.set)
        async with store.process_lock():
            assert not storage.released.is_set()
        assert storage.released.is_set()

    run(work)


def test_a_lock_that_is_taken_after_its_caller_was_cancelled_is_released() -> None:
    storage = SlowLock()
    store = TokenStore(storage, "")

    async def work() -> None:
        async def hold() -> None:
            async with store.process_lock():
                raise AssertionError("it was cancelled before")

        task = asyncio.create_task(hold())
        await asyncio.to_thread(storage.asked.wait, 10)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() and not storage.released.is_set()
        storage.allowed.set()
        assert await asyncio.to_thread(storage.released.wait, 10)

    run(work)


def test_a_login_survives_a_storage_that_can_t_be_written(
    authority: AuthorizationServer, server: ProtectedServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    auth = login(storage=FileStorage(tmp_path / "file" / "oauth.json"))
    assert talk(server, auth) == talk(server, auth) == ["hello"]
    assert authority.count("/authorize") == 1
    said = capfd.readouterr().err
    assert said.count("longshore: the tokens could not be") == 1 and "access-" not in said


def test_malformed_stored_records_lead_to_a_login(authority: AuthorizationServer, server: ProtectedServer) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    for key, record in list(storage._records.items()):
        for broken in ({}, {"issuer": 1}, {**record, "access": "a\r\nb"}, {**record, "client_id": 5}):
            storage.write(key, broken)
            assert talk(server, login(storage=storage)) == ["hello"]


def test_a_file_of_another_user_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "oauth.json"
    FileStorage(path).write("x", {"a": 1})
    owner, before = os.geteuid(), path.read_bytes()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)  # giving it away instead takes root
    with pytest.raises(PermissionError, match="it belongs to another user"):
        FileStorage(path).read("x")
    with pytest.raises(PermissionError, match="it belongs to another user"):
        FileStorage(path).write("x", {"a": 2})
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_a_path_that_is_no_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "oauth.json"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(OSError, match="it is no file"):
            FileStorage(path).read("x")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "oauth.json.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        FileStorage(tmp_path / "oauth.json").write("x", {})
    assert not (tmp_path / "elsewhere").exists()


def test_records_stay_in_memory_until_the_storage_works(capfd: pytest.CaptureFixture[str]) -> None:
    """Records that could not be written or deleted are so in memory, until the storage works."""
    storage = MemoryStorage()
    works: list[bool] = []

    class Sometimes:
        read = storage.read

        def write(self, key: str, record: Any) -> None:
            if not works:
                raise OSError("not now")
            storage.write(key, record)

    store = TokenStore(Sometimes(), "")

    async def work() -> None:
        storage.write("x", {"a": 1})
        await store.write("x", None)
        await store.write("y", {"b": 2})
        assert await store.read("x") is None and await store.read("y") == {"b": 2}
        works.append(True)
        await store.write("x", None)
        await store.write("y", {"b": 3})
        storage.write("x", {"a": 4})
        assert await store.read("x") == {"a": 4} and storage.read("y") == {"b": 3}

    run(work)
    assert capfd.readouterr().err.count("could not be written") == 1


def test_a_keyring_stores_tokens(
    authority: AuthorizationServer, server: ProtectedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[tuple[str, str], str] = {}
    keyring: Any = ModuleType("keyring")
    keyring.get_password = lambda service, name: kept.get((service, name))
    keyring.set_password = lambda service, name, value: kept.update({(service, name): value})
    keyring.delete_password = lambda service, name: kept.pop((service, name))
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    for _ in range(2):
        assert talk(server, login(storage=KeyringStorage())) == ["hello"]
    assert authority.count("/authorize") == 1 and {service for service, _ in kept} == {"longshore"}
    storage = KeyringStorage()
    for key in list(kept):
        storage.write(key[1], None)
        storage.write(key[1], None)
    assert not kept


def test_a_locked_keyring_fails_no_login(
    authority: AuthorizationServer, server: ProtectedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring: Any = ModuleType("keyring")

    def locked(*_: Any) -> None:
        raise RuntimeError("locked")

    keyring.get_password = keyring.set_password = locked
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    assert talk(server, login(storage=KeyringStorage())) == ["hello"]


def test_the_error_without_the_keyring_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(AuthorizationError, match="pip install keyring"):
        KeyringStorage()
