"""The file URIs that clients watch."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import final

from longshore.toolsets.filesystem.watching import FileWatcher


@final
class WatchedFiles:
    """Calls `changed(uri)` when the file or folder of a watched URI changes. Several URIs may mean one file."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._watcher = FileWatcher(self._report)
        self._paths: dict[str, str] = {}
        """The watched URIs, each with its real path."""
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._paths)

    def add(self, uri: str, path: str) -> None:
        """Watch a URI, which means this real path. Raises FileError."""
        self._watcher.add(path)
        with self._lock:
            self._paths[uri] = path

    def remove(self, uri: str) -> None:
        """Watch a URI no longer."""
        with self._lock:
            path = self._paths.pop(uri, None)
            is_last = path not in self._paths.values()
        if path is not None and is_last:
            self._watcher.remove(path)

    def close(self) -> None:
        self._watcher.close()

    def _report(self, path: str) -> None:
        with self._lock:
            uris = [uri for uri, watched in self._paths.items() if watched == path]
        for uri in uris:
            self._changed(uri)
