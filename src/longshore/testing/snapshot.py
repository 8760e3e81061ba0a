"""Snapshots: compare what a server offers with a file that is under version control."""

from __future__ import annotations

import os
from typing import Any, Final

from longshore.client.client import Client
from longshore.client.sync import SyncClient
from longshore.errors import ClientError
from longshore.files import write_atomic
from longshore.schema.diff import (
    KEYS,
    NotASurface,
    Surface,
    SurfaceChange,
    compare,
    count,
    is_surface,
    make_surface,
    read_surface_file,
    verdict,
    worst_first,
    write_surface_file,
)

_AGAIN: Final = "pytest --mcp-update"

updating = False
"""Whether `pytest --mcp-update` runs."""


async def read_surface(client: Client) -> Surface:
    """Everything that a server offers, for `assert_surface`."""
    return _make_surface(client, {part: await getattr(client, f"list_{part}")(fresh=True) for part in KEYS})


def _read_sync(client: SyncClient) -> Surface:
    return _make_surface(client, {part: getattr(client, f"list_{part}")(fresh=True) for part in KEYS})


def _make_surface(client: Client | SyncClient, lists: dict[str, list[Any]]) -> Surface:
    if client.left_out:
        raise ClientError("what it offers can't all be used: " + "; ".join(client.left_out), client.server.name)
    records = {part: [each.record for each in entries] for part, entries in lists.items()}
    return make_surface(records, client.server.instructions)


def assert_surface(what: Any, path: str | os.PathLike[str], *, update: bool | None = None) -> None:
    """Raise AssertionError if a server does not offer what a file says.

    `what` is a `SyncClient`, a target of `Client`, or the result of `await read_surface(client)`. With
    `update`, or `pytest --mcp-update`, the file is written instead.
    """
    __tracebackhide__ = True
    surface = _surface(what)
    short = os.path.relpath(path)
    where = os.fspath(path) if short.startswith(os.pardir) else short
    if updating if update is None else update:
        _write(path, where, write_surface_file(surface))
        return
    changes = compare(_read(path, where, surface), surface)
    if changes:
        raise AssertionError(_explain(changes, where))


def _surface(what: Any) -> Surface:
    if isinstance(what, Client):
        raise TypeError("an async client is asked first: assert_surface(await read_surface(client), path)")
    if isinstance(what, SyncClient):
        return _read_sync(what)
    if is_surface(what):
        found: Surface = what
        return found
    with SyncClient(what) as client:
        return _read_sync(client)


def _write(path: str | os.PathLike[str], where: str, data: bytes) -> None:
    path = os.path.realpath(path)  # a symbolic link stays one
    try:
        with open(path, "rb") as file:
            if file.read() == data:
                return
    except OSError:
        pass  # writing it reports the reason
    try:
        write_atomic(path, data)
    except OSError as problem:
        raise AssertionError(f"{where} can't be written: {problem}") from None


def _read(path: str | os.PathLike[str], where: str, surface: Surface) -> Surface:
    try:
        with open(path, "rb") as file:
            return read_surface_file(file.read())
    except FileNotFoundError:
        raise AssertionError(f"there is no {where} yet; it would hold {count(surface)}. Write it:  {_AGAIN}") from None
    except OSError as problem:
        raise AssertionError(f"{where} can't be read: {problem}. Write it anew:  {_AGAIN}") from None
    except NotASurface as problem:
        raise AssertionError(f"{where} {problem}. Write it anew:  {_AGAIN}") from None


def _explain(changes: list[SurfaceChange], where: str) -> str:
    text = [f"the server does not offer what {where} says; {verdict(changes)}", ""]
    for change in worst_first(changes):
        text.append(change.title)
        text += [f"  BREAKS  {line}" for line in change.broken]
        text += [f"  safe    {line}" for line in change.safe]
        text += [f"    {line}" for line in change.diff]
        text.append("")
    return "\n".join([*text, f"If that is meant, write the file anew:  {_AGAIN}"])
