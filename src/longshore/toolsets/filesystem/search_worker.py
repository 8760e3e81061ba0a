"""Our own search, in a process that can be killed: `re` can't be interrupted.

`python -P -m longshore.toolsets.filesystem.search_worker FD` reads a query from standard input, searches the open
folder FD and writes one message per file with matches: its length in four bytes, then MessagePack. An empty message is
the end.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import sys
from bisect import bisect_right
from collections.abc import Iterator

from msgspec import json, msgpack

from longshore.sandbox.gitignore import Globs, Ignores
from longshore.sandbox.path_text import DeniedNames
from longshore.sandbox.walking import Filter, walk_files
from longshore.toolsets.filesystem.matches import (
    FRAME,
    MOST_LINES,
    TOO_DEEP,
    FileMatches,
    Line,
    WorkerQuery,
    excerpt,
    sort_key,
)

_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))


class Searcher:
    """Searches the contents of files for one query."""

    def __init__(self, query: WorkerQuery) -> None:
        flags = re.MULTILINE | (re.IGNORECASE if query.ignore_case else re.NOFLAG)
        self._pattern, self._strict = re.compile(query.python, flags), re.compile(query.strict, flags)
        self._query = query
        ignores = Ignores.from_above(query.above) if query.gitignore else None
        self._filter = Filter(ignores, Globs(query.globs), DeniedNames(query.deny).within(query.within))

    def search(self, folder: int) -> Iterator[FileMatches]:
        """The files with matches beneath an open folder, sorted; TOO_DEEP at the end if not all were entered."""
        left_out = list[str]()
        after = sort_key(self._query.after)
        name = self._query.file
        files = [(name, name, folder)] if name else walk_files(folder, self._filter, too_deep=left_out.append)
        for path, name, parent in files:
            key = os.fsencode(path)
            if sort_key(key) < after:
                continue
            data = self._read(name, parent)
            if data and (
                found := self.search_bytes(key, data, self._query.after_line if key == self._query.after else 0)
            ):
                yield found
        if left_out:
            yield TOO_DEEP

    def search_bytes(self, path: bytes, data: bytes, after_line: int = 0) -> FileMatches | None:
        """The lines of a file's contents that match, after a line; None if there are none or it is no text."""
        for bom, encoding in _BOMS:
            if data.startswith(bom):
                data = (
                    data[len(bom) :].decode(encoding, "replace").encode() if encoding != "utf-8" else data[len(bom) :]
                )
                break
        if b"\0" in data:
            return None
        try:
            text, pattern = data.decode(), self._pattern
        except UnicodeDecodeError:
            text, pattern = data.decode("utf-8", "surrogateescape"), self._strict
        starts = _matching_lines(pattern, text)
        if not starts:
            return None
        lines = self._lines(text, starts, after_line) if self._query.with_lines else []
        return FileMatches(path, len(starts), lines)

    def _lines(self, text: str, found: list[tuple[int, int]], after_line: int) -> list[Line]:
        """The matching lines and those near them."""
        starts = [0, *(newline.end() for newline in re.finditer("\n", text))]
        if starts[-1] == len(text):
            starts.pop()
        shown = dict[int, int | None]()
        context = self._query.context
        for start, column in found:
            number = bisect_right(starts, start)
            if number <= after_line:
                continue
            if len(shown) > MOST_LINES:
                break
            for near in range(max(1, number - context, after_line + 1), min(len(starts), number + context) + 1):
                shown.setdefault(near, None)
            shown[number] = column
        ends = [*starts[1:], len(text)]
        return [
            Line(number, _excerpt(text[starts[number - 1] : ends[number - 1]], column or 0), column is not None)
            for number, column in sorted(shown.items())
        ]

    def _read(self, name: str, folder: int) -> bytes:
        """The bytes of a regular file that is not too large; none of anything else."""
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError:
            return b""
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > self._query.max_file_size:
                return b""
            with open(descriptor, "rb", closefd=False) as file:
                return file.read(self._query.max_file_size)
        except OSError:
            return b""
        finally:
            os.close(descriptor)


def _matching_lines(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """Where each matching line begins, and where in it the first match does. No pattern matches across lines."""
    found = list[tuple[int, int]]()
    position = 0
    while position < len(text) and (match := pattern.search(text, position)):
        at = match.start()
        if at == len(text) and text.endswith("\n"):
            break  # after the last line
        start = text.rfind("\n", 0, at) + 1
        found.append((start, at - start))
        end = text.find("\n", at)
        if end < 0:
            break
        position = end + 1
    return found


def _excerpt(line: str, column: int) -> str:
    start = len(line[:column].encode("utf-8", "surrogateescape"))
    return excerpt(line.encode("utf-8", "surrogateescape"), start)


def main(folder: int) -> None:
    """Search an open folder for the query on standard input."""
    query = json.decode(sys.stdin.buffer.read(), type=WorkerQuery)
    # If the server was killed, nobody else ends a pattern that takes forever.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, query.seconds)
    encoder, output = msgpack.Encoder(), sys.stdout.buffer
    for found in Searcher(query).search(folder):
        message = encoder.encode(found)
        output.write(len(message).to_bytes(FRAME) + message)
    output.write(bytes(FRAME))
    output.flush()


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except BrokenPipeError:
        os._exit(1)
