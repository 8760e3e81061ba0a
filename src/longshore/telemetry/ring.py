"""The ring: the latest events of a server, as the tuples that the recorder was given.

An event costs the call that makes it one tuple and one append. Whoever reads makes records of the events, and removes
secrets. Readers have cursors of their own and never hold up a writer: what was overwritten before it was read is
counted as dropped by the reader that missed it.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, final

Event: TypeAlias = "tuple[Any, ...]"
"""Its number, its kind, and what `events.expand` makes records of."""

_MARGIN = 64
"""Threads that number an event and have not appended it yet: an event may stand so many places after its turn."""


class Batch(NamedTuple):
    """What a reader has not read."""

    events: list[Event]
    cursor: int
    """Where to go on."""
    dropped: int
    """How many events were overwritten before they were read."""


@final
class Ring:
    """The last `size` events. They may be appended by any thread."""

    __slots__ = ("_events", "_lock", "_set_append", "_waiting", "size")

    def __init__(self, size: int, set_append: Callable[[Callable[[Event], object]], None]) -> None:
        """Events come with their numbers, which are consecutive; the first may be any.

        `set_append` is told how to append: otherwise while somebody waits for the next event, so that an append costs
        nothing for that while nobody does.
        """
        self.size = size
        self._events: deque[Event] = deque(maxlen=size)
        self._set_append = set_append
        self._waiting: list[Callable[[], object]] = []
        self._lock = allocate_lock()
        set_append(self._events.append)

    @property
    def last(self) -> int:
        """The number of the last event: a cursor from which only new events are read."""
        try:
            return self._events[-1][0]  # type: ignore[no-any-return]
        except IndexError:
            return 0

    def since(self, cursor: int, most: int | None = None) -> Batch:
        """The events after a cursor, at most so many, the oldest first."""
        found = sorted(event for event in self._tail(cursor) if event[0] > cursor)
        if not found:
            return Batch([], cursor, 0)
        dropped = found[0][0] - cursor - 1
        if dropped and not self._is_overwritten(cursor + 1):
            return Batch([], cursor, 0)  # another thread is about to append it
        whole = 1
        while whole < len(found) and found[whole][0] == found[0][0] + whole:
            whole += 1
        taken = found[:whole] if most is None else found[: min(whole, most)]
        return Batch(taken, taken[-1][0], dropped)

    def _tail(self, cursor: int) -> list[Event]:
        """A copy of the end of the ring, from a little before the cursor."""
        while True:
            try:
                return list(islice(reversed(self._events), max(0, self.last - cursor) + _MARGIN))
            except RuntimeError:  # another thread has appended meanwhile
                continue

    def _is_overwritten(self, number: int) -> bool:
        """Whether an event is no longer there, in contrast to one that is not there yet."""
        return self.last - number >= self.size - _MARGIN

    def notify(self, wake: Callable[[], object]) -> None:
        """Call `wake` once, at the next event, on the thread that makes it. It must be quick and not raise."""
        with self._lock:
            self._waiting.append(wake)
            self._set_append(self._append_and_wake)

    def forget(self, wake: Callable[[], object]) -> None:
        """Call `wake` no longer."""
        with self._lock:
            if wake in self._waiting:
                self._waiting.remove(wake)
            if not self._waiting:
                self._set_append(self._events.append)

    def _append_and_wake(self, event: Event) -> None:
        self._events.append(event)
        with self._lock:
            waiting, self._waiting = self._waiting, []
            self._set_append(self._events.append)
        for wake in waiting:
            wake()
