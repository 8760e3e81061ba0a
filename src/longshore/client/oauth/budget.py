"""How often tokens are asked for. A server that refuses every token must not have a person log in for ever."""

from __future__ import annotations

from collections import deque
from typing import final

from msgspec import Struct

from longshore.errors import AuthorizationError

SAME = 2
"""Authorizations by one issuer for the same scopes, each because the server refused the last. The first is no such."""
ALL = 10
"""Authorizations for whatever reason that take a person: a hostile server may invent new scopes each time."""
WINDOW_SECONDS = 600.0


class Spent(Struct):
    """One authorization."""

    at: float
    issuer: str
    scopes: frozenset[str]
    refused: bool
    """Whether it follows from a token that was still good."""
    failed: str = ""
    """Why it gave no token."""


@final
class Budget:
    """Counts the authorizations for one server. `personal`: they take a person, and not only a program."""

    def __init__(self, *, personal: bool) -> None:
        self._most = ALL if personal else None
        self._spent: deque[Spent] = deque(maxlen=4 * ALL)

    def spend(self, issuer: str, scopes: tuple[str, ...], now: float, *, refused: bool) -> None:
        """One more, `refused` if it follows from a token that was still good. Raises AuthorizationError if too many."""
        while self._spent and now - self._spent[0].at >= WINDOW_SECONDS:
            self._spent.popleft()
        wanted = frozenset(scopes)
        given = [each for each in self._spent if not each.failed]
        same = sum(each.refused and (each.issuer, each.scopes) == (issuer, wanted) for each in given)
        if refused and same >= SAME:
            named = f", the last with the scopes {' '.join(scopes)}" if scopes else ""
            what = f"the server still refuses after {len(given)} authorizations{named}"
            raise AuthorizationError(f"{what}; whoever runs it must say which account or scopes it takes")
        if self._most is not None and len(self._spent) >= self._most:
            what = f"{len(self._spent)} logins were begun in {WINDOW_SECONDS / 60:g} minutes, so no other is now"
            last = self._spent[-1].failed or "it gave a token, and the server wanted another"
            raise AuthorizationError(f"{what}; the last: {last}")
        self._spent.append(Spent(now, issuer, wanted, refused))

    def fail(self, why: str) -> None:
        """The last gave no token."""
        if self._spent:
            self._spent[-1].failed = why
