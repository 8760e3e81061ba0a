"""Allowed Host and Origin headers: the protection of a local server against web pages.

A page can make a browser connect to 127.0.0.1 (DNS rebinding), but not forge these two headers. They are parsed whole
and compared exactly: prefixes, suffixes and user names have bypassed such checks elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv6Address
from typing import Any, Final, TypeAlias, final

from longshore.addresses import is_loopback_ip

Host: TypeAlias = tuple[str, int | None]
"""A name in lower case or an address, IPv6 in brackets; and the port, None if it is left out."""
Origin: TypeAlias = tuple[str, str, int | None]
"""Scheme, host and port; the port is None if it is left out and the scheme's default is unknown."""
Server: TypeAlias = tuple[str, int | None] | None
"""The local address of a connection (ASGI's `scope["server"]`). None, or without a port: a Unix socket."""

MOST_KNOWN: Final = 256
"""Accepted headers that are cached, so that most requests cost one lookup. Refused ones are not cached."""

_HostKey: TypeAlias = tuple[bytes, str, int | None]
_OriginKey: TypeAlias = tuple[bytes, bytes, str, str, int | None]

_PORTS = {"http": 80, "https": 443}
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(.+)")
_NAME_CHARS = 253
_SHOWN = 100


@final
class Hosts:
    """The hosts and origins that one server answers to.

    `allowed` are hosts with or without a port; without one, the default ports of http and https are meant. On a
    connection to loopback its own address is accepted too. `origins` are web pages from elsewhere that may call us.
    """

    def __init__(self, allowed: Iterable[str], origins: Iterable[str] = ()) -> None:
        """Raises ValueError, with the fix, for an entry that could never match."""
        self._allowed = {host for entry in allowed for host in _meant(entry)}
        self._origins = {_listed_origin(entry) for entry in origins}
        self._good_hosts: set[_HostKey] = set()
        self._good_origins: set[_OriginKey] = set()
        self._good_cors: dict[bytes, str] = {}

    def host_ok(self, raw: bytes | None, server: Server) -> bool:
        """Whether a Host header is one of ours."""
        if raw is None:
            return False
        address, port = server or ("", None)
        key = (raw, address, port)
        return key in self._good_hosts or self._check_host(key)

    def origin_ok(self, raw: bytes | None, host: bytes, scheme: str, server: Server) -> bool:
        """Whether a page of this origin may call us: our own, or a listed one. Only browsers send an origin."""
        if raw is None:
            return True
        address, port = server or ("", None)
        key = (raw, host, scheme, address, port)
        return key in self._good_origins or self._check_origin(key)

    def cors(self, raw: bytes | None) -> str | None:
        """The origin to name in the response, if it is a listed one."""
        if raw is None:
            return None
        known = self._good_cors.get(raw)
        if known is None and parse_origin(raw.decode("latin-1")) in self._origins:
            known = raw.decode("latin-1")
            _make_room(self._good_cors)
            self._good_cors[raw] = known
        return known

    @staticmethod
    def explain_host(raw: bytes | None, server: Server) -> str:
        """Why a Host header is refused, and the fix."""
        said = "a request without Host" if raw is None else f"the Host {raw[:_SHOWN].decode('latin-1')!a}"
        address, port = server or ("", None)
        own = f"use localhost:{port}, or " if port is not None and is_loopback_ip(address) else ""
        return (
            f"this server does not answer to {said}; {own}add the host to http.hosts, or set http.public_url "
            "(--public-url) to the address that clients use"
        )

    def _check_host(self, key: _HostKey) -> bool:
        raw, address, port = key
        host = parse_host(raw.decode("latin-1"))
        if host is None or not (host in self._allowed or _is_own(host, address, port)):
            return False
        _make_room(self._good_hosts)
        self._good_hosts.add(key)
        return True

    def _check_origin(self, key: _OriginKey) -> bool:
        raw, host, scheme, address, port = key
        if not self.host_ok(host, (address, port)):
            return False
        if not same_origin(raw, host, scheme) and parse_origin(raw.decode("latin-1")) not in self._origins:
            return False
        _make_room(self._good_origins)
        self._good_origins.add(key)
        return True


def same_origin(raw: bytes, host: bytes, scheme: str) -> bool:
    """Whether a page calls its own origin: the same scheme, host and port."""
    origin = parse_origin(raw.decode("latin-1"))
    return origin is not None and origin == parse_origin(f"{scheme}://{host.decode('latin-1')}")


def parse_host(text: str) -> Host | None:
    """Parse a Host header into one form for all its spellings. None if it is invalid."""
    if text.startswith("["):
        name, bracket, rest = text.partition("]")
        address = _ipv6(name[1:]) if bracket else None
        return None if address is None else _with_port(f"[{address}]", rest)
    name, colon, port = text.partition(":")
    name = name.lower() if name.isascii() else ""
    if len(name) > _NAME_CHARS or not _NAME.fullmatch(name):
        return None
    return _with_port(name, colon + port)


def parse_origin(text: str) -> Origin | None:
    """Parse an Origin header. None for `null` and for anything that is not exactly an origin."""
    found = _ORIGIN.fullmatch(text.lower()) if text.isascii() else None
    host = parse_host(found[2]) if found else None
    if found is None or host is None:
        return None
    name, port = host
    return found[1], name, _PORTS.get(found[1]) if port is None else port


def _with_port(name: str, rest: str) -> Host | None:
    """Parse `rest`: empty, or a colon and a port."""
    if not rest:
        return name, None
    if rest[0] != ":" or not _PORT.fullmatch(rest[1:]) or int(rest[1:]) > 65535:
        return None
    return name, int(rest[1:])


def _ipv6(text: str) -> str | None:
    try:
        return None if "%" in text else str(IPv6Address(text))
    except AddressValueError:
        return None


def _meant(entry: str) -> list[Host]:
    """An allowed host with every port that it includes: a default port may be written or left out."""
    host = parse_host(entry)
    if host is None:
        fix = "write host or host:port, such as mcp.example.com or [::1]:9100, without scheme, path or wildcard"
        raise ValueError(f"{entry[:_SHOWN]!r} is no host; {fix}")
    name, port = host
    defaults = list(_PORTS.values())
    if port is None:
        return [(name, None), *((name, each) for each in defaults)]
    return [host, (name, None)] if port in defaults else [host]


def _listed_origin(entry: str) -> Origin:
    origin = parse_origin(entry)
    if origin is None:
        fix = "write scheme://host or scheme://host:port, such as https://app.example.com, without path or wildcard"
        raise ValueError(f"{entry[:_SHOWN]!r} is no origin; {fix}")
    return origin


def _is_own(host: Host, address: str, port: int | None) -> bool:
    """Whether a host is a name of the loopback address that the connection came in on, with its port."""
    name, asked = host
    right_port = asked == port or (asked is None and port in _PORTS.values())
    return port is not None and right_port and name in (*_LOOPBACK_NAMES, address) and is_loopback_ip(address)


def _make_room(known: set[Any] | dict[Any, Any]) -> None:
    if len(known) >= MOST_KNOWN:
        known.clear()
