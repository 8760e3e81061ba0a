"""Supervises the connection to one mounted server: connects, reads its lists, and reconnects when it was lost.

The supervisor is one task on the loop that the calls run on, and the only one that connects: so a server that fails at
once is not started again and again. The end of the loop cancels it, and then it closes the connection: a child process
ends with us. A call that finds the server down wakes it, waits a moment, and fails with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import AsyncExitStack, contextmanager
from time import monotonic
from typing import Any, Literal, final

from longshore.client.client import Client
from longshore.client.models import Change
from longshore.client.watches import Watch
from longshore.errors import BadAnswer, ClientError, ConnectionLost, ToolError
from longshore.protocol.revisions import MODERN
from longshore.retry import Backoff

State = Literal["starting", "ready", "absent"]

BACKOFF = Backoff(1.0, 30.0)
"""Pauses between starts, after a first retry at once. A call that needs the server cuts them short."""
LEAST_PAUSE = 1.0
"""Between any two starts, also if calls need the server."""
STEADY_SECONDS = 10.0
"""After this time a server counts as stable: the next loss is a first one again."""
CALL_SECONDS = 10.0
"""How long a call waits for a server that is down."""
AGAIN_SECONDS = 3.0
"""How long a call waits for a server that was lost: it may not come back at all."""
WAITING = 64
"""Calls that wait for one server. They hold no places in the executor, but their arguments take memory."""
FIRST_LIST_SECONDS = 3.0
"""How long a list waits for a server that was just started. Many clients list only once."""
LIST_SECONDS = 60.0
"""For one round of a server's lists."""
QUIET_SECONDS = 0.05
"""Changes within this time are handled together."""
LIST_PAUSE = 0.5
"""Between two rounds of lists, for a server that changes them all the time."""
RELIST_SECONDS = 30.0
"""A server that does not report changes is listed again when its lists expire, but no more often than this."""
SUBSCRIBE_SECONDS = 5.0
"""For a server to acknowledge a subscription. Then it is used without: calls wait for it."""
STDERR_CHARACTERS = 1000
KINDS = ("tools", "resources", "prompts")
FOLLOWED = 1000
"""Resources of one server that are watched there. Each caller of ours may watch as many."""
STREAMS = 32
"""Streams to a stateless server that refuses one stream for all resources."""

TakeLists = Callable[[Client, set[str]], Awaitable[None]]
Group = frozenset[str]


class NoChanges(ClientError):
    """The server is there, but does not report changes, or not any more."""


@final
class MountSupervisor:
    """`take_lists` takes over what the server offers; `log` reports a problem; `on_updated` gets changed resources."""

    def __init__(
        self,
        prefix: str,
        client: Client,
        take_lists: TakeLists,
        log: Callable[[str, str], None],
        on_updated: Callable[[str], None],
    ) -> None:
        self.prefix = prefix
        self.client = client
        self.resources = ResourceWatches(client, on_updated, lambda text: self._log("notice", text))
        self.state: State = "starting"
        self.problem: ClientError | None = None
        self.loop = asyncio.get_running_loop()
        self.since = monotonic()
        self._pending_until = self.loop.time() + FIRST_LIST_SECONDS
        self._take_lists, self._report = take_lists, log
        self._failures = 0
        """Connections that failed or were lost since one was stable."""
        self._failed_starts = 0
        self._waiting = 0
        self._started = 0.0
        self._due = 0.0
        self._listed_at = 0.0
        self._connected = False
        """Whether there is a connection that can be lost, rather than one that is being made."""
        self._was_ready = False
        """Whether the server was ready on this connection."""
        self._closing: asyncio.Task[None] | None = None
        self._steady: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self.task = self.loop.create_task(self._run())

    @property
    def alive(self) -> bool:
        """Whether it still works, on a loop that is not closed."""
        return not self.task.done() and not self.loop.is_closed()

    # -- for calls

    async def ready(self, seconds: float = CALL_SECONDS) -> Client:
        """The client, once the server is there. Raises ToolError with the reason why it is not."""
        if self.is_ready:
            return self.client
        if self._waiting >= WAITING:
            raise ToolError(f"{self.absence()}\n{WAITING} calls wait for it already")
        self._waiting += 1
        try:
            await self._wait_ready(seconds)
        finally:
            self._waiting -= 1
        return self.client

    async def _wait_ready(self, seconds: float) -> None:
        if self.problem is not None:
            seconds = min(seconds, AGAIN_SECONDS)
        failures, end = self._failed_starts, self.loop.time() + seconds
        while not self.is_ready:
            self._wanted.set()  # the next attempt is made as soon as possible
            if self._failed_starts > failures or not await self._wait_change(end):
                raise ToolError(self.absence())

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"

    @property
    def pending(self) -> bool:
        """Whether a list should still wait for the server's first answer."""
        return self.state == "starting" and self.problem is None and self.loop.time() < self._pending_until

    async def wait_listed(self) -> None:
        """Wait while it is pending."""
        while self.pending and await self._wait_change(self._pending_until):
            pass

    async def _wait_change(self, end: float) -> bool:
        """Wait until the state has changed. False: it did not, in that time."""
        try:
            async with asyncio.timeout_at(end):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def reason(self) -> str:
        """Why the server can't be used: the one text for models, REST and the command line."""
        seconds = monotonic() - self.since
        if self.problem is None:
            return f"mounted server {self.prefix!r} has not answered yet: it was started {seconds:.0f} s ago"
        return f"mounted server {self.prefix!r} has been down for {seconds:.0f} s: {self.problem.what}"

    def absence(self) -> str:
        """The reason, what happens next, and the end of the server's stderr."""
        if self.problem is None:
            return f"{self.reason()}; try again later"
        later = self._due - monotonic() if self.state == "absent" else 0.0
        again = f"it is tried again in {later:.0f} s" if later > 0.5 else "it is being started again"
        return f"{self.reason()}; {again}{stderr_of(self.problem)}"

    # -- the task

    async def _run(self) -> None:
        try:
            while True:
                self._started, self._was_ready = monotonic(), False
                try:
                    await self._connect()
                except ClientError as problem:
                    self._on_failure(problem)
                except Exception as problem:  # a bug of ours must not end the mount silently
                    self._on_failure(BadAnswer(f"its messages could not be handled: {problem!r}"))
                self._connected = False
                await self.client.close()
                await self._pause()
        finally:
            self._connected = False
            self.resources.stop()
            self._stop_timer()
            await self.client.close()

    async def _connect(self) -> None:
        """Connect, and follow the server's lists until the connection is lost."""
        client = self.client
        await client.open()
        self._connected = True
        if not client.connected:
            raise ConnectionLost("the connection was lost at once", self.prefix)
        reported, silent = self._kinds(client)
        try:
            await self._follow(reported, silent)
        except NoChanges as problem:
            self._log("notice", f"it does not report changes, so its lists are read again at times: {problem.what}")
            await self._follow([], silent.union(reported))

    async def _follow(self, reported: list[str], silent: set[str]) -> None:
        """Take over the lists as they change. Raises NoChanges."""
        async with AsyncExitStack() as watching:
            watch = self.client.watch(**dict.fromkeys(reported, True))  # type: ignore[arg-type]
            changes = await self._subscribe(watching.enter_async_context(watch))
            await self._list(set(KINDS))
            while True:
                change = await self._next(changes, self._expiry(silent))
                if change is None:
                    await self._list(silent)
                    continue
                quiet = self._listed_at + LIST_PAUSE - self.loop.time()
                await asyncio.sleep(max(QUIET_SECONDS, quiet))
                await self._list({change.kind} & set(KINDS))

    async def _subscribe(self, watching: Awaitable[Watch]) -> Watch:
        try:
            async with asyncio.timeout(SUBSCRIBE_SECONDS):
                with self._no_changes():
                    return await watching
        except TimeoutError:
            raise NoChanges(f"it did not acknowledge that within {SUBSCRIBE_SECONDS:g} s", self.prefix) from None

    @contextmanager
    def _no_changes(self) -> Generator[None]:
        """Turn an error of a subscription into NoChanges, unless the connection was lost."""
        try:
            yield
        except ClientError as problem:
            if not self.client.connected:
                raise
            raise NoChanges(problem.what, self.prefix) from problem

    def _kinds(self, client: Client) -> tuple[list[str], set[str]]:
        """The lists whose changes the server reports, and the others.

        In the handshake era a server may report all, unasked, and can't say how long a list is valid.
        """
        has = [kind for kind in KINDS if client.server.can(kind)]
        if client.server.revision not in MODERN:
            return has, set()
        reported = [kind for kind in has if client.server.can(kind, "listChanged")]
        return reported, set(has) - set(reported)

    def _expiry(self, silent: set[str]) -> float | None:
        """When to read the lists again whose changes are not reported."""
        if not silent:
            return None
        return self._listed_at + max(RELIST_SECONDS, self.client.listing.lifetime(silent))

    async def _next(self, changes: Any, end: float | None) -> Change | None:
        """The next change. None: the time is up."""
        clock = asyncio.timeout_at(end)
        try:
            async with clock:
                with self._no_changes():
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
                    await self._take_lists(self.client, kinds)
                self._listed_at = self.loop.time()
            except TimeoutError as problem:
                if isinstance(problem, ClientError):
                    raise
                raise BadAnswer(f"it took more than {LIST_SECONDS:g} s over its lists", self.prefix) from None
        if self.state != "ready" and self.client.connected:
            self._on_ready()

    async def _pause(self) -> None:
        """Wait before the next attempt: longer each time, but for a call no longer than LEAST_PAUSE."""
        now = monotonic()
        least = max(self._started + LEAST_PAUSE - now, 0.0)
        seconds = max(BACKOFF.pause(self._failures - 1), least)
        self._due = now + seconds
        await asyncio.sleep(least)
        try:
            async with asyncio.timeout(seconds - least):
                await self._wanted.wait()
        except TimeoutError:
            pass
        self._wanted.clear()

    # -- changes of the state

    def on_lost(self, problem: ClientError) -> None:
        """The connection was lost. Closing the client ends `_follow`, and then it is made again."""
        if self._connected:
            self._connected = False
            self._closing = self.loop.create_task(self.client.close())
            if self.is_ready:
                self._on_down(problem)

    def _on_down(self, problem: ClientError) -> None:
        self._stop_timer()
        self._set_state("starting", problem)
        if self._failures == 0:
            self._log("warning", f"the server is down, and is started again: {problem}")
        elif self._failures == 1:
            text = f"the server is down again; until it runs for {STEADY_SECONDS:g} s, nothing more is logged"
            self._log("warning", f"{text}: {problem}")

    def _on_failure(self, problem: ClientError) -> None:
        """A connection has ended, or could not be made."""
        if self.is_ready:
            self._on_down(problem)
        if self._was_ready:
            problem = self.problem or problem  # the reason of the loss says more than that it was closed
        else:
            self._failed_starts += 1
            if self._failures == 0:
                self._log("warning", f"the server can't be reached: {problem}")
        self._failures += 1
        self._set_state("absent", problem)

    def _on_ready(self) -> None:
        was_down = self.problem is not None
        seconds = monotonic() - self.since
        self._was_ready = True
        self._wanted.clear()
        self._set_state("ready", None)
        self._steady = self.loop.call_later(STEADY_SECONDS, self._on_steady)
        self.resources.restart()
        if was_down and self._failures == 1:
            self._log("notice", f"the server is back after {seconds:.1f} s")

    def _on_steady(self) -> None:
        if self._failures > 1:
            self._log("notice", f"the server is back, and has run for {STEADY_SECONDS:g} s")
        self._failures = 0

    def _stop_timer(self) -> None:
        if self._steady is not None:
            self._steady.cancel()
            self._steady = None

    def _log(self, level: str, text: str) -> None:
        self._report(level, f"mounted {self.prefix}: {text}")

    def _set_state(self, state: State, problem: ClientError | None) -> None:
        if state == "ready" or self.state == "ready":
            self.since = monotonic()
        self.state, self.problem = state, problem
        self._changed.set()
        self._changed = asyncio.Event()

    async def stop(self) -> None:
        """End the connection, and everything that waits for it. Cancelled, it returns: our end ends the children."""
        self.task.cancel()
        try:
            await asyncio.wait([self.task])
        except asyncio.CancelledError:
            return


def stderr_of(problem: ClientError) -> str:
    """The end of a server's stderr, for a model to read."""
    return f"\nit last said:\n{problem.said[-STDERR_CHARACTERS:]}" if problem.said else ""


def seconds_for(call: Any) -> float:
    """How long a call may wait for a server: it should fail with the reason before its own time is up."""
    left: float = call.deadline - monotonic()
    return min(CALL_SECONDS, 0.8 * left)


@final
class ResourceWatches:
    """Watches the resources of a mounted server that clients of ours watch.

    A server of the handshake era is subscribed to for each of them, so one that it refuses affects no other. A
    stateless server has one stream for all; only if it refuses that has each its own.
    """

    def __init__(self, client: Client, on_updated: Callable[[str], None], note: Callable[[str], None]) -> None:
        self._client, self._on_updated, self._note = client, on_updated, note
        self._loop = asyncio.get_running_loop()
        self._uris: Group = frozenset()
        self._refused: set[Group] = set()
        self._tasks: dict[Group, asyncio.Task[None]] = {}
        self._begun: set[Group] = set()
        self._restarted = False

    def watch(self, uris: Group) -> None:
        """Watch these resources from now on."""
        if uris != self._uris:
            self._uris = uris
            self._update()

    def restart(self) -> None:
        """Watch on a new connection. Changes since the last one are unknown, so all count as changed."""
        self.stop()
        self._refused.clear()
        if self._restarted:
            for uri in sorted(self._uris):
                self._on_updated(uri)
        self._restarted = True
        self._update()

    def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._begun.clear()

    def _update(self) -> None:
        """Begin the wanted subscriptions; end the others once the new ones have begun."""
        wanted = self._wanted()
        for group in wanted:
            if group not in self._tasks:
                self._tasks[group] = self._loop.create_task(self._watch(group))
        if all(group in self._begun for group in wanted):
            for group in [each for each in self._tasks if each not in wanted]:
                self._begun.discard(group)
                self._tasks.pop(group).cancel()

    def _wanted(self) -> list[Group]:
        client = self._client
        if not self._uris or not client.connected or not client.server.can("resources", "subscribe"):
            return []
        uris = sorted(self._uris)[:FOLLOWED]
        whole = frozenset(uris)
        if client.server.revision in MODERN:
            if whole not in self._refused:
                return [whole]
            uris = uris[:STREAMS]
        return [group for group in (frozenset((uri,)) for uri in uris) if group not in self._refused]

    async def _watch(self, group: Group) -> None:
        try:
            async with self._client.watch(uris=sorted(group)) as changes:
                self._begun.add(group)
                self._update()
                async for change in changes:
                    if change.uri is not None:
                        self._on_updated(change.uri)
        except ClientError as problem:
            self._on_refused(group, problem)

    def _on_refused(self, group: Group, problem: ClientError) -> None:
        """The server refuses these. If it was lost, they are watched again when it is back."""
        if not self._client.connected or self._tasks.get(group) is not asyncio.current_task():
            return
        self._refused.add(group)
        self._begun.discard(group)
        del self._tasks[group]
        if len(group) == 1:
            self._note(f"changes of {min(group)[:200]!r} are not reported: {problem.what[:200]}")
        self._update()
