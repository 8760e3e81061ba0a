"""Files beneath the folders of a call, by paths as a model writes them.

Every method finds the place of a path (`places.py`) and works on a name in that folder's descriptor; no path is checked
first and opened later. All methods but `read_cached` block on the disk, and they raise FileError only.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from typing import BinaryIO, NamedTuple, final

from longshore.errors import WouldBlock
from longshore.sandbox.beneath import OpenBeneath, open_beneath
from longshore.sandbox.cached_reads import local_devices, read_cached
from longshore.sandbox.drafts import (
    delete_folder,
    draft_folder,
    lock_folder,
    rename,
    replace_file,
    replace_link,
    sync_folder,
)
from longshore.sandbox.file_errors import FileError, explain, too_large
from longshore.sandbox.path_text import DeniedNames
from longshore.sandbox.places import Place, Places
from longshore.sandbox.roots import Roots
from longshore.sandbox.trees import (
    MOST_DEPTH,
    MOST_ENTRIES,
    Check,
    Entry,
    copy_tree,
    go_on,
    kind_of,
    open_folder,
    open_regular,
    read_chunks,
    read_entries,
    remove_tree,
    walk_tree,
    write_all,
)


class OpenFolder(NamedTuple):
    """A folder that is open for listing."""

    descriptor: int
    path: str
    """The real path, to show."""
    root: str
    """The real path of its root."""
    relative: str
    """The path from the root to it; empty for the root itself."""


@final
class ConfinedFiles:
    """The files in some roots.

    `read_only` are folders in which nothing may be changed; `deny` are globs of names that may not be touched (see
    DeniedNames). A path is absolute, relative to the first root, `~/…` or a `file://` URI.
    """

    def __init__(
        self,
        roots: Roots,
        *,
        read_only: Sequence[str] = (),
        deny: Sequence[str] = (),
        open_beneath: OpenBeneath = open_beneath,
    ) -> None:
        self.roots = roots
        self._places = Places(roots, read_only, DeniedNames(deny), open_beneath)
        self._devices = local_devices(roots.folders)

    # -- reading

    def open_file(self, path: str, most: int | None = None) -> BinaryIO:
        """Open a regular file for reading; one of more than `most` bytes is refused."""
        with self._places.find(path) as place:
            descriptor = open_regular(place.folder, _file_name(path, place), os.O_RDONLY)
            size = os.fstat(descriptor).st_size
            if most is not None and size > most:
                os.close(descriptor)
                raise too_large(size, most).at(path)
            return open(descriptor, "rb")

    def read_cached(self, path: str, most: int) -> bytes:
        """The content of a regular file, without waiting. Raises WouldBlock unless it is short and in memory."""
        try:
            return read_cached(self._places.plain_path(path), self._devices, most)
        except (FileError, OSError):
            raise WouldBlock from None  # the blocking way reports the problem

    def status(self, path: str, follow: bool = True) -> Entry:
        """The file, folder or link of a path. A link at its end is followed, unless `follow` is false."""
        with self._places.find(path, follow) as place:
            status = place.status()
            if path.endswith("/") and not stat.S_ISDIR(status.st_mode):
                raise FileError(path, "not_a_folder")
            return Entry(os.path.basename(place.path), status)

    def real_path(self, path: str) -> str:
        """The path of a file without links, `..` and shorthands. The file need not exist, its folder does."""
        with self._places.find(path) as place:
            return place.path

    def movable_path(self, path: str) -> str:
        """The real path of the entry that `move` and `delete` would take: a link at its end is not followed."""
        with self._places.find(path, follow=False, change=True) as place:
            self._places.check_tree(path, place, change=True)
            return place.path

    @contextmanager
    def open_folder(self, path: str) -> Generator[OpenFolder]:
        """Open a folder, to be listed or searched by its descriptor."""
        with self._places.find(path) as place, open_folder(place.folder, place.name) as folder:
            yield OpenFolder(folder, place.path, place.root, "" if place.name == "." else place.relative)

    def list_folder(self, path: str, most: int = MOST_ENTRIES) -> tuple[list[Entry], bool]:
        """The entries of a folder, sorted, and whether there are more than `most`. Denied names are left out."""
        with self.open_folder(path) as folder:
            entries, more = read_entries(folder.descriptor, most)
            hidden = self.denied_in(folder.relative)
            return [Entry(entry.path, entry.status) for entry in entries if not hidden(entry.path)], more

    def walk(self, path: str) -> Iterator[Entry]:
        """All entries below a folder, depth first and sorted, at most MOST_DEPTH folders down.

        Links are entries and are not followed. The caller stops when it has enough.
        """
        with self.open_folder(path) as folder:
            yield from walk_tree(folder.descriptor, self.denied_in(folder.relative))

    def denied_in(self, folder: str) -> Callable[[str], bool]:
        """Whether a path, relative to a folder, is denied; the folder is relative to its root."""
        return self._places.hidden_in(folder)

    # -- changing

    def make_folder(self, path: str) -> bool:
        """Make a folder and those above it. False if it existed before."""
        with explain(path):
            return self._make_folders(path, self._places.absolute(path))

    def write(
        self,
        path: str,
        data: bytes | Iterable[bytes],
        *,
        overwrite: bool = True,
        parents: bool = False,
        expected_hash: str | None = None,
    ) -> Entry:
        """Replace a file's content, or make the file, in one step: others see the old content or the new.

        `expected_hash` is the SHA-256 of the content that the caller knows: if another is there, it is not replaced.
        """
        if parents:
            self._make_parents(path)
        with self._places.find(path, change=True) as place, _readable(place) as folder:
            name = _file_name(path, place)

            def check() -> None:
                if expected_hash is not None and _hash(folder, name) != expected_hash.lower():
                    raise FileError(path, "changed")

            check()
            chunks = (data,) if isinstance(data, bytes) else data
            return Entry(name, replace_file(folder, name, chunks, overwrite, check=check))

    def append(self, path: str, data: bytes, *, parents: bool = False, most: int | None = None) -> Entry:
        """Add bytes to the end of a file, or make the file. If it would exceed `most`, it is unchanged."""
        if parents:
            self._make_parents(path)
        with self._places.find(path, change=True) as place, _readable(place) as folder, lock_folder(folder):
            name = _file_name(path, place)
            return Entry(name, _append(folder, name, data, most))

    def move(
        self,
        source: str,
        target: str,
        *,
        overwrite: bool = False,
        parents: bool = False,
        to: ConfinedFiles | None = None,
        check: Check = go_on,
    ) -> None:
        """Move a file, folder or link, also to another file system. `to` has the target's roots, if they are others.

        `check` is called for every file and megabyte that has to be copied; if it raises, nothing was moved.
        """
        with self._both(source, target, parents, to or self, move=True) as (old, status, new):
            try:
                rename(old.name, new.name, old.folder, new.folder, overwrite)
                return
            except OSError as problem:
                if problem.errno != errno.EXDEV:
                    raise
            if not os.access(".", os.W_OK, dir_fd=old.folder, effective_ids=True):
                raise FileError(source, "permission")  # it could be copied, but not deleted afterwards
            _copy(source, old, new, status, overwrite, check)
            with explain(source):
                if kind_of(status) == "folder":
                    delete_folder(old.folder, old.name)
                else:
                    os.unlink(old.name, dir_fd=old.folder)

    def copy(
        self,
        source: str,
        target: str,
        *,
        overwrite: bool = False,
        parents: bool = False,
        to: ConfinedFiles | None = None,
        check: Check = go_on,
    ) -> None:
        """Copy a file, or a folder with all it holds, in which links stay links. The copy appears in one step.

        `check` is called for every file and megabyte; if it raises, there is no copy.
        """
        with self._both(source, target, parents, to or self, move=False) as (old, status, new):
            _copy(source, old, new, status, overwrite, check)

    def delete(self, path: str, *, tree: bool = False) -> None:
        """Delete a file, a link or an empty folder; with `tree` also a folder with its content."""
        with self._places.find(path, follow=False, change=True) as place:
            _remove(place, self._places.check_tree(path, place, change=True), tree)

    # -- parts of the above

    @contextmanager
    def _both(
        self, source: str, target: str, parents: bool, into: ConfinedFiles, move: bool
    ) -> Generator[tuple[Place, os.stat_result, Place]]:
        """The source and its status, and the target, of a move or copy."""
        with self._places.find(source, follow=not move, change=move) as old:
            status = self._places.check_tree(source, old, change=move)
            is_folder = kind_of(status) == "folder"
            if not move and kind_of(status) == "special":
                raise FileError(source, "special")
            if parents:
                into._make_parents(target)
            with into._target(target, old, is_folder, follow=not move) as new:
                yield old, status, new

    @contextmanager
    def _target(self, given: str, source: Place, is_folder: bool, follow: bool) -> Generator[Place]:
        """The target of a move or copy, which must not be inside the source; a file replaces no folder."""
        with self._places.find(given, follow, change=True) as place:
            if place.name == ".":
                raise FileError(given, "root")
            if place.path.startswith(source.path + "/"):
                raise FileError(given, "into_itself")
            if not is_folder and place.kind() == "folder":
                raise FileError(given, "exists", " as a folder", "name the new path in it")
            yield place

    def _make_parents(self, given: str) -> None:
        above = os.path.dirname(self._places.absolute(given).rstrip("/"))
        with explain(given):
            self._make_folders(given, above)

    def _make_folders(self, given: str, text: str) -> bool:
        try:
            return self._make_one_folder(given, text)
        except FileNotFoundError:
            self._make_folders(given, os.path.dirname(text.rstrip("/")))
            return self._make_one_folder(given, text)

    def _make_one_folder(self, given: str, text: str) -> bool:
        place = self._places.locate(given, text, follow=True)
        try:
            if place.kind() == "folder":
                self._places.check(given, place, change=False)
                return False
            self._places.check(given, place, change=True)
            self._places.check_name(given)  # otherwise a refused write would leave the folders above its file
            with suppress(FileExistsError):
                os.mkdir(place.name, dir_fd=place.folder)
                return True
            if place.kind() != "folder":
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            return False
        finally:
            os.close(place.folder)


def _file_name(given: str, place: Place) -> str:
    """The name of a file; a path that ends with a slash is none."""
    if given.endswith("/"):
        raise FileError(given, "not_a_folder" if place.kind() == "file" else "not_a_file")
    return place.name


def _readable(place: Place) -> AbstractContextManager[int]:
    """A descriptor of a place's folder that can be listed, locked and synced."""
    return open_folder(place.folder, ".")


def _hash(folder: int, name: str) -> str | None:
    """The SHA-256 of a file; None if it does not exist."""
    try:
        descriptor = open_regular(folder, name, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        digest = sha256()
        for chunk in read_chunks(descriptor):
            digest.update(chunk)
        return digest.hexdigest()
    finally:
        os.close(descriptor)


def _append(folder: int, name: str, data: bytes, most: int | None) -> os.stat_result:
    """Append, or leave the file unchanged. Raises OSError, and FileError beyond `most` bytes."""
    try:
        os.lstat(name, dir_fd=folder)
        flags = os.O_WRONLY | os.O_APPEND
    except FileNotFoundError:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
    descriptor = open_regular(folder, name, flags)
    try:
        size = os.fstat(descriptor).st_size
        try:
            if most is not None and size + len(data) > most:
                raise too_large(size + len(data), most, "append less")
            write_all(descriptor, data)
            os.fsync(descriptor)
        except BaseException:
            os.ftruncate(descriptor, size)
            if flags & os.O_CREAT:
                os.unlink(name, dir_fd=folder)
            raise
        if flags & os.O_CREAT:
            sync_folder(folder)
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _copy(given: str, old: Place, new: Place, status: os.stat_result, overwrite: bool, check: Check) -> None:
    """Copy a file, folder or link to a place where it appears in one step. Raises OSError; FileError about `given`."""
    with _readable(new) as target:
        if not overwrite and new.kind() is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        match kind_of(status):
            case "folder":
                _copy_folder(given, old, new.name, target, overwrite, check)
            case "link":
                replace_link(target, new.name, os.readlink(old.name, dir_fd=old.folder), overwrite)
            case _:
                with explain(given):
                    source = open_regular(old.folder, old.name, os.O_RDONLY)
                try:
                    mode = stat.S_IMODE(status.st_mode) & 0o777
                    replace_file(target, new.name, read_chunks(source, check), overwrite, mode)
                finally:
                    os.close(source)


def _copy_folder(given: str, old: Place, name: str, target: int, overwrite: bool, check: Check) -> None:
    with open_folder(old.folder, old.name) as source, draft_folder(target) as (draft, draft_name):
        try:
            copy_tree(source, draft, check)
        except OSError as problem:
            if problem.errno != errno.E2BIG:
                raise
            detail = f": folders are nested more than {MOST_DEPTH} deep in it, or one has over {MOST_ENTRIES:,} entries"
            raise FileError(given, "too_large", detail, "copy the parts of it") from None
        os.fchmod(draft, stat.S_IMODE(os.fstat(source).st_mode))
        rename(draft_name, name, target, target, overwrite)


def _remove(place: Place, status: os.stat_result, tree: bool) -> None:
    if kind_of(status) != "folder":
        os.unlink(place.name, dir_fd=place.folder)
    elif tree:
        remove_tree(place.folder, place.name)
    else:
        os.rmdir(place.name, dir_fd=place.folder)
