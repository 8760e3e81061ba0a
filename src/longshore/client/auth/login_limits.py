"""How often and how many times at once tokens are requested for one server."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from copy import copy
from typing import Any, final

from msgspec import Struct

from longshore.client.tasks import name_of
from longshore.errors import AuthorizationError
from longshore.single_flight import SingleFlight

SAME = 2
"""Authorizations by one issuer for the same scopes, each because the server refused the last."""
ALL = 10
"""Authorizations for any reason that need a person: a hostile server may ask for new scopes each time."""
WINDOW_SECONDS = 600.0
CLOSE_SECONDS = 2.0
"""For a renewal to end on closing, and for a function of the caller's to react to its cancellation."""


class Spent(Struct):
    """One authorization."""

    at: float
    issuer: str
    scopes: frozenset[str]
    refused: bool
    """Whether the server refused a token that had not expired."""
    failed: str = ""
    """Why it gave no token."""


@final
class LoginBudget:
    """Limits the authorizations for one server, so that one that refuses every token causes no endless logins."""

    def __init__(self, *, needs_person: bool) -> None:
        self._limit = ALL if needs_person else None
        self._spent: deque[Spent] = deque(maxlen=4 * ALL)

    def spend(self, issuer: str, scopes: tuple[str, ...], now: float, *, refused: bool) -> None:
        """Count one authorization. Raises AuthorizationError if there are too many."""
        while self._spent and now - self._spent[0].at >= WINDOW_SECONDS:
            self._spent.popleft()
        wanted = frozenset(scopes)
        given = [each for each in self._spent if not each.failed]
        same = sum(each.refused and (each.issuer, each.scopes) == (issuer, wanted) for each in given)
        if refused and same >= SAME:
            named = f", the last with the scopes {' '.join(scopes)}" if scopes else ""
            what = f"the server still refuses after {len(given)} authorizations{named}"
            raise AuthorizationError(f"{what}; ask its operator which account or scopes it takes")
        if self._limit is not None and len(self._spent) >= self._limit:
            what = f"{len(self._spent)} logins were begun in {WINDOW_SECONDS / 60:g} minutes, so no other is now"
            last = self._spent[-1].failed or "it gave a token, and the server wanted another"
            raise AuthorizationError(f"{what}; the last: {last}")
        self._spent.append(Spent(now, issuer, wanted, refused))

    def fail(self, why: str) -> None:
        """The last authorization gave no token."""
        if self._spent:
            self._spent[-1].failed = why


@final
class SharedAuthorization:
    """One authorization at a time, which all requests await that need a token."""

    def __init__(self) -> None:
        self._flight: SingleFlight[str, None] = SingleFlight()
        self._waiting = 0
        self._must_finish = False

    @property
    def waiting(self) -> bool:
        """Whether a request waits."""
        return self._waiting > 0

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work, or wait for the work that is running."""
        await self.join(self._flight.start("", work))

    def running(self) -> asyncio.Task[None] | None:
        """The work to wait for."""
        return self._flight.running("")

    async def join(self, task: asyncio.Task[None]) -> None:
        """Wait for running work. Cancelling one waiter does not cancel it for the others."""
        self._waiting += 1
        try:
            await asyncio.shield(task)
        except AuthorizationError as problem:
            raise copy(problem) from problem.__cause__  # one exception object must not be raised twice
        except Exception as problem:  # from a function or a storage of the caller's
            raise AuthorizationError(f"the authorization broke off with {name_of(problem)}") from problem
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if task.cancelled() and not (current and current.cancelling()):
                raise AuthorizationError("the client was closed while it was being authorized") from None
            raise
        finally:
            self._waiting -= 1

    @contextmanager
    def must_finish(self) -> Generator[None]:
        """Closing waits for this part of the work: a spent refresh token without its successor is lost."""
        self._must_finish = True
        try:
            yield
        finally:
            self._must_finish = False

    async def close(self) -> bool:
        """End work that no request waits for. False: a request waits, of another client."""
        task = self.running()
        if task is not None and not self.waiting:
            if self._must_finish:
                await asyncio.wait((task,), timeout=CLOSE_SECONDS)
            if not self.waiting:  # none has come meanwhile
                task.cancel()
                await asyncio.wait((task,), timeout=CLOSE_SECONDS)
        return not self.waiting
