"""Handshake-era sessions: a small record in the store, and a loaded copy in each process that uses it.

The record holds what `initialize` agreed on and what the client has asked for since. It is written before the answer
that acknowledges it, so another process, or the next one after a restart, can go on from there. Calls in flight stay
with the process that runs them. A process has the sessions loaded that it used last; the rest is bytes in the store.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from math import inf
from secrets import token_urlsafe
from time import monotonic
from typing import final

from longshore.errors import StoreError
from longshore.limits import Limits
from longshore.protocol.peer import Principal
from longshore.server.engine import Engine
from longshore.stores import Store
from longshore.transports.http.cluster import Cluster
from longshore.transports.http.gate import Denied
from longshore.transports.http.loaded_session import (
    SESSIONS,
    LoadedSession,
    Record,
    choose_surplus,
    decode_record,
    encode_record,
    merge,
    session_key,
)
from longshore.transports.http.notifications import StreamOwnership
from longshore.transports.http.streams import FinishedStreams, Stream
from longshore.wire.codec import INVALID_PARAMS

ID_BYTES = 24
"""192 bits of randomness: a session can't be guessed."""
_TOUCHES = 10
"""How many times in the life of an idle session its expiry is moved on. More would be a write for each request."""
_SLACK = 64
"""The bound of sessions is looked at whenever a 64th of it is new: all have to be read to choose those that end."""


@final
class Sessions:
    """The sessions of one server, as one process sees them."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        limits: Limits,
        ttl: float,
        cluster: Cluster,
    ) -> None:
        self._engine = engine
        self.store = store
        self.limits = limits
        self.ttl = ttl
        self._stored_seconds = ttl + ttl / _TOUCHES
        """The expiry of a record in the store: the session may have been used for a while after it was last set."""
        self.cluster = cluster
        self.ownership = StreamOwnership(engine, store, limits, cluster)
        self._finished = FinishedStreams(limits)
        self.loaded: OrderedDict[str, LoadedSession] = OrderedDict()
        self._made = 0
        self._trim_every = max(1, limits.sessions // _SLACK)

    def get_cached(self, id: str, principal: Principal) -> LoadedSession | None:
        """The session, if it is loaded, no other process can have changed it, and it is the caller's."""
        live = self.loaded.get(id)
        if live is None or self.store.shared or live.principal.name != principal.name:
            return None
        now = monotonic()
        if now - live.used > self.ttl and not live.needed:
            return None
        if now - live.touched > self.ttl / _TOUCHES:
            return None
        live.used = now
        self.loaded.move_to_end(id)
        return live

    async def find(self, id: str, principal: Principal) -> LoadedSession | None:
        """The session, loaded from the store if need be. None: there is none, or it is another caller's."""
        key = session_key(id)
        raw = await self.store.get(key) or await self._revive(id)
        if raw is None:
            self.forget(id)
            return None
        live = self.loaded.get(id)
        if (decode_record(raw).principal if live is None else live.principal.name) != principal.name:
            return None
        if live is None:
            live = self.loaded[id] = LoadedSession(self, id, principal)
            live.touched = -inf  # another process may have used it a long time ago
        live.load(raw)
        live.used = now = monotonic()
        self.loaded.move_to_end(id)
        if now - live.touched > self.ttl / _TOUCHES:
            live.touched = now
            if not await self._touch(live):  # it was ended meanwhile
                self.forget(id)
                return None
        self._unload_surplus(live)
        return live

    async def _touch(self, live: LoadedSession) -> bool:
        self.pin(live)  # or it might be unloaded meanwhile, and another copy be made
        try:
            return await self.store.touch(session_key(live.id), self._stored_seconds)
        finally:
            self.unpin(live)

    def candidate(self, principal: Principal, owner: str) -> LoadedSession:
        """A session before its handshake. Nothing is stored of it until `begin`."""
        return LoadedSession(self, token_urlsafe(ID_BYTES), principal, owner)

    async def begin(self, live: LoadedSession) -> None:
        """Store a session whose handshake was answered, for every process."""
        try:
            await self.save(live)
        except BaseException:
            self._unlink(live)
            raise
        self.loaded[live.id] = live
        self._unload_surplus(live)
        self._made += 1
        if self._made % self._trim_every == 0:
            await self._trim(live)

    async def _trim(self, begun: LoadedSession) -> None:
        """End sessions until there are as many as there may be, but not the one that has just begun."""
        most = self.limits.sessions
        if await self.store.count(SESSIONS) <= most:
            return
        records = await self.store.find(SESSIONS)
        surplus = len(records) - most
        # Redis orders by milliseconds: a session that was used in the same one may come after this.
        records.pop(session_key(begun.id), None)
        ended = choose_surplus(records, surplus, self._trim_every - 1)
        await self.store.delete(*ended)
        for key in ended:
            id = key.removeprefix(SESSIONS)
            self.forget(id)
            await self.cluster.tell("gone", id)

    async def save(self, live: LoadedSession) -> bool:
        """Write what has changed, before it is acknowledged. False: the session has ended meanwhile.

        Another process may change other things at the same time; so the change is made to the record as it is then.
        """
        if live.base is None:
            await self._write_first(live, live.record())
            return True
        before, now = live.base, live.record()
        if now == before:
            return True
        live.saved = live.state
        try:
            if not await self._write_change(live, before, now):
                self.forget(live.id)
                return False
        except BaseException:
            live.restore(live.base)  # a change that is not acknowledged is undone
            raise
        live.touched = monotonic()
        await self.cluster.tell("stale", live.id, live.raw)
        return True

    async def _write_first(self, live: LoadedSession, record: Record) -> None:
        raw = self._packed(record)
        await self.store.set(session_key(live.id), raw, self._stored_seconds)
        live.raw, live.base, live.saved, live.touched = raw, record, live.state, monotonic()

    async def _write_change(self, live: LoadedSession, before: Record, now: Record) -> bool:
        key = session_key(live.id)
        while True:
            assert live.base is not None
            raw = self._packed(merge(before, now, live.base))
            if await self.store.swap(key, live.raw, raw, self._stored_seconds):
                live.load(raw)
                return True
            current = await self.store.get(key) or await self._revive(live.id)
            if current is None:
                return False
            live.load(current)

    def _packed(self, record: Record) -> bytes:
        raw = encode_record(record)
        most = self.limits.session_bytes
        if len(raw) > most:
            text = f"the session would take {len(raw):,} bytes and may take {most:,}; send less in capabilities and "
            raise Denied(413, text + "clientInfo, or watch fewer resources", code=INVALID_PARAMS)
        return raw

    async def end(self, id: str) -> None:
        """End a session, as its client asks."""
        await self.store.delete(session_key(id), *self._finished.take(id))
        self.forget(id)
        await self.cluster.tell("gone", id)

    async def sweep(self) -> None:
        """Forget sessions that were not used for `ttl`, and renew the records of those with a connection."""
        now = monotonic()
        for live in [live for live in self.loaded.values() if live.busy and now - live.touched > self.ttl / _TOUCHES]:
            if not live.busy:
                continue  # not any more
            live.touched = now
            if not await self._touch(live) and await self._revive(live.id) is None:
                self.forget(live.id)
        for live in [live for live in self.loaded.values() if self._unused(live)]:
            busy_elsewhere = live.session.rows and await self.store.get(session_key(live.id)) is not None
            if not busy_elsewhere and self._unused(live):
                self.forget(live.id)
        for stream in [stream for live in self.loaded.values() for stream in live.streams.values()]:
            await stream.refresh()

    def _unused(self, live: LoadedSession) -> bool:
        return not live.busy and monotonic() - live.used > self.ttl

    async def _revive(self, id: str) -> bytes | None:
        """Write a record again that expired while a client was connected, because the machine slept, for example.

        Only where no other process could have ended the session.
        """
        live = self.loaded.get(id)
        if live is None or self.store.shared or not live.busy:
            return None
        await self.store.set(session_key(id), live.raw, self._stored_seconds)
        return live.raw

    async def catch_up(self) -> None:
        """Read the loaded sessions again: messages about them may have been missed."""
        for id, live in list(self.loaded.items()):
            raw = await self.store.get(session_key(id))
            if raw is None:
                self.forget(id)
            else:
                live.load(raw)

    def pin(self, live: LoadedSession) -> None:
        """A connection uses the session: it does not expire meanwhile."""
        live.busy += 1

    def unpin(self, live: LoadedSession) -> None:
        live.busy -= 1
        live.used = monotonic()

    def stream_ended(self, id: str, stream: Stream) -> None:
        """Count a stream that has ended. The oldest ones are deleted to make room for it."""
        surplus = self._finished.add(id, stream.key, stream.size)
        if surplus:
            self.cluster.run(self._delete(surplus))

    def follow_elsewhere(self, name: str) -> None:
        """A connection of another process follows a stream of this one."""
        for live in self.loaded.values():
            stream = live.streams.get(name)
            if stream is not None:
                stream.followed_elsewhere = True

    async def _delete(self, logs: list[str]) -> None:
        try:
            await self.store.delete(*logs)
        except StoreError as problem:
            self.cluster.report("finished streams could not be deleted", problem)

    def forget(self, id: str) -> None:
        """Unload a session that has ended, with its streams and calls."""
        live = self.loaded.pop(id, None)
        if live is None:
            return
        self._unlink(live)
        self._engine.detach(live.notifications)
        self._engine.cancel_all(live.notifications)
        if live.notifications.follower is not None:
            live.notifications.follower.close()
        for stream in list(live.streams.values()):
            stream.end()

    def _unload_surplus(self, current: LoadedSession) -> None:
        """Unload the least recently used sessions beyond the limit, but none that is needed, nor this one."""
        surplus = len(self.loaded) - self.limits.live_sessions
        if surplus <= 0:
            return
        unneeded = (id for id, live in self.loaded.items() if live is not current and not live.needed)
        for id in list(islice(unneeded, surplus)):
            self._unlink(self.loaded.pop(id))

    def _unlink(self, live: LoadedSession) -> None:
        self._engine.subscriptions.links.discard(live.notifications)
