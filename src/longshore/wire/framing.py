"""Newline framing: bytes in, frames out, in linear time and bounded memory.

A frame is one line without its newline. A line over the limit is reported once, as `TOO_LONG`, the moment the limit
is passed, and the rest of it is thrown away up to the next newline: a peer that sends 64 MB without one costs us
nothing. The same bytes give the same frames however they are split.

Short lines come by `feed`, as they were read. A line that grows past `LONG_BYTES` is better read straight into the
memory that `room` offers, and is given as a view of it: fresh memory for 10 MB costs more in page faults than
parsing it does. The view is the caller's until `release`; if somebody still holds it then, the memory is left to
them and not used again.
"""

from __future__ import annotations

from typing import Final, final


@final
class TooLong:
    """Stands in the list of frames for a line that was longer than the limit."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "TOO_LONG"


TOO_LONG: Final = TooLong()
Frame = bytes | memoryview | TooLong

LONG_BYTES: Final = 1 << 16
ROOM_BYTES: Final = 1 << 20
_KEPT_FEEDS: Final = 256
"""How many chunks without a long line pass before the memory for long lines is given back."""


@final
class Framer:
    """Splits a byte stream into frames. `pending` is how many bytes of an unfinished line are held."""

    __slots__ = ("_feeds", "_lent", "_limit", "_long", "_parts", "_skipping", "pending")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._long: bytearray | None = None
        self._lent: memoryview | None = None
        self._feeds = 0
        self._skipping = False
        self.pending = 0

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take a non-empty chunk as it was read; give the frames that it completes, blank lines included."""
        if not self.pending and not self._skipping and chunk[-1] == 10 and len(chunk) <= self._limit:
            if self._long is not None:
                self._forget_long()
            lines: list[Frame] = chunk.split(b"\n")  # type: ignore[assignment]
            lines.pop()
            return lines
        return self._feed_slowly(chunk)

    def close(self) -> list[Frame]:
        """The stream has ended: an unfinished line counts as a frame, so that `printf '…' | serve` is answered."""
        last: list[Frame] = [self._line()] if self.pending else []
        self._drop()
        self._skipping = False
        return last

    # -- long lines

    @property
    def wants_room(self) -> bool:
        """Whether the line at hand is long enough to be read into `room`."""
        return self.pending >= LONG_BYTES

    def room(self) -> memoryview:
        """Where to read the next piece of a long line to; `filled` must say how much came."""
        self.release()
        long = self._long = self._long or bytearray(2 * ROOM_BYTES)
        if len(long) < self.pending + ROOM_BYTES:
            long.extend(bytes(len(long)))
        if self._parts:
            long[: self.pending] = b"".join(self._parts)
            self._parts = []
        return memoryview(long)[self.pending : self.pending + ROOM_BYTES]

    def filled(self, count: int) -> list[Frame]:
        """So much was read into `room`; give the frames that it completes, the first as a view."""
        long = self._long
        assert long is not None
        self._feeds = 0
        end = self.pending + count
        cut = long.find(b"\n", self.pending, end)
        if cut < 0:
            self.pending = end
            return self._check_long()
        rest = bytes(long[cut + 1 : end])
        frames: list[Frame] = [TOO_LONG]
        if cut <= self._limit:
            self._lent = memoryview(long)[:cut]
            frames = [self._lent]
        self._drop()
        return frames + self.feed(rest) if rest else frames

    def release(self) -> None:
        """The view that was given last is no longer wanted."""
        lent, self._lent = self._lent, None
        if lent is not None:
            try:
                lent.release()
            except BufferError:
                self._long = None

    def _check_long(self) -> list[Frame]:
        if self.pending <= self._limit:
            return []
        self._drop()
        self._skipping = True
        return [TOO_LONG]

    def _forget_long(self) -> None:
        self._feeds += 1
        if self._feeds > _KEPT_FEEDS:
            self._long = None

    # -- pieces

    def _feed_slowly(self, chunk: bytes) -> list[Frame]:
        frames: list[Frame] = []
        start = 0
        while (cut := chunk.find(b"\n", start)) >= 0:
            if self._skipping:
                self._skipping = False
            else:
                self._finish(chunk[start:cut], frames)
            start = cut + 1
        if start < len(chunk) and not self._skipping:
            self._hold(chunk[start:] if start else chunk, frames)
        return frames

    def _finish(self, piece: bytes, frames: list[Frame]) -> None:
        if self.pending + len(piece) > self._limit:
            frames.append(TOO_LONG)
        else:
            frames.append(self._line() + piece if self.pending else piece)
        self._drop()

    def _hold(self, piece: bytes, frames: list[Frame]) -> None:
        if self.pending and not self._parts and self._long is not None:
            self._parts.append(bytes(self._long[: self.pending]))  # it began in `room` and goes on in pieces
        self._parts.append(piece)
        self.pending += len(piece)
        frames += self._check_long()

    def _line(self) -> bytes:
        if self._parts or self._long is None:
            return b"".join(self._parts)
        return bytes(self._long[: self.pending])

    def _drop(self) -> None:
        self._parts = []
        self.pending = 0
