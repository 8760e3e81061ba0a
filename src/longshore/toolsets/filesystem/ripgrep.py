"""Searching by ripgrep, confined by landlock to the folder that it searches.

ripgrep walks by paths. Without landlock, a link that replaces a file at the right moment could lead it out of the
folder; so where there is no landlock, our own search is used.
"""

from __future__ import annotations

import os
import subprocess
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.json import Decoder

from longshore.sandbox import landlock
from longshore.sandbox.gitignore import Above, Globs, Ignores, last_names
from longshore.sandbox.path_text import DeniedNames
from longshore.sandbox.programs import find_program
from longshore.sandbox.syscalls import holds_kernel_files
from longshore.sandbox.trees import DRAFT_PREFIX, MOST_DEPTH, open_folder
from longshore.toolsets.filesystem.matches import (
    MOST_LINES,
    TOO_DEEP,
    FileMatches,
    Line,
    WorkerQuery,
    excerpt,
    sort_key,
)

_GITIGNORE_ONLY: Final = (
    "--no-require-git",
    "--no-ignore-parent",
    "--no-ignore-dot",
    "--no-ignore-exclude",
    "--no-ignore-global",
)
_REST_OF_LINE: Final = "(?-u:.)*"
"""Makes the first match of a line its only one: ripgrep reports each, a hundred bytes for one."""


class RipgrepFailed(Exception):
    """ripgrep could not search: it did not start, or its pattern was too large for it."""


def find_ripgrep(folder: int, roots: Sequence[str] = ()) -> str | None:
    """The path of ripgrep, if it is installed and can be confined to the ordinary files of an open folder in roots."""
    path = find_program("rg", roots)
    if path is None or not landlock.is_available():
        return None
    try:
        return None if holds_kernel_files(folder) else os.path.realpath(path)
    except OSError:
        return None  # without /proc it can't be started in an open folder


def start_ripgrep(
    program: str, folder: int, pattern: str, query: WorkerQuery, *, is_sorted: bool
) -> subprocess.Popen[bytes]:
    """Start ripgrep in an open folder. Raises OSError."""
    with open(os.devnull, "r+b", buffering=0) as null:
        ignored = _memory_file(_unanchored(query.above)) if query.gitignore else None
        arguments = _arguments(program, pattern, query, ignored, is_sorted=is_sorted)
        inherited = () if ignored is None else (ignored,)
        environment = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                arguments,
                stdin=null,
                stdout=subprocess.PIPE,
                stderr=null,
                cwd=f"/proc/self/fd/{folder}",
                env=environment,
                pass_fds=inherited,
                process_group=0,
            )

        try:
            process = landlock.start_reading_only(start, program, [folder])
        finally:
            for descriptor in inherited:
                os.close(descriptor)
    _limit_cpu(process.pid, query.seconds)
    return process


def _arguments(program: str, pattern: str, query: WorkerQuery, ignored: int | None, *, is_sorted: bool) -> list[str]:
    arguments = [program, "--no-config", "--json", "--hidden", "--no-messages", "--no-follow", "--glob=!.git"]
    arguments.append(f"--glob=!{DRAFT_PREFIX}*")
    arguments += [f"--max-filesize={query.max_file_size}", f"--context={query.context}"]
    arguments += _GITIGNORE_ONLY if query.gitignore else ["--no-ignore"]
    arguments.append("--ignore-case" if query.ignore_case else "--case-sensitive")
    if ignored is not None:
        arguments.append(f"--ignore-file=/proc/self/fd/{ignored}")
    if is_sorted:
        arguments.append("--sort=path")
    if names := last_names(query.globs):
        # Only a first choice: file types, unlike ripgrep's globs, don't bring back what .gitignore leaves out.
        arguments += [*(f"--type-add=wanted:{name}" for name in names), "--type=wanted"]
    return [*arguments, "-e", f"(?:{pattern}){_REST_OF_LINE}", "--", f"./{query.file}"]


class _Text(Struct):
    text: str = ""
    encoded: str | None = field(name="bytes", default=None)

    def data(self) -> bytes:
        return self.text.encode() if self.encoded is None else b64decode(self.encoded)


class _Match(Struct):
    start: int


class _LineData(Struct):
    lines: _Text
    line_number: int
    submatches: list[_Match]


class _Statistics(Struct, frozen=True):
    matched_lines: int


class _FileData(Struct):
    path: _Text
    binary_offset: int | None = None
    stats: _Statistics = _Statistics(0)


class _LineMessage(Struct):
    data: _LineData


class _FileMessage(Struct):
    data: _FileData


_BEGIN, _MATCH, _CONTEXT, _END = (b'{"type":"%s"' % name for name in (b"begin", b"match", b"context", b"end"))


class RipgrepReader:
    """Reads what `rg --json` writes, and leaves out the files that ripgrep could not know are not wanted."""

    def __init__(self, folder: int, query: WorkerQuery) -> None:
        self._query = query
        self._globs, self._denies = Globs(query.globs), DeniedNames(query.deny).within(query.within)
        above = query.above if query.gitignore and not query.file else ()
        self._above = _IgnoredAbove(folder, above) if above else None
        self._after = sort_key(query.after)
        self._line, self._file = Decoder(_LineMessage), Decoder(_FileMessage)
        self._met_deep = False
        """Whether something was found more folders down than are shown: our own search does not go there."""

    def read(self, chunks: Iterable[bytes]) -> Iterator[FileMatches]:
        """The files with matches, in ripgrep's order; at the end TOO_DEEP, if it has left some out.

        Raises RipgrepFailed.
        """
        lines, after_line, wanted = list[Line](), 0, False
        message = b""
        for message in _messages(chunks):
            if message.startswith((_MATCH, _CONTEXT)):
                if wanted and len(lines) <= MOST_LINES:
                    lines += self._read_line(message, after_line)
            elif message.startswith(_BEGIN) and self._query.with_lines:
                path = self._file.decode(message).data.path.data()[2:]
                wanted = sort_key(path) >= self._after and self._is_wanted(path)
                lines, after_line = [], self._query.after_line if path == self._query.after else 0
            elif message.startswith(_END):
                data = self._file.decode(message).data
                path = data.path.data()[2:]
                if data.binary_offset is None and (wanted or (not self._query.with_lines and self._is_wanted(path))):
                    yield FileMatches(path, data.stats.matched_lines, lines)
        if b'"summary"' not in message[-20:]:
            raise RipgrepFailed("ripgrep ended early")
        if self._met_deep:
            yield TOO_DEEP

    def _read_line(self, message: bytes, after_line: int) -> list[Line]:
        data = self._line.decode(message).data
        if data.line_number <= after_line:
            return []
        start = data.submatches[0].start if data.submatches else 0
        return [Line(data.line_number, excerpt(data.lines.data(), start), message.startswith(_MATCH))]

    def _is_wanted(self, path: bytes) -> bool:
        name = os.fsdecode(path)
        if sort_key(path) < self._after or self._denies(name):
            return False
        if self._globs and not self._globs.match(name):
            return False
        if path.count(b"/") >= MOST_DEPTH:
            self._met_deep = True
            return False
        return self._above is None or not self._above.hides(name)


class _IgnoredAbove:
    """The files that the .gitignore files above the folder ignore, unless one below brings it back."""

    def __init__(self, folder: int, above: Above) -> None:
        self._folder = folder
        self._known: dict[str, Ignores | None] = {"": Ignores.from_above(above).enter(folder, "")}
        """By the path of a folder; None: it is ignored."""

    def hides(self, path: str) -> bool:
        ignores = self._within(path.rpartition("/")[0])
        return ignores is None or ignores.ignores(path, False)

    def _within(self, path: str) -> Ignores | None:
        if path not in self._known:
            ignores = self._within(path.rpartition("/")[0])
            if ignores is not None and ignores.ignores(path, True):
                ignores = None
            self._known[path] = None if ignores is None else self._enter(ignores, path)
        return self._known[path]

    def _enter(self, ignores: Ignores, path: str) -> Ignores:
        folder = os.dup(self._folder)
        try:
            for part in path.split("/"):
                with open_folder(folder, part) as below:
                    os.dup2(below, folder, inheritable=False)
            return ignores.enter(folder, f"{path}/")
        except OSError:
            return ignores  # somebody has moved it
        finally:
            os.close(folder)


def _messages(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of an output. A line may be as long as a file."""
    pending = list[bytes]()
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        pending.append(first)
        if others:
            yield b"".join(pending)
            yield from others[:-1]
            pending = [others[-1]]


def _unanchored(above: Above) -> str:
    """The lines of .gitignore files that mean the same in every folder below; none if something is brought back."""
    lines = [line.strip() for _, text in above for line in text.splitlines()]
    if any(line.startswith("!") for line in lines):
        return ""
    return "\n".join(line for line in lines if line and "/" not in line.rstrip("/") and "\\" not in line)


def _memory_file(text: str) -> int | None:
    """A file in memory, which landlock lets a process read; None if the text is empty."""
    if not text:
        return None
    descriptor = os.memfd_create("gitignore")
    os.write(descriptor, text.encode())
    return descriptor


def _limit_cpu(pid: int, seconds: float) -> None:
    """If the server was killed, ripgrep ends too."""
    import resource

    limit = int(seconds + 1) * (os.cpu_count() or 1)
    try:
        resource.prlimit(pid, resource.RLIMIT_CPU, (limit, limit))
    except (AttributeError, OSError):
        pass  # it has ended already
