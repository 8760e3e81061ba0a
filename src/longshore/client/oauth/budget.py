"""How often tokens are asked for. A server that refuses every token must not have a person log in for ever."""

from __future__ import annotations

from collections import deque
from typing import final

from longshore.errors import AuthorizationError

SAME = 2
"""Authorizations by one issuer for the same scopes, each because the server refused the last. The first is no such."""
ALL = 10
"""Authorizations for whatever reason that take a person: a hostile server may invent new scopes each time."""
WINDOW_SECONDS = 600.0


@final
class Budget:
    """Counts the authorizations for one server. `personal`: they take a person, and not only a program."""

    def __init__(self, *, personal: bool) -> None:
        self._most = ALL if personal else None
        self._spent: deque[tuple[float, str, frozenset[str] | None]] = deque(maxlen=4 * ALL)

    def spend(self, issuer: str, scopes: tuple[str, ...], now: float, *, refused: bool) -> None:
        """One more, `refused` if it follows from a token that was still good. Raises AuthorizationError if too many."""
        while self._spent and now - self._spent[0][0] >= WINDOW_SECONDS:
            self._spent.popleft()
        wanted = frozenset(scopes) if refused else None
        same = sum(each[1:] == (issuer, wanted) for each in self._spent) if refused else 0
        if same >= SAME or (self._most is not None and len(self._spent) >= self._most):
            what = f"the server still refuses after {len(self._spent)} authorizations"
            named = f", the last with the scopes {' '.join(scopes)}" if scopes else ""
            raise AuthorizationError(f"{what}{named}; whoever runs it must say which account or scopes it takes")
        self._spent.append((now, issuer, wanted))
