"""Lint results of earlier starts, in one file for each server.

A start that finds all its tools here imports no rule. A missing, foreign or broken file costs one lint run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from stat import S_ISREG
from typing import Any, Final, final

import msgspec

from longshore import __version__
from longshore.files import delete_oldest, read_regular, user_directory, write_atomic

FILE_BYTES: Final = 256 << 10
"""The largest file that is read or written: a thousand tools without faults take a sixth of it."""
MOST_TOOLS: Final = 1000
"""Results in one file, the newest. No client accepts as many tools."""
MOST_FILES: Final = 200
"""Files in the folder. The oldest are deleted."""
_SOURCES: Final = ("registry", "schema", "schema/lint", "schema/lint/rules")
"""Packages whose code a result depends on."""


class _File(msgspec.Struct):
    rules: str
    """A digest of the rules' code."""
    found: dict[str, list[str]]
    """Digest of a tool → warnings."""


@final
class LintCache:
    """The cached results of one server."""

    def __init__(self, server: str) -> None:
        self._rules = _rules_digest()
        self._path = _path_of(server)
        self._cached = _read(self._path, self._rules)
        self._used: dict[str, list[str]] = {}
        self._changed = False

    def recall(self, subject: Any, lint: Callable[[], tuple[list[str], bool]]) -> list[str]:
        """The result for a subject. `lint` returns a new result and whether it may be cached."""
        key = _digest(subject)
        found = self._used.get(key, self._cached.get(key)) if key else None
        if found is None:
            found, final = lint()
            if not key or not final:
                return found
            self._changed = True
        self._used[key] = found
        if len(self._used) > MOST_TOOLS:
            del self._used[next(iter(self._used))]
        return found

    def save(self) -> None:
        """Write new results, and those that another process has written meanwhile. Errors are ignored."""
        if not self._changed or self._path is None:
            return
        self._changed = False
        others = {key: found for key, found in _read(self._path, self._rules).items() if key not in self._used}
        newest = dict(list({**others, **self._used}.items())[-MOST_TOOLS:])
        content = msgspec.json.encode(_File(self._rules, newest))
        if len(content) > FILE_BYTES:
            return
        try:
            write_atomic(self._path, content, 0o600)
            delete_oldest(os.path.dirname(self._path), MOST_FILES)
        except OSError:
            pass  # a read-only home, a full disk: the next start lints again


def _rules_digest() -> str:
    """A digest of the version and of the modification times of the code that results depend on."""
    root = os.path.dirname(os.path.dirname(__file__))
    stamps: list[str] = []
    for folder in _SOURCES:
        try:
            with os.scandir(os.path.join(root, folder)) as files:
                stamps += [_stamp(file) for file in files if file.name.endswith(".py")]
        except OSError:
            continue  # not installed as files, so the code changes with the version only
    return _digest([__version__, sorted(stamps)])


def _stamp(file: os.DirEntry[str]) -> str:
    status = file.stat()
    return f"{file.name} {status.st_mtime_ns} {status.st_size}"


def _digest(value: Any) -> str:
    """Empty for a value that has no JSON form. hashlib would load OpenSSL, which costs more than all else here."""
    from _blake2 import blake2b

    try:
        return blake2b(msgspec.json.encode(value), digest_size=16).hexdigest()
    except Exception:
        return ""


def _path_of(server: str) -> str | None:
    """The file for a server's name. None: there is no home, or the name has no JSON form."""
    folder, key = user_directory("cache"), _digest(server)
    return os.path.join(folder, "lint", f"{key}.json") if folder and key else None


def _read(path: str | None, rules: str) -> dict[str, list[str]]:
    """The results in a file, if it is a regular file of this user and of the same rules."""
    if path is None:
        return {}
    try:
        data, status = read_regular(path, FILE_BYTES)
        if not S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or len(data) > FILE_BYTES:
            return {}
        content = msgspec.json.decode(data, type=_File)
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return content.found if content.rules == rules else {}
