"""Artifacts are read by their own principal only, expire, and stay within the quota."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from longshore.errors import ResourceNotFound, ToolError
from longshore.sandbox.artifacts import READ_BYTES, SWEEP_SECONDS, Artifact, ArtifactStore, safe_name


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> ArtifactStore:
    return ArtifactStore(str(tmp_path / "artifacts"), quota_bytes=100, age_seconds=60, clock=clock)


def is_there(store: ArtifactStore, owner: str, artifact: Artifact) -> bool:
    try:
        return store.find(owner, artifact.id, artifact.name).size == artifact.size
    except ResourceNotFound:
        return False


def test_an_artifact_is_read_back_whole_and_in_ranges(store: ArtifactStore) -> None:
    made = store.put("ann", "log.txt", b"0123456789", "text/plain")
    found = store.find("ann", made.id, made.name)
    assert found == made
    assert made.uri == f"artifact://{made.id}/log.txt"
    assert store.read(found) == b"0123456789"
    assert store.read(found, 4, 3) == b"456"
    assert store.read(found, 10) == b""


def test_one_read_is_bounded(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    made = store.put("ann", "big.bin", b"x" * (READ_BYTES + 1))
    assert len(store.read(made, 0, 10 * READ_BYTES)) == READ_BYTES
    assert store.read(made, READ_BYTES) == b"x"


@pytest.mark.parametrize(
    "kind", ["", "text", "text/plain; charset=utf-8", "a/b/c", "../x", "a~b/c", "text/" + "x" * 61]
)
def test_what_is_no_mime_type_is_refused(store: ArtifactStore, kind: str) -> None:
    with pytest.raises(ToolError, match="is no MIME type, such as text/plain"):
        store.put("ann", "log.txt", b"", kind)


def test_no_other_principal_finds_it(store: ArtifactStore) -> None:
    made = store.put("ann", "log.txt", b"secret")
    with pytest.raises(ResourceNotFound):
        store.find("bob", made.id, made.name)


@pytest.mark.parametrize("id", ["", "..", "../ann", "ABC", "*", "0" * 16])
def test_a_made_up_id_finds_nothing(store: ArtifactStore, id: str) -> None:
    store.put("ann", "log.txt", b"secret")
    with pytest.raises(ResourceNotFound, match="may have expired"):
        store.find("ann", id, "log.txt")


def test_files_can_be_read_by_their_user_only(store: ArtifactStore) -> None:
    made = store.put("ann", "log.txt", b"")
    assert os.stat(made.path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(made.path)).st_mode & 0o777 == 0o700


def test_it_expires_when_it_says(store: ArtifactStore, clock: Clock) -> None:
    made = store.put("ann", "log.txt", b"text")
    assert made.expires == clock.now + 60
    clock.now = made.expires - 1
    assert is_there(store, "ann", made)
    clock.now = made.expires
    assert not is_there(store, "ann", made)


def test_expired_files_are_deleted(store: ArtifactStore, clock: Clock) -> None:
    old = store.put("ann", "old.txt", b"text")
    other = store.put("bob", "old.txt", b"text")
    clock.now += 60
    store.put("ann", "new.txt", b"text")
    assert not os.path.exists(old.path)
    assert os.path.exists(other.path)
    store.sweep()
    assert not os.path.exists(os.path.dirname(other.path))
    assert os.path.exists(os.path.dirname(old.path))


@pytest.mark.parametrize(("later", "there"), [(-1, True), (0, False), (1, False)])
def test_those_of_others_are_deleted_every_hour(store: ArtifactStore, clock: Clock, later: float, there: bool) -> None:
    old = store.put("bob", "old.txt", b"text")
    clock.now += SWEEP_SECONDS + later
    store.put("ann", "new.txt", b"text")
    assert os.path.exists(old.path) is there


@pytest.mark.parametrize(("size", "left"), [(39, 2), (40, 2), (41, 1), (70, 1), (71, 0), (100, 0)])
def test_the_oldest_make_room_within_the_quota(store: ArtifactStore, clock: Clock, size: int, left: int) -> None:
    old = []
    for name in ("a.txt", "b.txt"):
        old.append(store.put("ann", name, b"x" * 30))
        clock.now += 1
    store.put("bob", "c.txt", b"x" * 100)  # another's quota is another's
    new = store.put("ann", "new.txt", b"x" * size)
    assert [is_there(store, "ann", each) for each in old] == [left > 1, left > 0]
    assert is_there(store, "ann", new)


def test_what_exceeds_the_quota_is_refused_and_nothing_is_deleted(store: ArtifactStore) -> None:
    old = store.put("ann", "a.txt", b"x" * 30)
    with pytest.raises(ToolError, match="101 bytes are too large to store; at most 100 are"):
        store.put("ann", "b.txt", b"x" * 101)
    assert is_there(store, "ann", old)


def test_a_folder_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match=r"log.txt can't be stored in .*/file: Not a directory"):
        ArtifactStore(str(tmp_path / "file")).put("ann", "log.txt", b"")


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("page.png", "page.png"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\a b.txt", "a-b.txt"),
        (".bashrc", "bashrc"),
        ("図面.png", "artifact.png"),
        ("..", "artifact"),
        ("", "artifact"),
        ("a\0b\n.txt", "a-b-.txt"),
        ("x" * 200 + ".log", "x" * 76 + ".log"),
    ],
)
def test_names_are_made_safe(name: str, safe: str) -> None:
    assert safe_name(name) == safe
