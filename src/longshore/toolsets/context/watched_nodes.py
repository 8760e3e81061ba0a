"""The resources of the context graph that clients watch, and how their changes are noticed.

The event log is shared by all processes that use a store, so it contains the changes of all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import Final, final

from longshore.errors import StoreError
from longshore.toolsets.context.database import ChangeWatcher
from longshore.toolsets.context.records import Microseconds
from longshore.toolsets.context.selecting import Changes
from longshore.toolsets.context.store import Store

WAIT_SECONDS: Final = 30.0
"""After so long without a change the log is looked at all the same."""
LOOKED_AT: Final = 100
"""Events among which one from before a time is looked for."""
RECENT: Final = "context://recent"
NODE: Final = "context://node/"


@final
class WatchedNodes:
    """Calls `changed(uri)` when a watched resource changes. Its thread runs while a resource is watched."""

    def __init__(self, store: Store, changed: Callable[[str], None]) -> None:
        self._store, self._changed = store, changed
        self._uris = set[str]()
        self._watcher: ChangeWatcher | None = None
        self._thread: Thread | None = None
        self._last_event = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._uris)

    def add(self, uri: str, since: int) -> None:
        """Watch a resource. Changes after the event `since` are reported. Raises StoreError."""
        with self._lock:
            if self._watcher is None:
                watcher = self._store.watch_changes()
                self._last_event = self._store.changes_after(since).last_event
                self._watcher = watcher
                self._thread = Thread(target=self._run, args=(watcher,), name="context watcher", daemon=True)
                self._thread.start()
            self._uris.add(uri)
        if _touches(self._store.changes_after(since), uri):
            self._changed(uri)

    def remove(self, uri: str) -> None:
        """Stop watching a resource. After the last one, the thread ends."""
        with self._lock:
            self._uris.discard(uri)
            if not self._uris and self._watcher is not None:
                self._watcher.close()
                self._watcher = None

    def close(self) -> None:
        """Stop watching all resources, and wait for the thread."""
        for uri in list(self._uris):
            self.remove(uri)
        if self._thread is not None:
            self._thread.join()

    def _run(self, watcher: ChangeWatcher) -> None:
        while True:
            watcher.wait(WAIT_SECONDS)
            with self._lock:
                if watcher is not self._watcher:
                    return
                uris, last = sorted(self._uris), self._last_event
            try:
                changes = self._store.changes_after(last)
            except StoreError:
                continue  # a failing call reports the reason; the next poll may succeed
            with self._lock:
                self._last_event = changes.last_event
            for uri in uris:
                if _touches(changes, uri):
                    self._changed(uri)


def _touches(changes: Changes, uri: str) -> bool:
    """Whether the changes affect a resource."""
    if uri == RECENT:
        return changes.purged or bool(changes.nodes)
    text = uri.removeprefix(NODE).removeprefix("n")
    return changes.purged or (text.isascii() and text.isdigit() and len(text) < 19 and int(text) in changes.nodes)


def last_event_before(store: Store, at: Microseconds) -> int:
    """The number of the newest event before a time."""
    events = store.events(newest_first=True, limit=LOOKED_AT)
    older = next((event.sequence for event in events if event.at < at), None)
    return older if older is not None else events[-1].sequence - 1 if events else 0
