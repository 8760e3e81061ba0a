"""Connecting to an installed entry as its client would, by the present content of the file."""

from __future__ import annotations

import asyncio
from time import monotonic

from msgspec import Struct

from longshore.client import Client
from longshore.client.configs import ConfiguredServer
from longshore.errors import ConfigError
from longshore.install.change import Slot, read_entries

SECONDS = 30.0
"""As long as Claude Code waits."""


class VerifiedServer(Struct, frozen=True):
    """The identity and tools of a server that answered."""

    name: str
    version: str
    revision: str
    tools: int
    seconds: float


def read_back(slot: Slot) -> ConfiguredServer:
    """The entry as it is in the file now. Raises ConfigError."""
    found = read_entries(slot.client, slot.file).get(slot.name)
    if found is None:
        raise ConfigError(
            f"{slot.path} has no server {slot.name!r} any more: another program wrote it at the same time"
        )
    return ConfiguredServer(slot.name, slot.file, found)


def verify(slot: Slot) -> VerifiedServer:
    """Start or reach the server by its entry, and list its tools. Raises ConfigError and ClientError."""
    entry = read_back(slot).entry()

    async def connect() -> VerifiedServer:
        start = monotonic()
        async with Client(entry, name=slot.name, timeout=SECONDS, reconnect=False) as client:
            seconds = monotonic() - start
            server = client.server
            tools = await client.list_tools() if server.can("tools") else []
            return VerifiedServer(server.name, server.version, server.revision, len(tools), seconds)

    return asyncio.run(connect())
