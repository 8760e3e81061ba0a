"""How far a stream was read, and when to come back to it."""

from __future__ import annotations

from typing import Final, final

from longshore.client.http.events import Events

_FIRST: Final = 0.25
_LONGEST: Final = 30.0
_SHORTEST: Final = 0.05
"""A server that wants us back at once gets at most twenty visits a second."""
_FARTHEST: Final = 300.0


@final
class Place:
    """Where one stream is: `last_id` to go on after, `failures` since anything was heard, whether it has `begun`."""

    def __init__(self) -> None:
        self.last_id = ""
        self.failures = 0
        self.begun = False
        self._retry: float | None = None

    def keep(self, events: Events) -> None:
        """Take over what a connection has told of the stream."""
        if events.last_id is not None:
            self.last_id = events.last_id
        if events.retry is not None:
            self._retry = events.retry

    def delay(self) -> float:
        """How long to wait before the next visit: as the server wishes, and longer where nobody was there."""
        patience = min(_LONGEST, _FIRST * (1 << min(self.failures, 20)))
        if self._retry is None:
            return patience
        wished = min(_FARTHEST, max(_SHORTEST, self._retry))
        return wished if not self.failures else max(wished, patience)
