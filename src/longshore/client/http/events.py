"""Server-sent events: bytes in, events out, however the bytes are cut.

What a stream says of itself, the last id and after how long to come back, is kept beside the events: it outlives them.
"""

from __future__ import annotations

from typing import Final, final

from msgspec import Struct

_BOM: Final = b"\xef\xbb\xbf"
_MOST_ID: Final = 4096
"""A longer id would not get back in a header."""
_MOST_DIGITS: Final = 9


class TooLong(ValueError):
    """An event is larger than a message may be."""


class Event(Struct, frozen=True):
    """One event with data. `kind` is "message" where the server says nothing else."""

    data: bytes
    kind: str = "message"


@final
class Events:
    """Reads one stream. `most` bounds one event, all its lines together."""

    def __init__(self, most: int) -> None:
        self.last_id: str | None = None
        """The id of the last whole event that had one, or of an event without data."""
        self.retry: float | None = None
        """Seconds after which the server wants us back."""
        self._most = most
        self._part: list[bytes] = []
        self._size = 0
        self._whole = 0
        """How much of `_size` is lines that are whole."""
        self._skip_newline = False
        self._first = True
        self._data: list[bytes] = []
        self._kind = ""
        self._id: str | None = None

    def feed(self, data: bytes) -> list[Event]:
        """The events that are whole now. Raises TooLong."""
        if not data:
            return []
        if self._skip_newline:
            self._skip_newline = False
            data = data.removeprefix(b"\n")
        found: list[Event] = []
        for line in data.splitlines(keepends=True):
            self._size += len(line)
            if self._size > self._most:
                self.last_id = self.last_id if self._id is None else self._id  # it can't be had: go on behind it
                raise TooLong(f"an event of more than {self._most:,} bytes")
            if line[-1] not in b"\r\n":
                self._part.append(line)
                return found  # the last one: its end is still to come
            self._take(self._joined(line.rstrip(b"\r\n")), found)
            self._whole = self._size
        self._skip_newline = data[-1:] == b"\r"
        return found

    def _joined(self, line: bytes) -> bytes:
        if self._part:
            line = b"".join((*self._part, line))
            self._part.clear()
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        return line

    def _take(self, line: bytes, found: list[Event]) -> None:
        if not line:
            self._dispatch(found)
            return
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if name == b"data":
            self._data.append(value)
        elif not name:
            self._size = self._whole  # a comment: they may come for ever
        else:
            self._take_field(name, value.decode("utf-8", "replace"))

    def _take_field(self, name: bytes, text: str) -> None:
        if name == b"event":
            self._kind = text
        elif name == b"id" and len(text) <= _MOST_ID and (text.isprintable() or not text):
            self._id = text
        elif name == b"retry" and len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit():
            self.retry = int(text) / 1000

    def _dispatch(self, found: list[Event]) -> None:
        if self._id is not None:
            self.last_id = self._id
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        if data:
            found.append(Event(data, self._kind or "message"))
        self._data = []
        self._kind, self._id, self._size = "", None, 0
