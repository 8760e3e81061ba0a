"""The bus of a SQLite file, as one process sees it: messages in a table, read when a nudge says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, final

from longshore.stores.listeners import Listeners
from longshore.stores.names import to_text
from longshore.stores.nudges import Nudges
from longshore.stores.tables import Tables


@final
class Mailbox:
    """`start` is called on the loop, the rest on the committer's thread."""

    def __init__(self, folder: str, listeners: Listeners) -> None:
        self.started = False
        self._nudges = Nudges(folder)
        self._listeners = listeners
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last = 0

    def start(self, newest: int) -> None:
        """Hear what is posted after this message. Later calls change nothing: one mailbox serves all topics."""
        self._loop = asyncio.get_running_loop()
        if not self.started:
            self._last = newest
            self.started = True  # last: from here on the thread reads

    def open(self) -> int | None:
        """Open for nudges, again if need be; the descriptor to wait on, if there can be one."""
        return self._nudges.open()

    def lost(self) -> bool:
        return self._nudges.lost()

    def drain(self) -> None:
        self._nudges.drain()

    def rewind(self, newest: int) -> None:
        """The file was opened anew, and may be another one, whose ids are lower."""
        if newest < self._last:
            self._last = newest
            self._tell_loop(self._listeners.miss)

    def collect(self, tables: Tables) -> None:
        """Hand what is new to the loop. For one that stood still some of it is deleted already, or all: say so."""
        newest = tables.newest()  # before the messages: what comes in between is among those
        while found := tables.messages(self._last):
            if found[0][0] != self._last + 1:
                self._tell_loop(self._listeners.miss)
            self._last = found[-1][0]
            messages = [(to_text(topic), body) for _, topic, body in found]
            self._tell_loop(self._listeners.hand_out, messages)
        if self._last < newest:
            self._last = newest
            self._tell_loop(self._listeners.miss)

    def _tell_loop(self, hear: Callable[..., None], *args: Any) -> None:
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(hear, *args)
        except RuntimeError:
            pass  # the loop is closed: nobody listens any more

    def tell_others(self) -> None:
        self._nudges.send()

    def shut(self) -> None:
        self._nudges.shut()

    def close(self) -> None:
        self._nudges.close()
