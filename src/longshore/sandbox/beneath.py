"""Folders opened beneath a root: by the kernel (openat2), else by a walk over directory descriptors.

No path is checked first and opened later: the result is the descriptor of a folder that was reached without leaving the
root, even if folders are renamed or linked meanwhile. Symbolic links are followed as long as they stay beneath the
root. Both ways give the same results; a path that leads outside is reported (Leaves), so that the caller can look for
it in another root.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from typing import Final

from longshore.sandbox.roots import is_within
from longshore.sandbox.syscalls import (
    AT_FDCWD,
    RESOLVE_BENEATH,
    RESOLVE_NO_MAGICLINKS,
    RESOLVE_NO_SYMLINKS,
    descriptor_path,
    has_openat2,
    is_kernel_file,
    openat2,
)

MOST_LINKS: Final = 40
"""Symbolic links on one path, as in Linux."""
RACE_RETRIES: Final = 64
"""Of openat2 after EAGAIN: something was renamed while `..` was resolved. Then the walk, which needs no retries."""
FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""A folder that can be listed, locked and synced; never a link."""
# A descriptor for the way needs no read permission on the folder. macOS has no O_PATH.
_PASS_FLAGS: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ORDINARY_PROC_LINK = re.compile(r"[0-9]+(/task/[0-9]+)?|self/[a-z]+")

OpenBeneath = Callable[[int, str, str], tuple[int, str]]
"""Root descriptor, the root's real path, a relative path -> a folder's descriptor and real path.

Raises OSError, Leaves.
"""


class Leaves(Exception):
    """A path leads out of its root, to this absolute path, which is not checked yet."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def open_beneath(root: int, root_path: str, relative: str) -> tuple[int, str]:
    """Open a folder beneath a root, by the kernel where it can."""
    if not has_openat2():
        return walk_beneath(root, root_path, relative)
    flags = os.O_PATH | os.O_DIRECTORY
    for _ in range(RACE_RETRIES):
        try:
            descriptor = openat2(root, relative or ".", flags, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
        except OSError as problem:
            if problem.errno == errno.EAGAIN:
                continue
            if problem.errno in (errno.EXDEV, errno.ELOOP):
                break  # the walk finds the link that leads out
            raise
        path = descriptor_path(descriptor)
        if is_within(path, root_path):
            return descriptor, path
        os.close(descriptor)  # the root itself was renamed
        break
    return walk_beneath(root, root_path, relative)


def walk_beneath(root: int, root_path: str, relative: str) -> tuple[int, str]:
    """Open a folder beneath a root, component by component; links are followed by their texts only."""
    way: list[int] = [os.dup(root)]
    names: list[str] = []
    pending = relative.split("/")[::-1]
    links = 0
    try:
        while pending:
            name = pending.pop()
            if name in ("", "."):
                continue
            if name == "..":
                if not names:
                    raise Leaves(os.path.join(os.path.dirname(root_path), *pending[::-1]))
                names.pop()
                os.close(way.pop())
                continue
            target = _enter(way, name)
            if target is None:
                names.append(name)
                continue
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if target.startswith("/"):
                raise Leaves(os.path.join(target, *pending[::-1]))
            pending += target.split("/")[::-1]
        return way.pop(), os.path.join(root_path, *names)
    finally:
        for descriptor in way:
            os.close(descriptor)


def _enter(way: list[int], name: str) -> str | None:
    """Open a folder and append it to the walk; for a link, return its text instead."""
    try:
        way.append(os.open(name, _PASS_FLAGS, dir_fd=way[-1]))
    except OSError as problem:
        if problem.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        target = link_text(way[-1], name)
        if target is None:
            raise
        return target
    return None


def link_text(folder: int, name: str) -> str | None:
    """The target of a symbolic link; None for anything else. Raises OSError for a magic link of /proc."""
    try:
        target = os.readlink(name, dir_fd=folder)
    except OSError as problem:
        if problem.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise
    if is_kernel_file(folder) and not _ORDINARY_PROC_LINK.fullmatch(target):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return target


def open_root(path: str) -> int:
    """Open a root by its real path. Raises OSError if a part of the path is a link now: a folder was replaced."""
    if has_openat2():
        return openat2(AT_FDCWD, path, os.O_PATH | os.O_DIRECTORY, RESOLVE_NO_SYMLINKS)
    descriptor = os.open("/", _PASS_FLAGS)
    for name in path.split("/"):
        if name:
            above = descriptor
            try:
                descriptor = os.open(name, _PASS_FLAGS, dir_fd=above)
            finally:
                os.close(above)
    return descriptor
