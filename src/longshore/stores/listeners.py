"""Who listens to which topic in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from longshore.stores.store import MISSED, Hear, Stop


class Listeners:
    """Used on the loop only."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[object, Hear]] = {}

    def add(self, topic: str, hear: Hear) -> Stop:
        ticket = object()  # the same callable may listen twice
        self._topics.setdefault(topic, {})[ticket] = hear

        def stop() -> None:
            tickets = self._topics.get(topic, {})
            tickets.pop(ticket, None)
            if not tickets:
                self._topics.pop(topic, None)

        return stop

    def topics(self) -> list[str]:
        return list(self._topics)

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    def hand_out(self, messages: Iterable[tuple[str, bytes]]) -> None:
        """Call whoever listens now. One that fails is reported to the loop and keeps nobody else from hearing."""
        for topic, message in messages:
            tickets = self._topics.get(topic, {})
            for ticket in tuple(tickets):
                hear = tickets.get(ticket)  # an earlier one may have stopped it
                if hear is not None:
                    _call(hear, message, topic)

    def miss(self) -> None:
        """Tell everybody that messages may have been missed."""
        self.hand_out([(topic, MISSED) for topic in self.topics()])

    def clear(self) -> None:
        self._topics.clear()


def _call(hear: Hear, message: bytes, topic: str) -> None:
    try:
        hear(message)
    except Exception as error:
        context = {"message": f"a listener of {topic!r} failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
