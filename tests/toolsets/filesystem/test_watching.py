"""Watched files and folders: what is reported, by inotify and by polling, and what is not."""

from __future__ import annotations

import asyncio
import errno
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.services import skip

from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.roots import Roots
from longshore.toolsets.filesystem.inotify import Inotify
from longshore.toolsets.filesystem.watching import FileWatcher

from .trees import make_tree

SECONDS = 20.0
"""A bound, not an expectation: a report takes a tenth of a second."""
WAYS = {"inotify": None, "polling": 0.01}


class Watching:
    """A watcher, and its reports in the order in which they came."""

    def __init__(self, root: Path, way: str) -> None:
        self.root = root
        self._reports = queue.Queue[str]()
        self._may_report = threading.Event()
        self._may_report.set()
        self.watcher = FileWatcher(self._changed, poll_seconds=WAYS[way])
        self._last = root / "~" / "last"  # of several changes at once it is reported last, by the order of paths
        self._last.parent.mkdir()
        self._last.touch()
        self.watcher.add(str(self._last))

    def add(self, *names: str) -> None:
        for name in names:
            self.watcher.add(str(self.root / name))

    def next(self) -> str:
        """The next report, by its name in the root."""
        return os.path.relpath(self._reports.get(timeout=SECONDS), self.root)

    def reports(self) -> set[str]:
        """Everything that is reported of what was changed until now."""
        found = set[str]()
        self._change_last()
        while (name := self.next()) != "~/last":
            found.add(name)
        return found

    def hold(self) -> None:
        """Make the next report wait until `release`, and wait until it does."""
        self._may_report.clear()
        self._change_last()
        assert self.next() == "~/last"

    def release(self) -> None:
        self._may_report.set()

    def _change_last(self) -> None:
        with self._last.open("a") as file:  # one change: polling can't see half of it
            file.write(".")

    def _changed(self, path: str) -> None:
        self._reports.put(path)
        assert self._may_report.wait(SECONDS)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    if request.param == "inotify" and not sys.platform.startswith("linux"):
        skip("inotify, which is Linux's", by_kernel=True)
    return str(request.param)


@pytest.fixture
def watching(tmp_path: Path, way: str) -> Iterator[Watching]:
    root = Path(os.path.realpath(tmp_path)) / "root"
    make_tree(root, {"file": "old", "other": "old", "folder/inner/deep": "old", "folder/file": "old"})
    made = Watching(root, way)
    yield made
    made.release()
    made.watcher.close()


def write(root: Path) -> None:
    (root / "file").write_text("longer")


def append(root: Path) -> None:
    with (root / "file").open("a") as file:
        file.write("more")


def replace(root: Path) -> None:
    (root / "draft").write_text("new content")
    (root / "draft").replace(root / "file")


def write_confined(root: Path) -> None:
    ConfinedFiles(Roots((str(root),))).write("file", b"new content")


def delete(root: Path) -> None:
    (root / "file").unlink()


def move_away(root: Path) -> None:
    (root / "file").rename(root / "away")


def become_a_folder(root: Path) -> None:
    (root / "file").unlink()
    (root / "file").mkdir()


def change_mode(root: Path) -> None:
    (root / "file").chmod(0o640)


# -- files


@pytest.mark.parametrize(
    "change", [write, append, replace, write_confined, delete, move_away, become_a_folder, change_mode]
)
def test_a_change_of_a_file_is_reported(watching: Watching, change: Callable[[Path], None]) -> None:
    watching.add("file", "other")
    change(watching.root)
    assert watching.next() == "file"
    assert watching.reports() <= {"file"}  # polling may look in the middle of a change


def test_a_file_is_still_watched_after_it_was_replaced_and_deleted(watching: Watching) -> None:
    watching.add("file")
    for change in (replace, delete, replace, delete, write, replace, append):
        change(watching.root)
        assert watching.reports() == {"file"}


def test_a_file_that_does_not_exist_yet_is_reported_when_it_is_made(watching: Watching) -> None:
    watching.add("new", "one/two/three")
    (watching.root / "new").touch()
    assert watching.reports() == {"new"}
    (watching.root / "one").mkdir()
    watching.reports()
    (watching.root / "one/two").mkdir()
    watching.reports()
    (watching.root / "one/two/three").touch()
    assert watching.reports() == {"one/two/three"}


def test_folders_made_at_once_hide_no_file(watching: Watching) -> None:
    watching.add("one/two/three")
    make_tree(watching.root, {"one/two/three": "new"})
    assert watching.reports() == {"one/two/three"}
    (watching.root / "one/two/three").write_text("newer")
    assert watching.reports() == {"one/two/three"}


def test_reading_and_changes_beside_it_are_not_reported(watching: Watching) -> None:
    watching.add("file")
    (watching.root / "file").read_text()
    os.listdir(watching.root)
    (watching.root / "other").write_text("longer")
    (watching.root / "file.txt").touch()
    assert watching.reports() == set()


# -- folders


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "new").touch(),
        lambda folder: (folder / "new").mkdir(),
        lambda folder: (folder / "new").symlink_to("/"),
        lambda folder: (folder / "file").unlink(),
        lambda folder: (folder / "file").rename(folder / "renamed"),
        lambda folder: (folder / "file").rename(folder.parent / "away"),
        lambda folder: (folder.parent / "other").rename(folder / "arrived"),
    ],
)
def test_a_name_that_appears_or_disappears_in_a_folder_is_reported(
    watching: Watching, change: Callable[[Path], None]
) -> None:
    watching.add("folder")
    change(watching.root / "folder")
    assert watching.reports() == {"folder"}


def test_contents_within_a_folder_are_not_its_own_changes(watching: Watching) -> None:
    watching.add("folder")
    (watching.root / "folder/file").write_text("longer")
    (watching.root / "folder/inner/new").touch()
    assert watching.reports() == set()


def test_a_folder_that_was_deleted_and_made_again_is_still_watched(watching: Watching) -> None:
    watching.add("folder/inner", "folder/inner/deep")
    both = {"folder/inner", "folder/inner/deep"}
    (watching.root / "folder/inner/deep").unlink()
    (watching.root / "folder/inner").rmdir()
    assert watching.reports() == both
    (watching.root / "folder/inner").mkdir()
    (watching.root / "folder/inner/deep").touch()
    assert watching.reports() == both
    (watching.root / "folder/inner/deep").write_text("new")
    assert watching.reports() == {"folder/inner/deep"}
    (watching.root / "folder/inner/new").touch()
    assert watching.reports() == {"folder/inner"}


def test_a_folder_that_is_deleted_while_somebody_has_it_open_is_watched_when_it_is_made_again(
    watching: Watching,
) -> None:
    watching.add("folder/inner/deep")
    opened = os.open(watching.root / "folder/inner", os.O_RDONLY)
    watching.hold()
    (watching.root / "folder/inner/deep").unlink()
    (watching.root / "folder/inner").rmdir()
    watching.release()
    assert watching.reports() == {"folder/inner/deep"}
    make_tree(watching.root, {"folder/inner/deep": "new"})
    assert watching.reports() == {"folder/inner/deep"}
    os.close(opened)


def test_a_folder_that_was_exchanged_by_renames_is_watched_in_its_place(watching: Watching) -> None:
    watching.add("folder/file")
    (watching.root / "folder").rename(watching.root / "old")
    assert watching.reports() == {"folder/file"}
    make_tree(watching.root, {"draft/file": "new"})
    (watching.root / "draft").rename(watching.root / "folder")
    assert watching.reports() == {"folder/file"}
    (watching.root / "old/file").write_text("not watched any more")
    assert watching.reports() == set()
    (watching.root / "folder/file").write_text("newer")
    assert watching.reports() == {"folder/file"}


def test_a_folder_watched_under_its_new_name_before_the_rename_was_read_keeps_both_paths(watching: Watching) -> None:
    watching.add("folder/file")
    watching.hold()
    (watching.root / "folder").rename(watching.root / "renamed")
    watching.add("renamed/file")
    watching.release()
    assert "folder/file" in watching.reports()
    (watching.root / "renamed/file").write_text("longer")
    assert watching.reports() == {"renamed/file"}
    make_tree(watching.root, {"folder/file": "again"})
    assert watching.reports() == {"folder/file"}


# -- links


def test_a_link_put_on_the_way_leads_nowhere(watching: Watching, tmp_path: Path) -> None:
    make_tree(tmp_path / "outside", {"file": "secret"})
    watching.add("folder/file")
    (watching.root / "folder").rename(watching.root / "old")
    (watching.root / "folder").symlink_to(tmp_path / "outside")
    assert watching.reports() == {"folder/file"}
    (tmp_path / "outside/file").write_text("another secret")
    assert watching.reports() == set()


def test_what_a_link_points_to_is_not_watched(watching: Watching, tmp_path: Path) -> None:
    make_tree(tmp_path / "outside", {"file": "secret"})
    (watching.root / "link").symlink_to(tmp_path / "outside")
    watching.add("link", "link/file")
    (tmp_path / "outside/file").write_text("another secret")
    (tmp_path / "outside/new").touch()
    assert watching.reports() == set()
    (watching.root / "link").unlink()
    assert "link" in watching.reports()


# -- bursts and bounds


def test_a_burst_is_one_report(watching: Watching) -> None:
    watching.add("file")
    watching.hold()
    for _ in range(1000):
        append(watching.root)
    watching.release()
    assert watching.next() == "file"
    assert watching.reports() == set()


@pytest.mark.parametrize("way", ["inotify"], indirect=True)
def test_every_path_is_reported_when_events_were_lost(watching: Watching) -> None:
    watching.add("file", "folder/file", "folder/inner", "missing/file")
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    watching.hold()
    for _ in range(most // 4 + 1):
        (watching.root / "other").rename(watching.root / "another")
        (watching.root / "another").rename(watching.root / "other")
    watching.release()
    assert watching.reports() == {"file", "folder/file", "folder/inner", "missing/file"}
    (watching.root / "folder/file").write_text("longer")
    assert watching.reports() == {"folder/file"}


@pytest.mark.parametrize(("number", "refused"), [(2, False), (3, False), (4, True)])
def test_more_paths_than_the_limit_are_refused(tmp_path: Path, way: str, number: int, refused: bool) -> None:
    watcher = FileWatcher(print, poll_seconds=WAYS[way], most_paths=3)
    paths = [str(tmp_path / str(name)) for name in range(number)]
    try:
        for path in [*paths[:3], *paths[:3]]:
            watcher.add(path)
        if refused:
            with pytest.raises(FileError, match="3 paths are watched already, which is the limit; stop watching"):
                watcher.add(paths[3])
            watcher.remove(paths[0])
            watcher.add(paths[3])
    finally:
        watcher.close()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("way", ["inotify"], indirect=True)
def test_the_limit_of_the_system_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(inotify: Inotify, folder: int) -> int:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(Inotify, "watch", refuse)
    watcher = FileWatcher(print)
    try:
        with pytest.raises(FileError, match=r"no more inotify watches; .* raise fs\.inotify\.max_user_watches"):
            watcher.add(str(tmp_path))
    finally:
        watcher.close()


# -- ending


def test_a_removed_path_is_not_reported(watching: Watching) -> None:
    watching.add("file", "other", "folder")
    watching.watcher.remove(str(watching.root / "file"))
    watching.watcher.remove(str(watching.root / "folder"))
    watching.watcher.remove(str(watching.root / "never added"))
    write(watching.root)
    (watching.root / "folder/new").touch()
    (watching.root / "other").unlink()
    assert watching.reports() == {"other"}


def test_close_ends_the_thread_and_gives_its_descriptors_back(tmp_path: Path, way: str) -> None:
    before = len(os.listdir("/dev/fd"))
    watcher = FileWatcher(print, poll_seconds=None if way == "inotify" else 3600.0)
    for path in ("file", "folder/file"):
        watcher.add(str(tmp_path / path))
    assert any(thread.name == "file watcher" for thread in threading.enumerate())
    watcher.close()
    watcher.close()
    assert not any(thread.name == "file watcher" for thread in threading.enumerate())
    assert len(os.listdir("/dev/fd")) == before


def test_a_watcher_that_was_never_used_starts_no_thread() -> None:
    watcher = FileWatcher(print)
    watcher.remove("/nowhere")
    assert not any(thread.name == "file watcher" for thread in threading.enumerate())
    watcher.close()


def test_reports_may_add_remove_and_close(tmp_path: Path, way: str) -> None:
    first, second = (str(Path(os.path.realpath(tmp_path)) / name) for name in ("first", "second"))
    added, closed = threading.Event(), threading.Event()

    def changed(path: str) -> None:
        watcher.remove(path)
        if path == first:
            watcher.add(second)
            added.set()
        else:
            watcher.close()
            closed.set()

    watcher = FileWatcher(changed, poll_seconds=WAYS[way])
    watcher.add(first)
    Path(first).touch()
    assert added.wait(SECONDS)
    thread = next(thread for thread in threading.enumerate() if thread.name == "file watcher")
    Path(second).touch()
    assert closed.wait(SECONDS)
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_a_running_event_loop_takes_the_reports(tmp_path: Path, way: str) -> None:
    path = Path(os.path.realpath(tmp_path)) / "file"

    async def watch() -> str:
        loop, reports = asyncio.get_running_loop(), asyncio.Queue[str]()

        def changed(path: str) -> None:
            loop.call_soon_threadsafe(reports.put_nowait, path)

        watcher = FileWatcher(changed, poll_seconds=WAYS[way])
        watcher.add(str(path))
        path.touch()
        try:
            return await asyncio.wait_for(reports.get(), SECONDS)
        finally:
            watcher.close()

    assert asyncio.run(watch()) == str(path)
