"""Files that tools make for their callers: screenshots, whole logs, downloads.

An artifact belongs to the principal whose call made it, and no other can read it. Its folder is the digest of the
principal's name, so processes that share a folder share the artifacts, and only the files are stored: a file's time is
its expiry, its name has the other facts. Past the quota the oldest are deleted first.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable
from hashlib import sha256
from secrets import token_hex
from typing import Final, final

from msgspec import Struct

from longshore.errors import ResourceNotFound, ToolError
from longshore.files import Parts, write_atomic

SCHEME: Final = "artifact"
QUOTA_BYTES: Final = 256 << 20
"""For each principal. A day of screenshots and logs; a disk has room for it."""
AGE_SECONDS: Final = 24 * 3600.0
"""A conversation may go on the next morning."""
READ_BYTES: Final = 1 << 20
"""One read. A client that needs more asks for ranges: the whole would not fit its context, nor a frame."""
SWEEP_SECONDS: Final = 3600.0
"""Between two looks for expired files of every principal, at a `put`. Of its own principal, each looks."""
BINARY: Final = "application/octet-stream"
UNNAMED: Final = "artifact"
_ID_BYTES: Final = 8
_NAME_CHARACTERS: Final = 80
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_MIME_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,59}/[A-Za-z0-9][A-Za-z0-9.+_-]{0,59}")


class Artifact(Struct, frozen=True):
    """A file in the store."""

    id: str
    name: str
    mime_type: str
    path: str
    size: int
    expires: float
    """Seconds since the epoch."""

    @property
    def uri(self) -> str:
        return f"{SCHEME}://{self.id}/{self.name}"


@final
class ArtifactStore:
    """The artifacts in one folder. All methods block on the disk."""

    def __init__(
        self,
        folder: str,
        quota_bytes: int = QUOTA_BYTES,
        age_seconds: float = AGE_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._quota_bytes = quota_bytes
        self._age_seconds = age_seconds
        self._clock = clock
        self._swept = -math.inf

    def put(self, owner: str, name: str, data: bytes | Parts, mime_type: str = BINARY) -> Artifact:
        """Store a file for a principal. Raises ToolError if it can't be stored."""
        if not _MIME_TYPE.fullmatch(mime_type):
            raise ToolError(f"{mime_type[:100]!r} is no MIME type, such as text/plain")
        now = self._clock()
        if now - self._swept >= SWEEP_SECONDS:
            self._swept = now
            self.sweep()
        self._make_room(owner, len(data))
        id, name = token_hex(_ID_BYTES), safe_name(name)
        path = os.path.join(self._owned(owner), f"{id},{mime_type.replace('/', '~')},{name}")
        try:
            write_atomic(path, data, 0o600)
            os.utime(path, (now, now))
        except OSError as problem:
            raise ToolError(f"{name} can't be stored in {self._folder}: {problem.strerror}") from None
        return Artifact(id, name, mime_type, path, len(data), now + self._age_seconds)

    def find(self, owner: str, id: str, name: str) -> Artifact:
        """An artifact of this principal. Raises ResourceNotFound, also if it has expired."""
        missing = ResourceNotFound(f"{SCHEME}://{id}/{name}", "; it may have expired, or belong to another user")
        for path in _list(self._owned(owner)):
            parts = os.path.basename(path).split(",")
            if len(parts) == 3 and (parts[0], parts[2]) == (id, name):
                break
        else:
            raise missing
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError:
            raise missing from None
        expires = status.st_mtime + self._age_seconds
        if expires <= self._clock():
            raise missing
        return Artifact(id, name, parts[1].replace("~", "/"), path, status.st_size, expires)

    def read(self, artifact: Artifact, offset: int = 0, length: int = READ_BYTES) -> bytes:
        """A range of an artifact, at most READ_BYTES. Empty beyond its end."""
        try:
            with open(artifact.path, "rb") as file:
                file.seek(offset)
                return file.read(min(length, READ_BYTES))
        except OSError:
            raise ResourceNotFound(artifact.uri, "; it has just expired") from None

    def sweep(self) -> None:
        """Delete expired files, of every principal."""
        for folder in _list(self._folder):
            self._delete_expired(folder)
            try:
                os.rmdir(folder)  # fails if it is not empty
            except OSError:
                pass

    def _make_room(self, owner: str, size: int) -> None:
        """Delete expired files, then the oldest artifacts until the new one fits."""
        if size > self._quota_bytes:
            raise ToolError(f"{size:,} bytes are too large to store; at most {self._quota_bytes:,} are")
        left = self._delete_expired(self._owned(owner))
        used = sum(size for _, size, _ in left)
        for _, old, path in sorted(left):
            if used + size <= self._quota_bytes:
                break
            _delete(path)
            used -= old

    def _delete_expired(self, folder: str) -> list[tuple[float, int, str]]:
        """Delete the expired files of a folder. Returns time, size and path of the others."""
        oldest, left = self._clock() - self._age_seconds, list[tuple[float, int, str]]()
        for path in _list(folder):
            try:
                status = os.stat(path, follow_symlinks=False)
            except OSError:  # another process was faster
                continue
            if status.st_mtime <= oldest:
                _delete(path)
            else:
                left.append((status.st_mtime, status.st_size, path))
        return left

    def _owned(self, owner: str) -> str:
        return os.path.join(self._folder, sha256(owner.encode()).hexdigest()[:32])


def safe_name(name: str) -> str:
    """A file name without folders, spaces and hidden beginnings."""
    safe = _UNSAFE.sub("-", re.split(r"[/\\]", name)[-1])
    if safe.startswith("-."):  # no letter of it was safe; the ending still tells the type
        safe = UNNAMED + safe[1:]
    return safe.strip(".-")[-_NAME_CHARACTERS:] or UNNAMED


def _list(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def _delete(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
