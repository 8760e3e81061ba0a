"""The resources that clients of this process watch, and the hooks by which toolsets learn of it."""

from __future__ import annotations

from asyncio import Future, Task, shield, wait
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, final

from longshore.registry.toolset import begin_call

if TYPE_CHECKING:
    from longshore.registry.catalog import Catalog
    from longshore.registry.toolset import ToolsetHandle

Spawn = Callable[[Coroutine[Any, Any, None]], "Task[None]"]
"""Runs a coroutine as a task."""


@final
class WatchHooks:
    """Calls the hooks of one toolset, one at a time; for each resource `watched` and `unwatched` take turns.

    Only the difference between what is watched and what the toolset has been told counts. So a client that subscribes
    and unsubscribes faster than the hooks return can't make them queue.
    """

    def __init__(self, handle: ToolsetHandle, report: Callable[..., None]) -> None:
        self._handle, self._report = handle, report
        self._wanted: frozenset[str] = frozenset()
        self.told: set[str] = set()
        """The resources for which `watched` was the last call."""
        self._task: Task[None] | None = None
        self._call: Future[None] | None = None
        """The call that was begun last. A thread goes on if the task is cancelled."""

    def watch(self, uris: frozenset[str], spawn: Spawn) -> None:
        """Take the resources that are watched from now on."""
        self._wanted = uris
        if uris ^ self.told and (self._task is None or self._task.done()):
            self._task = spawn(self._run())

    async def finish(self) -> None:
        """Call `unwatched` for everything that is still watched: the toolset is about to stop."""
        self._wanted = frozenset()
        for pending in (self._task, self._call):
            if pending is not None and not pending.done():
                await wait([pending])
        await self._run()

    async def _run(self) -> None:
        while changed := self.told ^ self._wanted:
            for uri in sorted(changed):
                await self._tell(uri)

    async def _tell(self, uri: str) -> None:
        begins, handle = uri in self._wanted, self._handle
        if begins == (uri in self.told):
            return  # it has changed back meanwhile
        (self.told.add if begins else self.told.discard)(uri)
        try:
            if begins:
                await handle.open()
            if handle.ready:  # else it could not start, so it was not told of the beginning
                toolset = handle.toolset  # which a toolset of an index has not been before it was opened
                self._call = begin_call(toolset.watched if begins else toolset.unwatched, uri)
                await shield(self._call)
        except Exception as problem:
            name = "watched" if begins else "unwatched"
            self._report("error", f"the toolset {handle.name!r} failed at {name}({uri!r:.200})", problem)


@final
class WatchedResources:
    """Tells each toolset, of which a mounted server is one, which of its resources are watched.

    `spawn` runs a coroutine on the loop, `report` is the recorder's `problem`.
    """

    def __init__(self, catalog: Catalog, spawn: Spawn, report: Callable[..., None]) -> None:
        self._catalog, self._spawn, self._report = catalog, spawn, report
        self._owners: dict[str, ToolsetHandle | None] = {}
        """The watched resources and their owners. To look all up at each watch would take too long."""

    def update(self, uris: set[str], look_up: bool = False) -> None:
        """Take all resources that are watched now. With `look_up`, known ones may have other owners than before."""
        known = self._owners
        if not look_up and uris == known.keys():
            return
        self._owners = {uri: known[uri] if uri in known and not look_up else self._owner_of(uri) for uri in uris}
        owned: dict[ToolsetHandle | None, set[str]] = {owner: set() for owner in known.values()}
        for uri, owner in self._owners.items():
            owned.setdefault(owner, set()).add(uri)
        for owner, theirs in owned.items():
            if owner is not None:
                owner.set_watched(frozenset(theirs), self._spawn, self._report)

    def _owner_of(self, uri: str) -> ToolsetHandle | None:
        found = self._catalog.find_resource(uri)
        return None if found is None else found[0].toolset
