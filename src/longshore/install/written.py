"""The entries that Longshore has written into clients' files, so that it removes only these.

Entries may hold tokens, so only digests of their members are stored.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from longshore.errors import ConfigError
from longshore.files import read_bounded, user_directory, write_atomic

_MOST_BYTES: Final = 4 << 20
"""Ten thousand entries."""


class Written(Struct, frozen=True, kw_only=True):
    """An entry that was written."""

    client: str
    path: str
    keys: tuple[str, ...]
    """The key of the servers, and the server's name."""
    digests: dict[str, str]
    made_container: bool = False
    """Whether the object of servers was not there before."""
    made_file: bool = False


def digests(entry: Mapping[str, Any]) -> dict[str, str]:
    return {key: sha256(msgspec.json.encode(value, order="sorted")).hexdigest() for key, value in entry.items()}


def changed_keys(written: Written, entry: Mapping[str, Any]) -> list[str]:
    """The members that were added, changed or deleted since."""
    now = digests(entry)
    return [key for key in {**now, **written.digests} if now.get(key) != written.digests.get(key)]


class WrittenEntries:
    """The record of all entries, in a file of the user's state."""

    def __init__(self, path: str) -> None:
        self._path = path

    def read(self) -> list[Written]:
        """Raises ConfigError for a file that can't be read."""
        try:
            return msgspec.json.decode(read_bounded(self._path, _MOST_BYTES), type=list[Written])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError) as problem:
            what = f"{self._path}, the record of what was installed, can't be read: {problem}"
            raise ConfigError(f"{what}; move it away, and name entries to uninstall with --force") from None

    def find(self, path: str, keys: Sequence[str]) -> Written | None:
        return next((each for each in self.read() if each.path == path and each.keys == tuple(keys)), None)

    def add(self, written: Written) -> None:
        self._write([*self._others(written.path, written.keys), written])

    def drop(self, path: str, keys: Sequence[str]) -> None:
        self._write(self._others(path, keys))

    def _others(self, path: str, keys: Sequence[str]) -> list[Written]:
        return [each for each in self.read() if each.path != path or each.keys != tuple(keys)]

    def _write(self, entries: list[Written]) -> None:
        write_atomic(self._path, msgspec.json.format(msgspec.json.encode(entries), indent=2) + b"\n", 0o600)


def written_entries(environ: Mapping[str, str] | None = None) -> WrittenEntries:
    """The user's record. Raises ConfigError if the user has no home."""
    folder = user_directory("state", environ)
    if folder is None:
        raise ConfigError("no home folder is known, so there is no place for clients' files; set HOME")
    return WrittenEntries(os.path.join(folder, "installed.json"))
