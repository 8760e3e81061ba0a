"""A session as it is stored, and how two changes of it are put together."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct


class Record(Struct, array_like=True):
    """A session as it is stored."""

    revision: str
    capabilities: dict[str, Any]
    client: dict[str, Any]
    log_level: int | None
    initialized: bool
    declared: list[str]
    subscriptions: list[str]
    principal: str
    version: int = 0
    """Counts its changes: who hears of two knows which is newer."""


encode_record = msgspec.msgpack.Encoder().encode
decode_record = msgspec.msgpack.Decoder(Record).decode


def session_key(id: str) -> str:
    return f"session:{id}"


def merge(before: Record, now: Record, latest: Record) -> Record:
    """What was changed from `before` to `now`, done to `latest`, in which somebody else may have changed more."""
    names = [name for name in Record.__struct_fields__ if getattr(now, name) != getattr(before, name)]
    changed = {name: getattr(now, name) for name in names}
    old, new = set(before.subscriptions), set(now.subscriptions)
    changed["subscriptions"] = sorted((set(latest.subscriptions) | (new - old)) - (old - new))
    return msgspec.structs.replace(latest, **changed, version=latest.version + 1)
