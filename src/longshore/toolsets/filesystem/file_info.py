"""The facts about a file: size, times, mode, type, lines and hash."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from hashlib import sha256
from time import gmtime, strftime
from typing import Final

from msgspec import Struct

from longshore.sandbox.file_errors import FileError, too_large
from longshore.sandbox.file_type import Encoding, Newline, detect_file_type
from longshore.toolsets.filesystem.text_file import TextFile

HASH_CHARACTERS: Final = 12
"""The least part of a hash that identifies a file's content: nobody makes one that collides with it by accident."""
_CHUNK_BYTES: Final = 262_144


class FileInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The facts of a regular file."""

    size: int
    modified: str
    """In UTC, as 2026-07-28T09:30:00Z."""
    mode: str
    """As `ls -l` shows it: -rw-r--r--."""
    mime: str
    encoding: Encoding | None = None
    bom: bool = False
    newline: Newline | None = None
    lines: int | None = None
    """None for a binary file and for one that is larger than the limit."""
    sha256: str | None = None
    """None for a file that is larger than the limit."""

    def show(self) -> str:
        """The facts as lines for a model."""
        lines = [f"{self.mime}, {self.size:,} bytes, {self.mode}, modified {self.modified}"]
        if self.lines is not None:
            encoding = f"{self.encoding} with BOM" if self.bom else self.encoding
            lines.append(f"{self.lines:,} lines in {encoding}, {self.newline} line ends")
        if self.sha256 is not None:
            lines.append(f"sha256 {self.sha256}")
        return "\n".join(lines)


def describe_file(descriptor: int, most_bytes: int, each_chunk: Callable[[], object] = lambda: None) -> FileInfo:
    """The facts of an open file. Lines and hash are left out if it has more than `most_bytes`."""
    status = os.fstat(descriptor)
    file_type = detect_file_type(descriptor)
    small = status.st_size <= most_bytes
    text = file_type.text
    return FileInfo(
        size=status.st_size,
        modified=show_time(status.st_mtime),
        mode=stat.filemode(status.st_mode),
        mime=file_type.mime,
        encoding=text.encoding if text else None,
        bom=text is not None and text.bom != b"",
        newline=text.newline if text else None,
        lines=TextFile(descriptor, file_type, each_chunk).count_lines() if small and text else None,
        sha256=hash_file(descriptor, most_bytes, each_chunk) if small else None,
    )


def show_time(seconds: float) -> str:
    """A time in UTC, as 2026-07-28T09:30:00Z."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(seconds))


def free_bytes(folder: str) -> int:
    """The space that is left for us where a folder is. Raises OSError."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def hash_file(descriptor: int, most_bytes: int, each_chunk: Callable[[], object] = lambda: None) -> str:
    """The SHA-256 of an open file. Raises FileError if it has more than `most_bytes`, also if it grows meanwhile."""
    digest = sha256()
    for chunk in _chunks(descriptor, most_bytes):
        each_chunk()
        digest.update(chunk)
    return digest.hexdigest()


def read_whole(descriptor: int, most_bytes: int) -> bytes:
    """All bytes of an open file. Raises FileError if it has more than `most_bytes`."""
    return b"".join(_chunks(descriptor, most_bytes))


def hash_bytes(data: bytes) -> str:
    """The SHA-256 of a file's content."""
    return sha256(data).hexdigest()


def check_hash(actual: str, expected: str) -> None:
    """Compares a file's hash with the one that a client read, or its first characters. Raises FileError."""
    wanted = expected.strip().lower()
    if len(wanted) < HASH_CHARACTERS:
        what = f"expected_hash has {len(wanted)} characters"
        raise FileError("", "invalid", what, f"give at least the first {HASH_CHARACTERS} of the file's SHA-256")
    if not actual.startswith(wanted):
        raise FileError("", "changed", expected=wanted, actual=actual)


def _chunks(descriptor: int, most_bytes: int) -> Iterator[bytes]:
    size = os.fstat(descriptor).st_size
    position = 0
    while size <= most_bytes and (chunk := os.pread(descriptor, _CHUNK_BYTES, position)):
        position += len(chunk)
        size = max(size, position)
        yield chunk
    if size > most_bytes:
        raise too_large(size, most_bytes)
