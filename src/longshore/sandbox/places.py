"""The place of a path: a name in a folder that was opened beneath one of the roots."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Final, NamedTuple, final

from longshore.errors import WouldBlock
from longshore.sandbox.beneath import MOST_LINKS, Leaves, OpenBeneath, link_text, open_root
from longshore.sandbox.file_errors import FileError, explain
from longshore.sandbox.path_text import PLAIN, DeniedNames, absolute_text
from longshore.sandbox.roots import Roots, is_within
from longshore.sandbox.syscalls import is_kernel_file
from longshore.sandbox.trees import EntryKind, kind_of, open_folder, walk_tree

_PLAIN_PATHS: Final = 256
"""Texts of paths whose meaning is remembered, each of a few hundred characters: an agent reads the same files again."""


class Place(NamedTuple):
    """A name in an open folder beneath a root. The name is `.` for a root itself."""

    folder: int
    name: str
    path: str
    """The real path, for comparisons; only `folder` and `name` are used to reach the file."""
    root: str

    @property
    def relative(self) -> str:
        """The real path from the root on, `.` for the root."""
        return self.path[len(self.root.rstrip("/")) + 1 :] or "."

    def status(self) -> os.stat_result:
        """Of the file itself, also if it is a link. Raises OSError."""
        return os.lstat(self.name, dir_fd=self.folder)

    def kind(self) -> EntryKind | None:
        """The kind of the entry at this place; None if there is none."""
        try:
            return kind_of(self.status())
        except FileNotFoundError:
            return None


@final
class Places:
    """Finds the places of paths in some roots, and checks whether they may be read and changed. See ConfinedFiles."""

    def __init__(
        self,
        roots: Roots,
        read_only: Sequence[str],
        denied: DeniedNames,
        open_beneath: OpenBeneath,
    ) -> None:
        self._roots = roots
        self._read_only = [os.path.realpath(path) for path in read_only]
        self._denied = denied
        self._open_beneath = open_beneath
        # It depends on the text and the settings, never on the disk. Remembering it saves a read 2 of its 40 µs.
        self.plain_path: Callable[[str], str] = lru_cache(maxsize=_PLAIN_PATHS)(self._plain_path)
        """The real path that a text means if no part of it is a link, which the opening has to show.

        Nothing is looked up. Raises WouldBlock if that would be needed, or if it may not be read.
        """
        self._inside = [root.rstrip("/") + "/" for root in roots.folders]
        self._spellings = [(root, root) for root in roots.folders]
        for path in roots.given:
            real = os.path.realpath(path)
            if any(is_within(real, root) for root in roots.folders):
                self._spellings.append((path, real))

    @contextmanager
    def find(self, given: str, follow: bool = True, change: bool = False) -> Generator[Place]:
        """The place of a path, if it may be used. OSErrors inside are explained for this path."""
        with explain(given):
            place = self.locate(given, self.absolute(given), follow)
            try:
                self.check(given, place, change)
                yield place
            finally:
                os.close(place.folder)

    def absolute(self, given: str) -> str:
        """The absolute path that a text means, not looked up."""
        if not self._roots.folders:
            raise self._outside(given)
        return absolute_text(given, self._roots.folders[0])

    def _plain_path(self, given: str) -> str:
        if given.startswith("~") or not self._inside:
            raise WouldBlock
        text = given if given.startswith("/") else f"{self._inside[0]}{given}"
        for inside in self._inside:
            if text.startswith(inside) and PLAIN.fullmatch(text) and not self._denied.match(text[len(inside) :]):
                return text
        raise WouldBlock

    def locate(self, given: str, text: str, follow: bool) -> Place:
        """Open the folder that an absolute path's last name is in; the caller closes it. Raises OSError, FileError.

        A link at the end of the path is followed by its text.
        """
        for _ in range(MOST_LINKS):
            root, relative = self._split(given, text)
            above, name = os.path.split(relative)
            if name == "..":
                above, name = relative, ""
            try:
                folder, path = self._enter(given, root, above)
            except Leaves as away:
                text = os.path.join(away.path, name)
                continue
            if not name and path == root:
                return Place(folder, ".", root, root)
            try:
                target = link_text(folder, name) if name and follow else None
            except BaseException:
                os.close(folder)
                raise
            if name and target is None:
                return Place(folder, name, os.path.join(path, name), root)
            os.close(folder)
            text = os.path.join(path, target) if target else path
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def check(self, given: str, place: Place, change: bool) -> None:
        """Raise FileError if the settings do not allow to read, or to change, the file at a place."""
        if self._denied.match(place.relative):
            raise FileError(given, "denied")
        if is_kernel_file(place.folder):
            raise FileError(given, "special")
        if change and any(is_within(place.path, folder) for folder in self._read_only):
            raise FileError(given, "read_only")

    def check_name(self, given: str) -> None:
        """Raise FileError if the last name of a path is denied, even for a missing file."""
        if self._denied.match(os.path.basename(self.absolute(given).rstrip("/"))):
            raise FileError(given, "denied")

    def check_tree(self, given: str, place: Place, change: bool) -> os.stat_result:
        """The status of an entry to move, copy or delete. Refuses roots, and folders with denied entries."""
        status = place.status()
        if place.name == ".":
            raise FileError(given, "root")
        if kind_of(status) != "folder":
            if given.endswith("/"):
                raise FileError(given, "not_a_folder")
            return status
        if change and any(is_within(folder, place.path) for folder in self._read_only):
            raise FileError(given, "read_only", ", or holds a folder that is")
        if self._denied and self._holds_denied(place):
            raise FileError(given, "denied", ", because it holds a file whose name is denied")
        return status

    def hidden_in(self, folder: str) -> Callable[[str], bool]:
        """Whether a path is left out of lists, relative to a folder, which is relative to its root."""
        return self._denied.within(folder)

    def _holds_denied(self, place: Place) -> bool:
        with open_folder(place.folder, place.name) as folder:
            denied = self.hidden_in(place.relative)
            return any(denied(entry.path) for entry in walk_tree(folder))

    def _split(self, given: str, text: str) -> tuple[str, str]:
        """The root that an absolute path lies in, and the rest of the path. Only texts are compared."""
        for candidate in (text, os.path.normpath(text)):
            for spelled, real in self._spellings:
                if candidate == spelled or candidate.startswith(spelled.rstrip("/") + "/"):
                    root = next(root for root in self._roots.folders if is_within(real, root))
                    rest = [part for part in candidate[len(spelled) :].split("/") if part not in ("", ".")]
                    inner = [] if real == root else [os.path.relpath(real, root)]
                    return root, "/".join(inner + rest)
        raise self._outside(given)

    def _enter(self, given: str, root: str, relative: str) -> tuple[int, str]:
        try:
            descriptor = open_root(root)
        except OSError as problem:
            reason = f": the folder {root} can't be opened ({problem.strerror})"
            raise FileError(given, "missing", reason, "ask the user for another folder") from None
        try:
            return self._open_beneath(descriptor, root, relative)
        finally:
            os.close(descriptor)

    def _outside(self, given: str) -> FileError:
        listed = ", ".join(self._roots.folders) or f"there are none, because {self._roots.why or 'none is configured'}"
        return FileError(given, "outside", f": {listed}")
