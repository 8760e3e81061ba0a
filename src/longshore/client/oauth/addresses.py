"""Which URLs we go to because somebody told us so.

Discovery is a chain of URLs that a server names. Without a wall, a server could make us knock at whatever this machine
can reach: its own services, the neighbours in its network, a cloud's metadata. So what is named must be https at a name
or a public address, and what the name stands for must be public too when we connect. A server on this very machine may
also name http on loopback; that is how people develop. One in our own network may name places in it.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from longshore.addresses import is_loopback, origin_of, parse_ip, split_url
from longshore.errors import AuthorizationError

_NEAR_NAMES = ("localhost.localdomain", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback")
"""What lists of hosts call this machine besides. Nothing is trusted for it."""
_NAT64, _OWN_NAT64 = IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")


def split(url: str) -> SplitResult | None:
    """The parts of an absolute http(s) URL without a user and a fragment, or None if it is not one."""
    parts = split_url(url)
    return parts if parts is not None and not parts.fragment else None


def is_inside(host: str) -> bool:
    """Whether a host is this machine or a place that only this machine's network reaches."""
    host = host.lower().rstrip(".")
    address = _address(host)
    return is_loopback(host) or host in _NEAR_NAMES or (address is not None and _is_near(address))


def _is_near(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.is_site_local or address in _OWN_NAT64:
            return True
        inner = _inner(address)
        if inner is not None:  # versions of Python differ on what such an address is itself
            return _is_near(inner)
    return address.is_multicast or not address.is_global


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a gateway on the way (NAT64, 6to4, or one of old) makes of an IPv6 one."""
    if address in _NAT64 or address in _COMPATIBLE:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that is written as a host, in all the ways in which resolvers read one (2130706433, 0177.0.0.1)."""
    try:
        return parse_ip(host) or IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


@final
class Wall:
    """What one server may name. `issuer` is what the caller names: that is no server's word.

    `proven` is whether the server was found to be in our own network, None if nobody has looked.
    """

    def __init__(self, server: str, issuer: str | None = None) -> None:
        parts = split(server)
        if parts is None:
            raise AuthorizationError(unusable(server))
        self._local = is_loopback(parts.hostname or "")
        self._inside = is_inside(parts.hostname or "")
        given = split(issuer) if issuer else None
        self._free = {origin_of(each) for each in (parts, given) if each is not None}
        self.root = f"{parts.scheme}://{parts.netloc}/"
        self.proven: bool | None = None if parts.scheme == "https" else False

    def check(self, url: str, what: str) -> SplitResult:
        """The parts of a URL that was named as `what`. Raises AuthorizationError."""
        parts = split(url)
        if parts is None:
            raise AuthorizationError(f"{what} {shown(url)} is not an absolute https URL, so it was not used")
        host = parts.hostname or ""
        if parts.scheme == "http" and not (is_loopback(host) and self._local):
            fix = "http is for a server on this machine that names a place on this machine"
            raise AuthorizationError(f"{what} {shown(url)} is not https, so it was not used; {fix}")
        if is_inside(host) and not self._inside and origin_of(parts) not in self._free:
            why = "points into this machine or its own network"
            raise AuthorizationError(f"{what} {shown(url)} {why}, which a server outside has no reason to; not used")
        return parts

    def is_free(self, url: str) -> bool:
        """Whether a place may be anywhere: the server is in our own network, or the caller named the place."""
        parts = split(url)
        return self._inside or (parts is not None and origin_of(parts) in self._free)


def unusable(url: str) -> str:
    """Why a server's URL is of no use."""
    what = "the server's URL can't be used; give an absolute http(s) URL without a user"
    try:
        host = urlsplit(url).hostname or ""
        written = "" if host.isascii() else host.encode("idna").decode()
    except ValueError:
        written = ""
    return f"{what}, and its host as {written}" if written else what


def trusted(url: str, what: str) -> str:
    """A URL that the caller gave: https, or http on loopback. Raises ValueError."""
    parts = split(url)
    if parts is None or (parts.scheme == "http" and not is_loopback(parts.hostname or "")):
        raise ValueError(f"{what}: expected an https URL (or http on loopback), not {shown(url)}")
    return url


def covers(resource: str, server: str) -> bool:
    """Whether a resource's identifier is the server's URL, or one above it at the same origin."""
    ours, named = split(server), split(resource)
    if (
        ours is None
        or named is None
        or origin_of(ours) != origin_of(named)
        or (named.query and named.query != ours.query)
    ):
        return False
    above, path = named.path.rstrip("/"), ours.path.rstrip("/")
    return path == above or path.startswith(above + "/")


def well_known(url: SplitResult, name: str, *, path: bool) -> str:
    """`/.well-known/NAME` before the path of a URL, or at the root of its origin."""
    rest = url.path.rstrip("/") if path else ""
    query = url.query if path else ""
    return urlunsplit((url.scheme, url.netloc, f"/.well-known/{name}{rest}", query, ""))


def shown(text: str) -> str:
    """Foreign text for an error: short, on one line."""
    return ascii(text if len(text) <= 120 else text[:120] + "…")
