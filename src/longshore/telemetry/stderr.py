"""The stderr sink: pretty on a terminal, JSON lines otherwise. It never blocks and never fails a request.

Clients hand us a pipe as stderr and some never read it. A blocking write would hang the server once 64 KiB are full,
and O_NONBLOCK would change the parent's terminal. So each write is at most PIPE_BUF bytes and is made only if the
kernel says that it fits; what does not fit is dropped and counted.
"""

from __future__ import annotations

import os
import select
import sys
from time import gmtime, strftime
from typing import Literal, final

import msgspec

from longshore.telemetry.records import LEVELS, Level, Problem, Record, RequestCompleted, ToolCompleted, level_of

PIECE_BYTES = 4096
"""PIPE_BUF on Linux: a pipe that polls writable takes this much without blocking."""

FIELD_CHARACTERS = 2048
"""Of one field of a JSON line: some twenty lines of text. A client's text must not fill the log."""

TRACE_CHARACTERS = 16 << 10
"""Of a trace, its end, with the message: more than a hundred frames, and a quarter of a pipe's buffer."""

_COLOURS = {"debug": "2", "info": "0", "notice": "36", "warning": "33", "error": "31"}
_encode = msgspec.json.Encoder().encode


@final
class StderrSink:
    """Writes records at or above a level to a file descriptor."""

    def __init__(
        self, level: Level = "warning", style: Literal["auto", "pretty", "json"] = "auto", fd: int = 2
    ) -> None:
        self._rank = LEVELS.index(level)
        self._fd = fd
        self._pretty = style == "pretty" or (style == "auto" and os.isatty(fd))
        self._torn = False
        """Whether the last line lacks its end."""
        self.dropped = 0

    def __call__(self, record: Record) -> None:
        level = level_of(record)
        if LEVELS.index(level) >= self._rank:
            self._write(self._render_pretty(record, level) if self._pretty else self._render_json(record, level))

    def _render_json(self, record: Record, level: Level) -> bytes:
        fields = {"level": level, **msgspec.to_builtins(record)}
        text = _encode({key: _cut(key, value) for key, value in fields.items()}).decode()
        return f"{text if text.isprintable() else escape(text)}\n".encode()

    def _render_pretty(self, record: Record, level: Level) -> bytes:
        clock = strftime("%H:%M:%S", gmtime(record.at))
        text = printable(_sentence(record))
        trace = "".join(f"\n  {printable(line)}" for line in getattr(record, "trace", "").splitlines())
        return f"{clock} \x1b[{_COLOURS[level]}m{level:<7}\x1b[0m {text}{trace}\n".encode(errors="replace")

    def _write(self, data: bytes) -> None:
        if self._torn:
            data = b"\n" + data
        try:
            for start in range(0, len(data), PIECE_BYTES):
                if not self._fits():
                    self.dropped += 1
                    self._torn = self._torn or start > 0
                    return
                os.write(self._fd, data[start : start + PIECE_BYTES])
                self._torn = False
        except OSError:
            self.dropped += 1

    def _fits(self) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        return any(event & select.POLLOUT for _, event in poll.poll(0))


def print_problem(record: Record) -> None:
    """Write a warning or an error to `sys.stderr` as plain text, for a developer or pytest."""
    level = level_of(record)
    if LEVELS.index(level) >= LEVELS.index("warning"):
        text = f"{level}: {_sentence(record)}\n{getattr(record, 'trace', '')}"
        sys.stderr.write("".join(f"{printable(line)}\n" for line in text.splitlines()))


def printable(text: str) -> str:
    """Text that can't move a terminal's cursor or forge a log line."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def escape(text: str) -> str:
    """JSON with unprintable characters escaped. JSON itself escapes only the ASCII controls."""
    pairs = ((char, char.encode("utf-16-be")) for char in text)
    return "".join(
        char if char.isprintable() else "".join(f"\\u{raw[at : at + 2].hex()}" for at in range(0, len(raw), 2))
        for char, raw in pairs
    )


def _cut(key: str, value: object) -> object:
    """A field cut to fit on a line. A text without an encoding, such as some file names, is escaped."""
    if not isinstance(value, str):
        return value
    text = value.encode(errors="backslashreplace").decode()
    if key == "trace":
        return "…" + text[-TRACE_CHARACTERS:] if len(text) > TRACE_CHARACTERS else text
    return text[:FIELD_CHARACTERS] + "…" if len(text) > FIELD_CHARACTERS else text


def _sentence(record: Record) -> str:
    match record:
        case Problem(text=text):
            return text
        case ToolCompleted(tool=tool, seconds=seconds, outcome=outcome):
            return f"{tool} {outcome} in {seconds * 1000:.1f} ms"
        case RequestCompleted(method=method, seconds=seconds, outcome=outcome):
            return f"{method} {outcome} in {seconds * 1000:.1f} ms"
        case _:
            return " ".join(str(value) for value in msgspec.structs.astuple(record)[:2])
