"""Keeps the connection to one mounted server: makes it, lists what is there, makes it again when it is lost.

It is one task on the loop that the calls run on, and the only one that connects: so nothing has a server that fails at
once started again and again. The loop's end cancels it, and then it closes the connection: a child process ends with
us. A call that finds the server absent wakes it, waits a moment, and is told why there is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import AsyncExitStack, contextmanager
from time import monotonic
from typing import Any, Literal, final

from longshore.client.client import Client
from longshore.client.records import Change
from longshore.client.watching import Watch
from longshore.errors import BadAnswer, ClientError, ConnectionLost, ToolError
from longshore.mounting.following import Following
from longshore.protocol.revisions import MODERN
from longshore.retry import Backoff

State = Literal["starting", "ready", "absent"]

BACKOFF = Backoff(1.0, 30.0)
"""Pauses between starts, after a first retry at once. A call that needs the server cuts them short."""
LEAST_PAUSE = 1.0
"""Between any two starts. Not even calls have a server that fails at once started more often than this."""
STEADY_SECONDS = 10.0
"""A server that stayed for so long has come to stay: the next loss is a first one again."""
CALL_SECONDS = 10.0
"""How long a call waits for a server that is not there, before it is told so."""
AGAIN_SECONDS = 3.0
"""The same, for one that was there and went. What does not come back by then may not come back at all."""
WAITING = 64
"""Calls that wait for one server. They hold no places, but what they were given takes memory."""
FIRST_LIST_SECONDS = 3.0
"""How long a list waits for a server that was just started. Many clients list once and never again."""
LIST_SECONDS = 60.0
"""How long a server may take over one round of its lists."""
QUIET_SECONDS = 0.05
"""Changes that come within this time are looked at together."""
LIST_PAUSE = 0.5
"""A server that changes its lists all the time is asked for them no more often than this."""
RELIST_SECONDS = 30.0
"""A server that does not tell of changes is asked again when its lists may be old, but no more often than this."""
TELL_SECONDS = 5.0
"""How long a server may take to say that it will tell of changes. Then it is used without: calls still wait for it."""
SAID_CHARACTERS = 1000
"""Of what a server last printed, its end."""
KINDS = ("tools", "resources", "prompts")

Listed = Callable[[Client, set[str]], Awaitable[None]]


class Untold(ClientError):
    """The server is there, but does not tell of changes, or not any more."""


@final
class Keeper:
    """`listed` takes over what the server offers; `told` hears what whoever runs us should know."""

    def __init__(
        self,
        prefix: str,
        client: Client,
        listed: Listed,
        told: Callable[[str, str], None],
        changed: Callable[[str], None],
    ) -> None:
        self.prefix = prefix
        self.client = client
        self.following = Following(client, changed, lambda text: self._tell("notice", text))
        self.state: State = "starting"
        self.problem: ClientError | None = None
        self.loop = asyncio.get_running_loop()
        self.since = monotonic()
        self._patience = self.loop.time() + FIRST_LIST_SECONDS
        self._listed, self._told = listed, told
        self._tries = 0
        """Connections that failed or were lost since one was steady."""
        self._failures = 0
        """Those that failed at all, for who waits for the next one."""
        self._waiting = 0
        self._started = 0.0
        self._due = 0.0
        self._listed_at = 0.0
        self._inside = False
        """Whether there is a connection that can be lost, rather than one that is being made."""
        self._arrived = False
        """Whether the server was ready since it was last connected to."""
        self._closing: asyncio.Task[None] | None = None
        self._steady: asyncio.TimerHandle | None = None
        self._turned = asyncio.Event()
        self._wanted = asyncio.Event()
        self.task = self.loop.create_task(self._run())

    @property
    def alive(self) -> bool:
        """Whether it still does its work, on a loop that still runs."""
        return not self.task.done() and not self.loop.is_closed()

    # -- for calls

    async def ready(self, seconds: float = CALL_SECONDS) -> Client:
        """The client, once the server is there. Raises ToolError, which says why it is not."""
        if self.is_ready:
            return self.client
        if self._waiting >= WAITING:
            raise ToolError(f"{self.absence()}\n{WAITING} calls wait for it already")
        self._waiting += 1
        try:
            await self._wait(seconds)
        finally:
            self._waiting -= 1
        return self.client

    async def _wait(self, seconds: float) -> None:
        if self.problem is not None:
            seconds = min(seconds, AGAIN_SECONDS)
        failures, end = self._failures, self.loop.time() + seconds
        while not self.is_ready:
            self._wanted.set()  # have the next try made as soon as may be
            if self._failures > failures or not await self._turn(end):
                raise ToolError(self.absence())

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"

    @property
    def pending(self) -> bool:
        """Whether nothing is known of the server yet, and it has not had the time that a list waits for it."""
        return self.state == "starting" and self.problem is None and self.loop.time() < self._patience

    async def settled(self) -> None:
        """Wait until something is known of the server, or until it has had that time."""
        while self.pending and await self._turn(self._patience):
            pass

    async def _turn(self, end: float) -> bool:
        """Wait until something has changed. False: it did not, in that time."""
        try:
            async with asyncio.timeout_at(end):
                await self._turned.wait()
        except TimeoutError:
            return False
        return True

    def reason(self) -> str:
        """Why the server can't be used: the one text for models, REST and the command line."""
        seconds = monotonic() - self.since
        if self.problem is None:
            return f"the mounted server {self.prefix!r} has not answered yet: it was started {seconds:.0f} s ago"
        return f"the mounted server {self.prefix!r} has been down for {seconds:.0f} s: {self.problem.what}"

    def absence(self) -> str:
        """The reason, what happens next, and what the server last printed."""
        if self.problem is None:
            return f"{self.reason()}; try again later"
        later = self._due - monotonic() if self.state == "absent" else 0.0
        again = f"it is tried again in {later:.0f} s" if later > 0.5 else "it is being started again"
        return f"{self.reason()}; {again}{last_words(self.problem)}"

    # -- the task

    async def _run(self) -> None:
        try:
            while True:
                self._started, self._arrived = monotonic(), False
                try:
                    await self._stay()
                except ClientError as problem:
                    self._miss(problem)
                except Exception as problem:  # a fault of ours must not end the mount without a word
                    self._miss(BadAnswer(f"what it said could not be dealt with: {problem!r}"))
                self._inside = False
                await self.client.close()
                await self._pause()
        finally:
            self._inside = False
            self.following.stop()
            self._stop_clock()
            await self.client.close()

    async def _stay(self) -> None:
        """Connect, and stay for as long as the server does."""
        client = self.client
        await client.open()
        self._inside = True
        if not client.connected:
            raise ConnectionLost("the connection was lost at once", self.prefix)
        told, silent = self._kinds(client)
        try:
            await self._attend(told, silent)
        except Untold as problem:
            self._tell("notice", f"it does not tell of changes, so its lists are read again at times: {problem.what}")
            await self._attend([], silent.union(told))

    async def _attend(self, told: list[str], silent: set[str]) -> None:
        """Have the lists taken over as they change. Raises Untold where that is not heard of."""
        async with AsyncExitStack() as watching:
            watch = self.client.watch(**dict.fromkeys(told, True))  # type: ignore[arg-type]
            changes = await self._begin(watching.enter_async_context(watch))
            await self._list(set(KINDS))
            while True:
                change = await self._next(changes, self._old_at(silent))
                if change is None:
                    await self._list(silent)
                    continue
                quiet = self._listed_at + LIST_PAUSE - self.loop.time()
                await asyncio.sleep(max(QUIET_SECONDS, quiet))
                await self._list(_lists_of(change))

    async def _begin(self, watching: Awaitable[Watch]) -> Watch:
        try:
            async with asyncio.timeout(TELL_SECONDS):
                with self._hearing():
                    return await watching
        except TimeoutError:
            raise Untold(f"it did not say within {TELL_SECONDS:g} s that it will", self.prefix) from None

    @contextmanager
    def _hearing(self) -> Generator[None]:
        """What fails in here is to hear of changes. A server that is still there can be used without."""
        try:
            yield
        except ClientError as problem:
            if not self.client.connected:
                raise
            raise Untold(problem.what, self.prefix) from problem

    def _kinds(self, client: Client) -> tuple[list[str], set[str]]:
        """The lists whose changes the server tells, and those that it must be asked for.

        In the handshake era a server may tell of all that it has, unasked, and can't say how long a list holds.
        """
        has = [kind for kind in KINDS if client.server.can(kind)]
        if client.server.revision not in MODERN:
            return has, set()
        told = [kind for kind in has if client.server.can(kind, "listChanged")]
        return told, set(has) - set(told)

    def _old_at(self, silent: set[str]) -> float | None:
        """When lists whose changes nobody tells are to be read again."""
        if not silent:
            return None
        return self._listed_at + max(RELIST_SECONDS, self.client.relaying.lifetime(silent))

    async def _next(self, changes: Any, end: float | None) -> Change | None:
        """The next change. None: the time is up."""
        clock = asyncio.timeout_at(end)
        try:
            async with clock:
                with self._hearing():
                    found: Change = await anext(changes)
                    return found
        except TimeoutError:
            if not clock.expired():
                raise
            return None

    async def _list(self, kinds: set[str]) -> None:
        if kinds:
            try:
                async with asyncio.timeout(LIST_SECONDS):
                    await self._listed(self.client, kinds)
                self._listed_at = self.loop.time()
            except TimeoutError as problem:
                if isinstance(problem, ClientError):
                    raise
                raise BadAnswer(f"it took more than {LIST_SECONDS:g} s over its lists", self.prefix) from None
        if self.state != "ready" and self.client.connected:
            self._arrive()

    async def _pause(self) -> None:
        """Wait before the next try: longer each time, but for a call no longer than it must be."""
        now = monotonic()
        least = max(self._started + LEAST_PAUSE - now, 0.0)
        seconds = max(BACKOFF.pause(self._tries - 1), least)
        self._due = now + seconds
        await asyncio.sleep(least)
        try:
            async with asyncio.timeout(seconds - least):
                await self._wanted.wait()
        except TimeoutError:
            pass
        self._wanted.clear()

    # -- what becomes of it

    def lost(self, problem: ClientError) -> None:
        """The connection is lost. It is closed, which ends the stay, and made again."""
        if self._inside:
            self._inside = False
            self._closing = self.loop.create_task(self.client.close())
            if self.is_ready:
                self._leave(problem)

    def _leave(self, problem: ClientError) -> None:
        """It was there, and is gone."""
        self._stop_clock()
        self._turn_to("starting", problem)
        if self._tries == 0:
            self._tell("warning", f"the server is gone, and is started again: {problem}")
        elif self._tries == 1:
            text = f"the server is gone again; until it stays for {STEADY_SECONDS:g} s, no more is said"
            self._tell("warning", f"{text}: {problem}")

    def _miss(self, problem: ClientError) -> None:
        """A stay has ended, or none has come about."""
        if self.is_ready:
            self._leave(problem)
        if self._arrived:
            problem = self.problem or problem  # why it went says more than that it was closed
        else:
            self._failures += 1
            if self._tries == 0:
                self._tell("warning", f"the server can't be reached: {problem}")
        self._tries += 1
        self._turn_to("absent", problem)

    def _arrive(self) -> None:
        back = self.problem is not None
        away = monotonic() - self.since
        self._arrived = True
        self._wanted.clear()
        self._turn_to("ready", None)
        self._steady = self.loop.call_later(STEADY_SECONDS, self._stay_on)
        self.following.begin()
        if back and self._tries == 1:
            self._tell("notice", f"the server is back after {away:.1f} s")

    def _stay_on(self) -> None:
        if self._tries > 1:
            self._tell("notice", f"the server is back, and has stayed for {STEADY_SECONDS:g} s")
        self._tries = 0

    def _stop_clock(self) -> None:
        if self._steady is not None:
            self._steady.cancel()
            self._steady = None

    def _tell(self, level: str, text: str) -> None:
        self._told(level, f"mounted {self.prefix}: {text}")

    def _turn_to(self, state: State, problem: ClientError | None) -> None:
        if state == "ready" or self.state == "ready":
            self.since = monotonic()
        self.state, self.problem = state, problem
        self._turned.set()
        self._turned = asyncio.Event()

    async def stop(self) -> None:
        """End the connection, and all that waits for it. Cancelled, it gives way: whoever ends us ends our children."""
        self.task.cancel()
        try:
            await asyncio.wait([self.task])
        except asyncio.CancelledError:
            return


def _lists_of(change: Change) -> set[str]:
    return {change.kind} & set(KINDS)


def last_words(problem: ClientError) -> str:
    """What a server last printed, for a model to read."""
    return f"\nit last said:\n{problem.said[-SAID_CHARACTERS:]}" if problem.said else ""


def in_time(call: Any) -> float:
    """How long a call may wait for a server: so that it is told why there is none before its own time is up."""
    left: float = call.deadline - monotonic()
    return min(CALL_SECONDS, 0.8 * left)
