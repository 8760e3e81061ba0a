"""Supervises the connection to one mounted server: connects, reads its lists, and reconnects when it was lost.

The supervisor is one task on the loop that the calls run on, and the only one that connects: so a server that fails at
once is not started again and again. The end of the loop cancels it, and then it closes the connection: a child process
ends with us. A call to a lost server wakes it, waits for a limited time, and fails with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from time import monotonic
from typing import Literal, final

from longshore.backoff import Backoff
from longshore.client.client import Client
from longshore.errors import BadAnswer, ClientError, ConnectionLost, ToolError
from longshore.protocol.revisions import MODERN

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

TakeLists = Callable[[Client, set[str]], Awaitable[None]]
Group = frozenset[str]


@final
class MountSupervisor:
    """Connects to a mounted server.

    `take_lists` takes over its lists; `log` reports a problem; `on_updated` gets changed resources.
    """

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
        self.resources = ResourceWatches(client, on_updated, lambda text: log("notice", text))
        self.state: State = "starting"
        self.problem: ClientError | None = None
        self.loop = asyncio.get_running_loop()
        self.since = monotonic()
        self._pending_until = self.loop.time() + FIRST_LIST_SECONDS
        self._take_lists, self._log = take_lists, log
        self._failures = 0
        """Connections that failed or were lost since one was stable."""
        self._failed_starts = 0
        self._waiting = 0
        self._started = 0.0
        self._due = 0.0
        self._listed_at = 0.0
        self._steady: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self.task = self.loop.create_task(self._run())

    @property
    def alive(self) -> bool:
        """Whether it still runs, on an open loop."""
        return not self.task.done() and not self.loop.is_closed()

    @property
    def is_ready(self) -> bool:
        return self.state == "ready" and self.client.connected

    @property
    def pending(self) -> bool:
        """Whether a list should still wait for the server's first answer."""
        return self.state == "starting" and self.loop.time() < self._pending_until

    # -- for calls

    async def ready(self, seconds: float) -> Client:
        """The client, once the server is connected. Raises ToolError with the reason of a failure."""
        if self._waiting >= WAITING and not self.is_ready:
            raise ToolError(f"{self.absence()}\n{WAITING} calls wait for it already")
        if self.problem is not None:
            seconds = min(seconds, AGAIN_SECONDS)
        failures, end = self._failed_starts, self.loop.time() + seconds
        self._waiting += 1
        try:
            while not self.is_ready:
                self._wanted.set()  # the next attempt starts as soon as possible
                if self._failed_starts > failures or not await self._wait_change(end):
                    raise ToolError(self.absence())
        finally:
            self._waiting -= 1
        return self.client

    async def wait_listed(self) -> None:
        """Wait while it is pending."""
        while self.pending and await self._wait_change(self._pending_until):
            pass

    async def _wait_change(self, end: float) -> bool:
        """Wait until the state has changed. False: it did not within the time."""
        try:
            async with asyncio.timeout_at(end):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def reason(self) -> str:
        """The reason why the server can't be used: the same text for models, REST and the command line."""
        seconds = monotonic() - self.since
        if self.problem is None:
            return f"mounted server {self.prefix!r} has not answered yet: it was started {seconds:.0f} s ago"
        return f"mounted server {self.prefix!r} has been down for {seconds:.0f} s: {self.problem.what}"

    def absence(self) -> str:
        """The reason, what happens next, and the end of the server's stderr."""
        if self.problem is None:
            return f"{self.reason()}; try again later"
        later = self._due - monotonic()
        again = f"it is tried again in {later:.0f} s" if later > 0.5 else "it is being started again"
        return f"{self.reason()}; {again}{stderr_of(self.problem)}"

    # -- the task

    async def _run(self) -> None:
        try:
            while True:
                self._started = monotonic()
                try:
                    await self._follow()
                except ClientError as problem:
                    self._on_failure(problem)
                except Exception as problem:  # an error of ours must not end the mount silently
                    self._on_failure(BadAnswer(f"its messages could not be handled: {problem!r}"))
                await self.client.close()
                await self._pause()
        finally:
            self.resources.stop()
            self._stop_timer()
            await self.client.close()

    async def _follow(self) -> None:
        """Connect, and take over the server's lists as they change, until the connection is lost.

        In the handshake era a server may report all changes without a request, and can't say how long a list is valid.
        The lists of a stateless server that does not report changes are read again at intervals.
        """
        client = self.client
        await client.open()
        if not client.connected:
            raise ConnectionLost("the connection was lost at once", self.prefix)
        server = client.server
        has = [kind for kind in KINDS if server.can(kind)]
        reported = [kind for kind in has if server.revision not in MODERN or server.can(kind, "listChanged")]
        silent = set(has) - set(reported)
        async with AsyncExitStack() as watching:
            changes = loss = await watching.enter_async_context(client.watch())
            try:
                async with asyncio.timeout(SUBSCRIBE_SECONDS):
                    watch = client.watch(**dict.fromkeys(reported, True))  # type: ignore[arg-type]
                    changes = await watching.enter_async_context(watch)
            except (ClientError, TimeoutError) as problem:
                self._on_no_changes(problem)
                silent.update(reported)
            await self._list(set(KINDS))
            while True:
                try:
                    async with asyncio.timeout_at(self._expiry(silent)):
                        change = await anext(changes)
                except ClientError as problem:
                    self._on_no_changes(problem)
                    changes = loss
                    silent.update(reported)
                    await self._list(silent)
                except TimeoutError:
                    await self._list(silent)
                else:
                    quiet = self._listed_at + LIST_PAUSE - self.loop.time()
                    await asyncio.sleep(max(QUIET_SECONDS, quiet))
                    await self._list({change.kind} & set(KINDS))

    def _on_no_changes(self, problem: Exception) -> None:
        """The server does not report changes, or stopped to. Raises the problem if it was lost."""
        if not self.client.connected:
            raise problem
        late = f"it did not acknowledge that within {SUBSCRIBE_SECONDS:g} s"
        why = problem.what if isinstance(problem, ClientError) else late
        self._log("notice", f"it does not report changes, so its lists are read again at times: {why}")

    def _expiry(self, silent: set[str]) -> float | None:
        """The time to read lists again whose changes are not reported."""
        if not silent:
            return None
        return self._listed_at + max(RELIST_SECONDS, self.client.listing.lifetime(silent))

    async def _list(self, kinds: set[str]) -> None:
        if kinds:
            try:
                async with asyncio.timeout(LIST_SECONDS):
                    await self._take_lists(self.client, kinds)
            except TimeoutError as problem:
                if isinstance(problem, ClientError):
                    raise
                raise BadAnswer(f"it took more than {LIST_SECONDS:g} s over its lists", self.prefix) from None
            self._listed_at = self.loop.time()
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
        self._due = 0.0

    # -- changes of the state

    def _on_failure(self, problem: ClientError) -> None:
        """The connection was lost or failed."""
        if self.state == "ready":
            self._stop_timer()
            again = f"the server is down again; until it runs for {STEADY_SECONDS:g} s, nothing more is logged"
            text = again if self._failures else "the server is down, and is started again"
            if self._failures < 2:
                self._log("warning", f"{text}: {problem}")
        else:
            self._failed_starts += 1
            if self._failures == 0:
                self._log("warning", f"the server can't be reached: {problem}")
        self._failures += 1
        self._set_state("absent", problem)

    def _on_ready(self) -> None:
        seconds = monotonic() - self.since
        if self.problem is not None and self._failures == 1:
            self._log("notice", f"the server is back after {seconds:.1f} s")
        self._wanted.clear()
        self._set_state("ready", None)
        self._steady = self.loop.call_later(STEADY_SECONDS, self._on_steady)
        self.resources.restart()

    def _on_steady(self) -> None:
        if self._failures > 1:
            self._log("notice", f"the server is back, and has run for {STEADY_SECONDS:g} s")
        self._failures = 0

    def _stop_timer(self) -> None:
        if self._steady is not None:
            self._steady.cancel()
            self._steady = None

    def _set_state(self, state: State, problem: ClientError | None) -> None:
        if state == "ready" or self.state == "ready":
            self.since = monotonic()
        self.state, self.problem = state, problem
        self._changed.set()
        self._changed = asyncio.Event()

    async def stop(self) -> None:
        """End the connection, and all waits for it.

        Returns if it is cancelled: the end of our process ends the children.
        """
        self.task.cancel()
        try:
            await asyncio.wait([self.task])
        except asyncio.CancelledError:
            return


def stderr_of(problem: ClientError) -> str:
    """The end of a server's stderr, for a model to read."""
    return f"\nit last said:\n{problem.said[-STDERR_CHARACTERS:]}" if problem.said else ""


@final
class ResourceWatches:
    """Watches the resources of a mounted server that our clients watch.

    A server of the handshake era is subscribed to for each of them, so one that it refuses affects no other. A
    stateless server has one stream for all.
    """

    def __init__(self, client: Client, on_updated: Callable[[str], None], note: Callable[[str], None]) -> None:
        self._client, self._on_updated, self._note = client, on_updated, note
        self._loop = asyncio.get_running_loop()
        self._uris: Group = frozenset()
        self._tasks: dict[Group, asyncio.Task[None]] = {}
        self._answered: set[Group] = set()
        """The groups that the server reports, or refuses to."""
        self._restarted = False

    def watch(self, uris: Group) -> None:
        """Watch these resources from now on."""
        if uris != self._uris:
            self._uris = uris
            self._update()

    def restart(self) -> None:
        """Watch on a new connection. Changes since the last one are unknown, so all count as changed."""
        self.stop()
        if self._restarted:
            for uri in sorted(self._uris):
                self._on_updated(uri)
        self._restarted = True
        self._update()

    def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._answered.clear()

    def _update(self) -> None:
        """Begin the requested subscriptions; end the others once the new ones have begun."""
        client = self._client
        wanted: set[Group] = set()
        if self._uris and client.connected and client.server.can("resources", "subscribe"):
            uris = sorted(self._uris)[:FOLLOWED]
            one_stream = client.server.revision in MODERN
            wanted = {frozenset(uris)} if one_stream else {frozenset((uri,)) for uri in uris}
        for group in wanted.difference(self._tasks):
            self._tasks[group] = self._loop.create_task(self._watch(group))
        if wanted <= self._answered:
            for group in self._tasks.keys() - wanted:
                self._answered.discard(group)
                self._tasks.pop(group).cancel()

    async def _watch(self, group: Group) -> None:
        try:
            async with self._client.watch(uris=sorted(group)) as changes:
                self._answered.add(group)
                self._update()
                async for change in changes:
                    if change.uri is not None:
                        self._on_updated(change.uri)
        except ClientError as problem:
            if self._client.connected:  # otherwise they are watched again after the reconnection
                self._answered.add(group)
                more = f" and {len(group) - 1} more" if len(group) > 1 else ""
                self._note(f"changes of {min(group)[:200]!r}{more} are not reported: {problem.what[:200]}")
                self._update()
