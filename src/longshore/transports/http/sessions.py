"""Handshake-era sessions: a small record in the store, and a loaded copy in each process that uses it.

The record holds the result of `initialize` and the later requests of the client. It is written before the answer that
acknowledges it, so another process, or the next one after a restart, can continue from it. Calls in flight stay with
the process that runs them. A process has its last used sessions loaded; the others are bytes in the store.

A session's notification stream is written by the process that has the session's GET, or had it last. A client may
reconnect to any process, and each change must be notified once. So a process that gets the GET claims the stream over
the bus, on which all processes see claims and changes in the same order.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from math import inf
from secrets import token_urlsafe
from time import monotonic
from typing import Any, Final, final
from weakref import ref

import msgspec
from msgspec import Struct

from longshore.errors import StoreError
from longshore.protocol.peer import Peer, Principal
from longshore.protocol.session import Session
from longshore.server.engine import Engine
from longshore.server.link import Link
from longshore.stores import Store
from longshore.transports.http.cluster import Cluster, ClusterMessage
from longshore.transports.http.gate import Denied
from longshore.transports.http.streams import FinishedStreams, Follower, Stream, StreamOrigin, notifications_key
from longshore.wire.codec import INVALID_PARAMS

ID_BYTES: Final = 24
"""192 bits of randomness: a session can't be guessed."""
_LABEL_DIGITS: Final = 12
"""Of the hash of a session's id, by which records name it: the same in each process, and the id stays a secret."""
SESSIONS: Final = "session:"
"""The prefix of the keys of sessions in the store."""
STATES: Final = "state:"
"""The prefix of the keys of what calls keep in their sessions."""
_TOUCHES: Final = 10
"""How many times in the life of an idle session its expiry is moved on. More would be a write for each request."""
_SLACK: Final = 64
"""The bound of sessions is looked at whenever a 64th of it is new: all have to be read to choose those that end."""
_EARLY: Final = 100
"""Notifications stored for a client that has not opened its stream yet."""
_CLAIM_SECONDS: Final = 2.0
"""How long a message to all processes may take to come back to its sender. It takes milliseconds."""


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


def state_key(id: str) -> str:
    return STATES + id


def session_key(id: str) -> str:
    return SESSIONS + id


def merge(before: Record, now: Record, latest: Record) -> Record:
    """Apply the changes from `before` to `now` to `latest`, which another process may have changed."""
    names = [name for name in Record.__struct_fields__ if getattr(now, name) != getattr(before, name)]
    changed = {name: getattr(now, name) for name in names}
    old, new = set(before.subscriptions), set(now.subscriptions)
    changed["subscriptions"] = sorted((set(latest.subscriptions) | (new - old)) - (old - new))
    return msgspec.structs.replace(latest, **changed, version=latest.version + 1)


def choose_surplus(records: dict[str, bytes], count: int, newest: int) -> list[str]:
    """The keys of so many sessions that have to end, from records in which the soonest to expire come first.

    First those that were never used, except the `newest`, which may not have had the time; then, one after the other,
    the least recently used session of the owner with the most sessions.
    """
    if count <= 0:
        return []
    known = {raw: decode_record(raw) for raw in set(records.values())}
    unused = [key for key, raw in records.items() if not known[raw].used]
    chosen = dict.fromkeys(unused[: max(0, len(unused) - newest)][:count])
    owned: dict[str, list[str]] = {}
    for key, raw in records.items():
        if key not in chosen:
            owned.setdefault(known[raw].owner, []).append(key)
    # The owner with the most sessions loses one first, one at a time: so each session is ranked by its owner's count
    # from it on.
    ranked = [(len(keys) - at, key) for keys in owned.values() for at, key in enumerate(keys)]
    ranked.sort(key=lambda each: -each[0])
    return [*chosen, *(key for _, key in ranked[: count - len(chosen)])]


@final
class NotificationStream(Link):
    """The link for messages that belong to no request: the stream that the session's GET follows."""

    __slots__ = ("_live", "claims", "early", "follower", "stream")
    transport = "http"

    def __init__(self, live: LoadedSession, principal: Principal) -> None:
        super().__init__(live.session, principal)
        self._live = ref(live)  # a strong reference would leave an unloaded session to the garbage collector
        self.early: list[bytes] = []
        self.claims: list[asyncio.Future[None]] = []
        """Claims of this process that have not come back from the bus yet."""
        self.stream: Stream | None = None
        self.follower: Follower | None = None

    def send(self, frame: bytes) -> None:
        live = self._live()
        if self.stream is not None:
            self.stream.put(frame)
        elif live is not None:
            live.sessions.notify(live, frame)

    def keep(self, frame: bytes) -> None:
        """Put a frame into the stream, or store it until there is a stream."""
        if self.stream is None:
            self.early.append(frame)
            del self.early[:-_EARLY]
        else:
            self.stream.put(frame)

    def attach(self, name: str = "") -> tuple[Stream, Follower]:
        """A new connection for the stream, with the earlier messages.

        A named stream is continued. An older connection ends: it may be broken without being noticed.
        """
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
        if self.follower is not None:
            self.follower.close()
        self.follower = follower = Follower()
        self.stream.followers.add(follower)
        return self.stream, follower


@final
class StoredState:
    """What the calls of one session keep, in the store of sessions, for as long as the session is stored."""

    __slots__ = ("_key", "_seconds", "_store")

    def __init__(self, store: Store, key: str, seconds: float) -> None:
        self._store, self._key, self._seconds = store, key, seconds

    async def load(self) -> bytes | None:
        return await self._store.get(self._key)

    async def replace(self, old: bytes | None, new: bytes) -> bool:
        if old is None:
            return await self._store.add(self._key, new, self._seconds)
        return await self._store.swap(self._key, old, new, self._seconds)


@final
class LoadedSession:
    """A session that this process has loaded from the store."""

    __slots__ = (
        "__weakref__",
        "base",
        "busy",
        "id",
        "notifications",
        "owner",
        "principal",
        "raw",
        "saved",
        "session",
        "sessions",
        "streams",
        "touched",
        "used",
        "was_used",
    )

    def __init__(self, sessions: Sessions, id: str, principal: Principal, owner: str = "") -> None:
        self.sessions = sessions
        self.id = id
        self.principal = principal
        self.owner = owner
        self.was_used = False
        """Whether anything was asked of it after the handshake."""
        self.session: Session[Any] = Session()
        self.session.name = f"longshore-{sessions.cluster.id}"
        self.session.state = StoredState(sessions.store, state_key(id), sessions.stored_seconds)
        self.session.label = sha256(id.encode()).hexdigest()[:_LABEL_DIGITS]
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
        """Whether something in this process depends on it: a connection, a call, a stream in progress."""
        return bool(self.busy or self.session.rows or self.streams)

    @contextmanager
    def pinned(self) -> Generator[None]:
        """A connection uses the session: it does not expire meanwhile, and is not unloaded."""
        self.busy += 1
        try:
            yield
        finally:
            self.busy -= 1
            self.used = monotonic()

    def open_stream(self, requests: list[Any] | None = None, *, standalone: bool = False, id: str = "") -> Stream:
        sessions = self.sessions
        origin = StreamOrigin(sessions.cluster.id, [] if requests is None else requests, standalone)
        stream = Stream(sessions.store, sessions.cluster, sessions.limits, self.id, origin, id, self._stream_ended)
        self.streams[stream.id] = stream
        return stream

    def _stream_ended(self, stream: Stream) -> None:
        self.streams.pop(stream.id, None)
        if self.notifications.stream is stream:
            self.notifications.stream = None  # otherwise the two would refer to each other, and wait for the collector
        self.sessions.stream_ended(stream)

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
        session, revision = self.session, self.sessions.revision(record.revision)
        assert revision is not None  # `find` has checked it
        session.peer = Peer(revision, record.capabilities, record.client, record.log_level)
        session.initialized = record.initialized
        session.declared = frozenset(record.declared)
        before, session.subscriptions = session.subscriptions, set(record.subscriptions)
        self.owner, self.was_used = record.owner, record.used
        self.saved = self.state
        if session.subscriptions != before:
            self.sessions.subscriptions_changed()


@final
class Sessions:
    """The sessions of one server, as one process sees them."""

    def __init__(self, engine: Engine, store: Store, ttl: float, cluster: Cluster) -> None:
        self._engine = engine
        self.revision = engine.revision
        self.store = store
        self.limits = engine.limits
        self.ttl = ttl
        self.stored_seconds = ttl + ttl / _TOUCHES
        """The expiry of a record in the store: the session may have been used for a while after it was last set."""
        self.cluster = cluster
        self._finished = FinishedStreams(engine.limits)
        self.loaded: OrderedDict[str, LoadedSession] = OrderedDict()
        self._made = 0
        self._trim_every = max(1, engine.limits.sessions // _SLACK)

    def subscriptions_changed(self) -> None:
        """Another process has changed what a session watches, or a change could not be stored."""
        self._engine.update_watched()

    # -- finding one

    def get_cached(self, id: str, principal: Principal) -> LoadedSession | None:
        """The session, if it is loaded, unchanged by other processes, and the caller's."""
        live = self.loaded.get(id)
        if live is None or self.store.shared or live.principal.name != principal.name:
            return None
        now = monotonic()
        if (now - live.used > self.ttl and not live.needed) or now - live.touched > self.ttl / _TOUCHES:
            return None
        live.used = now
        self.loaded.move_to_end(id)
        return live

    async def find(self, id: str, principal: Principal) -> LoadedSession | None:
        """The session, loaded from the store if need be. None: there is none, or it is another caller's."""
        raw = await self.store.get(session_key(id))
        if raw is None:
            self.forget(id)
            return None
        live = self.loaded.get(id)
        if live is not None and live.principal.name != principal.name:
            return None
        if live is None:
            record = decode_record(raw)
            if record.principal != principal.name or self.revision(record.revision) is None:
                return None
            live = self.loaded[id] = LoadedSession(self, id, principal)
            live.touched = -inf  # another process may have used it a long time ago
        live.load(raw)
        live.used = now = monotonic()
        self.loaded.move_to_end(id)
        if now - live.touched > self.ttl / _TOUCHES and not await self._touch(live):
            self.forget(id)  # it was ended meanwhile
            return None
        self._unload_surplus(live)
        return live

    async def _touch(self, live: LoadedSession) -> bool:
        live.touched = monotonic()
        with live.pinned():  # otherwise it might be unloaded meanwhile, and a second copy be loaded
            await self.store.touch(state_key(live.id), self.stored_seconds)
            return await self.store.touch(session_key(live.id), self.stored_seconds)

    # -- beginning, changing and ending one

    def candidate(self, principal: Principal, owner: str) -> LoadedSession:
        """A session before its handshake. Nothing is stored of it until `begin`."""
        return LoadedSession(self, token_urlsafe(ID_BYTES), principal, owner)

    async def begin(self, live: LoadedSession) -> None:
        """Store a session whose handshake was answered, for every process."""
        record = live.record()
        try:
            raw = self._packed(record)
            await self.store.set(session_key(live.id), raw, self.stored_seconds)
        except BaseException:
            self._engine.drop_link(live.notifications)
            raise
        live.raw, live.base, live.saved, live.touched = raw, record, live.state, monotonic()
        self.loaded[live.id] = live
        self._unload_surplus(live)
        self._made += 1
        if self._made % self._trim_every == 0:
            await self._trim(live)

    async def _trim(self, begun: LoadedSession) -> None:
        """End sessions down to the limit, but not the one that has just begun."""
        most = self.limits.sessions
        if await self.store.count(SESSIONS) <= most:
            return
        records = await self.store.find(SESSIONS)
        surplus = len(records) - most
        # Another session may expire at the same time, and come after this one.
        records.pop(session_key(begun.id), None)
        ended = choose_surplus(records, surplus, self._trim_every - 1)
        ids = [key.removeprefix(SESSIONS) for key in ended]
        await self.store.delete(*ended, *map(state_key, ids))
        for id in ids:
            self.forget(id)
            await self.cluster.tell("gone", id)

    async def save(self, live: LoadedSession) -> bool:
        """Write changes before they are acknowledged. False: the session has ended meanwhile.

        Another process may change other things at the same time; so the change is made to the record as it is then.
        """
        before, now = live.base, live.record()
        assert before is not None
        if now == before:
            return True
        key, live.saved = session_key(live.id), live.state
        try:
            while True:
                assert live.base is not None
                raw = self._packed(merge(before, now, live.base))
                if await self.store.swap(key, live.raw, raw, self.stored_seconds):
                    await self.store.touch(state_key(live.id), self.stored_seconds)
                    break
                current = await self.store.get(key)
                if current is None:
                    self.forget(live.id)
                    return False
                live.load(current)
        except BaseException:
            assert live.base is not None
            live.restore(live.base)  # a change that is not acknowledged is undone
            raise
        live.load(raw)
        live.touched = monotonic()
        await self.cluster.tell("stale", live.id, live.raw)
        return True

    def _packed(self, record: Record) -> bytes:
        raw = encode_record(record)
        most = self.limits.session_bytes
        if len(raw) > most:
            text = f"the session would take {len(raw):,} bytes and may take {most:,}; send less in capabilities and "
            raise Denied(413, text + "clientInfo, or watch fewer resources", code=INVALID_PARAMS)
        return raw

    async def end(self, id: str) -> None:
        """End a session at the request of its client."""
        await self.store.delete(session_key(id), state_key(id), *self._finished.take(id))
        self.forget(id)
        await self.cluster.tell("gone", id)

    def forget(self, id: str) -> None:
        """Unload a session that has ended, with its streams and calls."""
        live = self.loaded.pop(id, None)
        if live is not None:
            self._engine.detach(live.notifications)
            self._engine.cancel_all(live.notifications)
            self._engine.recording.session_closed(live.notifications)
            if live.notifications.follower is not None:
                live.notifications.follower.close()
            for stream in list(live.streams.values()):
                stream.end()

    def _unload_surplus(self, current: LoadedSession) -> None:
        """Unload the least recently used sessions beyond the limit, but none that is needed, nor this one."""
        surplus = len(self.loaded) - self.limits.live_sessions
        if surplus > 0:
            unneeded = (id for id, live in self.loaded.items() if live is not current and not live.needed)
            for id in list(islice(unneeded, surplus)):
                self._engine.drop_link(self.loaded.pop(id).notifications)

    async def sweep(self) -> None:
        """Unload sessions that were not used for `ttl`, and renew the records of those with a connection."""
        for live in list(self.loaded.values()):
            if live.busy and monotonic() - live.touched > self.ttl / _TOUCHES:
                if not await self._touch(live):
                    self.forget(live.id)
            elif self._unused(live):
                busy_elsewhere = live.session.rows and await self.store.get(session_key(live.id)) is not None
                if not busy_elsewhere and self._unused(live):
                    self.forget(live.id)
        for stream in [stream for live in self.loaded.values() for stream in live.streams.values()]:
            await stream.refresh()

    def _unused(self, live: LoadedSession) -> bool:
        return not live.busy and monotonic() - live.used > self.ttl

    def stream_ended(self, stream: Stream) -> None:
        """Count a stream that has ended. The oldest ones are deleted to make room for it."""
        surplus = self._finished.add(stream.key, stream.size)
        if surplus:
            self.cluster.run(self.store.delete(*surplus))

    # -- other processes

    def handle(self, message: ClusterMessage) -> Awaitable[None] | None:
        """Handle a message of another process about a session or a stream. An awaitable is run in a task."""
        live = self.loaded.get(message.name)
        match message.kind:
            case "follow":
                for each in self.loaded.values():
                    if (stream := each.streams.get(message.name)) is not None:
                        stream.followed_elsewhere = True
            case "gone":
                self.forget(message.name)
            case "frame" if live is not None:
                self._engine.handle(message.data, live.notifications)
            case "stale" if live is not None:
                live.load(message.data)
            case "home" if live is not None:
                return self._claimed(live, message.data.decode(), message.sender == self.cluster.id)
            case _:
                pass
        return None

    async def catch_up(self) -> None:
        """Read the loaded sessions again: messages about them may have been missed."""
        for id, live in list(self.loaded.items()):
            raw = await self.store.get(session_key(id))
            if raw is None:
                self.forget(id)
            else:
                live.load(raw)

    async def claim(self, live: LoadedSession) -> None:
        """Send this session its notifications from now on, in place of the process that did before.

        All processes see the claim in the same order with the changes: the other one notifies those before it, this one
        those after it. Raises StoreError.
        """
        own = live.notifications
        if not self.store.shared:
            self._engine.add_link(own)
            return
        assert own.stream is not None
        returned = asyncio.get_running_loop().create_future()
        own.claims.append(returned)  # before any await: a claim of another process that arrives now is older
        try:
            await own.stream.announce()
            await self.cluster.post("home", live.id, own.stream.id.encode())
            async with asyncio.timeout(_CLAIM_SECONDS):
                await returned
        except BaseException as problem:
            self._engine.drop_link(own)
            if isinstance(problem, TimeoutError):
                raise StoreError("bus", "a message does not come back", "see if the store is healthy") from None
            raise
        finally:
            if returned in own.claims:
                own.claims.remove(returned)

    def _claimed(self, live: LoadedSession, name: str, by_us: bool) -> Awaitable[None] | None:
        """Handle the claim of another process, which continues the stream `name` after all earlier messages."""
        own = live.notifications
        if by_us:
            self._engine.add_link(own)
            if own.claims and not (returned := own.claims.pop(0)).done():
                returned.set_result(None)
            return None
        self._engine.drop_link(own)
        if own.claims:
            return None  # a claim of ours is on its way and comes after this one
        if own.follower is not None:
            own.follower.close()
        before, own.stream = own.stream, None
        if before is not None:
            live.streams.pop(before.id, None)
        early = list(own.early)
        own.early.clear()
        return self._hand_over(live, before, name, early)

    async def _hand_over(self, live: LoadedSession, before: Stream | None, name: str, early: list[bytes]) -> None:
        """Send the process that continues the stream `name` all messages for it."""
        if before is not None and before.id != name:
            await before.forget()
            before.end()
        elif before is not None:
            await before.flush()
        await self._write_to(live, name, early)

    def notify(self, live: LoadedSession, frame: bytes) -> None:
        """Send a frame on the session's notification stream, which this process does not have open."""
        if self.store.shared and live.notifications not in self._engine.links:
            self.cluster.run(self._notify_elsewhere(live, frame))
        else:
            live.notifications.keep(frame)

    async def _notify_elsewhere(self, live: LoadedSession, frame: bytes) -> None:
        try:
            name = await self.store.get(notifications_key(live.id))
        except StoreError as problem:
            self.cluster.report("a notification could not be sent on a session's stream", problem)
            name = None
        if name is None or live.notifications.stream is not None:
            live.notifications.keep(frame)
        else:
            await self._write_to(live, name.decode(), [frame])

    async def _write_to(self, live: LoadedSession, name: str, frames: list[bytes]) -> None:
        """Write to a stream of another process, and notify that process."""
        if frames:
            stream = Stream(self.store, self.cluster, self.limits, live.id, StreamOrigin(self.cluster.id), name)
            for frame in frames:
                stream.put(frame)
            await stream.flush()
        await self.cluster.tell("more", name)
