"""Making connections to one server: the first, and another when it is lost."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Awaitable, Callable
from typing import final

from msgspec.structs import replace

from longshore.client.channel import Channel
from longshore.client.clock import patiently
from longshore.client.era import EndedByProbe, OlderTransport, Wish, agree, forget, remember, within
from longshore.client.records import ServerInfo
from longshore.client.session import Session
from longshore.client.targets import Target
from longshore.client.tasks import end
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
        self._work: asyncio.Task[Session] | None = None
        self._times: deque[float] = deque(maxlen=RESTARTS)
        self._making: Session | None = None
        self._trouble: ClientError | None = None
        """Why the last connection that should have replaced a lost one could not be made."""

    async def session(self) -> Session:
        """The connection, made anew if it was lost. Raises ConnectError, or why it was lost."""
        return (await self.session_within(None))[0]

    async def session_within(self, seconds: float | None) -> tuple[Session, float]:
        """The same, and what it took; TimeoutError if that is more. Whoever gives up does not stop it for others."""
        current = self.current
        if current is not None and current.gone is None:
            return current, 0.0
        work = self._work
        if work is None or work.done():
            work = self._work = asyncio.get_running_loop().create_task(self._connect())
            work.add_done_callback(_looked_at)
        took = await patiently(work, seconds, self._logs_in)
        if work.cancelled():
            raise ConnectError("the client was closed while it connected", self.target.name)
        problem = work.exception()
        if isinstance(problem, ClientError):  # an exception that two await must not be one object
            raise copy.copy(problem) from problem.__cause__
        return work.result(), took

    def _logs_in(self) -> bool:
        return self._making is not None and self._making.channel.waiting

    async def _connect(self) -> Session:
        current = self.current
        if self.closed:
            raise ConnectError("the client is closed; open it first", self.target.name)
        if current is None:
            await self._open(again=False)
        elif current.gone is not None:
            if not self._reconnect:
                raise ConnectError(current.gone.what, current.gone.server, current.gone.said)
            self._guard(self._trouble or current.gone)
            await current.close()
            await self._open_again()
        assert self.current is not None
        return self.current

    async def _open_again(self) -> None:
        self._trouble = None
        try:
            await self._open(again=True)
        except ClientError as problem:
            self._trouble = problem
            raise

    def _guard(self, gone: ClientError) -> None:
        now = asyncio.get_running_loop().time()
        if len(self._times) == RESTARTS and now - self._times[0] < RESTART_SECONDS:
            what = f"it was lost {RESTARTS} times in {RESTART_SECONDS:g} s, the last time because: {gone.what}"
            raise ConnectError(what, gone.server, gone.said)
        self._times.append(now)

    async def _open(self, *, again: bool) -> None:
        refused: OlderTransport | None = None
        for n, make in enumerate(self.target.channels):
            try:
                await self._try(make, again)
                return
            except OlderTransport as problem:
                if n + 1 == len(self.target.channels):
                    raise
                refused = problem
            except ConnectError as problem:
                if refused is not None:  # what it said first may be the real reason
                    problem.what += f" (before that, it refused the handshake: {refused.what})"
                raise

    async def _try(self, make: Callable[[], Channel], again: bool) -> None:
        try:
            await self._try_wish(make, self.wish, again)
        except EndedByProbe as ended:
            try:
                await self._try_wish(make, replace(self.wish, era="legacy"), again)
            except ConnectError:
                raise ended from ended.__cause__  # it is no matter of eras
            assert self.server is not None
            remember(self.target.key, self.server)

    async def _try_wish(self, make: Callable[[], Channel], wish: Wish, again: bool) -> None:
        if self.closed:
            raise ConnectError("the client was closed while it connected", self.target.name)
        channel = make()
        session = self._make_session(channel)
        if channel.handshake_only and wish.era == "auto":
            wish = replace(wish, era="legacy")
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
        if self._work is not None and not self._work.done():
            await end((self._work,))


def _looked_at(work: asyncio.Task[Session]) -> None:
    """Everyone who waited for it may have left."""
    if not work.cancelled():
        work.exception()
