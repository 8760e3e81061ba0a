"""Trust in configuration files: one that tools can write counts only with the text that the user has trusted.

Otherwise a model could write a file into its working folder that allows it more, or change or delete the one that
limits it. The record of trust is a file in the user's state directory: the path of each trusted file, with its text.
That text counts whatever is at the path now, so a change neither adds a setting nor takes one away.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final, TypeAlias, final

from msgspec import DecodeError, json
from msgspec.structs import replace

from longshore.config.load import Files, IsWritable
from longshore.config.sections import Config
from longshore.errors import ConfigError
from longshore.files import read_regular, write_atomic

RECORD_BYTES: Final = 16 << 20
"""Some thousand files; one has at most a megabyte."""

Merge: TypeAlias = Callable[[Files, Mapping[str, str]], Config]
"""Makes the configuration of some files, of which some have another text: `Inputs.merge`."""


@final
class Trust:
    """Which files of a server count, and with which text."""

    def __init__(self, record: str | None, is_writable: IsWritable, merge: Merge) -> None:
        """`record` is the file that holds what the user has trusted; None: there is no place for one."""
        self._record, self._is_writable, self._merge = record, is_writable, merge
        self._texts = read_record(record) if record is not None else {}
        self._untrusted: dict[str, str] = {}

    def load(self, search: Callable[[Callable[[str], bool]], Files]) -> Config:
        """The configuration of the files that count. `search` finds them. Raises ConfigError."""
        files = search(self.counts)
        if files.is_named and files.project is not None and not self.counts(files.project):
            raise ConfigError(self._untrusted[files.project])
        while True:
            config = self._merge(files, self._texts)
            # With these roots, tools may be able to write a file that they could not write without it.
            writable = (each for each in reversed(config.files) if self._is_open(each, config.server.roots))
            path = next(writable, None)
            if path is None:
                record = (self._record,) if self._record is not None else ()
                return replace(config, watch=(*config.watch, *record), untrusted=self._untrusted)
            files = self._leave_out(path, files)

    def counts(self, path: str) -> bool:
        """Whether there is a file at this path that counts, or was one when the user trusted it."""
        exists = os.access(path, os.F_OK)
        if not exists and path not in self._texts:
            return False
        if self._is_open(path, self._roots):
            self._untrusted[path] = self._why_not(path)
            return False
        if path in self._texts and _read(path) != self._texts[path]:
            self._untrusted[path] = _why_older(path, exists)
        return True

    @cached_property
    def _roots(self) -> list[str]:
        """The roots that are configured without any file."""
        try:
            return self._merge(Files(), {}).server.roots
        except ConfigError:
            return []  # the whole configuration has the same problems, and can't be used

    def _is_open(self, path: str, roots: list[str]) -> bool:
        """Whether tools can write what counts for a path: the file, or if the user has trusted it, the record."""
        place = self._record if self._record is not None and path in self._texts else path
        return place != os.devnull and self._is_writable(place, roots)

    def _leave_out(self, path: str, files: Files) -> Files:
        self._untrusted[path] = self._why_not(path)
        if path != files.project:
            return replace(files, **{name: None for name in ("user", "foreign") if getattr(files, name) == path})
        if files.is_named:
            raise ConfigError(self._untrusted[path])
        return replace(files, project=None)

    def _why_not(self, path: str) -> str:
        what = f"{path}: not read, because tools of this server can write it"
        if path in self._texts:
            return f"{what}, and the record of trust too: {self._record}; take a root that does not hold that"
        fix = f"look at it, then run: {_command(path)}"
        return f"{what} and you have not trusted it; {fix} (or keep it outside of the roots, and name it by --config)"


def _why_older(path: str, exists: bool) -> str:
    if exists:
        fix = f"look at it, then run: {_command(path)}"
        return f"{path}: changed since you trusted it, so what you trusted still holds; {fix}"
    fix = f"to end that, run: {_command('--remove', path)}"
    return f"{path}: deleted since you trusted it, so what you trusted still holds; {fix}"


def _command(*arguments: str) -> str:
    import shlex

    return shlex.join(["longshore", "trust", *arguments])


def _read(path: str) -> str | None:
    from longshore.config.toml_file import read_text  # with the TOML parser

    try:
        return read_text(path, path)
    except ConfigError:
        return None


@final
class TrustedEdits:
    """Changes that the user makes to the files of a server: what replaces a trusted text is trusted, too."""

    def __init__(self, record: str | None, is_writable: IsWritable, roots: list[str]) -> None:
        self._record, self._is_writable, self._roots = record, is_writable, roots

    def allow(self, path: str, text: str) -> bool:
        """Whether a file that holds this text, or is not there, may be changed."""
        if not self._is_watched(path):
            return True
        if self._record is None or self._is_writable(self._record, self._roots):
            return False
        return read_record(self._record).get(path, "") == text

    def trust(self, path: str, text: str) -> None:
        """Trust what was written, if it only counts so. Raises ConfigError, OSError."""
        if self._record is not None and self._is_watched(path):
            change_record(self._record, path, text)

    def _is_watched(self, path: str) -> bool:
        texts = read_record(self._record) if self._record is not None else {}
        return path in texts or self._is_writable(path, self._roots)


# -- the record


def read_record(record: str) -> dict[str, str]:
    """The text of each trusted file by its path. Raises ConfigError: nothing is trusted then, and nothing is served."""
    try:
        data, _ = read_regular(record, RECORD_BYTES)  # a FIFO in its place gives no bytes
    except FileNotFoundError:
        return {}
    except OSError as problem:
        raise _unreadable(record, problem.strerror or "unknown error") from None
    try:
        return json.decode(data, type=dict[str, str])
    except DecodeError as problem:
        raise _unreadable(record, str(problem)) from None


def change_record(record: str, path: str, text: str | None) -> None:
    """Trust a text for a path; None: trust it no longer. Raises ConfigError, OSError."""
    import fcntl

    folder = os.path.dirname(record)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # another process may change the record
        texts = {other: held for other, held in read_record(record).items() if other != path}
        try:
            data = json.format(json.encode(texts if text is None else {**texts, path: text}), indent=2)
        except UnicodeEncodeError:
            raise ConfigError(f"{path!a}: a file whose path is not UTF-8 can't be trusted") from None
        if len(data) > RECORD_BYTES:
            raise ConfigError(f"{record} would have more than {RECORD_BYTES:,} bytes; longshore trust --list, --remove")
        write_atomic(record, data + b"\n", 0o600)
    finally:
        os.close(descriptor)


def _unreadable(record: str, why: str) -> ConfigError:
    what = f"{record}, the record of the files that you have trusted, can't be read: {why}"
    return ConfigError(f"{what}; delete it, and trust your files again")
