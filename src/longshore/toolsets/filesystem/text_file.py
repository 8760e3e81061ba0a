"""Parts of a text file, by lines or bytes, that fit a token budget.

A file is never held whole: memory is bounded by the budget, whatever the size of the file or of a line. Lines end with
a line feed, as for `sed` and `grep`; a carriage return before it is not shown.
"""

from __future__ import annotations

import os
import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from longshore.registry.token_budget import (
    CHARACTERS_PER_TOKEN,
    DEFAULT_TOKENS,
    NOTE_CHARACTERS,
    fit_lines,
    json_length,
    longest_prefix,
)
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.file_type import FileType, TextFormat, detect_file_type, plain_text, printable

SCAN_BYTES: Final = 262_144
"""A step when line ends are counted. It fits the processor's cache; larger ones are slower."""
READ_BYTES: Final = 65_536
"""A step when lines are read: most pages need one."""
TAIL_BYTES: Final = 524_288
"""How far `read_tail` reads back: more than the 100,000 characters of the largest budget can take."""
CHEAP_BYTES: Final = 8_388_608
"""The lines of smaller files are counted without being asked: it takes 3 ms."""
LINE_CHARACTERS: Final = 2_000
"""Longer lines are cut: they are data or minified code, and one of them would fill the page."""
_ROUNDING: Final = 8
"""The characters that whole tokens and a line feed may take, at most."""
_MOST_ESCAPED: Final = 6
"""The most characters that JSON makes of one, as in \\u0001."""
_USUAL_LINE_BYTES: Final = 200
"""How much `read_tail` reads for each line at first."""
_CUT_CHARACTERS: Final = 80
"""The room for the mark of a cut line."""


class TextPage(Struct, frozen=True, kw_only=True):
    """A part of a text file."""

    text: str
    """For a model, with a note in brackets of what is left out."""
    first_line: int | None = None
    """The number of the first line, counted from 1; None if it would have to be counted."""
    next_line: int | None = None
    """The `offset` of the next page; None if this one reaches the end of the file."""
    next_byte: int | None = None
    """The `byte_offset` of the next page of bytes."""
    total_lines: int | None = None
    """None if they would have to be counted."""


class _Line(NamedTuple):
    start: int
    end: int
    """The position of its line feed, or of the end of the file."""
    data: bytes
    """Its first bytes, or all."""
    ended: bool
    """Whether a line feed follows."""


class TextFile:
    """A text file that is open for reading, as long as it is now: what is appended meanwhile is not seen.

    `content` is the file's descriptor, or all of its bytes. `each_chunk` is called at every step of a long read, and
    may raise.
    """

    def __init__(
        self, content: int | bytes, file_type: FileType | None = None, each_chunk: Callable[[], object] = lambda: None
    ) -> None:
        """Raises FileError for a binary file. `file_type` is found out if it is not given."""
        file_type = file_type or detect_file_type(content)
        self.size = len(content) if isinstance(content, bytes) else os.fstat(content).st_size
        if file_type.text is None:
            raise FileError(
                "", "binary", f" {file_type.mime} ({self.size:,} bytes)", mime=file_type.mime, size=self.size
            )
        self.format: TextFormat = file_type.text
        self._content, self._each_chunk = content, each_chunk
        self._begin = len(self.format.bom)
        self._line_feed = self.format.encode("\n")
        self._heading = "[not UTF-8: shown as Windows-1252]" if self.format.encoding == "cp1252" else ""

    def read_lines(
        self, offset: int = 1, limit: int | None = None, *, max_tokens: int = DEFAULT_TOKENS, numbered: bool = False
    ) -> TextPage:
        """The lines from line `offset` on, at most `limit`, as many as fit. Raises FileError beyond the end."""
        if offset < 1:
            raise FileError("", "invalid", f"offset={offset}", "lines count from 1")
        if limit is not None and limit < 1:
            raise FileError("", "invalid", f"limit={limit}", "it is at least 1")
        start = self._find_line(offset)
        if short := self._read_short(start, offset, limit, max_tokens, numbered):
            return short
        room = self._line_room(max_tokens)
        numbers = enumerate(self._lines(start, room), offset)
        lines = (self._show(line, room, f"{number}\t" if numbered else "") for number, line in numbers)
        page = fit_lines(_limited(lines, limit, max_tokens), max_tokens, self._more_lines, offset, self._heading)
        if page.complete:
            return TextPage(text=page.text, first_line=offset, total_lines=page.end - 1)
        return TextPage(text=page.text, first_line=offset, next_line=page.end, total_lines=self._cheap_total())

    def _read_short(
        self, start: int, offset: int, limit: int | None, max_tokens: int, numbered: bool
    ) -> TextPage | None:
        """The page of all lines from a position on, if they fit as they are; a tenth of the time of line by line."""
        if self.size - start > READ_BYTES or self.format.width > 1:
            return None
        self._each_chunk()
        text = printable(self.format.decode(self._read(start, self.size - start)))
        lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
        if numbered:
            lines = [f"{number}\t{line}" for number, line in enumerate(lines, offset)]
        most = self._line_room(max_tokens) // _MOST_ESCAPED
        if len(lines) > (limit or len(lines)) or max(map(len, lines), default=0) > most:
            return None
        text = "\n".join([self._heading, *lines] if self._heading else lines)
        if json_length(text) > max_tokens * CHARACTERS_PER_TOKEN:
            return None
        return TextPage(text=text, first_line=offset, total_lines=offset + len(lines) - 1)

    def read_tail(self, count: int, *, max_tokens: int = DEFAULT_TOKENS, numbered: bool = False) -> TextPage:
        """The last `count` lines, or as many of them as fit. Numbers make it count the lines of the whole file."""
        if count < 1:
            raise FileError("", "invalid", f"tail={count}", "it is at least 1")
        lines = deque[_Line]()
        for reach in (min(count * _USUAL_LINE_BYTES, TAIL_BYTES), TAIL_BYTES):
            begin = max(self._begin, self._align(self.size - reach))
            # An empty line takes two characters in JSON, so no more of them fit.
            most = min(count, max_tokens * CHARACTERS_PER_TOKEN // 2)
            lines = deque(self._lines(begin, self._line_room(max_tokens)), most + 1)
            if lines and lines[0].start == begin > self._begin:
                lines.popleft()  # probably the rest of a line
            if len(lines) >= most or begin == self._begin:
                break
        if not lines and self.size > self._begin:
            return self._end_of_line(max_tokens)
        while len(lines) > count:
            lines.popleft()
        return self._show_tail(lines, count, max_tokens, numbered)

    def read_bytes(
        self, byte_offset: int, byte_limit: int | None = None, *, max_tokens: int = DEFAULT_TOKENS
    ) -> TextPage:
        """The text of a range of bytes, or as much of it as fits; line ends are shown as they are."""
        if byte_offset < 0:
            raise FileError("", "invalid", f"byte_offset={byte_offset}", "it is at least 0")
        if byte_limit is not None and byte_limit < 1:
            raise FileError("", "invalid", f"byte_limit={byte_limit}", "it is at least 1")
        if byte_offset > 0 and byte_offset >= self.size:
            what = f"byte {byte_offset:,} is beyond the end: the file has {self.size:,} bytes"
            raise FileError("", "beyond_end", what, "use a smaller byte_offset", size=self.size)
        start = max(self._begin, self._align(byte_offset))
        end = self.size if byte_limit is None else min(self.size, byte_offset + byte_limit)
        room = max_tokens * CHARACTERS_PER_TOKEN
        # A character takes at most four bytes, so one that is cut here does not fit anyway.
        raw = self.format.decode(self._read(start, max(0, min(end - start, room * 4))))
        text = f"{self._heading}\n{printable(raw)}" if self._heading else printable(raw)
        if end == self.size and json_length(text) <= room:
            return TextPage(text=text)
        kept = longest_prefix(text, room - NOTE_CHARACTERS)
        shown = raw[: len(kept) - len(text) + len(raw)]
        after = end if len(kept) == len(text) else start + len(self.format.encode(shown))
        note = f"[… {self.size - after:,} bytes more; byte_offset={after}]" if after < self.size else ""
        return TextPage(text=f"{kept}\n{note}" if note else kept, next_byte=after if note else None)

    def count_lines(self) -> int:
        """How many lines the file has; the last one may lack its line feed."""
        count, last = 0, self._line_feed
        for _, chunk in self._chunks(self._begin, SCAN_BYTES):
            count += _count(chunk, self._line_feed)
            last = chunk[-self.format.width :]
        return count + (last != self._line_feed)

    def _find_line(self, number: int) -> int:
        """The position where a line begins. Exact: every line end before it is counted."""
        remaining = number - 1
        if not remaining:
            return self._begin
        for position, chunk in self._chunks(self._begin, SCAN_BYTES):
            count = _count(chunk, self._line_feed)
            if count >= remaining:
                found = position + _position(chunk, self._line_feed, remaining)
                if found < self.size:
                    return found
            remaining -= count
        total = self.count_lines()
        what = f"line {number:,} is beyond the end: the file has {total:,} lines"
        raise FileError("", "beyond_end", what, "use a smaller offset", total_lines=total, size=self.size)

    def _lines(self, position: int, most_characters: int) -> Iterator[_Line]:
        """The lines from a position on, with at most so many characters of each."""
        most = most_characters * 4
        width, start, head = self.format.width, position, b""
        for at, chunk in self._chunks(position, READ_BYTES):
            begin = 0
            while (end := _find(chunk, self._line_feed, begin)) >= 0:
                yield _Line(start, at + end, (head + chunk[begin : min(end, begin + most)])[:most], True)
                begin = end + width
                start, head = at + begin, b""
            head = (head + chunk[begin : begin + most])[:most]
            position = at + len(chunk)
        if start < position:
            yield _Line(start, position, head, False)

    def _show(self, line: _Line, room: int, number: str) -> str:
        """A line in at most so many JSON characters, with its number; a cut one says where the rest of it is."""
        raw = self.format.decode(line.data)
        if line.ended and len(line.data) == line.end - line.start:
            raw = raw.removesuffix("\r")
        text = number + printable(raw)
        if len(line.data) == line.end - line.start and len(text) <= room and json_length(text) <= room:
            return text
        kept = longest_prefix(text, room - _CUT_CHARACTERS)
        rest = line.start + len(self.format.encode(raw[: len(kept) - len(number)]))
        return f"{kept}… [cut: byte_offset={rest} byte_limit={line.end - rest}]"

    def _show_tail(self, lines: deque[_Line], count: int, max_tokens: int, numbered: bool) -> TextPage:
        """The last of these lines that fit, with a note above them if they are fewer than `count`."""
        total = self.count_lines() if numbered else self._cheap_total()
        room = self._line_room(max_tokens)

        def backwards() -> Iterator[str]:
            for index, line in enumerate(reversed(lines)):
                yield self._show(line, room, f"{total - index}\t" if numbered and total is not None else "")
            if lines and len(lines) < count and lines[0].start > self._begin:
                yield _never_fits(max_tokens)

        def left_out(taken: int) -> str:
            if total is not None:
                first = max(1, total - count + 1)
                missing = total - taken - first + 1
                return f"{_more(missing)} above; offset={first} limit={missing}"
            end = lines[-taken].start
            return f"more lines end at byte {end}; byte_offset={max(0, end - max_tokens)} byte_limit={max_tokens}"

        page = fit_lines(backwards(), max_tokens, left_out, heading=self._heading)
        shown = page.text.split("\n")
        text = "\n".join([*shown[: bool(self._heading)], *reversed(shown[bool(self._heading) :])])
        first = None if total is None else total - page.end + 1
        return TextPage(text=text, first_line=first, total_lines=total)

    def _end_of_line(self, max_tokens: int) -> TextPage:
        """The end of a last line that is longer than what `read_tail` reads."""
        # So few bytes fit even if JSON makes six characters of each.
        page = self.read_bytes(self.size - max_tokens // 2, max_tokens=max_tokens)
        return TextPage(text=f"[the end of a line of over {TAIL_BYTES:,} bytes]\n{page.text}")

    def _more_lines(self, next_line: int) -> str:
        """The note of a page of lines."""
        total = self._cheap_total()
        return f"{'more lines' if total is None else _more(total - next_line + 1)}; offset={next_line}"

    def _cheap_total(self) -> int | None:
        return self.count_lines() if self.size <= CHEAP_BYTES else None

    def _line_room(self, max_tokens: int) -> int:
        """The JSON characters of a line. Even the longest fits a page with its heading and note."""
        return min(LINE_CHARACTERS, max_tokens * CHARACTERS_PER_TOKEN - NOTE_CHARACTERS - len(self._heading) - 2)

    def _align(self, position: int) -> int:
        """The beginning of the UTF-16 unit at a position; the byte order mark is one."""
        return position - position % self.format.width

    def _read(self, position: int, length: int) -> bytes:
        if isinstance(self._content, bytes):
            return self._content[position : position + length]
        return os.pread(self._content, min(length, max(0, self.size - position)), position)

    def _chunks(self, position: int, length: int) -> Iterator[tuple[int, bytes]]:
        """The bytes from a position on, and where each chunk begins."""
        while chunk := self._read(position, length):
            self._each_chunk()
            yield position, chunk
            position += len(chunk)


def whole_text(content: bytes, heading: str, max_tokens: int) -> str | None:
    """A whole file below a heading, as `read_lines` shows it, in a fifth of its time; None if that is not so simple.

    It is if the file is plain ASCII and certainly fits, whatever JSON escapes in it: each character counts as two.
    """
    text = plain_text(content)
    if text is None:
        return None
    room = max_tokens * CHARACTERS_PER_TOKEN - len(heading) - NOTE_CHARACTERS - _ROUNDING
    if len(text) * 2 > room:
        return None
    start, most = 0, min(LINE_CHARACTERS, room) // 2
    while len(text) - start > most:
        start = text.rfind("\n", start, start + most + 1) + 1
        if not start:
            return None  # a line that might be cut
    return heading + text.removesuffix("\n")


def _count(chunk: bytes, line_feed: bytes) -> int:
    """How many line feeds a chunk has."""
    if len(line_feed) == 1:
        return chunk.count(line_feed)
    return array("H", chunk[: len(chunk) // 2 * 2]).count(int.from_bytes(line_feed, sys.byteorder))


def _position(chunk: bytes, line_feed: bytes, number: int) -> int:
    """Where the line after the so manieth line feed of a chunk begins, by halving."""
    width = len(line_feed)
    low, high = 0, len(chunk) // width * width
    while (middle := low + (high - low) // 2 // width * width) > low:
        count = _count(chunk[low:middle], line_feed)
        if count >= number:
            high = middle
        else:
            low, number = middle, number - count
    return high


def _find(chunk: bytes, line_feed: bytes, begin: int) -> int:
    """The position of the next line feed; -1 if there is none."""
    found = chunk.find(line_feed, begin)
    while found >= 0 and found % len(line_feed):  # the halves of two UTF-16 units
        found = chunk.find(line_feed, found + 1)
    return found


def _limited(lines: Iterable[str], limit: int | None, max_tokens: int) -> Iterator[str]:
    """The first `limit` lines; if there are more, a line follows that never fits, so that the page gets its note."""
    for index, line in enumerate(lines):
        if index == limit:
            yield _never_fits(max_tokens)
            return
        yield line


def _more(lines: int) -> str:
    return f"{lines:,} more {'line' if lines == 1 else 'lines'}"


def _never_fits(max_tokens: int) -> str:
    return " " * (max_tokens * CHARACTERS_PER_TOKEN + 1)
