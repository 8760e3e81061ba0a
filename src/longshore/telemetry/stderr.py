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

from longshore.telemetry.lines import json_line
from longshore.telemetry.records import (
    LEVELS,
    ArgumentsMended,
    Level,
    LimitReached,
    Problem,
    ProcessEnded,
    ProcessStarted,
    Record,
    Refused,
    RequestCompleted,
    RequestReceived,
    SessionClosed,
    SessionOpened,
    ToolCompleted,
    ToolInvoked,
    level_of,
)

PIECE_BYTES = 4096
"""PIPE_BUF on Linux: a pipe that polls writable takes this much without blocking."""

_COLOURS = {"debug": "2", "info": "0", "notice": "36", "warning": "33", "error": "31"}


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
            self._write(self._render_pretty(record, level) if self._pretty else json_line(record, level))

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


def _sentence(record: Record) -> str:
    match record:
        case Problem(text=text):
            return text
        case ToolCompleted(tool=tool, seconds=seconds, outcome=outcome):
            return f"{tool} {outcome} in {seconds * 1000:.1f} ms"
        case RequestCompleted(method=method, seconds=seconds, outcome=outcome):
            return f"{method} {outcome} in {seconds * 1000:.1f} ms"
        case _:
            return _sentence_of_rare(record)


def _sentence_of_rare(record: Record) -> str:
    """The sentence of a record that the usual levels hide."""
    match record:
        case RequestReceived(method=method, id=id):
            return f"{method} {id}"
        case Refused(method=method, tool=tool, why=why):
            return f"{tool or method or 'a request'} refused: {why}"
        case LimitReached(method=method, tool=tool, limit=limit):
            return f"{tool or method or 'a request'} met the limit {limit}"
        case SessionOpened(session=session, transport=transport, client=client):
            return f"session {session} opened on {transport} by {client or 'a client'}"
        case SessionClosed(session=session, seconds=seconds):
            return f"session {session} closed after {seconds:.1f} s"
        case ProcessStarted(kind=kind, pid=pid):
            return f"{kind} {pid} started"
        case ProcessEnded(kind=kind, pid=pid, seconds=seconds):
            return f"{kind} {pid} ended after {seconds:.1f} s"
        case ToolInvoked(tool=tool, id=id):
            return f"{tool} {id}"
        case ArgumentsMended(tool=tool, notes=notes):
            return f"{tool}: {'; '.join(notes)}"
        case _:
            raise AssertionError(record)
