"""Rules for the URLs, origins and addresses that a browser may reach. Pure: names are resolved by the proxy."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from longshore.addresses import parse_ip
from longshore.errors import ConfigError, ToolError

Address = IPv4Address | IPv6Address

PORTS: Final = {"http": 80, "https": 443}
_SAME_AS: Final = {"ws": "http", "wss": "https"}

_METADATA_NAMES: Final = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.azure.internal",
        "metadata.tencentyun.com",
        "metadata.packet.net",
    }
)
_METADATA_NETWORKS: Final = tuple(
    map(
        ip_network,
        (
            "169.254.0.0/16",  # link-local: AWS, Google, Azure, Oracle, DigitalOcean, ECS tasks at .170.2
            "fe80::/10",
            "100.100.100.200/32",  # Alibaba
            "192.0.0.192/32",  # Oracle, classic
            "168.63.129.16/32",  # Azure's host agent
            "fd00:ec2::/32",  # AWS
            "fd20:ce::254/128",  # Google
        ),
    )
)
METADATA_PATTERNS: Final = (
    *("*metadata*", "*instance-data*"),
    *("*169.254.*", "*100.100.100.200*", "*192.0.0.192*", "*168.63.129.16*"),
    *("*//[*", "*@[*"),
)
"""Patterns of the DevTools protocol that URLs of metadata services match, and some other URLs."""
_EMBEDDING: Final = (
    (ip_network("64:ff9b::/96"), 0),  # NAT64
    (ip_network("64:ff9b:1::/48"), 0),  # NAT64 with a prefix of one's own, RFC 8215
    (ip_network("::ffff:0:0:0/96"), 0),  # translated, RFC 2765
    (ip_network("::/96"), 0),  # compatible
    (ip_network("2002::/16"), 80),  # 6to4
)
"""IPv6 networks whose addresses lead to an IPv4 address, and how many bits follow it."""

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_STRIPPED: Final = "".join(map(chr, range(33)))
_REMOVED: Final = str.maketrans("", "", "\t\r\n")
_IGNORED: Final = re.compile("[\u00ad\u034f\u180b-\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff]")
_NOT_IN_HOSTS: Final = re.compile(r"[\x00-\x20#%/:<>?@\[\\\]^|\x7f]")
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")


class Origin(Struct, frozen=True):
    """The destination of a request. The scheme is empty for a tunnel: the proxy can't see the protocol in it."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}" if self.scheme else f"{host}:{self.port}"


class _Pattern(Struct, frozen=True):
    """An origin of a list. Without a scheme, both; without a port, that of the scheme, or all."""

    scheme: str
    host: str
    port: int | None
    is_wild: bool

    def matches(self, origin: Origin) -> bool:
        if self.port is not None and self.port != origin.port:
            return False
        if self.scheme and origin.scheme and self.scheme != origin.scheme:
            return False
        return self.matches_host(origin.host)

    def matches_host(self, host: str) -> bool:
        return host.endswith(f".{self.host}") if self.is_wild else host == self.host


class OriginRules(Struct, frozen=True):
    """Which origins pages may reach.

    - A list holds "https://example.com", "example.com", "*.example.com" (its subdomains) or "example.com:8080". - An
    empty `allowed` allows all; `blocked` has precedence. - `private`: whether private addresses may be reached. Without
    it, loopback is reached by its own names only; other names that resolve to it are refused.
    """

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    private: bool = True

    def __post_init__(self) -> None:
        _patterns((*self.allowed, *self.blocked))  # raises for a malformed one

    def origin_problem(self, origin: Origin) -> str | None:
        """The reason why this origin may not be reached, before its name is resolved."""
        if origin.host in _METADATA_NAMES:
            return f"{origin.host} is a cloud's metadata service, which is always blocked"
        if any(pattern.matches(origin) for pattern in _patterns(self.blocked)):
            return f"{origin} is one of the blocked origins"
        if self.allowed and not any(pattern.matches(origin) for pattern in _patterns(self.allowed)):
            return f"{origin} is not one of the allowed origins: {', '.join(self.allowed)}"
        address = parse_ip(origin.host)
        return None if address is None else self.address_problem(origin, address)

    def address_problem(self, origin: Origin, address: Address) -> str | None:
        """The reason why this address, to which the origin's name resolved, may not be connected to."""
        address = embedded(address)
        shown = origin.host if parse_ip(origin.host) else f"{origin.host}, which resolves to {address},"
        if any(address in network for network in _METADATA_NETWORKS):
            return f"{shown} is a link-local or cloud metadata address, which is always blocked"
        literal = Origin(origin.scheme, str(address), origin.port)
        if any(pattern.matches(literal) for pattern in _patterns(self.blocked)):
            return f"{shown} is one of the blocked origins"
        if self.private or not is_private(address) or (address.is_loopback and names_loopback(origin.host)):
            return None
        # An allowed name does not allow a private address, since the owner of the name decides what it resolves to.
        if any(pattern.matches(literal) for pattern in _patterns(self.allowed)):
            return None
        return f"{shown} is a private address, which the options of this server do not allow"


def check_url(url: str, rules: OriginRules) -> str:
    """The URL as a browser reads it. Raises ToolError if it may not be navigated to."""
    url = url.strip(_STRIPPED).translate(_REMOVED)
    found = _SCHEME.match(url)
    scheme = found[1].lower() if found else ""
    if scheme == "about" and re.split("[?#]", url[6:])[0].lower() == "blank":
        return url
    if scheme not in PORTS:
        raise ToolError(_scheme_problem(url, scheme))
    origin = origin_of_url(url)
    if origin is None:
        raise ToolError(f"{url[:200]!r} is no URL of a page; give one such as https://example.com/path")
    problem = rules.origin_problem(origin)
    if problem is not None:
        raise ToolError(f"{problem}; nothing was requested")
    return url


def _scheme_problem(url: str, scheme: str) -> str:
    allowed = "only http:// and https:// URLs and about:blank can be opened"
    rest = url[len(scheme) + 1 :]
    if not scheme or "." in scheme or scheme == "localhost" or re.match(r"[0-9]+(?:[/?#]|$)", rest):
        return f"{url[:200]!r} has no scheme; write https://… or http://…: {allowed}"
    return f"a {scheme}: URL can't be opened: {allowed}"


def origin_of_url(url: str) -> Origin | None:
    """The origin of an http(s) or ws(s) URL as a browser reads it: backslashes, too few slashes, a user."""
    url = url.strip(_STRIPPED).translate(_REMOVED)
    scheme, colon, rest = url.partition(":")
    scheme = _SAME_AS.get(scheme.lower(), scheme.lower())
    if not colon or scheme not in PORTS:
        return None
    authority = re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0].rpartition("@")[2]
    place = split_authority(authority)
    return None if place is None else Origin(scheme, place[0], place[1] or PORTS[scheme])


def split_authority(authority: str) -> tuple[str, int | None] | None:
    """The canonical host and the port of `host:port`; None if it is malformed."""
    found = re.fullmatch(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]{0,5}))?", authority)
    host = canonical_host(found[1]) if found else None
    if found is None or host is None:
        return None
    port = int(found[2]) if found[2] else None
    return None if port is not None and not 0 < port < 65536 else (host, port)


def canonical_host(host: str) -> str | None:
    """A host as a browser has it after parsing: lower case, punycode, one spelling for each IP address.

    It compares patterns and gives early answers. The proxy's input comes from the browser, so a difference between this
    and the browser's own rules (UTS 46) allows nothing more.
    """
    if host.startswith("["):
        inner = host[1:-1] if host.endswith("]") and "%" not in host else ""
        address = parse_ip(inner) if ":" in inner else None
        return None if address is None else str(address)
    host = unicodedata.normalize("NFKC", _IGNORED.sub("", unquote(host))).lower().replace("\u3002", ".")
    if not host.isascii():
        try:
            host = ".".join(_punycode(label) for label in host.split("."))
        except UnicodeError:
            return None
    host = host.removesuffix(".")
    if not host or len(host) > 253 or _NOT_IN_HOSTS.search(host):
        return None
    return _canonical_ipv4(host) if _NUMBER.fullmatch(host.rpartition(".")[2]) else host


def _punycode(label: str) -> str:
    return label if label.isascii() else "xn--" + label.encode("punycode").decode()


def _canonical_ipv4(host: str) -> str | None:
    """`0x7f.1`, `0177.0.0.1` and `2130706433` are 127.0.0.1. A host that ends in a number is an address or nothing."""
    parts = host.split(".")
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    try:
        *first, last = [_number(part) for part in parts]
    except ValueError:
        return None
    if any(number > 255 for number in first) or last >= 256 ** (4 - len(first)):
        return None
    return str(IPv4Address(last + sum(number << 8 * (3 - place) for place, number in enumerate(first))))


def _number(text: str) -> int:
    if text[:2] in ("0x", "0X"):
        return int(text[2:] or "0", 16)
    return int(text, 8) if len(text) > 1 and text[0] == "0" else int(text)


def embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to; else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.teredo is not None:
        return address.teredo[1]
    for network, following in _EMBEDDING:
        if address in network and int(address) > 1:  # :: and ::1 are not IPv4
            return IPv4Address(int(address) >> following & 0xFFFFFFFF)
    return address


def is_private(address: Address) -> bool:
    """Whether an address is not one of the public internet: loopback, private, shared, reserved, multicast."""
    if address.is_multicast or (isinstance(address, IPv6Address) and address.is_site_local):
        return True
    return not address.is_global


def names_loopback(host: str) -> bool:
    """Whether a canonical host is a name of this machine. 0.0.0.0 leads there too, but is not such a name."""
    address = parse_ip(host)
    return host == "localhost" or host.endswith(".localhost") if address is None else address.is_loopback


@lru_cache(maxsize=64)
def _patterns(origins: tuple[str, ...]) -> tuple[_Pattern, ...]:
    return tuple(map(_parse_pattern, origins))


def _parse_pattern(text: str) -> _Pattern:
    scheme, _, rest = text.strip().rpartition("://")
    scheme = _SAME_AS.get(scheme.lower(), scheme.lower())
    rest = rest.removesuffix("/")
    is_wild = rest.startswith("*.")
    place = split_authority(rest.removeprefix("*."))
    is_known = not scheme or scheme in PORTS
    if place is None or not is_known or "*" in place[0] or (is_wild and parse_ip(place[0]) is not None):
        raise ConfigError(
            f"{text!r} is no origin; write it as https://example.com, example.com, *.example.com or example.com:8080"
        )
    return _Pattern(scheme, place[0], place[1] or PORTS.get(scheme), is_wild)


def make_rules(allowed: Iterable[str], blocked: Iterable[str], private: bool) -> OriginRules:
    """The rules of a configuration. Raises ConfigError for a text that is no origin."""
    return OriginRules(tuple(allowed), tuple(blocked), private)
