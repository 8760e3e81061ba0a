"""Real server processes, each in a folder of its own, none of which outlives its test."""

from __future__ import annotations

import os
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .peer import LONGSHORE, Peer, encode


class Workshop:
    """A folder with a server in it, and the processes that were started there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".git").mkdir()  # the search for longshore.toml ends here
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("LONGSHORE_")}
        self.env |= {"HOME": str(folder / "home"), "PYTHONWARNINGS": "error", "PYTHONPATH": ""}
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "PYTHONUNBUFFERED"):
            self.env.pop(name, None)
        self.peers: list[Peer] = []

    def write(self, source: str, name: str = "server.py") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
        return path

    def spawn(self, *argv: str, **streams: Any) -> Peer:
        peer = Peer(argv, self.folder, self.env, **streams)
        self.peers.append(peer)
        return peer

    def serve(self, source: str | None = None, *options: str, **streams: Any) -> Peer:
        """`longshore serve server.py`, or the built-in server."""
        target = [] if source is None else [str(self.write(source))]
        return self.spawn(*LONGSHORE, "serve", *target, *options, **streams)

    def run(self, argv: list[str], *messages: Any, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        """Like `echo … | longshore serve`: all input at once, then the end."""
        given = encode(*messages) if data is None else data
        return subprocess.run(argv, cwd=self.folder, env=self.env, input=given, capture_output=True, timeout=30)


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    made = Workshop(tmp_path)
    yield made
    for peer in made.peers:
        peer.kill()
