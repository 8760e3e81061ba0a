"""A server that has nothing to do sleeps: counted by how often its threads were put to sleep again."""

from __future__ import annotations

import time
from collections.abc import Iterator

from waiting import eventually, wakeups

from .conftest import Workshop
from .peer import Peer

WINDOW_SECONDS = 5.0
MOST_WAKEUPS = 2
"""One tick of ten seconds may fall into the window; a timer of a second would wake a server five times."""

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
    for name, peer in peers.items():
        eventually(f"{name} rests", lambda peer=peer: rests(peer.pid))  # type: ignore[misc]
    before = {name: wakeups(peer.pid) for name, peer in peers.items()}
    time.sleep(WINDOW_SECONDS)
    woken = {name: wakeups(peer.pid) - before[name] for name, peer in peers.items()}
    assert max(woken.values()) <= MOST_WAKEUPS, woken


def rests(pid: int) -> bool:
    """Whether it has done what it does after its first answers."""
    before = wakeups(pid)
    time.sleep(0.4)  # longer than the quiet that such work waits for
    return wakeups(pid) == before
