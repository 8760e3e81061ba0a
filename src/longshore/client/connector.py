"""Connects to one server, and again when the connection was lost."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Awaitable, Callable
from typing import final

from msgspec.structs import replace

from longshore.client.channel import ChannelFactory
from longshore.client.clock import PausableClock
from longshore.client.models import ServerInfo
from longshore.client.negotiate import (
    ClientHello,
    EndedByProbe,
    OlderTransport,
    forget,
    negotiate,
    remember,
    within,
)
from longshore.client.session import ClientSession
from longshore.client.targets import Target
from longshore.client.tasks import end
from longshore.errors import ClientError, ConnectError

RESTARTS = 5
RESTART_SECONDS = 10.0
"""A server that was connected to so many times within this time is not tried again at once."""

MakeSession = Callable[[ChannelFactory, PausableClock], ClientSession]
OnOpened = Callable[[ClientSession, bool], Awaitable[None]]


@final
class Connector:
    """Holds the one connection that a client has at a time. Concurrent callers await the same attempt."""

    def __init__(
        self,
        target: Target,
        hello: ClientHello,
        timeout: float | None,
        reconnect: bool,
        make_session: MakeSession,
        on_opened: OnOpened,
    ) -> None:
        self._target, self._hello = target, hello
        self.current: ClientSession | None = None
        self.server: ServerInfo | None = None
        self.closed = False
        self._timeout, self._reconnect = timeout, reconnect
        self._make_session, self._on_opened = make_session, on_opened
        self._clock = PausableClock()
        self._attempt: asyncio.Task[ClientSession] | None = None
        self._attempts: deque[float] = deque(maxlen=RESTARTS)
        self._opening: ClientSession | None = None
        self._last_failure: ClientError | None = None
        """Why the last attempt to replace a lost connection failed."""

    async def session(self) -> ClientSession:
        """The connection, made anew if it was lost. Raises ConnectError, or why it was lost."""
        return (await self.session_within(None))[0]

    async def session_within(self, seconds: float | None) -> tuple[ClientSession, float]:
        """The connection, and the seconds that it took. Raises TimeoutError; the attempt then goes on for others."""
        current = self.current
        if current is not None and current.closed is None:
            return current, 0.0
        attempt = self._attempt
        if attempt is None or attempt.done():
            attempt = self._attempt = asyncio.get_running_loop().create_task(self._connect())
            attempt.add_done_callback(_retrieve)
        took = await self._clock.wait_excluding_login(attempt, seconds)
        if attempt.cancelled():
            raise self._closed_meanwhile()
        problem = attempt.exception()
        if isinstance(problem, ClientError):  # two awaiters must not share one exception object
            raise copy.copy(problem) from problem.__cause__
        return attempt.result(), took

    async def _connect(self) -> ClientSession:
        current = self.current
        if self.closed:
            raise ConnectError("the client is closed; open it first", self._target.name)
        if current is None:
            return await self._open(again=False)
        if current.closed is None:
            return current
        if not self._reconnect:
            raise ConnectError(current.closed.what, current.closed.server, current.closed.said)
        self._check_restarts(self._last_failure or current.closed)
        await current.close()
        self._last_failure = None
        try:
            return await self._open(again=True)
        except ClientError as problem:
            self._last_failure = problem
            raise

    def _check_restarts(self, lost: ClientError) -> None:
        now = asyncio.get_running_loop().time()
        if len(self._attempts) == RESTARTS and now - self._attempts[0] < RESTART_SECONDS:
            what = f"it was lost {RESTARTS} times in {RESTART_SECONDS:g} s, the last time because: {lost.what}"
            raise ConnectError(what, lost.server, lost.said)
        self._attempts.append(now)

    async def _open(self, *, again: bool) -> ClientSession:
        """Try the target's channels in order: a later one only where the server may be an older one."""
        refused: OlderTransport | None = None
        for make_channel in self._target.channels:
            try:
                return await self._open_channel(make_channel, again)
            except OlderTransport as problem:
                refused = problem
            except ConnectError as problem:
                if refused is not None:  # the first answer may be the real reason
                    problem.what += f" (before that, it refused the handshake: {refused.what})"
                raise
        assert refused is not None
        raise refused

    async def _open_channel(self, make_channel: ChannelFactory, again: bool) -> ClientSession:
        try:
            return await self._open_session(make_channel, self._hello, again)
        except EndedByProbe as ended:
            try:
                session = await self._open_session(make_channel, replace(self._hello, era="legacy"), again)
            except ConnectError:
                raise ended from ended.__cause__  # the probe was not the cause
            assert self.server is not None
            remember(self._target.key, self.server)
            return session

    async def _open_session(self, make_channel: ChannelFactory, hello: ClientHello, again: bool) -> ClientSession:
        if self.closed:
            raise self._closed_meanwhile()
        session = self._opening = self._make_session(make_channel, self._clock)
        channel = session.channel
        if channel.handshake_only and hello.era == "auto":
            hello = replace(hello, era="legacy")
        key = "" if channel.handshake_only else self._target.key
        try:
            await within(self._clock, channel.open(), self._timeout)
            self.server = await negotiate(session, hello, self._timeout, key)
            if self.closed:
                raise self._closed_meanwhile()
            self.current = session
            await self._on_opened(session, again)
            return session
        except BaseException as problem:
            forget(key)  # another version of the server may be there now
            if isinstance(problem, ClientError):
                session.locate(problem)
            await session.close()
            if isinstance(problem, TimeoutError) and not isinstance(problem, ClientError):
                what = f"it could not be reached within {self._timeout:g} s"
                raise session.locate(ConnectError(what)) from None
            raise
        finally:
            self._opening = None

    def _closed_meanwhile(self) -> ConnectError:
        return ConnectError("the client was closed while it connected", self._target.name)

    async def close(self) -> None:
        """End the connection, and make no other."""
        self.closed = True
        for session in (self.current, self._opening):
            if session is not None:
                await session.close()
        if self._attempt is not None and not self._attempt.done():
            await end((self._attempt,))


def _retrieve(attempt: asyncio.Task[ClientSession]) -> None:
    """All awaiters may have left; asyncio must not complain of an exception never retrieved."""
    if not attempt.cancelled():
        attempt.exception()
