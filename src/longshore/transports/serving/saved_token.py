"""The token that the built-in server makes for itself, kept in a file so that clients may go on using it."""

from __future__ import annotations

import errno
import os
import stat
from secrets import token_hex, token_urlsafe

from longshore.auth.credentials import MOST_BYTES, TOKEN
from longshore.auth.tokens import LEAST_CHARACTERS
from longshore.errors import ConfigError
from longshore.files import read_regular

TOKEN_BYTES = 32
"""At random: as many as a key has that nobody guesses, 43 characters in the line to paste."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def new_token() -> str:
    return token_urlsafe(TOKEN_BYTES)


def saved_token(path: str) -> str:
    """The token in a file, which is made where there is none.

    Raises ConfigError for a file that can't be trusted, and OSError where none can be made.
    """
    if not os.path.lexists(path):
        _make(path)
    return _read(path)


def _make(path: str) -> None:
    """Put a new token there, whole. Where another process does so at the same time, the first one's stays."""
    draft = f"{path}.{token_hex(6)}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            if os.fstat(descriptor).st_mode & _OTHERS:
                raise PermissionError(errno.EPERM, "this file system keeps no files private", draft)
            file.write(new_token() + "\n")
            file.flush()
            os.fsync(descriptor)
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(draft)


def _read(path: str) -> str:
    try:
        found = os.lstat(path)
        data = read_regular(path, MOST_BYTES)[0] if stat.S_ISREG(found.st_mode) else b""
    except OSError as problem:
        raise _unusable(path, f"it can't be read: {(problem.strerror or 'unknown').lower()}") from None
    if not stat.S_ISREG(found.st_mode):
        raise _unusable(path, "it is not a regular file")
    if found.st_uid != os.geteuid():
        raise _unusable(path, f"it belongs to another user (uid {found.st_uid})")
    if found.st_mode & _OTHERS:
        raise _unusable(path, f"other users may open it (mode {found.st_mode & 0o777:o}), so they may know the token")
    token = data.strip()
    if not LEAST_CHARACTERS <= len(token) <= MOST_BYTES or not TOKEN.fullmatch(token):
        raise _unusable(path, "it holds no token")
    return token.decode()


def _unusable(path: str, what: str) -> ConfigError:
    return ConfigError(
        f"{path}, where the token of this server is kept: {what}; delete it, and a start makes a new one"
    )
