"""What came of checking a token."""

from __future__ import annotations

from math import inf
from typing import final

from msgspec import Struct

from longshore.protocol.peer import Principal


class Verified(Struct, frozen=True):
    """The token is good: whose it is, from when to when we need not ask again, and when it expires, if it does.

    After `fresh` it is still taken, but checked anew meanwhile.
    """

    principal: Principal
    since: float
    until: float
    expires: float | None = None
    fresh: float = inf


class Rejected(Exception):
    """The token is no good. The text is for whoever sent it."""


class Unavailable(Exception):
    """Nobody can tell now. The text is for whoever runs the server."""


@final
class Known:
    """Tokens that were good, by their SHA-256, so that a look-up tells nothing about the bytes of any token."""

    MOST = 1000
    """A caller has one token or a few. Beyond it the oldest is forgotten, and would be checked again."""

    def __init__(self) -> None:
        self._known: dict[bytes, Verified] = {}

    def get(self, digest: bytes, now: float) -> Verified | None:
        """What is known of this token, unless it is out of date. A clock that was set back dates it too."""
        known = self._known.get(digest)
        if known is None or known.since <= now < known.until:
            return known
        del self._known[digest]
        return None

    def keep(self, digest: bytes, verified: Verified) -> None:
        self._known.pop(digest, None)
        while len(self._known) >= self.MOST:
            del self._known[next(iter(self._known))]
        self._known[digest] = verified

    def forget_expiring(self) -> None:
        """Check every token of an authorization server anew."""
        self._known = {digest: known for digest, known in self._known.items() if known.expires is None}
