"""What a server offers its callers, as one value: the same for the same server, whatever the order of declaration."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final

from longshore.client.client import Client
from longshore.client.sync import SyncClient
from longshore.errors import ClientError
from longshore.schema.kinds import is_array, is_object

Surface = dict[str, Any]

KEYS: Final = {"tools": "name", "resources": "uri", "templates": "uriTemplate", "prompts": "name"}
"""The parts, and what callers know an entry by."""


async def read_surface(client: Client) -> Surface:
    """Everything that a server offers, for `assert_surface`."""
    return _surface(client, *[await getattr(client, f"list_{part}")(fresh=True) for part in KEYS])


def read_surface_of(client: SyncClient) -> Surface:
    """The same of a client without await."""
    return _surface(client, *[getattr(client, f"list_{part}")(fresh=True) for part in KEYS])


def _surface(client: Client | SyncClient, *parts: Iterable[Any]) -> Surface:
    if client.left_out:
        raise ClientError("what it offers can't all be used: " + "; ".join(client.left_out), client.server.name)
    found: Surface = {}
    for (name, key), entries in zip(KEYS.items(), parts, strict=True):
        keyed = [(str(each.record[key]), _settled(each.record)) for each in entries]
        found[name] = [record for _, record in sorted(keyed, key=itemgetter(0))]
    found["instructions"] = client.server.instructions
    return found


def _settled(value: Any) -> Any:
    """A value in which what has no order is sorted."""
    if is_object(value):
        return {key: _sorted(each) if key == "required" else _settled(each) for key, each in value.items()}
    return [_settled(each) for each in value] if is_array(value) else value


def _sorted(required: Any) -> Any:
    if is_array(required) and all(isinstance(name, str) for name in required):
        return sorted(required)
    return _settled(required)
