"""Folders read by their descriptors: no path is ever resolved, and no link is followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final, Literal, NamedTuple

from longshore.toolsets.filesystem.gitignore import Globs, Ignores

MOST_DEPTH: Final = 100
"""How deep folders are entered. Each level takes a file descriptor, and no real tree is deeper."""
GIT: Final = ".git"
"""Never listed nor searched: git's own data."""

Kind = Literal["file", "folder", "link", "fifo", "socket", "device"]


class Entry(NamedTuple):
    """What a folder holds under a name."""

    name: str
    kind: Kind


class Filter(NamedTuple):
    """Which entries are seen."""

    ignores: Ignores | None
    """None: .gitignore files are not read."""
    globs: Globs
    deny: Globs

    def enter(self, folder: int, path: str) -> Filter:
        """The filter in an open folder, whose path ends in a slash."""
        return self if self.ignores is None else self._replace(ignores=self.ignores.enter(folder, path))

    def hides(self, path: str, kind: Kind) -> bool:
        """Whether an entry is denied or ignored."""
        is_folder = kind == "folder"
        if self.deny and self.deny.match(f"{path}/" if is_folder else path):
            return True
        return self.ignores is not None and self.ignores.ignores(path, is_folder)

    def wants(self, path: str) -> bool:
        """Whether the globs mean a file."""
        return not self.globs or self.globs.match(path)


@contextmanager
def open_folder(name: str, parent: int) -> Generator[int]:
    """Open a folder within another. Raises OSError, for a link too."""
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_folder(folder: int, most: int | None = None) -> list[Entry]:
    """The entries of an open folder without `.git`, sorted by the bytes of their names; at most so many, if given."""
    with os.scandir(folder) as scan:
        entries = [Entry(entry.name, _kind(entry)) for entry in islice(scan, most) if entry.name != GIT]
    # A UTF-8 name sorts like its code points; only undecodable names need their bytes.
    entries.sort(key=lambda entry: os.fsencode(entry.name))
    return entries


def walk_files(folder: int, seen: Filter, path: str = "", depth: int = 1) -> Iterator[tuple[str, str, int]]:
    """The files beneath an open folder, sorted: path, name and the descriptor of the folder that holds it."""
    seen = seen.enter(folder, path)
    for name, kind in read_folder(folder):
        if kind not in ("file", "folder") or seen.hides(path + name, kind):
            continue
        if kind == "file":
            if seen.wants(path + name):
                yield path + name, name, folder
        elif depth < MOST_DEPTH:
            try:
                with open_folder(name, folder) as below:
                    yield from walk_files(below, seen, f"{path}{name}/", depth + 1)
            except OSError:
                continue  # not readable, or gone meanwhile


def show_name(name: str) -> str:
    """A name or path as text of one line: what is no text or would break the line is escaped."""
    if name.isprintable():
        return name
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_file(follow_symlinks=False):
        return "file"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return "device"
    return "fifo" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
