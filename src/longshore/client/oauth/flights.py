"""One piece of work at a time, joined by all who need its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from copy import copy
from typing import Any, final

from longshore.client.threads import name_of
from longshore.errors import AuthorizationError
from longshore.single_flight import SingleFlight

CLOSE_SECONDS = 2.0
"""How long closing waits: for what must not be lost to end, and for a caller's own function to let itself be ended."""


@final
class Flights:
    """Whoever needs a token starts a flight, or joins the one that is under way."""

    def __init__(self) -> None:
        self._flights: SingleFlight[str, None] = SingleFlight()
        self._waiting = 0
        self.precious = False
        """Whether the flight should not be broken off: it spends something, and what it gets for it is not kept yet."""

    @property
    def waiting(self) -> bool:
        """Whether somebody waits for a flight."""
        return self._waiting > 0

    async def together(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work, or wait for what is being done."""
        await self.join(self._flights.start("", work))

    def under_way(self) -> asyncio.Task[None] | None:
        """The flight to join."""
        return self._flights.running("")

    async def join(self, flight: asyncio.Task[None]) -> None:
        """Wait for it. Who stops waiting does not stop it for the others."""
        self._waiting += 1
        try:
            await asyncio.shield(flight)
        except AuthorizationError as problem:
            raise copy(problem) from problem.__cause__  # an exception that two await must not be one object
        except Exception as problem:  # a function or a storage of the caller's
            raise AuthorizationError(f"the authorization broke off with {name_of(problem)}") from problem
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if flight.cancelled() and not (task and task.cancelling()):
                raise AuthorizationError("the client was closed while it was being authorized") from None
            raise
        finally:
            self._waiting -= 1

    async def close(self) -> bool:
        """End what nobody waits for any more. False: somebody waits, another client of the same server."""
        flight = self.under_way()
        if flight is not None and not self.waiting:
            if self.precious:
                await asyncio.wait((flight,), timeout=CLOSE_SECONDS)
            if not self.waiting:  # nobody has come meanwhile
                flight.cancel()
                await asyncio.wait((flight,), timeout=CLOSE_SECONDS)
        return not self.waiting
