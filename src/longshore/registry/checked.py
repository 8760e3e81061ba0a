"""What was found when tools were looked at, remembered between starts.

A start that finds everything here imports none of the rules. Nothing depends on it: a file that is gone, foreign or
broken costs one more look.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from stat import S_ISREG
from typing import Any, Final, final

import msgspec

from longshore import __version__
from longshore.files import delete_oldest, user_directory, write_atomic

FILE_BYTES: Final = 256 << 10
"""More is neither read nor written: a thousand tools without faults take a sixth of it."""
MOST_TOOLS: Final = 1000
"""Verdicts in one file, the newest. More tools than that no client takes."""
MOST_FILES: Final = 200
"""One for each server's name. The oldest go first."""

_JUDGES: Final = ("registry", "schema", "schema/standards", "schema/standards/rules")
"""Where that lies on which a verdict depends."""


class Memory(msgspec.Struct):
    """The file: which rules said so, and for each tool what is to be told."""

    rules: str
    found: dict[str, list[str]]


@final
class Checked:
    """What is known of one server's tools."""

    def __init__(self, server: str) -> None:
        self._rules = _stamp()
        self._path = _path(server)
        self._known = _read(self._path, self._rules)
        self._used: dict[str, list[str]] = {}
        self._new = False

    def recall(self, subject: Any, judge: Callable[[], list[str]]) -> list[str]:
        """What is to be told of this, judged unless it was before. What `judge` raises is not remembered."""
        key = _key(subject)
        found = self._used.get(key)
        if found is None:
            found = self._known.get(key)
        if found is None:
            found = judge()
            self._new = bool(key) or self._new
        if key:
            self._used[key] = found
            if len(self._used) > MOST_TOOLS:
                del self._used[next(iter(self._used))]
        return found

    def save(self) -> None:
        """Write down what is new. Another process may write as well: then one of them looks again next time."""
        if not self._new or self._path is None:
            return
        self._new = False
        theirs = {key: found for key, found in _read(self._path, self._rules).items() if key not in self._used}
        try:
            write_atomic(self._path, _fit(self._rules, {**theirs, **self._used}), 0o600)
            delete_oldest(os.path.dirname(self._path), MOST_FILES)
        except OSError:
            pass  # a read-only home, a full disk: the next start looks again


def _fit(rules: str, found: dict[str, list[str]]) -> bytes:
    """The file, without the oldest where it would be too long to be read again."""
    kept: dict[str, list[str]] = {}
    room = FILE_BYTES - len(msgspec.json.encode(Memory(rules, kept)))
    for key, lines in reversed(found.items()):
        room -= len(msgspec.json.encode({key: lines}))
        if room < 0 or len(kept) == MOST_TOOLS:
            break
        kept[key] = lines
    return msgspec.json.encode(Memory(rules, dict(reversed(kept.items()))))


def _stamp() -> str:
    """Which rules these are: the release, and when the files of all that they ask were written."""
    root = os.path.dirname(os.path.dirname(__file__))
    stamps: list[str] = []
    for folder in _JUDGES:
        try:
            with os.scandir(os.path.join(root, folder)) as files:
                stamps += [_about(file) for file in files if file.name.endswith(".py")]
        except OSError:
            continue  # the package is not in a folder, so it changes with its release only
    return digest([__version__, sorted(stamps)])


def _about(file: os.DirEntry[str]) -> str:
    status = file.stat()
    return f"{file.name} {status.st_mtime_ns} {status.st_size}"


def _key(subject: Any) -> str:
    """Empty for what has no JSON form, which is judged each time."""
    try:
        return digest(subject)
    except Exception:
        return ""


def digest(value: Any) -> str:
    """By the C module itself: hashlib brings OpenSSL, which costs more than all else here."""
    from _blake2 import blake2b

    return blake2b(msgspec.json.encode(value), digest_size=16).hexdigest()


def _path(server: str) -> str | None:
    """A file for each name of a server. None where there is no home, or a name that is no text."""
    folder, key = user_directory("cache"), _key(server)
    return os.path.join(folder, "checked", f"{key}.json") if folder and key else None


def _read(path: str | None, rules: str) -> dict[str, list[str]]:
    """What the file holds, if it is a plain file of this user's and about these rules."""
    if path is None:
        return {}
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_size > FILE_BYTES:
                return {}
            memory = msgspec.json.decode(file.read(FILE_BYTES), type=Memory)
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return memory.found if memory.rules == rules else {}
