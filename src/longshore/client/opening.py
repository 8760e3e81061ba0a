"""Making connections to one server: the first, and another when it is lost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import final

from longshore.client.channel import Channel
from longshore.client.era import OlderTransport, Wish, agree, forget, within
from longshore.client.records import ServerInfo
from longshore.client.session import Session
from longshore.client.targets import Target
from longshore.errors import ClientError, ConnectError

RESTARTS = 5
RESTART_SECONDS = 10.0
"""A server that had to be connected to so many times within this time is not tried again at once."""

MakeSession = Callable[[Channel], Session]


@final
class Opening:
    """The one connection that a client has at a time. Whoever needs it at the same time waits for the same one."""

    def __init__(
        self,
        target: Target,
        wish: Wish,
        timeout: float | None,
        reconnect: bool,
        make_session: MakeSession,
        opened: Callable[[Session, bool], Awaitable[None]],
    ) -> None:
        self.target = target
        self.wish = wish
        self.current: Session | None = None
        self.server: ServerInfo | None = None
        self.closed = False
        self._timeout = timeout
        self._reconnect = reconnect
        self._make_session = make_session
        self._opened = opened
        self._lock = asyncio.Lock()
        self._times: deque[float] = deque(maxlen=RESTARTS)
        self._making: Session | None = None

    async def session(self) -> Session:
        """The connection, made anew if it was lost. Raises ConnectError, or why it was lost."""
        current = self.current
        if current is not None and current.gone is None:
            return current
        async with self._lock:
            current = self.current
            if self.closed:
                raise ConnectError("the client is closed; open it first", self.target.name)
            if current is None:
                await self._open(again=False)
            elif current.gone is not None:
                if not self._reconnect:
                    raise ConnectError(current.gone.what, current.gone.server, current.gone.said)
                self._guard(current.gone)
                await current.close()
                await self._open(again=True)
            assert self.current is not None
            return self.current

    def _guard(self, gone: ClientError) -> None:
        now = asyncio.get_running_loop().time()
        if len(self._times) == RESTARTS and now - self._times[0] < RESTART_SECONDS:
            what = f"it was lost {RESTARTS} times in {RESTART_SECONDS:g} s, the last time because: {gone.what}"
            raise ConnectError(what, gone.server, gone.said)
        self._times.append(now)

    async def _open(self, *, again: bool) -> None:
        for n, make in enumerate(self.target.channels):
            try:
                await self._try(make, again)
                return
            except OlderTransport:
                if n + 1 == len(self.target.channels):
                    raise

    async def _try(self, make: Callable[[], Channel], again: bool) -> None:
        channel = make()
        session = self._make_session(channel)
        wish = self.wish
        if channel.handshake_only and wish.era == "auto":
            wish = Wish("legacy", wish.capabilities, wish.info, wish.log_level)
        key = "" if channel.handshake_only else self.target.key
        self._making = session
        try:
            await within(channel, channel.open(), self._timeout)
            self.server = await agree(session, wish, self._timeout, key)
            if self.closed:
                raise ConnectError("the client was closed while it connected", channel.where)
            self.current = session
            await self._opened(session, again)
        except BaseException as problem:
            if key:
                forget(key)  # another version of the server may be there now
            await session.close()
            if isinstance(problem, TimeoutError) and not isinstance(problem, ClientError):
                what = f"it could not be reached within {self._timeout:g} s"
                raise ConnectError(what, channel.where, channel.said()) from None
            raise
        finally:
            self._making = None

    async def close(self) -> None:
        """End the connection, and make no other."""
        self.closed = True
        for session in (self.current, self._making):
            if session is not None:
                await session.close()
