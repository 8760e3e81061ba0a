"""The official client (`mcp` 2.3.0), connected to a real Longshore process over stdio."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client import session as client_session
from mcp.client.stdio import stdio_client

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SERVER = f"{HERE / 'server.py'}:app"
LEGACY, MODERN = "legacy", "2026-07-28"
ERAS = (LEGACY, MODERN)
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PATIENCE = 60.0
"""Seconds that a whole conversation may take before the test fails."""


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    async def bounded() -> Any:
        with anyio.fail_after(PATIENCE):
            return await main()

    return anyio.run(bounded)


def command(target: str = SERVER) -> list[str]:
    return [sys.executable, "-m", "longshore", "serve", target]


@asynccontextmanager
async def connect(
    mode: str = "auto",
    target: str = SERVER,
    *,
    argv: Sequence[str] = (),
    env: dict[str, str] | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """A client of a process of its own: of a target, or of another command.

    `mode` is an era, or a handshake revision that the client shall offer.
    """
    with TemporaryFile("w+") as stderr, pytest.MonkeyPatch.context() as patch:
        if mode in HANDSHAKES:
            patch.setattr(client_session, "LATEST_HANDSHAKE_VERSION", mode)  # it offers no other
            mode = LEGACY
        program, *args = argv or command(target)
        transport = stdio_client(StdioServerParameters(command=program, args=args, env=env), errlog=stderr)
        async with Client(transport, mode=mode, read_timeout_seconds=PATIENCE, **options) as client:
            yield client


def text(result: Any) -> str:
    assert not result.is_error, result
    return "".join(block.text for block in result.content)


def failed(result: Any) -> str:
    assert result.is_error, result
    return "".join(block.text for block in result.content)
