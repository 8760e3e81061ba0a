"""A folder for deleted files, from which they can be restored.

An entry is two names in that folder: the file itself under the entry's id, and a record whose name tells the id, the
time and the size and whose content is the path that the file had. The record is written before the file is moved and
deleted after it is restored. So at any moment a file is in its place or has a record, and a record without a file means
that a process was killed on the way: it is dropped. A lock lets one process at a time use the folder.
"""

from __future__ import annotations

import builtins
import os
import re
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from secrets import token_hex
from typing import Final, NamedTuple, final

from msgspec import Struct

from longshore.sandbox.beneath import FOLDER_FLAGS
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.drafts import delete_folder, lock_folder, replace_file
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.roots import Roots, is_within
from longshore.sandbox.trees import (
    DRAFT_PREFIX,
    FILE_FLAGS,
    MOST_DEPTH,
    Check,
    go_on,
    kind_of,
    open_regular,
    read_chunks,
)

MOST_ENTRIES: Final = 10_000
"""In the trash. With so many a deletion, which reads all their names, takes 80 ms and a list 0.7 s."""
DAY_SECONDS: Final = 86_400.0
_ID_BYTES: Final = 4  # eight characters; a new id is compared with those in use
_LOCK: Final = "lock"
_RECORD_NAME: Final = re.compile(r"([0-9a-f]{8})-([0-9]+)-([0-9]+)")


class TrashEntry(Struct, frozen=True):
    """A file, folder or link in the trash."""

    id: str
    path: str
    """The real path that it had."""
    size: int
    """Bytes of all its files."""
    deleted: float
    """Seconds since the epoch."""


class _Record(NamedTuple):
    """An entry as far as the name of its record tells."""

    id: str
    microseconds: int
    """When it was deleted, since the epoch."""
    size: int

    @property
    def name(self) -> str:
        return f"{self.id}-{self.microseconds}-{self.size}"


@final
class Trash:
    """Deleted files that can be restored, bounded in size, age and number: the oldest are deleted first.

    Several processes may use one folder at once. All methods block on the disk and raise FileError only.
    """

    def __init__(
        self,
        folder: str,
        *,
        most_bytes: int,
        most_days: float,
        most_entries: int = MOST_ENTRIES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = os.path.realpath(folder)
        self._files = ConfinedFiles(Roots((self._folder,)))
        self._most_bytes, self._most_entries = most_bytes, most_entries
        self._age_seconds = most_days * DAY_SECONDS
        self._clock = clock

    def put(self, files: ConfinedFiles, path: str, check: Check = go_on) -> TrashEntry:
        """Move a file, a link or a folder with all it holds into the trash, also from another file system.

        `check` is called for every file and megabyte that has to be copied; if it raises, nothing was deleted.
        """
        real = files.movable_path(path)
        if is_within(real, self._folder) or is_within(self._folder, real):
            raise FileError(path, "denied", ", because the trash is there", "restore what you need from the trash")
        size = _measure(files, path)
        if size > self._most_bytes:
            detail = f": {size:,} bytes, and the trash takes {self._most_bytes:,}"
            fix = "delete a part of it, or ask the user to raise the trash's size or to delete it"
            raise FileError(path, "too_large", detail, fix)
        with self._open(path) as folder:
            used = {record.id for record in self._tidy(folder)}
            id = next(id for id in iter(lambda: token_hex(_ID_BYTES), "") if id not in used)
            record = _Record(id, round(self._clock() * 1e6), size)
            replace_file(folder, record.name, [os.fsencode(real)], overwrite=False, mode=0o600)
            try:
                files.move(path, self._item(id), to=self._files, check=check)
            except FileError as problem:
                if problem.path == path:
                    raise
                raise FileError(path, problem.kind, " (while it was moved to the trash)") from None
            finally:
                self._tidy(folder, newest=id)
            return TrashEntry(id, real, size, record.microseconds / 1e6)

    def restore(self, files: ConfinedFiles, id: str, to: str | None = None, check: Check = go_on) -> str:
        """Move an entry back to its place, or `to` another one where nothing is, and return that path."""
        with self._open(id) as folder:
            record, path = self._find(folder, files, id)
            target = path if to is None else to
            try:
                self._files.move(self._item(record.id), target, parents=True, to=files, check=check)
            except FileError as problem:
                if problem.kind == "exists":
                    raise FileError(target, "exists", "", "restore it to another path") from None
                raise
            os.unlink(record.name, dir_fd=folder)
            return target

    def list(self, files: ConfinedFiles) -> builtins.list[TrashEntry]:
        """The entries that `files` could restore, the latest first."""
        with self._open(self._folder) as folder:
            return [
                TrashEntry(record.id, path, record.size, record.microseconds / 1e6)
                for record in reversed(self._tidy(folder))
                if _may_restore(files, path := _read_path(folder, record))
            ]

    def _item(self, id: str) -> str:
        return os.path.join(self._folder, id)

    def _find(self, folder: int, files: ConfinedFiles, id: str) -> tuple[_Record, str]:
        wanted = id.strip().lower()
        for record in self._tidy(folder):
            if record.id == wanted:
                path = _read_path(folder, record)
                if _may_restore(files, path):
                    return record, path
        detail = " in the trash: it was restored, is too old, or comes from a folder that you may not use"
        raise FileError(id, "missing", detail, "list the trash to see what can be restored")

    @contextmanager
    def _open(self, given: str) -> Generator[int]:
        """The trash's folder, which is made if need be, while no other thread or process uses it."""
        with ExitStack() as stack:
            try:
                os.makedirs(self._folder, 0o700, exist_ok=True)
                folder = os.open(self._folder, FOLDER_FLAGS)
                stack.callback(os.close, folder)
                os.fchmod(folder, 0o700)
                lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | FILE_FLAGS, 0o600, dir_fd=folder)
                stack.callback(os.close, lock)
                stack.enter_context(lock_folder(lock))
                yield folder
            except OSError as problem:
                detail = f": the trash {self._folder} can't be used ({problem.strerror})"
                raise FileError(given, "failed", detail, "try again, or ask the user to look at that folder") from None

    def _tidy(self, folder: int, newest: str = "") -> builtins.list[_Record]:
        """Drop what killed processes left and what exceeds the bounds. Returns the entries that stay, oldest first.

        `newest` is an entry that counts as the latest, whatever the clock said.
        """
        names = set(os.listdir(folder))
        for name in names:
            if name.startswith(DRAFT_PREFIX):  # of a killed process, because the others wait for the lock
                _delete(folder, name)
        records = [record for name in names if (record := _parse(name)) is not None]
        for record in records:
            if record.id not in names:
                _delete(folder, record.name)
        kept = [record for record in records if record.id in names]
        kept.sort(key=lambda record: (record.id == newest, record.microseconds))
        excess = self._count_excess(kept)
        for record in kept[:excess]:
            _delete(folder, record.id)
            _delete(folder, record.name)
        return kept[excess:]

    def _count_excess(self, records: builtins.list[_Record]) -> int:
        """How many of the oldest entries are beyond the bounds."""
        oldest = round((self._clock() - self._age_seconds) * 1e6)
        total = sum(record.size for record in records)
        for excess, record in enumerate(records):
            fits = total <= self._most_bytes and len(records) - excess <= self._most_entries
            if fits and record.microseconds >= oldest:
                return excess
            total -= record.size
        return len(records)


def _parse(name: str) -> _Record | None:
    parts = _RECORD_NAME.fullmatch(name)
    return _Record(parts[1], int(parts[2]), int(parts[3])) if parts else None


def _read_path(folder: int, record: _Record) -> str:
    descriptor = open_regular(folder, record.name, os.O_RDONLY)
    try:
        return os.fsdecode(b"".join(read_chunks(descriptor)))
    finally:
        os.close(descriptor)


def _may_restore(files: ConfinedFiles, path: str) -> bool:
    """Whether a path is one that `files` may use. Nothing needs to be there."""
    try:
        files.status(path, follow=False)
    except FileError as problem:
        return problem.kind not in ("outside", "denied")
    return True


def _measure(files: ConfinedFiles, path: str) -> int:
    """The bytes of a file, or of all files in a folder. Raises FileError if that is too deep to be deleted later."""
    top = files.status(path, follow=False)
    if top.kind != "folder":
        return top.status.st_size if top.kind == "file" else 0
    size = 0
    for entry in files.walk(path):
        if entry.kind == "file":
            size += entry.status.st_size
        elif entry.kind == "folder" and entry.path.count("/") + 1 >= MOST_DEPTH:
            detail = f": folders are nested more than {MOST_DEPTH} deep in it"
            raise FileError(path, "too_large", detail, "delete the inner folders first")
    return size


def _delete(folder: int, name: str) -> None:
    """Delete a file or folder. If the operating system refuses, it stays as a draft and is tried again."""
    with suppress(OSError):
        if kind_of(os.lstat(name, dir_fd=folder)) == "folder":
            delete_folder(folder, name)
        else:
            os.unlink(name, dir_fd=folder)
