"""The memory that unfinished request bodies may hold, all of one process together.

A body that arrives in one read is not counted. Any other is counted with its whole length at its first part, so an
admitted body can always finish. A body above the limit waits, and its connection is not read meanwhile; connections
take turns by address. A quarter is left to small bodies and to the beginnings of those that wait. While one waits, or
half of that quarter is taken, the others have to end within `body_seconds`, so a slow client can't hold the memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, final

from longshore.limits import Limits

SMALL_BYTES: Final = 64 << 10
"""A body up to this size never waits for larger ones."""
BOUNDED: Final = "longshore.bounded_uploads"
"""The ASGI extension by which our own server says that it counts bodies itself."""


@final
class PendingUpload:
    """One body that is being received."""

    __slots__ = ("address", "counted", "go_on", "received", "since", "size", "waits")

    def __init__(self, address: str, size: int, received: int, go_on: Callable[[], None]) -> None:
        self.address = address
        self.size = size
        """How long it will be, at most."""
        self.received = received
        self.go_on = go_on
        """Called when it has waited and there is room."""
        self.counted = 0
        self.waits = False
        self.since: float | None = None
        """Since when room is short while it holds some, as far as was noticed."""

    @property
    def large(self) -> bool:
        return self.size > SMALL_BYTES


@final
class Uploads:
    """All unfinished bodies of one process."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.upload_bytes
        self._most_large = self._most - self._most // 4
        self._large = 0
        """Bytes of large bodies that were let in."""
        self._rest = 0
        """Bytes of small ones, and of the beginnings of those that wait."""
        self._seconds = limits.body_seconds
        self._waiting: dict[str, deque[PendingUpload]] = {}
        """By address, the next in turn first."""

    @property
    def held(self) -> int:
        """Bytes that are counted now."""
        return self._large + self._rest

    def add(self, size: int) -> bool:
        """Count so many bytes of a body of unknown length, if there is room for them."""
        if self.held + size > self._most:
            return False
        self._rest += size
        return True

    def remove(self, size: int) -> None:
        self._rest -= size

    def enter(self, upload: PendingUpload) -> bool:
        """Count an upload, or queue it. False: there is no room even for its first part."""
        if upload.large and not self._waiting and self._let_in(upload):
            return True
        count = upload.received if upload.large else upload.size
        if self._rest + count > self._most - self._most_large:
            return False
        self._rest += count
        upload.counted = count
        if upload.large:
            upload.waits = True
            self._waiting.setdefault(upload.address, deque()).append(upload)
        return True

    def leave(self, upload: PendingUpload) -> None:
        """Remove an upload that has ended or was given up."""
        if upload.waits:
            self._unqueue(upload)
        if upload.large and not upload.waits:
            self._large -= upload.counted
        else:
            self._rest -= upload.counted
        upload.counted, upload.waits = 0, False
        while self._waiting and self._let_next_in():
            pass

    def overdue(self, upload: PendingUpload, now: float) -> bool:
        """Whether memory has been short for too long while this upload held some. Checked at intervals."""
        short = self._waiting or self._rest > (self._most - self._most_large) // 2
        if upload.since is None or upload.waits or not short:
            upload.since = now
        return now - upload.since >= self._seconds

    def _let_in(self, upload: PendingUpload) -> bool:
        """Count a large body with its whole length, if it fits; one above the limit, if it is the only one."""
        size = min(upload.size, self._most_large)
        if self._large + size > self._most_large:
            return False
        self._large += size
        upload.counted = size
        return True

    def _let_next_in(self) -> bool:
        """Admit the next upload in turn."""
        address, waiting = next(iter(self._waiting.items()))
        upload, begun = waiting[0], waiting[0].counted
        if not self._let_in(upload):
            return False
        self._rest -= begun
        upload.waits = False
        self._unqueue(upload)
        if waiting:
            self._waiting[address] = self._waiting.pop(address)
        upload.go_on()
        return True

    def _unqueue(self, upload: PendingUpload) -> None:
        waiting = self._waiting[upload.address]
        waiting.remove(upload)
        if not waiting:
            del self._waiting[upload.address]
