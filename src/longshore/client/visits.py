"""Pages that a person was asked to visit, and hearing that they are done with one.

Consent is not completion: a server of 2025-11-25 that wants a page visited first says by a notice when it was, and the
request that wanted it is of no use before.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import final

import msgspec
from msgspec import Raw, Struct

from longshore.wire.codec import BROKEN

DONE = "notifications/elicitation/complete"
_RECENT = 100
"""Pages that are known to be done with: a notice may come before anybody waits for it."""


class _Notice(Struct, rename="camel"):
    elicitation_id: str


_read = msgspec.json.Decoder(_Notice).decode


@final
class Visits:
    """What one client's servers have said of visits."""

    def __init__(self) -> None:
        self._done: deque[str] = deque(maxlen=_RECENT)
        self._news = asyncio.Event()

    def hear(self, params: Raw) -> bool:
        """A notice. False: it can't be read."""
        try:
            self._done.append(_read(params).elicitation_id)
        except BROKEN:
            return False
        self._news.set()
        self._news = asyncio.Event()
        return True

    async def wait(self, pages: set[str], seconds: float | None) -> None:
        """Wait until these are done with, or for so long: servers need not tell."""
        try:
            async with asyncio.timeout(seconds):
                while not pages <= set(self._done):
                    await self._news.wait()
        except TimeoutError:
            pass
