"""All who watch one server for changes, and keeping them informed while connections come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from math import inf
from typing import Any, final

from longshore.client.line import Line
from longshore.client.records import Change, ServerInfo
from longshore.client.session import Session
from longshore.client.tasks import Tasks
from longshore.client.watching import Watch
from longshore.errors import ClientError, ConnectionLost
from longshore.retry import Backoff

_AGAIN = Backoff(0.05, 8.0).pauses(9)
"""Before it is tried again to hear of changes. A server may take seconds to start, and nobody else would ask for it."""
_SHORT_SECONDS = 10.0
"""A subscription that is interrupted again within this time is begun again later each time."""


@final
class Watches:
    """`on_change` is told of all changes, whether or not somebody watches: a watch in the background is for it."""

    def __init__(self, line: Line, on_change: Callable[[Change], Any] | None) -> None:
        self._line = line
        self._on_change = on_change
        self._background: Watch | None = None
        self._all: set[Watch] = set()
        self._restoring: set[Watch] = set()
        self._interrupted: dict[Watch, tuple[float, int]] = {}
        """When each was interrupted last, and how often in a row it was soon interrupted again."""
        self._reviving = False
        self._tasks = Tasks()

    def __iter__(self) -> Iterator[Watch]:
        return iter(list(self._all))

    def make(self, kinds: Sequence[str], uris: Sequence[str]) -> Watch:
        return Watch(self, kinds, uris)

    async def begin(self, watch: Watch) -> None:
        session = await self._line.session()
        self._all.add(watch)
        try:
            await self._start(watch, session)
        except BaseException:
            self._forget(watch)
            watch.abandon(self._uris())
            raise

    async def end(self, watch: Watch) -> None:
        self._forget(watch)
        await watch.stop(self._uris())

    def _forget(self, watch: Watch) -> None:
        self._all.discard(watch)
        self._interrupted.pop(watch, None)

    def _uris(self) -> set[str]:
        return {uri for each in self._all for uri in each.uris}

    async def _start(self, watch: Watch, session: Session) -> None:
        """Have the server tell, unless the watch was left, before or meanwhile."""
        if watch in self._all:
            await watch.start(session, self._line.server)
        if watch not in self._all:
            await watch.stop(self._uris())

    def interrupted(self, watch: Watch) -> None:
        """The server ended its subscription, or the stream broke."""
        if watch not in self._all or self._line.closed or not self._line.connected:
            return
        now = asyncio.get_running_loop().time()
        before, times = self._interrupted.get(watch, (-inf, 0))
        times = times + 1 if now - before < _SHORT_SECONDS else 0
        self._interrupted[watch] = now, times
        least = _AGAIN[min(times, len(_AGAIN) - 1)]
        self._restore(watch, [max(least, seconds) for seconds in _AGAIN])

    def _restore(self, watch: Watch, waits: Sequence[float]) -> None:
        """Have it told again, from another task: whoever makes the connection must not wait for it, nor fail by it."""
        if watch in self._all and watch not in self._restoring and not watch.is_over:
            self._restoring.add(watch)
            self._tasks.start(self._begin_again(watch, waits))

    async def _begin_again(self, watch: Watch, waits: Sequence[float]) -> None:
        problem: ClientError | None = None
        try:
            for seconds in waits:
                await asyncio.sleep(seconds)
                if watch not in self._all or not self._line.connected:
                    return  # it was left; or another connection must be made first, and then it is begun with that
                try:
                    await self._start(watch, await self._line.session())
                    watch.missed()
                    return
                except ClientError as again:
                    problem = again
            watch.end(problem or ConnectionLost("the subscription ended", self._line.name))
        finally:
            self._restoring.discard(watch)

    # -- the connection

    async def opened(self, session: Session, server: ServerInfo, again: bool) -> None:
        """There is a connection. If there was one before, nobody knows what has happened in between."""
        kinds = [kind for kind in ("tools", "resources", "prompts") if server.can(kind, "listChanged")]
        if self._background is not None:
            self._background.kinds = tuple(kinds)
        if again:
            for watch in self:
                if watch.session is not session:  # or it was begun with it already
                    self._restore(watch, (0.0, *_AGAIN))
        if self._on_change is not None and self._background is None:
            self._background = watch = Watch(self, kinds, (), everything=True)
            if again:
                watch.missed()
            self._tasks.start(self._tell(watch, self._on_change, session))

    async def _tell(self, watch: Watch, on_change: Callable[[Change], Any], session: Session) -> None:
        try:
            async with watch:
                async for change in watch:
                    (await self._line.session()).tell("on_change", on_change, change)
        except ClientError as problem:
            (watch.session or session).note(f"on_change hears of nothing any more: {problem.what}")
        finally:
            self._background = None

    def lost(self, session: Session) -> None:
        """The connection is gone. Whoever watches would never ask for another, so one is made for them."""
        if not self._line.reconnect and not self._line.closed:
            gone = session.gone or ConnectionLost("the connection was lost")
            self._end_all(ConnectionLost(gone.what, gone.server or self._line.name, gone.said))
        elif self._all and not self._line.closed and not self._reviving:
            self._reviving = True  # a connection that fails while it is made is lost too
            self._tasks.start(self._revive())

    async def _revive(self) -> None:
        try:
            await self._try_again()
        finally:
            self._reviving = False

    async def _try_again(self) -> None:
        problem: ClientError | None = None
        for seconds in (0.0, *_AGAIN):
            await asyncio.sleep(seconds)
            if not self._all:
                return
            try:
                session = await self._line.session()
            except ClientError as again:
                problem = again
                continue
            if session.gone is None:
                return
            problem = session.gone
        self._end_all(problem or ConnectionLost("the connection was lost", self._line.name))

    def _end_all(self, problem: ClientError) -> None:
        for watch in self:
            watch.end(copy(problem))  # an exception that two await must not be one object

    async def close(self) -> None:
        self._end_all(ConnectionLost("the client was closed", self._line.name))
        await self._tasks.end()
