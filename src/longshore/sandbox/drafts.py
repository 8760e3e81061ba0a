"""Files and folders that are written under a temporary name and appear in one step.

A reader finds the old content or the new, never a mixture, also after `kill -9` or on a full disk. The writer holds a
lock on its draft: a draft that can be locked belongs to a process that was killed, and the next write in that folder
deletes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from itertools import islice
from secrets import token_hex
from typing import Final

from longshore.sandbox.beneath import FOLDER_FLAGS
from longshore.sandbox.syscalls import rename_exclusive
from longshore.sandbox.trees import DRAFT_PREFIX, FILE_FLAGS, remove_tree, require_regular, write_all

SWEPT_ENTRIES: Final = 1_000
"""Of a folder, at each write in it: half a millisecond. In larger folders a draft may stay until it is found."""
LOCK_SECONDS: Final = 5.0
"""For the lock on a folder, which is held for a rename.

If another process holds it for longer, the write is refused.
"""
_POLL_SECONDS: Final = 0.002
_NO_LOCKS: Final = (errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF)


def replace_file(
    folder: int,
    name: str,
    chunks: Iterable[bytes],
    overwrite: bool = True,
    mode: int | None = None,
    check: Callable[[], None] = lambda: None,
) -> os.stat_result:
    """Write a file in one step and return its status; an existing one keeps its mode and owner. Raises OSError.

    `folder` can be synced and locked. `mode` is for a new file, by default from the umask. `check` is called right
    before the file appears, while other writers of Longshore are excluded from the folder.
    """
    old = _old_status(folder, name, overwrite)
    delete_stale_drafts(folder)
    descriptor, draft = _create(folder, 0o666 if old is None and mode is None else 0o600)
    try:
        if old is not None:
            _keep_owner_and_mode(descriptor, old)
        elif mode is not None:
            os.fchmod(descriptor, mode)
        for chunk in chunks:
            write_all(descriptor, chunk)
        os.fsync(descriptor)
        with lock_folder(folder):
            check()
            rename(draft, name, folder, folder, overwrite)
        return os.fstat(descriptor)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)
        sync_folder(folder)


def replace_link(folder: int, name: str, target: str, overwrite: bool) -> None:
    """Make a symbolic link in one step. Raises OSError."""
    if not overwrite:
        os.symlink(target, name, dir_fd=folder)  # a link can't be locked, so nothing would delete a stale draft
        return
    draft = DRAFT_PREFIX + token_hex(8)
    os.symlink(target, draft, dir_fd=folder)
    try:
        rename(draft, name, folder, folder, overwrite=True)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise


@contextmanager
def draft_folder(folder: int) -> Generator[tuple[int, str]]:
    """A new folder under a temporary name. It is deleted at the end, unless it was renamed."""
    delete_stale_drafts(folder)
    draft = DRAFT_PREFIX + token_hex(8)
    os.mkdir(draft, 0o700, dir_fd=folder)
    descriptor = os.open(draft, FOLDER_FLAGS, dir_fd=folder)
    try:
        _try_lock(descriptor)
        yield descriptor, draft
    finally:
        os.close(descriptor)
        with suppress(OSError):
            remove_tree(folder, draft)


def delete_folder(folder: int, name: str) -> None:
    """Delete a folder in one step by a rename, also one that contains read-only folders. Raises OSError.

    After `kill -9` it is whole, or a draft that the next write deletes.
    """
    draft = DRAFT_PREFIX + token_hex(8)
    os.rename(name, draft, src_dir_fd=folder, dst_dir_fd=folder)
    with suppress(FileNotFoundError):  # a write in this folder may delete the draft too
        try:
            remove_tree(folder, draft)
        except PermissionError:
            for *_, inner in os.fwalk(draft, dir_fd=folder):
                os.fchmod(inner, 0o700)
            remove_tree(folder, draft)


def rename(source: str, target: str, source_folder: int, target_folder: int, overwrite: bool) -> None:
    """Rename from folder to folder. Raises OSError, FileExistsError unless it may overwrite."""
    if overwrite:
        os.rename(source, target, src_dir_fd=source_folder, dst_dir_fd=target_folder)
    else:
        rename_exclusive(source, target, source_folder, target_folder)


@contextmanager
def lock_folder(folder: int) -> Generator[None]:
    """Exclude other writers of Longshore, in this process and in others, from a folder. Raises OSError (EBUSY)."""
    deadline = time.monotonic() + LOCK_SECONDS
    while not _try_lock(folder):
        if time.monotonic() >= deadline:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_UN)


def delete_stale_drafts(folder: int) -> None:
    """Delete the drafts of processes that were killed."""
    with os.scandir(folder) as found:
        stale = [entry.name for entry in islice(found, SWEPT_ENTRIES) if entry.name.startswith(DRAFT_PREFIX)]
    for name in stale:
        with suppress(OSError):
            descriptor = os.open(name, os.O_RDONLY | FILE_FLAGS, dir_fd=folder)
            try:
                # Without locks it is unknown whether the writer has ended: the draft stays.
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                    remove_tree(folder, name)
                else:
                    os.unlink(name, dir_fd=folder)
            finally:
                os.close(descriptor)


def sync_folder(folder: int) -> None:
    """Make the names in a folder survive a power failure, if its file system can."""
    with suppress(OSError):
        os.fsync(folder)


def _create(folder: int, mode: int) -> tuple[int, str]:
    """Create a locked draft. If another process deletes it before it is locked, create another one."""
    while True:
        draft = DRAFT_PREFIX + token_hex(8)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE_FLAGS, mode, dir_fd=folder)
        if _try_lock(descriptor) and os.fstat(descriptor).st_nlink:
            return descriptor, draft
        os.close(descriptor)
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)


def _try_lock(descriptor: int) -> bool:
    """Whether the lock was free, or the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        return problem.errno in _NO_LOCKS
    return True


def _old_status(folder: int, name: str, overwrite: bool) -> os.stat_result | None:
    """The status of the regular file to replace; None if there is nothing. Raises OSError for anything else."""
    try:
        status = os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return None
    if not overwrite:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    require_regular(status)
    return status


def _keep_owner_and_mode(descriptor: int, old: os.stat_result) -> None:
    mode = stat.S_IMODE(old.st_mode)
    try:
        os.fchown(descriptor, old.st_uid, old.st_gid)
    except OSError:  # only root may give files away; then the special bits would mean another user
        mode &= 0o777
    os.fchmod(descriptor, mode)
