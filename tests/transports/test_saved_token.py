"""The file of the token that the built-in server makes: who can read it, and what lies in its place."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from longshore.errors import ConfigError
from longshore.transports.http_server import endpoint as module
from longshore.transports.http_server.endpoint import saved_token


def test_a_token_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "token"
    before = os.umask(0)
    try:
        token = saved_token(str(path))
    finally:
        os.umask(before)
    assert len(token) == 43  # 256 bits
    assert path.stat().st_mode & 0o777 == 0o600
    assert saved_token(str(path)) == token
    assert os.listdir(tmp_path) == ["token"]


def test_those_who_make_it_at_the_same_time_get_the_same_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All find that there is none before any of them makes one."""
    count = 8
    barrier = Barrier(count)
    make = module._create

    def make_together(path: str) -> None:
        barrier.wait(30)
        make(path)

    monkeypatch.setattr(module, "_create", make_together)
    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(lambda _: saved_token(str(tmp_path / "token")), range(count)))
    assert len(set(found)) == 1
    assert os.listdir(tmp_path) == ["token"]


def test_a_token_that_its_owner_wrote_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("x" * 16)
    path.chmod(0o600)
    assert saved_token(str(path)) == "x" * 16


@pytest.mark.parametrize(
    ("text", "mode", "what"),
    [
        ("", 0o600, "it holds no token"),
        ("x" * 15, 0o600, "it holds no token"),
        ("x" * 8193, 0o600, "it holds no token"),
        ("two words of some length", 0o600, "it holds no token"),
        ("é" * 20, 0o600, "it holds no token"),
        ("x" * 43, 0o640, r"other users may open it \(mode 640\), so they may know the token"),
        ("x" * 43, 0o602, r"other users may open it \(mode 602\), so they may know the token"),
    ],
)
def test_a_file_that_is_damaged_or_open_to_others_is_refused(tmp_path: Path, text: str, mode: int, what: str) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"^{path}, .*: {what}; delete it, and the next start makes a new one$"):
        saved_token(str(path))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x" * 43)
    (tmp_path / "real").chmod(0o600)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "nowhere").symlink_to("gone")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "nowhere", "folder", "pipe"):
        with pytest.raises(ConfigError, match="it is not a regular file; delete it"):
            saved_token(str(tmp_path / name))


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "token")
    saved_token(path)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(ConfigError, match=rf"it belongs to another user \(uid {owner}\); delete it"):
        saved_token(path)


def test_where_no_file_can_be_made_it_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        saved_token(str(tmp_path / "missing" / "token"))
