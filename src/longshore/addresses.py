"""Hosts and URLs: which host is this machine, and the parts of a URL that may be requested."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

URL_CHARS = 2048
"""Browsers and proxies refuse longer URLs."""

_NOT_IN_URLS = frozenset(' "\\<>^`{|}')
"""Printable characters that no URL holds. They would end up in headers."""


def is_loopback(host: str) -> bool:
    """Whether a host name or IP address means this machine."""
    host = host.lower().rstrip(".")
    return host == "localhost" or host.endswith(".localhost") or is_loopback_ip(host)


def is_loopback_ip(address: str) -> bool:
    """Whether an IP address, of a socket for example, means this machine. IPv4 may be mapped into IPv6."""
    ip = parse_ip(address)
    return ip is not None and ip.is_loopback


def parse_ip(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address that a host is written as, without its zone; IPv4 mapped into IPv6 becomes IPv4."""
    try:
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def split_url(url: str) -> SplitResult | None:
    """The parts of an absolute http(s) URL without a user; None if it is not one."""
    if len(url) > URL_CHARS or not url.isascii() or not url.isprintable() or set(url) & _NOT_IN_URLS:
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port  # parsed on access
    except ValueError:  # a port that is not a number, an unbalanced bracket
        return None
    return parts if parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc else None


def origin_of(parts: SplitResult) -> tuple[str, str, int]:
    """Scheme, host and port, with the scheme's default port filled in."""
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or (443 if parts.scheme == "https" else 80)
