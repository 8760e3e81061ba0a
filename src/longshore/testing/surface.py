"""Asking a server for everything that it offers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from longshore.client.client import Client
from longshore.client.sync import SyncClient
from longshore.errors import ClientError
from longshore.schema.evolution.surface import KEYS, Surface, make_surface


async def read_surface(client: Client) -> Surface:
    """Everything that a server offers, for `assert_surface`."""
    return _surface(client, *[await getattr(client, f"list_{part}")(fresh=True) for part in KEYS])


def read_surface_of(client: SyncClient) -> Surface:
    """The same of a client without await."""
    return _surface(client, *[getattr(client, f"list_{part}")(fresh=True) for part in KEYS])


def _surface(client: Client | SyncClient, *parts: Iterable[Any]) -> Surface:
    if client.left_out:
        raise ClientError("what it offers can't all be used: " + "; ".join(client.left_out), client.server.name)
    records = {name: [each.record for each in entries] for name, entries in zip(KEYS, parts, strict=True)}
    return make_surface(records, client.server.instructions)
