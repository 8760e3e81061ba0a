"""A session as one process has it unpacked, and the place where it hears what belongs to no request."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any, final
from weakref import ref

from longshore.protocol.peer import Peer, Principal
from longshore.protocol.revisions import REVISIONS
from longshore.protocol.session import Session
from longshore.server.link import Link
from longshore.transports.http.following import Follower
from longshore.transports.http.records import Record, decode_record
from longshore.transports.http.streams import Origin, Stream

if TYPE_CHECKING:
    from longshore.transports.http.sessions import Sessions

_EARLY_NOTICES = 100
"""Notices kept for a client that has not opened its stream yet."""


@final
class Home(Link):
    """Where a session hears what belongs to no request of its: the stream that its GET follows."""

    __slots__ = ("_live", "claims", "early", "follower", "stream")

    def __init__(self, live: Live, principal: Principal) -> None:
        super().__init__(live.session, principal)
        self._live = ref(live)  # or the two would hold each other, and a packed session would wait for the collector
        self.early: list[bytes] = []
        self.claims: list[asyncio.Future[None]] = []
        """GETs of ours that not all processes have heard of yet."""
        self.stream: Stream | None = None
        self.follower: Follower | None = None

    def send(self, frame: bytes) -> None:
        live = self._live()
        if self.stream is not None:
            self.stream.put(frame)
        elif live is not None:
            live.send_home(frame)

    def keep(self, frame: bytes) -> None:
        """Put it into the stream, or keep it until there is one."""
        if self.stream is None:
            self.early.append(frame)
            del self.early[:-_EARLY_NOTICES]
        else:
            self.stream.put(frame)

    def open(self, name: str = "") -> Stream:
        """The stream, with what was said before anybody listened. A named one goes on, whoever wrote it before."""
        if self.stream is not None and name not in ("", self.stream.id):
            self.stream.end()
            self.stream = None
        if self.stream is None:
            live = self._live()
            assert live is not None
            self.stream = live.open_stream(standalone=True, id=name)
            for frame in self.early:
                self.stream.put(frame)
            self.early.clear()
        return self.stream

    def attach(self, name: str = "") -> tuple[Stream, Follower]:
        """A new connection for the stream. An older one ends: it may be dead without our knowing."""
        stream = self.open(name)
        if self.follower is not None:
            self.follower.close()
        self.follower = follower = Follower()
        stream.followers.add(follower)
        return stream, follower


@final
class Live:
    """A session as this process has it unpacked."""

    __slots__ = (
        "__weakref__",
        "_sessions",
        "base",
        "busy",
        "home",
        "id",
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
        self.session.name = f"longshore-{sessions.worker}"
        self.home = Home(self, principal)
        self.streams: dict[str, Stream] = {}
        self.busy = 0
        """Connections that use it now."""
        self.used = self.touched = monotonic()
        self.raw = b""
        """The record as it was last written or read here."""
        self.base: Record | None = None
        """The same, unpacked."""
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
        origin = Origin(sessions.worker, [] if requests is None else requests, standalone)
        stream = Stream(sessions.store, self.id, sessions.limits, origin, sessions.problem, id)
        stream.when_ended = self._stream_ended
        self.streams[stream.id] = stream
        return stream

    def send_home(self, frame: bytes) -> None:
        self._sessions.homes.send(self, frame)

    def _stream_ended(self, stream: Stream) -> None:
        self.streams.pop(stream.id, None)
        if self.home.stream is stream:
            self.home.stream = None  # which holds us: without this the session would wait for the collector
        self._sessions.keep(self.id, stream)

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
        """Take up a record that another process may have changed. An older one is no news."""
        if raw != self.raw:
            record = decode_record(raw)
            if self.base is None or record.version > self.base.version:
                self.raw, self.base = raw, record
                self.restore(record)

    def restore(self, record: Record) -> None:
        """Be as the record says."""
        session = self.session
        revision = REVISIONS[record.revision]
        session.peer = Peer(revision, record.capabilities, record.client, record.log_level)
        session.initialized = record.initialized
        session.declared = frozenset(record.declared)
        session.subscriptions = set(record.subscriptions)
        self.owner, self.was_used = record.owner, record.used
        self.saved = self.state
