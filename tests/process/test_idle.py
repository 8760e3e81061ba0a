"""A server that has nothing to do sleeps: seen by when its threads were put to sleep again."""

from __future__ import annotations

from collections.abc import Iterator

from waiting import times_woken, wait_for_rest

from .conftest import Workshop
from .peer import Peer

WINDOW_SECONDS = 11.0
LEAST_APART = 9.0
"""Seconds: a tick of ten, of which the first may come late on a busy machine."""

ECHOES = """
    from longshore import Server
    app = Server("echoes")

    @app.tool(run="inline")
    def inline(text: str) -> str:
        return text

    @app.tool(name="async")
    async def later(text: str) -> str:
        return text

    @app.tool
    def thread(text: str) -> str:
        return text
"""


def served(workshop: Workshop) -> Iterator[tuple[str, Peer]]:
    """Servers that have answered a call of each kind, and one that watches a file."""
    for tool in ("inline", "async", "thread"):
        peer = workshop.serve(ECHOES)
        peer.start()
        peer.call(tool, text="x")
        yield tool, peer
    workshop.write("[server]\ntimeout = 5\n", "longshore.toml")
    peer = workshop.serve(ECHOES)
    peer.start()
    peer.call("inline", text="x")
    yield "with a file", peer


def test_an_idle_server_wakes_at_most_once_in_ten_seconds(workshop: Workshop) -> None:
    peers = dict(served(workshop))
    pids = [peer.pid for peer in peers.values()]
    wait_for_rest(pids)
    woken = times_woken(pids, WINDOW_SECONDS)
    for name, peer in peers.items():
        times = woken[peer.pid]
        assert len(times) < 2 or times[1] - times[0] >= LEAST_APART, (name, times)
