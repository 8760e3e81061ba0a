"""A change of a client's file: planned, shown as a diff, and written in one step with a backup."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from longshore.client.configs import ConfigFile
from longshore.errors import ConfigError
from longshore.files import read_regular, write_atomic
from longshore.install import formats
from longshore.install.clients import ClientRecord
from longshore.install.plain_data import BrokenFile, look_up
from longshore.install.written import Written, WrittenEntries, changed_keys, digests
from longshore.schema.kinds import is_object

BACKUP: Final = ".longshore-backup"
"""The suffix of the backup of a file, from before the last change."""
_CONTEXT: Final = 3
_LINE_CHARACTERS: Final = 400


class Slot(Struct, frozen=True):
    """The place of one entry: a client's file, and the keys in it."""

    client: ClientRecord
    file: ConfigFile
    name: str

    @property
    def path(self) -> str:
        """The file that is edited: the target, if the settings are a link, as many people have them."""
        return os.path.realpath(self.file.path)

    @property
    def keys(self) -> tuple[str, str]:
        return self.file.keys[0], self.name


class Change(Struct, frozen=True):
    """A file's text before and after. None is a missing file."""

    path: str
    before: str | None
    after: str | None
    written: Written | None
    """The entry that is in it afterwards."""
    secret: bool = False
    """Whether a new file is for the user alone."""


def read_entries(slot_client: ClientRecord, file: ConfigFile) -> dict[str, Any]:
    """The servers of a file by name, in the file's own form. Raises ConfigError."""
    path = os.path.realpath(file.path)
    found = look_up(_parse(slot_client, path, _read(path, file.most) or ""), file.keys)
    return found if is_object(found) else {}


def plan_install(slot: Slot, entry: Mapping[str, Any], known: WrittenEntries, *, force: bool) -> Change | None:
    """The change that writes an entry; None if the file has it already. Raises ConfigError."""
    path, keys = slot.path, slot.keys
    before = _read_writable(path, slot.file.most)
    data = _parse(slot.client, path, before or "")
    existing: Any = look_up(data, keys)
    if existing == entry:
        return None
    earlier = known.find(path, keys)
    if existing is not None and not force:
        _refuse_overwriting(slot, earlier, existing)
    try:
        after = formats.put(slot.client.form, before or "", keys, dict(entry))
    except BrokenFile as problem:
        raise _unchanged(path, problem) from None
    if existing is None:
        earlier = None
    written = Written(
        client=slot.client.name,
        path=path,
        keys=keys,
        digests=digests(entry),
        made_container=earlier.made_container if earlier else look_up(data, keys[:1]) is None,
        made_file=earlier.made_file if earlier else before is None,
    )
    return Change(path, before, after, written, secret=bool(entry.get("headers") or entry.get("http_headers")))


def _refuse_overwriting(slot: Slot, earlier: Written | None, existing: Any) -> None:
    where = f"{slot.path} has a server {slot.name!r} already"
    if earlier is None:
        raise ConfigError(
            f"{where}, which Longshore did not write; choose another name (--name), or replace it (--force)"
        )
    if changed := changed_keys(earlier, existing if is_object(existing) else {}):
        raise ConfigError(
            f"{where}, and its {', '.join(changed)} changed since Longshore wrote it; --force replaces it"
        )


def plan_removal(slot: Slot, known: WrittenEntries, *, force: bool) -> Change:
    """The change that removes an entry. Raises ConfigError if it is missing, or differs from what Longshore wrote."""
    path, keys = slot.path, slot.keys
    before = _read_writable(path, slot.file.most)
    existing: Any = look_up(_parse(slot.client, path, before or ""), keys)
    if before is None or existing is None:
        known.drop(path, keys)
        raise ConfigError(f"{path} has no server {slot.name!r}; `longshore install --list` shows what it has")
    earlier = known.find(path, keys)
    left = f"{path}: {slot.name!r} was left"
    if earlier is None and not force:
        raise ConfigError(f"{left}, since Longshore did not write it; --force removes it")
    if earlier is not None and not force:
        changed = changed_keys(earlier, existing if is_object(existing) else {})
        if changed:
            raise ConfigError(
                f"{left}, since its {', '.join(changed)} changed after Longshore wrote it; --force removes it"
            )
    try:
        container = earlier is not None and earlier.made_container
        after = formats.remove(slot.client.form, before, keys, container=container)
    except BrokenFile as problem:
        raise _unchanged(path, problem) from None
    is_empty = earlier is not None and earlier.made_file and after.strip() in ("", "{}")
    return Change(path, before, None if is_empty else after, None)


def apply(change: Change, slot: Slot, known: WrittenEntries) -> str | None:
    """Write a change; returns the path of the backup, if a file was changed. Raises ConfigError."""
    if _read(change.path, slot.file.most) != change.before:
        raise ConfigError(f"{change.path} has changed meanwhile, so it was left; run this again")
    try:
        if change.written is not None:  # before the file: an entry without a record would count as written by others
            known.add(change.written)
        backup = None
        if change.after is None:
            os.unlink(change.path)
        else:
            backup = None if change.before is None else _back_up(change.path, change.before)
            _write(change)
        if change.written is None:
            known.drop(change.path, slot.keys)
    except OSError as problem:
        raise ConfigError(f"{problem.filename or change.path} can't be written: {problem.strerror}") from None
    return backup


def _back_up(path: str, text: str) -> str:
    backup = path + BACKUP
    write_atomic(backup, text.encode(), os.stat(path).st_mode & 0o777)
    return backup


def _write(change: Change) -> None:
    assert change.after is not None
    if change.before is None:
        write_atomic(change.path, change.after.encode(), 0o600 if change.secret else None)
        return
    owner = os.stat(change.path)
    write_atomic(change.path, change.after.encode())
    if owner.st_uid != os.geteuid():  # the root user edits another user's file, which keeps its owner
        os.chown(change.path, owner.st_uid, owner.st_gid)


def _read(path: str, most: int) -> str | None:
    """The text of a file; None if there is none. Raises ConfigError."""
    try:
        data, status = read_regular(path, most)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise ConfigError(f"{path} can't be read: {problem.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"{path} is no file")
    if len(data) > most:
        raise ConfigError(f"{path} has more than {most:,} bytes, and no configuration file has")
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise ConfigError(f"{path}: line {line} is no UTF-8; nothing was changed") from None


def _read_writable(path: str, most: int) -> str | None:
    """The text of a file that may be changed. Raises ConfigError for a read-only one, which its owner protects."""
    text = _read(path, most)
    if text is not None and not (os.stat(path).st_mode & 0o222 and os.access(path, os.W_OK)):
        raise ConfigError(f"{path} is read-only, so it was left; make it writable (chmod u+w), or change it by hand")
    return text


def _parse(client: ClientRecord, path: str, text: str) -> dict[str, Any]:
    try:
        return formats.editor(client.form).read(text)
    except BrokenFile as problem:
        raise _unchanged(path, problem) from None


def _unchanged(path: str, problem: BrokenFile) -> ConfigError:
    return ConfigError(f"{path}: {problem}; nothing was changed")


# -- the diff


def diff(change: Change) -> Iterator[str]:
    """The change as a unified diff. An edit touches one part of a file, so there is one hunk."""
    before, after = (change.before or "").splitlines(), (change.after or "").splitlines()
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    rest = 0
    while rest < min(len(before), len(after)) - same and before[-1 - rest] == after[-1 - rest]:
        rest += 1
    first, tail = max(0, same - _CONTEXT), max(0, rest - _CONTEXT)
    old, new = before[same : len(before) - rest], after[same : len(after) - rest]
    lead, trail = before[first:same], before[len(before) - rest : len(before) - tail]
    yield f"--- {change.path if change.before is not None else '/dev/null'}"
    yield f"+++ {change.path if change.after is not None else '/dev/null'}"
    around = len(lead) + len(trail)
    yield f"@@ -{_range(first, len(old) + around)} +{_range(first, len(new) + around)} @@"
    marked = ((" ", lead), ("-", old), ("+", new), (" ", trail))
    for mark, lines in marked:
        for line in lines:
            yield mark + (line if len(line) <= _LINE_CHARACTERS else line[:_LINE_CHARACTERS] + "…")


def _range(first: int, count: int) -> str:
    return f"{first + 1 if count else first},{count}"
