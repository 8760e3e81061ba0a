"""Reaching a host: its addresses one after the other, for the first of them may be one that never answers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import lru_cache
from socket import SOCK_STREAM
from typing import TYPE_CHECKING, Final, TypeAlias

from longshore.client.http.address import Address
from longshore.client.http.connection import Connection
from longshore.client.http.exchange import Unreachable

if TYPE_CHECKING:
    from ssl import SSLContext

_NEXT_SECONDS: Final = 0.25
"""Before the next address is tried beside the one that has not answered yet (RFC 8305)."""


Allow: TypeAlias = Callable[[str], bool] | None
"""Whether a connection may be made to an address. None: to any."""


class NotAllowed(Unreachable):
    """The name of a host stands for no address that we may go to."""


async def reach(make: Callable[[], Connection], address: Address, seconds: float, allow: Allow = None) -> Connection:
    """A connection to the first address that takes one. The caller bounds it; `seconds` are shared where they must be.

    With `allow`, only to an address that it allows, and to the very one: a name that is looked up twice may stand for
    something else the second time. Raises OSError, TimeoutError, NotAllowed.
    """
    loop = asyncio.get_running_loop()
    host, port, tls = address.host, address.port, _tls(address)
    if allow is None and isinstance(loop, asyncio.BaseEventLoop):
        _, connection = await loop.create_connection(make, host, port, ssl=tls, happy_eyeballs_delay=_NEXT_SECONDS)
        return connection
    return await _one_by_one(loop, make, address, seconds, allow)  # uvloop, or it matters to which


async def _one_by_one(
    loop: asyncio.AbstractEventLoop, make: Callable[[], Connection], address: Address, seconds: float, allow: Allow
) -> Connection:
    """For a loop that does not try several at once: each address has its share of the time."""
    found = await loop.getaddrinfo(address.host, address.port, type=SOCK_STREAM)
    named = list(dict.fromkeys(str(each[4][0]) for each in found))
    hosts = [each for each in named if allow is None or allow(each)]
    if named and not hosts:
        raise NotAllowed(f"the name {address.host!r} stands for {named[0]}")
    tls = _tls(address)
    name = None if tls is None else address.host
    problem: OSError = OSError("it has no address")
    for host in hosts:
        try:
            async with asyncio.timeout(seconds / len(hosts)):
                _, connection = await loop.create_connection(make, host, address.port, ssl=tls, server_hostname=name)
                return connection
        except OSError as failed:  # TimeoutError is one
            problem = failed
    raise problem


def _tls(address: Address) -> SSLContext | None:
    if address.scheme != "https":
        return None
    return _trusting(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=8)
def _trusting(file: str | None, folder: str | None) -> SSLContext:  # noqa: ARG001 - the system's library reads them
    """Trusts what the system does. It takes long to make and is the same for all who trust the same."""
    import ssl

    return ssl.create_default_context()
