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
"""Folders of the code and data that a result depends on."""


class _File(msgspec.Struct):
    rules: str
    """A digest of the rules' code."""
    found: dict[str, list[str]]
    """Digest of a tool → warnings. The last used is the last."""


@final
class LintCache:
    """The cached results of one server."""

    def __init__(self, server: str) -> None:
        folder, name = user_directory("cache"), _digest(server)
        self._path = os.path.join(folder, "lint", f"{name}.json") if folder and name else None
        self._rules = _rules_digest()
        self._found = _read(self._path, self._rules) if self._path else {}
        self._changed = False

    def recall(self, subject: Any, lint: Callable[[], tuple[list[str], bool]]) -> list[str]:
        """The result for a subject. `lint` returns a new result and whether it may be cached."""
        key = _digest(subject)
        found = self._found.pop(key, None)
        if found is None:
            found, final = lint()
            if not key or not final:
                return found
            self._changed = True
        self._found[key] = found
        if len(self._found) > MOST_TOOLS:
            del self._found[next(iter(self._found))]
        return found

    def save(self) -> None:
        """Add new results to the file, which another process may have changed since it was read.

        Errors are ignored: with a read-only home or a full disk, the next start lints again.
        """
        if self._path is None or not self._changed:
            return
        self._changed = False
        others = [each for each in _read(self._path, self._rules).items() if each[0] not in self._found]
        found = dict([*others, *self._found.items()][-MOST_TOOLS:])
        content = msgspec.json.encode(_File(self._rules, found))
        if len(content) > FILE_BYTES:
            return
        try:
            write_atomic(self._path, content, 0o600)
            delete_oldest(os.path.dirname(self._path), MOST_FILES)
        except OSError:
            pass


def _rules_digest() -> str:
    """A digest of the version, and of the sizes and modification times of the files that results depend on."""
    root = os.path.dirname(os.path.dirname(__file__))
    stamps = [__version__]
    try:
        for file in (file for folder in _SOURCES for file in os.scandir(os.path.join(root, folder))):
            status = file.stat()
            stamps += [f"{file.name} {status.st_mtime_ns} {status.st_size}"] if file.is_file() else []
    except OSError:
        pass  # not installed as files, so the code changes with the version only
    return _digest(sorted(stamps))


def _digest(value: Any) -> str:
    """Empty for a value that has no JSON form. hashlib would load OpenSSL, which costs more than all else here."""
    from _blake2 import blake2b

    try:
        return blake2b(msgspec.json.encode(value), digest_size=16).hexdigest()
    except Exception:
        return ""


def _read(path: str, rules: str) -> dict[str, list[str]]:
    """The results in a file, if it is a regular file of this user and of the same rules."""
    try:
        data, status = read_regular(path, FILE_BYTES)
        if not S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or len(data) > FILE_BYTES:
            return {}
        content = msgspec.json.decode(data, type=_File)
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return {}
    return content.found if content.rules == rules else {}
