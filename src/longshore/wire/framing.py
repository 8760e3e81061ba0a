"""Newline framing: bytes in, frames out, in linear time and bounded memory.

A frame is one line without its newline. A line over the limit is reduced to its first and last bytes, from which its
id can be read; it is reported as `TooLong` when it ends. The same bytes give the same frames however they are
split.

Short lines are passed to `feed` as they were read. A line longer than `LONG_BYTES` is read straight into a reused
buffer that `room` returns, and is given as a view of it: fresh memory for 10 MB costs more in page faults than
parsing it. The view is valid until `release`; if a reference to it is still held then, the buffer is not reused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

from msgspec import Struct


class TooLong(Struct, frozen=True):
    """The first and last bytes of a line longer than the limit."""

    head: bytes
    tail: bytes


Frame = bytes | memoryview | TooLong

END_BYTES: Final = 4096
"""Bytes held of each end of a line over the limit. An id has at most 1,538 bytes, a method less than 100."""
LONG_BYTES: Final = 1 << 16
ROOM_BYTES: Final = 1 << 20
_IDLE_FEEDS: Final = 256
"""Chunks without a long line before the buffer for long lines is freed."""


@final
class Framer:
    """Splits a byte stream into frames. `pending` counts the held bytes of an unfinished line."""

    __slots__ = ("_feeds", "_limit", "_long", "_overlong", "_parts", "_view", "pending")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._long: bytearray | None = None
        self._view: memoryview | None = None
        self._feeds = 0
        self._overlong: TooLong | None = None
        self.pending = 0

    @property
    def overlong(self) -> bool:
        """Whether the unfinished line has passed the limit."""
        return self._overlong is not None

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take a non-empty chunk; return the frames that it completes, blank lines included."""
        if not self.pending and self._overlong is None and chunk[-1] == 10 and len(chunk) <= self._limit:
            if self._long is not None:
                self._count_idle()
            lines: list[Frame] = chunk.split(b"\n")  # type: ignore[assignment]
            lines.pop()
            return lines
        return self._feed_slowly(chunk)

    def close(self) -> list[Frame]:
        """End the stream. An unfinished line counts as a frame, so that `printf '…' | serve` is answered."""
        frames: list[Frame] = []
        if self._overlong is not None:
            self._finish(b"", frames)
        elif self.pending:
            frames.append(self._line())
        self._drop()
        return frames

    # -- long lines

    @property
    def wants_room(self) -> bool:
        """Whether the unfinished line is long enough to be read into `room`."""
        return self.pending >= LONG_BYTES

    def room(self) -> memoryview:
        """The buffer for the next piece of a long line. Call `filled` with the number of bytes read into it."""
        self.release()
        long = self._long = self._long or bytearray(2 * ROOM_BYTES)
        if len(long) < self.pending + ROOM_BYTES:
            long.extend(bytes(self.pending + ROOM_BYTES - len(long)))
        if self._parts:
            long[: self.pending] = b"".join(self._parts)
            self._parts = []
        return memoryview(long)[self.pending : self.pending + ROOM_BYTES]

    def filled(self, count: int) -> list[Frame]:
        """Take `count` bytes read into `room`; return the frames that they complete, the first as a view."""
        long = self._long
        assert long is not None
        self._feeds = 0
        end = self.pending + count
        cut = long.find(b"\n", self.pending, end)
        if cut < 0:
            self.pending = end
            self._check_long()
            return []
        rest = bytes(long[cut + 1 : end])
        frames: list[Frame]
        if cut <= self._limit:
            self._view = memoryview(long)[:cut]
            frames = [self._view]
        else:
            frames = [_ends(long, cut)]
        self._drop()
        return frames + self.feed(rest) if rest else frames

    def release(self) -> None:
        """Release the last view, so that its buffer can be reused."""
        view, self._view = self._view, None
        if view is not None:
            try:
                view.release()
            except BufferError:
                self._long = None

    def _check_long(self) -> None:
        """Reduce a line over the limit to its two ends."""
        if self.pending > self._limit:
            if self._parts or self._long is None:
                self._overlong = TooLong(_first(self._parts), _last(self._parts))
            else:
                self._overlong = _ends(self._long, self.pending)
            self._parts, self.pending = [], 0

    def _count_idle(self) -> None:
        self._feeds += 1
        if self._feeds > _IDLE_FEEDS:
            self._long = None

    # -- pieces

    def _feed_slowly(self, chunk: bytes) -> list[Frame]:
        frames: list[Frame] = []
        start = 0
        while (cut := chunk.find(b"\n", start)) >= 0:
            self._finish(chunk[start:cut], frames)
            start = cut + 1
        if start < len(chunk):
            self._hold(chunk[start:] if start else chunk)
        return frames

    def _finish(self, piece: bytes, frames: list[Frame]) -> None:
        if self._overlong is None and self.pending + len(piece) <= self._limit:
            frames.append(self._line() + piece if self.pending else piece)
        else:
            self._hold(piece)
            assert self._overlong is not None
            frames.append(self._overlong)
        self._drop()

    def _hold(self, piece: bytes) -> None:
        if self._overlong is not None:
            self._overlong = TooLong(self._overlong.head, _last([self._overlong.tail, piece]))
            return
        if self.pending and not self._parts and self._long is not None:
            self._parts.append(bytes(self._long[: self.pending]))  # the line began in `room` and continues in pieces
        self._parts.append(piece)
        self.pending += len(piece)
        self._check_long()

    def _line(self) -> bytes:
        if self._parts or self._long is None:
            return b"".join(self._parts)
        return bytes(self._long[: self.pending])

    def _drop(self) -> None:
        self._parts = []
        self._overlong = None
        self.pending = 0


def _ends(line: bytearray, end: int) -> TooLong:
    return TooLong(bytes(line[: min(end, END_BYTES)]), bytes(line[max(0, end - END_BYTES) : end]))


def _first(parts: Iterable[bytes]) -> bytes:
    head = b""
    for part in parts:
        head += part[: END_BYTES - len(head)]
        if len(head) == END_BYTES:
            break
    return head


def _last(parts: Sequence[bytes]) -> bytes:
    tail = b""
    for part in reversed(parts):
        tail = part[-(END_BYTES - len(tail)) :] + tail
        if len(tail) == END_BYTES:
            break
    return tail
