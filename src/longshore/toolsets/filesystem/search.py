"""Searching the contents of files beneath an open folder.

ripgrep does it where it is installed and can be confined (`ripgrep.py`), our own search otherwise (`search_worker.py`);
both give the same answers. Each runs in a process that is killed when its time is over or the caller gives up.

Hidden files are searched; `.git`, what .gitignore files name, links, binary files (those with a NUL byte) and files
beyond `max_file_size` are not. UTF-16 is read if it has a byte order mark.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from time import monotonic
from typing import Final, Literal

from msgspec import Struct, json, msgpack
from msgspec.structs import replace

from longshore.errors import ToolError
from longshore.registry.token_budget import DEFAULT_TOKENS
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.gitignore import Above, Globs
from longshore.sandbox.trees import MOST_DEPTH
from longshore.toolsets.filesystem.child import OutOfTime, running
from longshore.toolsets.filesystem.listing import show_size
from longshore.toolsets.filesystem.matches import (
    FRAME,
    MOST_CONTEXT,
    MOST_FILES,
    MOST_LINES,
    TOO_DEEP,
    FileMatches,
    Output,
    WorkerQuery,
    sort_key,
)
from longshore.toolsets.filesystem.patterns import Pattern, read_pattern
from longshore.toolsets.filesystem.ripgrep import RipgrepFailed, RipgrepReader, find_ripgrep, start_ripgrep
from longshore.toolsets.filesystem.search_pages import Cursor, Page, page_matches

DEFAULT_SECONDS: Final = 20.0
"""ripgrep reads a million files in less. Clients wait 60 s for an answer."""
DEFAULT_FILE_BYTES: Final = 10_000_000
MOST_LIMIT: Final = 1_000
_LEFT_OUT: Final = (
    f"[files more than {MOST_DEPTH} folders down are left out; search one of the folders on the way by path]"
)

Engine = Literal["auto", "ripgrep", "own"]


class SearchQuery(Struct, frozen=True, kw_only=True):
    """The text to search for, in which files, and how much of what is found to show."""

    pattern: str
    literal: bool = False
    ignore_case: bool = False
    globs: tuple[str, ...] = ()
    gitignore: bool = True
    context: int = 0
    """Lines before and after each match."""
    output: Output = "content"
    limit: int = 100
    """Matching lines to show, or files."""
    cursor: str = ""
    max_tokens: int = DEFAULT_TOKENS
    deny: tuple[str, ...] = ()
    """Globs of files that are never shown (see DeniedNames)."""
    within: str = ""
    """The path from the root to the folder: `deny` may name parts of it."""
    max_file_size: int = DEFAULT_FILE_BYTES
    file: str = ""
    """The name of the only file in the folder that is searched; empty: all."""
    prefix: str = ""
    """Shown before each path."""
    roots: tuple[str, ...] = ()
    """Folders of which no program is taken that happens to be on PATH."""


def search(
    folder: int,
    query: SearchQuery,
    *,
    above: Above = (),
    seconds: float = DEFAULT_SECONDS,
    check: Callable[[], None] = lambda: None,
    engine: Engine = "auto",
) -> Page:
    """Search the files beneath an open folder and show one page of what was found.

    `above` are the .gitignore files between the root and the folder (`gitignore.rules_above`). `check` is called
    several times a second; what it raises ends the search. Raises ToolError.
    """
    pattern = read_pattern(query.pattern, literal=query.literal, ignore_case=query.ignore_case)
    cursor = Cursor.parse(query.cursor)
    work = _worker_query(query, pattern, cursor, above, seconds)
    with _own_descriptor(folder) as own:
        try:
            one_search = _Search(own, work, pattern, check, query.roots)
            found, is_cut = one_search.run(engine)
        except OutOfTime:
            message = f"the search took longer than {seconds:g} s; narrow it by path or glob, or simplify the pattern"
            raise ToolError(message) from None
    page = page_matches(
        found,
        query.output,
        limit=query.limit,
        max_tokens=query.max_tokens,
        is_cut=is_cut,
        prefix=query.prefix,
        heading=_LEFT_OUT if one_search.is_deep else "",
    )
    return page if page.files else replace(page, text=_describe_nothing(query, is_deep=one_search.is_deep))


def _describe_nothing(query: SearchQuery, *, is_deep: bool) -> str:
    """That nothing was found, and where."""
    if query.file:
        return "no matches"
    if is_deep:
        return f"{_LEFT_OUT}\n{_describe_nothing(query, is_deep=False)}"
    hint = "; the glob starts at the searched folder" if any("/" in glob for glob in query.globs) else ""
    return f"no matches in text files of up to {show_size(query.max_file_size)}{hint}"


def _worker_query(query: SearchQuery, pattern: Pattern, cursor: Cursor, above: Above, seconds: float) -> WorkerQuery:
    if not 0 <= query.context <= MOST_CONTEXT:
        what = f"context={query.context}"
        raise FileError("", "invalid", what, f"0 to {MOST_CONTEXT} lines can be shown around a match")
    if not 1 <= query.limit <= MOST_LIMIT:
        raise FileError("", "invalid", f"limit={query.limit}", f"a page has 1 to {MOST_LIMIT:,} matches or files")
    Globs(query.globs)
    try:
        "".join(query.globs).encode()
    except UnicodeEncodeError:
        raise FileError("", "invalid", "a glob has half of a surrogate pair", "leave it out") from None
    with_lines = query.output == "content"
    return WorkerQuery(
        python=pattern.python,
        strict=pattern.strict,
        ignore_case=pattern.ignore_case,
        globs=query.globs,
        deny=query.deny,
        within=query.within,
        gitignore=query.gitignore,
        above=above if query.gitignore else (),
        context=query.context if with_lines else 0,
        with_lines=with_lines,
        max_file_size=query.max_file_size,
        file=query.file,
        after=cursor.path,
        after_line=cursor.line,
        seconds=seconds,
    )


class _Search:
    """One search of an open folder, by either engine."""

    def __init__(
        self, folder: int, query: WorkerQuery, pattern: Pattern, check: Callable[[], None], roots: tuple[str, ...]
    ) -> None:
        self._folder, self._query, self._pattern, self._check, self._roots = folder, query, pattern, check, roots
        self._end = monotonic() + query.seconds
        self.is_deep = False
        """Whether files are left out because they lie too many folders down."""

    def run(self, engine: Engine) -> tuple[list[FileMatches], bool]:
        """The files with matches, sorted, and whether there is more than is collected."""
        program = find_ripgrep(self._folder, self._roots) if engine != "own" else None
        if program is not None and self._pattern.ripgrep is not None:
            try:
                return self._by_ripgrep(program, self._pattern.ripgrep)
            except RipgrepFailed:
                if engine == "ripgrep":
                    raise
        elif engine == "ripgrep":
            raise ToolError("ripgrep can't be used here for this pattern; let the engine be chosen")
        return self._by_worker()

    def _by_ripgrep(self, program: str, pattern: str) -> tuple[list[FileMatches], bool]:
        """Its threads find files in any order. Only if there is too much to sort, it searches again in order."""
        found, is_cut = self._run_ripgrep(program, pattern, is_sorted=False)
        if is_cut:
            return self._run_ripgrep(program, pattern, is_sorted=True)
        found.sort(key=lambda file: sort_key(file.path))
        return found, False

    def _run_ripgrep(self, program: str, pattern: str, *, is_sorted: bool) -> tuple[list[FileMatches], bool]:
        try:
            process = start_ripgrep(program, self._folder, pattern, self._query, is_sorted=is_sorted)
        except OSError as error:
            raise RipgrepFailed(f"{program} did not start: {error.strerror}") from None
        with running(process, self._end - monotonic(), self._check) as child:
            return self._collect(RipgrepReader(self._folder, self._query).read(child.chunks()))

    def _by_worker(self) -> tuple[list[FileMatches], bool]:
        # -P: a module in the working directory must not be imported.
        arguments = [sys.executable, "-P", "-m", "longshore.toolsets.filesystem.search_worker", str(self._folder)]
        with TemporaryFile() as request:
            request.write(json.encode(self._query))
            request.seek(0)
            process = subprocess.Popen(
                arguments,
                stdin=request,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(self._folder,),
                process_group=0,
            )
        with running(process, self._end - monotonic(), self._check) as child:
            return self._collect(_read_frames(child.chunks()))

    def _collect(self, files: Iterable[FileMatches]) -> tuple[list[FileMatches], bool]:
        found, lines = list[FileMatches](), 0
        for file in files:
            if file == TOO_DEEP:
                self.is_deep = True
                continue
            if file.path == self._query.after and not file.lines:
                continue  # it was shown
            found.append(file)
            lines += len(file.lines)
            if lines > MOST_LINES or len(found) > MOST_FILES:
                return found, True
        return found, False


def _read_frames(chunks: Iterable[bytes]) -> Iterator[FileMatches]:
    """The messages of the worker."""
    decoder = msgpack.Decoder(FileMatches)
    buffer = bytearray()
    for chunk in chunks:
        buffer += chunk
        start = 0
        while len(buffer) >= start + FRAME:
            end = start + FRAME + int.from_bytes(buffer[start : start + FRAME])
            if end == start + FRAME:
                return
            if len(buffer) < end:
                break
            yield decoder.decode(memoryview(buffer)[start + FRAME : end].tobytes())
            start = end
        del buffer[:start]
    raise ToolError("the search process ended early: the machine may be out of memory; try again or narrow the search")


@contextmanager
def _own_descriptor(folder: int) -> Generator[int]:
    """The folder opened anew: reading it moves a position that copies of a descriptor share."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
