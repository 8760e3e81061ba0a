"""A session as it is stored, and how two changes of it are put together."""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import Any, Final

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
    owner: str = ""
    """Whom it counts against when there are too many: a principal or an address."""
    used: bool = False
    """Whether anything was asked of it after the handshake."""


encode_record = msgspec.msgpack.Encoder().encode
decode_record = msgspec.msgpack.Decoder(Record).decode


SESSIONS: Final = "session:"


def session_key(id: str) -> str:
    return SESSIONS + id


def choose_surplus(records: dict[str, bytes], count: int, newest: int) -> list[str]:
    """The keys of so many sessions that have to end, from records in which the soonest to expire come first.

    First those that were never used, except the `newest`, which may not have had the time; then, one after the other,
    the least recently used one of whoever has the most sessions.
    """
    if count <= 0:
        return []
    known = {raw: decode_record(raw) for raw in set(records.values())}
    unused = [key for key, raw in records.items() if not known[raw].used]
    chosen = unused[: max(0, len(unused) - newest)][:count]
    owned: dict[str, deque[str]] = {}
    ending = set(chosen)
    for key, raw in records.items():
        if key not in ending:
            owned.setdefault(known[raw].owner, deque()).append(key)
    heap = [(-len(keys), rank, keys) for rank, keys in enumerate(owned.values())]
    heapify(heap)
    while len(chosen) < count:
        size, rank, keys = heappop(heap)
        chosen.append(keys.popleft())
        heappush(heap, (size + 1, rank, keys))
    return chosen


def merge(before: Record, now: Record, latest: Record) -> Record:
    """What was changed from `before` to `now`, done to `latest`, in which somebody else may have changed more."""
    names = [name for name in Record.__struct_fields__ if getattr(now, name) != getattr(before, name)]
    changed = {name: getattr(now, name) for name in names}
    old, new = set(before.subscriptions), set(now.subscriptions)
    changed["subscriptions"] = sorted((set(latest.subscriptions) | (new - old)) - (old - new))
    return msgspec.structs.replace(latest, **changed, version=latest.version + 1)
