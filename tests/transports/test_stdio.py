"""The stdio link, driven by hand: what a whole process shows only after minutes."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing, suppress
from typing import Any

from longshore import Limits, Server
from longshore.transports.stdio import Stdio


def test_a_peer_that_falls_behind_again_and_again_is_watched_by_one_timer() -> None:
    """A timer for each time would add up, and a long transfer would be spent on timers."""
    their_end, writer = os.pipe()
    reader, their_input = os.pipe()
    os.set_blocking(their_end, False)
    link = Stdio(Server("t", limits=Limits(output_bytes=1000)).engine, reader, writer)
    with closing(link.open_loop()) as loop:
        for _ in range(20):
            link.send(bytes(3 << 20))
            assert link.congested
            while link.congested:
                with suppress(BlockingIOError):
                    while os.read(their_end, 1 << 20):
                        pass
                link._writable()
        waiting: list[Any] = loop._scheduled  # type: ignore[attr-defined]
        assert len(waiting) == 1
        asyncio.set_event_loop(None)
    for descriptor in (their_end, their_input, reader, writer, link._writer):
        os.close(descriptor)
