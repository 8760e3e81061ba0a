"""Folders read by their descriptors: no path is ever resolved, and no link is followed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from longshore.sandbox.confined import ConfinedFiles, OpenFolder
from longshore.sandbox.gitignore import Above, Globs, Ignores, rules_above
from longshore.sandbox.trees import DRAFT_PREFIX, MOST_DEPTH, EntryKind, open_folder

GIT: Final = ".git"
"""Never listed nor searched: git's own data."""


class Filter(NamedTuple):
    """A filter on the entries of folders."""

    ignores: Ignores | None
    """None: .gitignore files are not read."""
    globs: Globs
    denies: Callable[[str], bool]

    def enter(self, folder: int, path: str) -> Filter:
        """The filter in an open folder, whose path ends in a slash."""
        return self if self.ignores is None else self._replace(ignores=self.ignores.enter(folder, path))

    def hides(self, path: str, kind: EntryKind) -> bool:
        """Whether an entry is denied or ignored."""
        return self.denies(path) or (self.ignores is not None and self.ignores.ignores(path, kind == "folder"))

    def wants(self, path: str) -> bool:
        """Whether the globs mean a file."""
        return not self.globs or self.globs.match(path)


def read_rules_above(files: ConfinedFiles, folder: OpenFolder) -> Above:
    """The .gitignore files above a folder, from its root on."""
    if not folder.relative:
        return ()
    with files.open_folder(folder.root) as root:
        return rules_above(root.descriptor, folder.relative)


def read_folder(folder: int, most: int | None = None) -> list[tuple[str, EntryKind]]:
    """The names in an open folder and their kinds, sorted by their bytes; at most so many, if given.

    `.git` and drafts are left out.
    """
    with os.scandir(folder) as scan:
        entries: list[tuple[str, EntryKind]] = [
            (entry.name, _kind(entry))
            for entry in islice(scan, most)
            if entry.name != GIT and not entry.name.startswith(DRAFT_PREFIX)
        ]
    # A UTF-8 name sorts like its code points; only undecodable names need their bytes.
    entries.sort(key=lambda entry: os.fsencode(entry[0]))
    return entries


def walk_files(
    folder: int,
    seen: Filter,
    path: str = "",
    depth: int = 1,
    too_deep: Callable[[str], object] = lambda _: None,
) -> Iterator[tuple[str, str, int]]:
    """The files beneath an open folder, sorted: path, name and the descriptor of the folder that holds it.

    `too_deep` is called with each folder that is not entered, because it is MOST_DEPTH down.
    """
    seen = seen.enter(folder, path)
    for name, kind in read_folder(folder):
        if kind not in ("file", "folder") or seen.hides(path + name, kind):
            continue
        if kind == "file":
            if seen.wants(path + name):
                yield path + name, name, folder
        elif depth >= MOST_DEPTH:
            too_deep(path + name)
        else:
            try:
                with open_folder(folder, name) as below:
                    yield from walk_files(below, seen, f"{path}{name}/", depth + 1, too_deep)
            except OSError:
                continue  # not readable, or deleted meanwhile


def _kind(entry: os.DirEntry[str]) -> EntryKind:
    if entry.is_symlink():
        return "link"
    if entry.is_file(follow_symlinks=False):
        return "file"
    return "folder" if entry.is_dir(follow_symlinks=False) else "special"
