"""The files that settings are written to: `longshore.toml`, with its comments kept, and another program's JSON.

A change is made to the text that is there at that moment. It is checked as the configuration is, in a draft beside the
file, and replaces the file only if nobody has written it meanwhile.
"""

from __future__ import annotations

import fcntl
import json
import os
import tomllib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any, Final, cast, final

from msgspec import Struct

from longshore.config.toml_file import FILE_BYTES, Path
from longshore.errors import ConfigError, LongshoreError
from longshore.files import read_regular, write_atomic

UNSET: Final = None
"""The value of a key that is to be taken out of its file."""
_TAG_DIGITS: Final = 16

Changes = Mapping[Path, Any]
"""The values to write, by the paths of their keys in the file."""


class FileChanged(LongshoreError):
    """Another program has written the file since it was read."""


@final
class SettingFile:
    """One file with settings."""

    def __init__(self, path: str, edit: Callable[[str, Changes], str]) -> None:
        """`edit` makes the changes to a text. A link is followed, so that it stays one."""
        self.path = path
        self._place = os.path.realpath(path)
        self._edit = edit

    @property
    def tag(self) -> str:
        """Stands for what is in the file now."""
        return _tag(self._read())

    def why_not(self) -> str:
        """Why it can't be written; empty if it can."""
        if os.path.exists(self._place):
            if not os.path.isfile(self._place):
                return f"{self.path} is no file"
            if not os.access(self._place, os.W_OK):
                return f"{self.path} is read-only"
        folder = os.path.dirname(self._place)
        while not os.path.exists(folder):
            folder = os.path.dirname(folder)
        return "" if os.access(folder, os.W_OK) else f"{folder} can't be written"

    @contextmanager
    def draft(self, changes: Changes) -> Generator[Draft]:
        """A changed copy beside the file. Raises ConfigError for a file that can't be edited."""
        before = self._read()
        text = self._edit(_decode(before, self.path), changes)
        data = text.encode()
        folder, name = os.path.split(self._place)
        os.makedirs(folder, exist_ok=True)
        draft = os.path.join(folder, f".{name}.{os.urandom(6).hex()}")
        write_atomic(draft, data, 0o600)
        try:
            yield Draft(self, draft, before, data)
        finally:
            with suppress(OSError):
                os.unlink(draft)

    def replace(self, before: bytes, data: bytes) -> None:
        """Write the file, if it still holds what it held before. Raises FileChanged."""
        with self._locked():
            if self._read() != before:
                raise FileChanged(f"{self.path} was changed meanwhile; look at it again")
            write_atomic(self._place, data)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold a lock on the folder, which other consoles of this machine wait for."""
        descriptor = os.open(os.path.dirname(self._place), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _read(self) -> bytes:
        try:
            data, _ = read_regular(self._place, FILE_BYTES)
        except FileNotFoundError:
            return b""
        except OSError as problem:
            raise ConfigError(f"{self.path} can't be read: {problem.strerror}") from None
        if len(data) > FILE_BYTES:
            raise ConfigError(f"{self.path} is larger than {FILE_BYTES:,} bytes")
        return data


class Draft(Struct, frozen=True):
    """A changed copy of a file, which can be checked and then take its place."""

    file: SettingFile
    path: str
    before: bytes
    after: bytes

    def save(self) -> None:
        """Replace the file. Raises FileChanged."""
        if self.after != self.before:
            self.file.replace(self.before, self.after)


def _tag(data: bytes) -> str:
    return sha256(data).hexdigest()[:_TAG_DIGITS]


def _decode(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8, so it can't be edited here") from None


# -- TOML


def edit_toml(text: str, changes: Changes) -> str:
    """Change a TOML text; everything else in it stays as it is written. Raises ConfigError."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        expected = tomllib.loads(text)
        for path, value in changes.items():
            _set_toml(document, path, value, tomlkit)
            _set(expected, path, value)
        made = tomlkit.dumps(document)
        is_right = _pruned(tomllib.loads(made)) == _pruned(expected)
    except (TOMLKitError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as problem:
        raise ConfigError(f"longshore.toml can't be edited here: {problem}; edit it by hand") from None
    if not is_right:
        raise ConfigError("longshore.toml is written in a way that can't be edited here; edit it by hand")
    return made


def _set_toml(document: Any, path: Path, value: Any, tomlkit: Any) -> None:
    node = document
    for part in path[:-1]:
        if part not in node:
            if value is UNSET:
                return
            is_last = part == path[-2]
            node[part] = tomlkit.table(is_super_table=not is_last)
        node = node[part]
    if value is not UNSET:
        node[path[-1]] = value
    elif path[-1] in node:
        del node[path[-1]]


# -- JSON


def edit_json(text: str, changes: Changes) -> str:
    """Change a JSON text. It has no comments; its indent stays."""
    try:
        tables: Any = json.loads(text) if text.strip() else {}
    except ValueError as problem:
        raise ConfigError(f"it is not JSON: {problem}") from None
    if not isinstance(tables, dict):
        raise ConfigError("it holds no JSON object")
    for path, value in changes.items():
        _set(cast("dict[str, Any]", tables), path, value)
    return json.dumps(tables, indent=_indent_of(text), ensure_ascii=False) + "\n"


def _indent_of(text: str) -> int:
    line = next((line for line in text.splitlines() if line.startswith(" ")), "  ")
    return len(line) - len(line.lstrip(" "))


def _set(tables: dict[str, Any], path: Path, value: Any) -> None:
    node = tables
    for part in path[:-1]:
        if value is UNSET and part not in node:
            return
        node = node.setdefault(part, {})
    if value is UNSET:
        node.pop(path[-1], None)
    else:
        node[path[-1]] = value


def _pruned(tables: Any) -> Any:
    """Without empty tables: one may stay where its last key was taken out."""
    if not isinstance(tables, dict):
        return tables
    items = {name: _pruned(value) for name, value in cast("dict[str, Any]", tables).items()}
    return {name: value for name, value in items.items() if value != {}}
