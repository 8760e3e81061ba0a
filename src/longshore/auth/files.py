"""Small files that the configuration names: a token, a key set."""

from __future__ import annotations

import os
import stat

from msgspec import Struct

from longshore.errors import ConfigError
from longshore.files import read_regular


class Contents(Struct, frozen=True):
    """A file's bytes, and whether everyone on the machine may read them."""

    data: bytes
    open_to_all: bool


def read(key: str, path: str, most: int) -> Contents:
    """Read a regular file of at most `most` bytes. Raises a ConfigError that names key and file."""
    try:
        data, found = read_regular(os.path.expanduser(path), most)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = (getattr(error, "strerror", None) or "not a path").lower()
        raise ConfigError(f"{key}: {path!r} can't be read: {reason}") from None
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{key}: {path!r} is not a file")
    if len(data) > most:
        raise ConfigError(f"{key}: {path!r} is larger than {most} bytes")
    return Contents(data, bool(found.st_mode & stat.S_IROTH))
