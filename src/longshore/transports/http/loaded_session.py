"""A handshake-era session: its record in the store, and the same session loaded into this process."""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, final

import msgspec
from msgspec import Struct

from longshore.protocol.peer import Peer, Principal
from longshore.protocol.revisions import REVISIONS
from longshore.protocol.session import Session
from longshore.transports.http.notifications import NotificationStream
from longshore.transports.http.streams import Stream, StreamOrigin

if TYPE_CHECKING:
    from longshore.transports.http.sessions import Sessions


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
    """Counts its changes, so that the newer one of two records is known."""
    owner: str = ""
    """The principal or address whose sessions are counted together when there are too many."""
    used: bool = False
    """Whether anything was asked of it after the handshake."""


encode_record = msgspec.msgpack.Encoder().encode
decode_record = msgspec.msgpack.Decoder(Record).decode


SESSIONS: Final = "session:"
"""The prefix of the keys of sessions in the store."""


def session_key(id: str) -> str:
    return SESSIONS + id


def choose_surplus(records: dict[str, bytes], count: int, newest: int) -> list[str]:
    """The keys of so many sessions that have to end, from records in which the soonest to expire come first.

    First those that were never used, except the `newest`, which may not have had the time; then, one after the other,
    the least recently used session of the owner with the most sessions.
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
    """Apply the changes from `before` to `now` to `latest`, which another process may have changed."""
    names = [name for name in Record.__struct_fields__ if getattr(now, name) != getattr(before, name)]
    changed = {name: getattr(now, name) for name in names}
    old, new = set(before.subscriptions), set(now.subscriptions)
    changed["subscriptions"] = sorted((set(latest.subscriptions) | (new - old)) - (old - new))
    return msgspec.structs.replace(latest, **changed, version=latest.version + 1)


@final
class LoadedSession:
    """A session that this process has loaded from the store."""

    __slots__ = (
        "__weakref__",
        "_sessions",
        "base",
        "busy",
        "id",
        "notifications",
        "owner",
        "principal",
        "raw",
        "saved",
        "session",
        "streams",
        "touched",
        "used",
        "was_used",
    )

    def __init__(self, sessions: Sessions, id: str, principal: Principal, owner: str = "") -> None:
        self._sessions = sessions
        self.id = id
        self.principal = principal
        self.owner = owner
        self.was_used = False
        """Whether anything was asked of it after the handshake."""
        self.session: Session[Any] = Session()
        self.session.name = f"longshore-{sessions.cluster.id}"
        self.notifications = NotificationStream(self, principal)
        self.streams: dict[str, Stream] = {}
        self.busy = 0
        """Connections that use it now."""
        self.used = self.touched = monotonic()
        self.raw = b""
        """The record as it was last written or read here."""
        self.base: Record | None = None
        """The same, decoded."""
        self.saved: tuple[Any, ...] = ()

    @property
    def state(self) -> tuple[Any, ...]:
        session = self.session
        return session.peer, session.initialized, frozenset(session.subscriptions), self.was_used

    @property
    def changed(self) -> bool:
        peer, initialized, subscriptions, was_used = self.saved
        session = self.session
        return (
            session.peer is not peer
            or session.initialized is not initialized
            or session.subscriptions != subscriptions
            or self.was_used is not was_used
        )

    @property
    def needed(self) -> bool:
        """Whether something in this process depends on it: a connection, a call, a stream that is being written."""
        return bool(self.busy or self.session.rows or self.streams)

    def open_stream(self, requests: list[Any] | None = None, *, standalone: bool = False, id: str = "") -> Stream:
        sessions = self._sessions
        origin = StreamOrigin(sessions.cluster.id, [] if requests is None else requests, standalone)
        stream = Stream(sessions.store, sessions.cluster, sessions.limits, self.id, origin, id, self._stream_ended)
        self.streams[stream.id] = stream
        return stream

    def notify(self, frame: bytes) -> None:
        """Send a frame that belongs to no request."""
        self._sessions.ownership.send(self, frame)

    def _stream_ended(self, stream: Stream) -> None:
        self.streams.pop(stream.id, None)
        if self.notifications.stream is stream:
            self.notifications.stream = None  # or the two would refer to each other, and wait for the collector
        self._sessions.stream_ended(self.id, stream)

    def record(self) -> Record:
        session, peer = self.session, self.session.peer
        assert peer is not None
        return Record(
            peer.revision.name,
            peer.capabilities,
            peer.client,
            peer.log_level,
            session.initialized,
            sorted(session.declared),
            sorted(session.subscriptions),
            self.principal.name,
            0 if self.base is None else self.base.version,
            self.owner,
            self.was_used,
        )

    def load(self, raw: bytes) -> None:
        """Apply a record that another process may have changed, unless it is older than the one applied last."""
        if raw != self.raw:
            record = decode_record(raw)
            if self.base is None or record.version > self.base.version:
                self.raw, self.base = raw, record
                self.restore(record)

    def restore(self, record: Record) -> None:
        """Set the session's state to that of the record."""
        session = self.session
        revision = REVISIONS[record.revision]
        session.peer = Peer(revision, record.capabilities, record.client, record.log_level)
        session.initialized = record.initialized
        session.declared = frozenset(record.declared)
        session.subscriptions = set(record.subscriptions)
        self.owner, self.was_used = record.owner, record.used
        self.saved = self.state
