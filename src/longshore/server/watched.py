"""The resources that clients of this process watch, and the toolsets that hear of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from longshore.registry.catalog import Catalog
    from longshore.registry.toolset import ToolsetHandle
    from longshore.registry.watch_hooks import Spawn


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
