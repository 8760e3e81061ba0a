"""The other side of a request: which revision it speaks, what it can do, who it says it is."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from longshore.protocol.revisions import Revision


class Peer(Struct, frozen=True, gc=False):
    """A client as one request shows it. `client` is a label for logs and display, never a ground for a decision."""

    revision: Revision
    capabilities: dict[str, Any]
    client: dict[str, Any]
    log_level: int | None = None
    """The lowest rank of log messages that it wants, or None for none at all."""

    def can(self, *path: str) -> bool:
        """Whether a capability was declared, e.g. `can("elicitation", "url")`."""
        here: Any = self.capabilities
        for step in path:
            if not isinstance(here, dict) or step not in here:
                return False
            here = here[step]  # pyright: ignore[reportUnknownVariableType]
        return True


class Principal(Struct, frozen=True):
    """Who a request acts for. On stdio it is the person who started the process.

    It holds no token: what a client showed us is for us alone and is never passed on.
    """

    name: str = "local"
    scopes: frozenset[str] | None = None
    """What it may do; None: everything."""

    def lacks(self, needed: frozenset[str]) -> frozenset[str]:
        """The scopes that it would need and does not have."""
        return frozenset() if self.scopes is None else needed - self.scopes
