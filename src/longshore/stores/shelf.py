"""Things with an expiry, the soonest at hand."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")

SLACK = 64
"""Outdated notes that a shelf tolerates on top of one for each entry, before it writes its notes anew."""


class _Entry(Struct, Generic[T], gc=False):
    value: T
    expires: float
    noted: float
    """When the notes say that it expires: then or earlier, never later."""


class Shelf(Generic[T]):
    """A dict with expiry, and a heap of notes (when, key) that says what to look at next.

    A touch moves the expiry but not the note, so it costs no more than a lookup: a note that comes due too early is
    written again with the real time. Notes of dropped entries are tolerated up to the number of entries.
    """

    __slots__ = ("_entries", "_notes")

    def __init__(self) -> None:
        self._entries: dict[str, _Entry[T]] = {}
        self._notes: list[tuple[float, str]] = []

    def __len__(self) -> int:
        """How many there are, expired ones that were not swept yet included."""
        return len(self._entries)

    def get(self, key: str, now: float) -> T | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.expires <= now:
            self.drop(key)
            return None
        return entry.value

    def put(self, key: str, value: T, expires: float, now: float) -> None:
        entry = self._entries.get(key)
        if entry is None:
            self.sweep(now)
            self._entries[key] = _Entry(value, expires, expires)
            heappush(self._notes, (expires, key))
        else:
            entry.value = value
            self._expire(key, entry, expires)

    def touch(self, key: str, expires: float, now: float) -> bool:
        entry = self._entries.get(key)
        if entry is None or entry.expires <= now:
            return False
        self._expire(key, entry, expires)
        return True

    def drop(self, key: str) -> None:
        if self._entries.pop(key, None) is not None:
            self._tidy()

    def sweep(self, now: float) -> None:
        """Free what has expired. Costs nothing but a look while nothing has."""
        notes = self._notes
        while notes and notes[0][0] <= now:
            self._take_soonest(now)
        self._tidy()

    def items(self, prefix: str, now: float) -> dict[str, T]:
        """Those with a prefix, the soonest to expire first."""
        found = [item for item in self._entries.items() if item[1].expires > now and item[0].startswith(prefix)]
        found.sort(key=lambda item: item[1].expires)
        return {key: entry.value for key, entry in found}

    def _expire(self, key: str, entry: _Entry[T], expires: float) -> None:
        entry.expires = expires
        if expires < entry.noted:
            entry.noted = expires
            heappush(self._notes, (expires, key))
            self._tidy()

    def _take_soonest(self, now: float) -> None:
        """Take the first note, and drop what it is about, unless the note is outdated or too early."""
        noted, key = heappop(self._notes)
        entry = self._entries.get(key)
        if entry is None or entry.noted != noted:
            return
        if entry.expires > now:
            entry.noted = entry.expires
            heappush(self._notes, (entry.noted, key))
        else:
            del self._entries[key]

    def _tidy(self) -> None:
        """Rewrite the notes, and the dict without its holes, when most notes are of what is gone."""
        if len(self._notes) > 2 * len(self._entries) + SLACK:
            self._entries = dict(self._entries)
            self._notes = [(entry.noted, key) for key, entry in self._entries.items()]
            heapify(self._notes)
