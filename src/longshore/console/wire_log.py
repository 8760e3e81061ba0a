"""The frames of all transports, without secrets, for one page that asks for them."""

from __future__ import annotations

from asyncio import sleep
from collections import deque
from collections.abc import Callable
from itertools import count
from time import time
from typing import Any, Final, TypeAlias, final

from longshore.server.frame_tap import Direction, FrameTap
from longshore.server.link import Link
from longshore.telemetry.redactor import redact_json

SHOWN_CHARACTERS: Final = 16 << 10
"""Of a frame."""
_KEPT_BYTES: Final = 2 * SHOWN_CHARACTERS
"""Of a frame until it is read: a secret that is cut off looks like none."""
WAITING: Final = 1000
"""Frames that wait for the page. More overwrite the oldest, and are counted."""
WAITING_BYTES: Final = 4 << 20
"""Of these frames: a page that is slow, or stopped, must not cost more."""
AT_ONCE: Final = 25
"""Frames of one event, five times a second."""
_Waiting: TypeAlias = tuple[int, float, Direction, Link | None, int, bytes]


@final
class WireLog:
    """Collects frames from `open` to `close`."""

    def __init__(self, tap: FrameTap) -> None:
        self._tap = tap
        self._frames: deque[_Waiting] = deque()
        self._number = count(1).__next__
        self._bytes = 0
        self._dropped = 0
        self._end: Callable[[], None] = lambda: None

    def open(self) -> None:
        self._end = self._tap.add(self._take)

    def close(self) -> None:
        self._end()
        self._frames.clear()
        self._bytes = 0

    def _take(self, direction: Direction, link: Link | None, frame: bytes) -> None:
        kept = frame[:_KEPT_BYTES]
        self._frames.append((self._number(), time(), direction, link, len(frame), kept))
        self._bytes += len(kept)
        while len(self._frames) > WAITING or self._bytes > WAITING_BYTES:
            self._pop()
            self._dropped += 1

    def _pop(self) -> _Waiting:
        frame = self._frames.popleft()
        self._bytes -= len(frame[-1])
        return frame

    async def read(self) -> dict[str, Any] | None:
        """The next frames, and how many were lost before them. None: there are none.

        To look for secrets in a frame takes from 0.2 ms to 2 ms, so the loop does other work after each.
        """
        if not self._frames:
            return None
        taken = [self._pop() for _ in range(min(len(self._frames), AT_ONCE))]
        dropped, self._dropped = self._dropped, 0
        frames: list[dict[str, Any]] = []
        for each in taken:
            frames.append(_describe(*each))
            await sleep(0)
        return {"dropped": dropped, "frames": frames}


def _describe(n: int, at: float, direction: Direction, link: Link | None, size: int, frame: bytes) -> dict[str, Any]:
    source = None if link is None else link.source or link.describe()
    return {
        "n": n,
        "time": at,
        "direction": direction,
        "session": "" if source is None else source.session,
        "principal": "" if source is None else source.principal,
        "transport": "http" if source is None else source.transport,
        "bytes": size,
        "text": redact_json(frame, SHOWN_CHARACTERS),
    }
