"""Listening sockets: which addresses a host name stands for, who can reach them, and why one can't be had."""

from __future__ import annotations

import errno
import socket
from typing import Any

from longshore.addresses import is_loopback
from longshore.errors import ConfigError

TRIES = 16
"""A free port for one address may be taken on another of the same name; then the next one is tried."""

Address = tuple[socket.AddressFamily, tuple[Any, ...]]


def find_addresses(host: str, port: int) -> list[Address]:
    """What a host name stands for. `localhost` is often two addresses, and clients may use either."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is no host name"
        raise ConfigError(f"http.host: {host!r} can't be used: {reason}; 127.0.0.1 is this machine alone") from None
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def is_local(addresses: list[Address]) -> bool:
    """Whether nobody outside this machine can reach these."""
    return all(is_loopback(str(address[0])) for _, address in addresses)


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets for every address of a host, on one port."""
    addresses = find_addresses(host, port)
    for left in reversed(range(TRIES)):
        try:
            return _bind_all(addresses, port)
        except OSError as problem:
            if port or problem.errno != errno.EADDRINUSE or not left:
                raise ConfigError(_why_not(host, port, problem)) from None
    raise AssertionError


def _bind_all(addresses: list[Address], port: int) -> list[socket.socket]:
    bound: list[socket.socket] = []
    at = 0
    try:
        for family, address in addresses:
            # With its protocol named: asyncio turns Nagle's algorithm off for no other, and answers would wait 40 ms.
            each = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            bound.append(each)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            each.bind((address[0], port, *address[2:]))
            port = each.getsockname()[1]
            each.listen(socket.SOMAXCONN)
            at += 1
    except OSError as problem:
        for each in bound:
            each.close()
        # A machine may know the name ::1 and yet have no IPv6.
        if problem.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) and len(addresses) > 1:
            return _bind_all(addresses[:at] + addresses[at + 1 :], port)
        raise
    return bound


def _why_not(host: str, port: int, problem: OSError) -> str:
    match problem.errno:
        case errno.EADDRINUSE:
            fix = "another program listens there; stop it, or choose another port with --port (0: any free one)"
            return f"http.port: {host}:{port} is in use: {fix}"
        case errno.EACCES:
            return f"http.port: {port} may not be used by this user; choose one from 1024 on with --port"
        case errno.EADDRNOTAVAIL:
            return f"http.host: {host} is no address of this machine; 127.0.0.1 is this machine alone, 0.0.0.0 all"
        case _:
            return f"http.host: {host}:{port} can't be listened on: {problem.strerror}"
