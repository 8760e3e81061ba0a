"""Watches files and folders for changes: by inotify, and by looking once a second elsewhere.

inotify watches the folder that a file is in, because a file that is replaced by a rename is another one afterwards.
Folders are opened without following any link, so a link that replaces one of them leads the watcher nowhere.
"""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread, current_thread
from typing import Final, final

from longshore.sandbox.beneath import open_root
from longshore.sandbox.file_errors import FileError, file_error
from longshore.toolsets.filesystem.inotify import Inotify
from longshore.toolsets.filesystem.watched_folders import WatchedFolders

MOST_PATHS: Final = 1_000
"""Watched at once. Each takes up to two of the user's inotify watches, of which some systems allow 8,192."""
GATHER_SECONDS: Final = 0.1
"""From the first change until it is reported, so that an editor's save, or a burst of writes, is one report."""
POLL_SECONDS: Final = 1.0
"""Between two looks where there is no inotify: a thousand paths take 10 ms."""


@final
class FileWatcher:
    """Calls `changed(path)` when a watched file or folder changes.

    A file changes when it is written, replaced, deleted or made, or its mode or times change; a folder also when a name
    in it appears or disappears. Changes in quick succession are one call. If events were lost, every path is reported.
    inotify does not tell if a folder two or more above a file is renamed, nor what other machines change.

    `changed` is called from a thread of the watcher, one call at a time, and must not raise; `Server.resource_changed`
    may be called from there. All methods may be called from any thread, `changed` included.

    `poll_seconds` looks at all paths in such intervals instead of using inotify.
    """

    def __init__(
        self, changed: Callable[[str], None], *, poll_seconds: float | None = None, most_paths: int = MOST_PATHS
    ) -> None:
        self._changed, self._most_paths = changed, most_paths
        self._poll_seconds = poll_seconds
        self._lock = Lock()
        self._running: _Watch | None = None
        """Made when the first path is added."""

    def add(self, path: str) -> None:
        """Watch a file or folder by its real path; nothing needs to be there. Raises FileError."""
        with self._lock:
            if self._running is None:
                self._running = _Watch(_make_source(self._poll_seconds), self._lock, self._changed)
            source = self._running.source
            if path not in source.paths and len(source.paths) >= self._most_paths:
                detail = f": {self._most_paths:,} paths are watched already, which is the limit"
                raise FileError(path, "failed", detail, "stop watching another one, or watch the folder it is in")
            try:
                source.add(path)
            except OSError as problem:
                source.remove(path)
                raise _explain(path, problem) from None

    def remove(self, path: str) -> None:
        """No longer watch a path. A call for it that has begun goes on."""
        with self._lock:
            if self._running is not None:
                self._running.source.remove(path)

    def close(self) -> None:
        """Stop watching. No call is made, and none is running, when this returns (unless `changed` itself calls it)."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running.stop()


class _Watch:
    """The thread of a watcher, its source of changes and the pipe that ends it."""

    def __init__(self, source: WatchedFolders | _Polling, lock: Lock, changed: Callable[[str], None]) -> None:
        self.source, self._lock, self._changed = source, lock, changed
        self._end, self._stop = os.pipe()
        self._thread = Thread(target=self._run, name="file watcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        os.close(self._stop)
        if current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._wait():
                with self._lock:
                    changed = self.source.take()
                for path in sorted(changed):
                    if path in self.source.paths and not _is_closed(self._end, 0):
                        self._changed(path)
        finally:
            self.source.close()
            os.close(self._end)

    def _wait(self) -> bool:
        """Wait for changes, and a little for more; true if the watcher is closed meanwhile."""
        if isinstance(self.source, _Polling):
            return _is_closed(self._end, self.source.seconds)
        return _is_closed(self._end, None, self.source.descriptor) or _is_closed(self._end, GATHER_SECONDS)


class _Polling:
    """Changes found by looking at every path."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.paths: dict[str, tuple[int, ...] | None] = {}
        """With what was seen there."""

    def add(self, path: str) -> None:
        self.paths.setdefault(path, _look_at(path))

    def remove(self, path: str) -> None:
        self.paths.pop(path, None)

    def take(self) -> set[str]:
        now = {path: _look_at(path) for path in self.paths}
        changed = {path for path, seen in self.paths.items() if now[path] != seen}
        self.paths = now
        return changed

    def close(self) -> None:
        pass


def _make_source(poll_seconds: float | None) -> WatchedFolders | _Polling:
    if poll_seconds is None:
        with suppress(OSError):  # not Linux, or too many instances of this user
            return WatchedFolders(Inotify())
    return _Polling(POLL_SECONDS if poll_seconds is None else poll_seconds)


def _explain(path: str, problem: OSError) -> FileError:
    if problem.errno == errno.ENOSPC:
        fix = "stop watching other paths, or ask the user to raise fs.inotify.max_user_watches"
        return FileError(path, "failed", ": the system allows no more inotify watches", fix)
    return file_error(path, problem)


def _is_closed(end: int, seconds: float | None, other: int | None = None) -> bool:
    """Whether a pipe was closed by its writer within so many seconds, or before `other` could be read."""
    poll = select.poll()
    for descriptor in (end, other):
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN)
    return any(descriptor == end for descriptor, _ in poll.poll(None if seconds is None else seconds * 1000))


def _look_at(path: str) -> tuple[int, ...] | None:
    """The facts of a file that change with it; None if it does not exist or a link is on the way."""
    try:
        folder = open_root(os.path.dirname(path))
    except OSError:
        return None
    try:
        found = os.lstat(os.path.basename(path) or ".", dir_fd=folder)
    except OSError:
        return None
    finally:
        os.close(folder)
    return (found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
