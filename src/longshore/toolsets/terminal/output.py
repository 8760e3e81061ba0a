"""The output of a command, in bounded memory.

The first and the last part are in memory, the middle is in a temporary file without a name. Beyond the file's limit the
middle is dropped, and the command continues. A position counts bytes from the beginning of all output, so it stays
valid if output is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, final

from msgspec import Struct

from longshore.registry.token_budget import CHARACTERS_PER_TOKEN, count_tokens, cut_ends, cut_line, fit_lines
from longshore.toolsets.terminal.escapes import show_bytes

HEAD_BYTES: Final = 64 << 10
"""The first part. Most commands print less."""
TAIL_BYTES: Final = 64 << 10
"""The last part. It may grow to twice as much before it is cut."""
FILE_BYTES: Final = 16 << 20
"""In the file. Logs of builds and tests are smaller, and the file of a runaway command fills no disk."""
WINDOW_BYTES: Final = 128 << 10
"""The most that is made readable for one answer, from each end."""
LINE_CHARACTERS: Final = 200
"""Of the last line, for progress and lists."""
_PART_BYTES: Final = 256 << 10


class Excerpt(Struct, frozen=True):
    """A part of the output as text, within a token budget."""

    text: str
    cursor: int
    """The position to read on from."""
    complete: bool
    """Whether nothing was left out, up to the end of the output so far."""


@final
class CommandOutput:
    """The output of a command so far. `close` frees the file; both ends can still be read then."""

    def __init__(self, file_bytes: int = FILE_BYTES) -> None:
        self._most_in_file = file_bytes
        self._head, self._tail = bytearray(), bytearray()
        self._tail_start = HEAD_BYTES
        self._file: int | None = None
        self._in_file = 0
        """The file holds so many bytes, from position HEAD_BYTES on."""
        self.size = 0
        """Bytes printed."""
        self.lines = 0
        """Newlines printed."""

    @property
    def dropped(self) -> int:
        """The number of bytes dropped from the middle."""
        return max(0, self._tail_start - self._kept_until())

    def append(self, data: bytes) -> None:
        """Append output."""
        self.size += len(data)
        self.lines += data.count(b"\n")
        if (room := HEAD_BYTES - len(self._head)) > 0:
            self._head += data[:room]
            data = data[room:]
        if self._file is not None:
            self._write(data)
        self._tail += data
        if (surplus := len(self._tail) - TAIL_BYTES) > TAIL_BYTES:
            if self._file is None:
                self._open()
            del self._tail[:surplus]
            self._tail_start += surplus

    def close(self) -> None:
        """Delete the file."""
        file, self._file, self._in_file = self._file, None, 0
        if file is not None:
            os.close(file)
        self._most_in_file = 0

    # -- bytes

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`, or fewer if the next ones were dropped."""
        parts = list[bytes]()
        while start < end and (part := self._read_part(start, end)):
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def kept_ranges(self) -> list[tuple[int, int]]:
        """The ranges of the output that was not dropped."""
        if not self.dropped:
            return [(0, self.size)]
        return [(0, self._kept_until()), (self._tail_start, self.size)]

    def _kept_until(self) -> int:
        """The end of the beginning that was not dropped, unless the tail continues it."""
        return HEAD_BYTES + self._in_file

    def _read_part(self, start: int, end: int) -> bytes:
        if start < len(self._head):
            return bytes(self._head[start:end])
        if start >= self._tail_start:
            return bytes(self._tail[start - self._tail_start : end - self._tail_start])
        left = self._kept_until() - start
        if self._file is None or left <= 0:
            return b""
        return os.pread(self._file, min(end - start, left), start - HEAD_BYTES)

    def skip_dropped(self, position: int) -> int:
        """The position, or the next one whose output was not dropped."""
        return self._tail_start if self._kept_until() <= position < self._tail_start else position

    def _open(self) -> None:
        """Create the file with the tail, which still holds all output after the head."""
        if not self._most_in_file:
            return
        from tempfile import TemporaryFile

        try:
            with TemporaryFile(buffering=0) as file:
                self._file = os.dup(file.fileno())
        except OSError:
            self._most_in_file = 0  # no space: the part for the file is dropped
        else:
            self._write(self._tail)

    def _write(self, data: bytes | bytearray) -> None:
        room = self._most_in_file - self._in_file
        if room > 0:
            assert self._file is not None
            try:
                self._in_file += (written := os.write(self._file, data[:room]))
            except OSError:
                written = 0
            if written < min(room, len(data)):
                self._most_in_file = self._in_file  # the disk is full

    # -- text

    def ends(self, start: int, max_tokens: int, note: str = "") -> Excerpt:
        """All from `start` if it fits, else its beginning and end, and the number of lines and bytes between them."""
        start, size = min(start, self.size), self.size
        window = min(WINDOW_BYTES, 2 * CHARACTERS_PER_TOKEN * max_tokens)
        raw = self.read(start, size) if size - start <= window else b""
        if len(raw) == size - start:
            first = last = show_bytes(raw)
            if count_tokens(first) <= max_tokens:
                return Excerpt(first, size, True)
        else:
            first = show_bytes(self.read(self.skip_dropped(start), start + window))
            last = show_bytes(self.read(self.skip_dropped(max(start, size - window)), size))
        head, tail = cut_ends(first, last, max_tokens)
        lines = max(0, self._count_lines(start) - head.count("\n") - tail.count("\n") - 1)
        size_left = max(0, size - start - len(head.encode()) - len(tail.encode()) - 1)
        left = f"{lines:,} lines, {size_left:,} bytes" if lines else f"{size_left:,} bytes"
        hint = f"; {cut_line(note, 120)}" if note else ""
        return Excerpt(f"{head}\n[… {left} left out{hint} …]\n{tail}", size, False)

    def page(self, start: int, max_tokens: int) -> Excerpt:
        """As many lines from `start` on as fit. A line that is longer is divided."""
        begin = self.skip_dropped(min(start, self.size))
        skipped = f"[… {begin - start:,} bytes were dropped …]\n" if begin > start else ""
        raw = self.read(begin, min(self.size, begin + WINDOW_BYTES))
        half = max_tokens * CHARACTERS_PER_TOKEN // 2
        if raw.find(b"\n", 0, half) < 0 and len(raw) > half:
            end = _character_end(raw, half)
            return Excerpt(skipped + cut_line(show_bytes(raw[:end]), 2 * half), begin + end, False)
        if begin + len(raw) < self.size and (whole := raw.rfind(b"\n") + 1):
            raw = raw[:whole]
        ends = _line_ends(raw, begin)
        lines = show_bytes(raw).split("\n")[: len(ends)]
        left = self.size - begin

        def rest(index: int) -> str:
            return f"{left - (ends[index - 1] - begin):,} bytes more: cursor={ends[index - 1]}"

        fitted = fit_lines(lines, max_tokens, rest)
        cursor = ends[fitted.end - 1] if ends else begin
        return Excerpt(skipped + fitted.text, cursor, cursor == self.size)

    def tail(self, lines: int, max_tokens: int) -> Excerpt:
        """The last lines, as many of them as fit."""
        begin = self.skip_dropped(max(0, self.size - WINDOW_BYTES))
        shown = show_bytes(self.read(begin, self.size)).removesuffix("\n").split("\n")
        wanted = shown[-lines:]
        text = "\n".join(wanted)
        if count_tokens(text) > max_tokens:
            _, text = cut_ends("", text, max_tokens)
        complete = begin == 0 and text.count("\n") + 1 == len(shown)
        return Excerpt(text, self.size, complete)

    def last_line(self) -> str:
        """The last line that is not blank, for people."""
        raw = self.read(self.skip_dropped(max(0, self.size - 4 * LINE_CHARACTERS)), self.size)
        lines = [line.strip() for line in show_bytes(raw).split("\n") if line.strip()]
        return cut_line(lines[-1], LINE_CHARACTERS) if lines else ""

    def _count_lines(self, start: int) -> int:
        """The newlines from a position on. Those of dropped output are known only together with all before it."""
        begin, end = (start, self.size) if start >= self._tail_start else (0, start)
        steps = range(begin, end, _PART_BYTES)
        found = sum(self.read(at, min(end, at + _PART_BYTES)).count(b"\n") for at in steps)
        return found if start >= self._tail_start else self.lines - found


@final
class WholeLog:
    """All output of a finished command, part by part, with a note where the middle is missing."""

    def __init__(self, output: CommandOutput) -> None:
        self._output = output
        self._note = f"\n[… {output.dropped:,} bytes were dropped here …]\n".encode() if output.dropped else b""

    def __len__(self) -> int:
        return self._output.size - self._output.dropped + len(self._note)

    def __iter__(self) -> Iterator[bytes]:
        for begin, end in self._output.kept_ranges():
            if begin:
                yield self._note
            for start in range(begin, end, _PART_BYTES):
                yield self._output.read(start, min(end, start + _PART_BYTES))


def _line_ends(raw: bytes, begin: int) -> list[int]:
    """The position after each line, including a last one without a newline."""
    ends = list[int]()
    at = 0
    while at < len(raw):
        at = raw.find(b"\n", at) + 1 or len(raw)
        ends.append(begin + at)
    return ends


def _character_end(raw: bytes, end: int) -> int:
    """The last position up to `end` that divides no character."""
    for back in range(4):
        if raw[end - back] & 0xC0 != 0x80:
            return end - back
    return end
