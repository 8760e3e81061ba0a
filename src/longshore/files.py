"""User directories, bounded reads and atomic writes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Literal, Protocol

_DIRECTORIES = {
    "config": ("XDG_CONFIG_HOME", ".config"),
    "data": ("XDG_DATA_HOME", ".local/share"),
    "state": ("XDG_STATE_HOME", ".local/state"),
    "cache": ("XDG_CACHE_HOME", ".cache"),
}


def user_directory(
    kind: Literal["config", "data", "state", "cache"], environ: Mapping[str, str] | None = None
) -> str | None:
    """Longshore's own directory of this kind for the user; None if the user has no home.

    A relative XDG_…_HOME is ignored, as its standard says. If `environ` is given, the home is its HOME only.
    """
    variable, usual = _DIRECTORIES[kind]
    base = (os.environ if environ is None else environ).get(variable, "")
    if not os.path.isabs(base):
        home = os.path.expanduser("~") if environ is None else environ.get("HOME", "")
        if not os.path.isabs(home):
            return None
        base = os.path.join(home, usual)
    return os.path.join(base, "longshore")


def read_bounded(path: str, most: int) -> bytes:
    """Read a file or pipe that a person named. One byte more than `most` says that there is more. Raises OSError.

    It blocks until a pipe is closed; `read_regular` is for paths that no person named just now.
    """
    with open(path, "rb") as file:
        return file.read(most + 1)


def read_regular(path: str, most: int) -> tuple[bytes, os.stat_result]:
    """Read a regular file or a device such as /dev/null, with the status of the very file that was opened.

    One byte more than `most` says that there is more. Anything else (directory, FIFO) gives no bytes: see the
    status. Raises OSError.
    """
    # Non-blocking: a FIFO in the file's place must not block the start.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISCHR(status.st_mode)):
            return b"", status
        data = bytearray()
        while len(data) <= most and (chunk := os.read(descriptor, most + 1 - len(data))):
            data += chunk
        return bytes(data), status
    finally:
        os.close(descriptor)


class Parts(Protocol):
    """Data that is read part by part; its length is that of all parts."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[bytes]: ...


def write_atomic(path: str | os.PathLike[str], data: bytes | Parts, mode: int | None = None) -> None:
    """Replace a file's content in one step: a concurrent reader finds the old or the new content. Raises OSError.

    Without `mode` an existing file keeps its own, and a new one gets the mode that the umask leaves.
    """
    folder, name = os.path.split(os.path.abspath(path))
    os.makedirs(folder, mode=0o777 if mode is None else 0o700, exist_ok=True)
    draft = os.path.join(folder, f".{name}.{os.urandom(6).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, _usual_mode(path) if mode is None else mode)
            file.writelines([data] if isinstance(data, bytes) else data)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def delete_oldest(folder: str, most: int) -> None:
    """Delete all but the newest `most` files of a folder. Raises OSError, also if another process deletes too."""
    names = os.listdir(folder)
    if len(names) > most:
        paths = sorted((os.path.join(folder, name) for name in names), key=os.path.getmtime)
        for path in paths[: len(paths) - most]:
            os.unlink(path)


def _usual_mode(path: str | os.PathLike[str]) -> int:
    """The mode of an existing file, else what the umask leaves of 666."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask
