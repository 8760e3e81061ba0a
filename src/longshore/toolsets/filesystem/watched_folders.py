"""The folders that inotify watches for the changes of some paths."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final, final

from longshore.sandbox.beneath import open_root
from longshore.sandbox.trees import DRAFT_PREFIX
from longshore.toolsets.filesystem import inotify
from longshore.toolsets.filesystem.inotify import Event, Inotify

_ENTRIES: Final = inotify.CREATED | inotify.DELETED | inotify.MOVED_FROM | inotify.MOVED_TO
_FOLDER_GONE: Final = inotify.FOLDER_DELETED | inotify.FOLDER_MOVED | inotify.UNMOUNTED
_NO_FOLDER: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


@final
class WatchedFolders:
    """The changes of watched paths, of which inotify tells in the folders that they are in."""

    def __init__(self, source: Inotify) -> None:
        self._inotify = source
        self.descriptor = source.descriptor
        """Can be read when something has changed."""
        self.paths = set[str]()
        self._folders: dict[int, set[str]] = {}
        """inotify's numbers and the paths by which a folder was opened: after a rename it may have two."""

    def add(self, path: str) -> None:
        """Watch a real path. Raises OSError."""
        self.paths.add(path)
        self._watch_around(path)

    def remove(self, path: str) -> None:
        self.paths.discard(path)
        self._drop(lambda folder: _lies_in(path, folder) and not any(_lies_in(p, folder) for p in self.paths))

    def take(self) -> set[str]:
        """The paths that have changed; blocks until there is an event."""
        changed = set[str]()
        for event in self._inotify.read():
            if event.mask & inotify.OVERFLOW:
                self._renew("/", changed)
            for folder in tuple(self._folders.get(event.watch, ())):
                self._apply(folder, event, changed)
        return changed

    def close(self) -> None:
        self._inotify.close()

    def _apply(self, folder: str, event: Event, changed: set[str]) -> None:
        path = os.path.join(folder, event.name)
        if event.mask & _FOLDER_GONE:
            self._renew(folder, changed)
        elif path in self.paths:
            changed.add(path)
            if event.mask & (inotify.DELETED | inotify.MOVED_FROM):
                self._try_to_watch_around(path)  # its folder may be deleted too, and no event says so while it is open
        if event.mask & _ENTRIES:
            if folder in self.paths and not event.name.startswith(DRAFT_PREFIX):
                changed.add(folder)
            if event.mask & inotify.OF_A_FOLDER:
                self._renew(path, changed)

    def _renew(self, top: str, changed: set[str]) -> None:
        """Watch other folders in place of those at and below a path. All watched paths there may have changed."""
        self._drop(lambda folder: _lies_in(folder, top))
        for path in self.paths:
            if _lies_in(path, top):
                changed.add(path)
                self._try_to_watch_around(path)

    def _try_to_watch_around(self, path: str) -> None:
        with suppress(OSError):
            self._watch_around(path)

    def _watch_around(self, path: str) -> None:
        """Watch the folder that a path is in, or the nearest above it that exists; a folder for its entries too."""
        folder, missing = os.path.dirname(path), [path]
        while not self._watch(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        while missing and self._watch(missing.pop()):  # some of them may have been made meanwhile
            pass

    def _watch(self, folder: str) -> bool:
        """Watch a folder, if it is one."""
        try:
            descriptor = open_root(folder)
        except OSError as problem:
            if problem.errno in _NO_FOLDER:
                return False
            raise
        try:
            self._folders.setdefault(self._inotify.watch(descriptor), set()).add(folder)
        finally:
            os.close(descriptor)
        return True

    def _drop(self, is_unwanted: Callable[[str], bool]) -> None:
        for number, folders in tuple(self._folders.items()):
            folders -= {folder for folder in folders if is_unwanted(folder)}
            if not folders:
                del self._folders[number]
                self._inotify.unwatch(number)


def _lies_in(path: str, folder: str) -> bool:
    """As `is_within`, by texts: an event in a large tree asks it of every path."""
    return path == folder or path.startswith(folder if folder == "/" else folder + "/")
