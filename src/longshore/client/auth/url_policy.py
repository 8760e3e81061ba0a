"""Which URLs are fetched because a server names them (SSRF protection).

Discovery is a chain of URLs that a server names. Without a policy, a server could have us send requests to anything
that this machine can reach: its own services, its network, a cloud's metadata service. So a named URL must be https at
a public address, and its host must resolve to a public address when we connect. A server on this machine may also name
http on loopback, for development. A server in our own network may name places in it.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from longshore.addresses import is_loopback, origin_of, parse_ip, split_url
from longshore.errors import AuthorizationError

_LOCAL_NAMES = ("localhost.localdomain", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback")
"""Other names of this machine in hosts files. They are not trusted like localhost."""
_NAT64, _PRIVATE_NAT64 = IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")


def plain_url(url: str) -> SplitResult | None:
    """The parts of an absolute http(s) URL without a user and a fragment, or None if it is not one."""
    parts = split_url(url)
    return parts if parts is not None and not parts.fragment else None


def is_internal(host: str) -> bool:
    """Whether a host, as it is written, is this machine or an address that is not public."""
    host = host.lower().rstrip(".")
    address = _read_address(host)
    return is_loopback(host) or host in _LOCAL_NAMES or (address is not None and _is_internal(address))


def _is_internal(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.is_site_local or address in _PRIVATE_NAT64:
            return True
        embedded = address.sixtofour
        if address in _NAT64 or address in _COMPATIBLE:
            embedded = IPv4Address(int(address) & 0xFFFFFFFF)
        if embedded is not None:  # a gateway connects to that address
            return _is_internal(embedded)
    return address.is_multicast or not address.is_global


def _read_address(host: str) -> IPv4Address | IPv6Address | None:
    """An IP address in every form that resolvers accept (2130706433, 0177.0.0.1)."""
    try:
        return parse_ip(host) or IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


@final
class UrlPolicy:
    """The URLs that one MCP server may name. `issuer` is named by the caller, so it may be anywhere."""

    def __init__(self, server: str, issuer: str | None = None) -> None:
        parts = plain_url(server)
        if parts is None:
            raise AuthorizationError(explain_server_url(server))
        self._is_https = parts.scheme == "https"
        self._is_local = is_loopback(parts.hostname or "")
        self._is_internal = is_internal(parts.hostname or "")
        given = plain_url(issuer) if issuer else None
        self._free = {origin_of(each) for each in (parts, given) if each is not None}

    def note_peer(self, address: str) -> None:
        """Learn from which IP address the server answered.

        Over TLS only the owner of the server's name can answer from there: an attacker may have a name resolve to an
        internal address, but not have the machine at that address prove the name.
        """
        if self._is_https and address and is_internal(address):
            self._is_internal = True

    def check(self, url: str, what: str) -> SplitResult:
        """The parts of a URL that the server names as `what`. Raises AuthorizationError."""
        parts = plain_url(url)
        if parts is None:
            raise AuthorizationError(f"{what} {shown(url)} is not an absolute https URL, so it was not used")
        host = parts.hostname or ""
        if parts.scheme == "http" and not (is_loopback(host) and self._is_local):
            fix = "http is for a server on this machine that names a place on this machine"
            raise AuthorizationError(f"{what} {shown(url)} is not https, so it was not used; {fix}")
        if is_internal(host) and not self.may_be_internal(url):
            why = "points into this machine or its own network"
            raise AuthorizationError(f"{what} {shown(url)} {why}, which a server outside has no reason to; not used")
        return parts

    def may_be_internal(self, url: str) -> bool:
        """Whether a URL may lead into our own network: the server is in it, or the caller named the URL."""
        parts = plain_url(url)
        return self._is_internal or (parts is not None and origin_of(parts) in self._free)


def explain_server_url(url: str) -> str:
    """Why a server's URL can't be used."""
    what = "the server's URL can't be used; give an absolute http(s) URL without a user"
    try:
        host = urlsplit(url).hostname or ""
        written = "" if host.isascii() else host.encode("idna").decode()
    except ValueError:
        written = ""
    return f"{what}, and its host as {written}" if written else what


def check_given_url(url: str, what: str) -> str:
    """A URL that the caller gave: https, or http on loopback. Raises ValueError."""
    parts = plain_url(url)
    if parts is None or (parts.scheme == "http" and not is_loopback(parts.hostname or "")):
        raise ValueError(f"{what}: expected an https URL (or http on loopback), not {shown(url)}")
    return url


def covers(resource: str, server: str) -> bool:
    """Whether a resource's identifier is the server's URL, or one above it at the same origin."""
    ours, named = plain_url(server), plain_url(resource)
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
