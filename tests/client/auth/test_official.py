"""Against the official SDK: its authorization server, its protected server."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from longshore.client import Client
from services import skip

from .conftest import login, run

OFFICIAL = Path(__file__).with_name("official.py")
SECONDS = 60.0


@pytest.fixture
def url() -> Iterator[str]:
    if find_spec("mcp") is None:
        skip("the official SDK is not installed; make setup installs it")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    child = subprocess.Popen([sys.executable, str(OFFICIAL), str(port)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + SECONDS
        while not _listens(port):
            assert child.poll() is None and time.monotonic() < deadline, "the official server did not start"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        child.terminate()
        child.wait(10)


def _listens(port: int) -> bool:
    with socket.socket() as knock:
        return knock.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("era", ["modern", "2025-11-25"])
def test_a_login_and_renewals(url: str, era: str) -> None:
    """Each call makes the server forget all access tokens, so each next one renews."""
    logins: list[str] = []

    async def work() -> list[str]:
        from .oauth_servers import follow

        async def once(url: str) -> str:
            logins.append(url)
            return await follow(url)

        async with Client(url, auth=login(redirect=once), era=era, timeout=15) as client:
            return [(await client.call_tool("hello")).text for _ in range(3)]

    assert run(work) == ["hello"] * 3
    assert len(logins) == 1
