"""Folders by their descriptors: list, walk, copy and delete them without ever following a link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Final, Literal

from msgspec import Struct

from longshore.sandbox.beneath import FOLDER_FLAGS
from longshore.sandbox.syscalls import is_kernel_file

FILE_FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""For a file that may turn out to be a pipe or a terminal: opening it neither waits nor takes it over."""
MOST_DEPTH: Final = 128
"""Folders within folders in one walk. Each holds a descriptor, and a process may have as few as 256."""
MOST_ENTRIES: Final = 100_000
"""Of one folder. Sorting needs them all at once, about 50 MB."""
CHUNK_BYTES: Final = 1 << 20
DRAFT_PREFIX: Final = ".longshore-draft-"
"""Of files that are being written. Nobody sees them in a folder."""

EntryKind = Literal["file", "folder", "link", "special"]
Check = Callable[[], object]
"""Called again and again during long work, which ends with what it raises."""


def go_on() -> None:
    """A check that lets work go on."""


class Entry(Struct, frozen=True):
    """A file, folder or link under a name in a folder."""

    path: str
    """Relative to the folder that was listed or walked; of a single file, its name."""
    status: os.stat_result
    """Of the entry itself: a link is not followed."""

    @property
    def kind(self) -> EntryKind:
        return kind_of(self.status)


def kind_of(status: os.stat_result) -> EntryKind:
    """The kind of thing that a status is of."""
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "link" if stat.S_ISLNK(status.st_mode) else "special"


@contextmanager
def open_folder(folder: int, name: str) -> Generator[int]:
    """Open a folder in a folder, for listing. Raises OSError for a link and for what the kernel makes up."""
    descriptor = os.open(name, FOLDER_FLAGS, dir_fd=folder)
    try:
        if is_kernel_file(descriptor):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
        yield descriptor
    finally:
        os.close(descriptor)


def open_regular(folder: int, name: str, flags: int, mode: int = 0o666) -> int:
    """Open a regular file in a folder; nothing else is even opened. Raises OSError: EISDIR, ENXIO for special files."""
    try:
        require_regular(os.lstat(name, dir_fd=folder))
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    descriptor = os.open(name, flags | FILE_FLAGS, mode, dir_fd=folder)
    try:
        require_regular(os.fstat(descriptor))  # it may have been replaced in between
        if is_kernel_file(descriptor):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def require_regular(status: os.stat_result) -> None:
    """Raise OSError unless a status is of a regular file: EISDIR, ELOOP for a link, ENXIO for special files."""
    kind = kind_of(status)
    if kind != "file":
        number = {"folder": errno.EISDIR, "link": errno.ELOOP}.get(kind, errno.ENXIO)
        raise OSError(number, os.strerror(number))


def read_entries(folder: int, most: int = MOST_ENTRIES) -> tuple[list[Entry], bool]:
    """The entries of a folder, sorted, and whether there are more than `most`."""
    entries = list[Entry]()
    with os.scandir(folder) as found:
        wanted = (entry for entry in found if not entry.name.startswith(DRAFT_PREFIX))
        for entry in islice(wanted, most):
            try:
                entries.append(Entry(entry.name, entry.stat(follow_symlinks=False)))
            except OSError:  # it was deleted meanwhile
                continue
        more = next(wanted, None) is not None
    entries.sort(key=lambda entry: entry.path)
    return entries, more


def walk_tree(folder: int, hidden: Callable[[str], bool] = lambda _: False, prefix: str = "") -> Iterator[Entry]:
    """All entries below a folder, depth first and sorted; `hidden` says which paths to leave out.

    A folder that can't be opened, and one MOST_DEPTH down, is an entry without content.
    """
    for found in read_entries(folder)[0]:
        entry = Entry(prefix + found.path, found.status)
        if hidden(entry.path):
            continue
        yield entry
        if entry.kind != "folder" or entry.path.count("/") + 1 >= MOST_DEPTH:
            continue
        # Only an error of opening it is passed over: the caller's own, thrown in at a `yield`, is not.
        with ExitStack() as stack:
            try:
                child = stack.enter_context(open_folder(folder, found.path))
            except OSError:
                continue
            yield from walk_tree(child, hidden, f"{entry.path}/")


def read_chunks(descriptor: int, check: Check = go_on) -> Iterator[bytes]:
    """The content of a file from where it stands. `check` is called before each chunk."""
    while chunk := os.read(descriptor, CHUNK_BYTES):
        check()
        yield chunk


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of some bytes. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def copy_tree(source: int, target: int, check: Check = go_on, depth: int = MOST_DEPTH) -> None:
    """Copy what is in a folder into an empty one; links are copied as links. Raises OSError, also for special files.

    `check` is called for each file and chunk.
    """
    entries, more = read_entries(source)
    if more:
        raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
    for entry in entries:
        check()
        match entry.kind:
            case "folder":
                _copy_folder(source, target, entry, check, depth)
            case "link":
                os.symlink(os.readlink(entry.path, dir_fd=source), entry.path, dir_fd=target)
            case _:
                _copy_file(source, target, entry, check)


def _copy_folder(source: int, target: int, entry: Entry, check: Check, depth: int) -> None:
    if depth <= 1:
        raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
    with open_folder(source, entry.path) as inner:
        os.mkdir(entry.path, 0o700, dir_fd=target)
        copied = os.open(entry.path, FOLDER_FLAGS, dir_fd=target)
        try:
            copy_tree(inner, copied, check, depth - 1)
            os.fchmod(copied, stat.S_IMODE(entry.status.st_mode))
        finally:
            os.close(copied)


def _copy_file(source: int, target: int, entry: Entry, check: Check) -> None:
    inner = open_regular(source, entry.path, os.O_RDONLY)
    try:
        copied = os.open(entry.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE_FLAGS, 0o600, dir_fd=target)
        try:
            for chunk in read_chunks(inner, check):
                write_all(copied, chunk)
            os.fchmod(copied, stat.S_IMODE(entry.status.st_mode) & 0o777)
        finally:
            os.close(copied)
    finally:
        os.close(inner)


def remove_tree(folder: int, name: str, depth: int = MOST_DEPTH) -> None:
    """Delete a folder with all it holds. Links are deleted, not followed. Raises OSError."""
    if depth <= 0:
        raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
    inner = os.open(name, FOLDER_FLAGS, dir_fd=folder)
    try:
        for child in os.listdir(inner):
            if stat.S_ISDIR(os.lstat(child, dir_fd=inner).st_mode):
                remove_tree(inner, child, depth - 1)
            else:
                os.unlink(child, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)
