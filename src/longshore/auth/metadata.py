"""Protected-resource metadata (RFC 9728): where a client learns who issues tokens for this server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from longshore.auth.challenge import OFFLINE
from longshore.errors import ConfigError
from longshore.protocol import hosts

WELL_KNOWN = "/.well-known/oauth-protected-resource"

_NEVER = frozenset(' "\\<>^`{|}')
"""Printable, but in no URL. They would end up in headers."""


def canonical(key: str, url: str) -> str:
    """A server's address as tokens name it: scheme and host in lower case, no fragment, no slash at the end."""
    parts = split(key, url)
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path.rstrip("/"), parts.query, ""))


def metadata_url(resource: str) -> str:
    """Where the metadata of a resource is: https://h/a/mcp → https://h/.well-known/oauth-protected-resource/a/mcp."""
    parts = urlsplit(resource)
    return urlunsplit((parts.scheme, parts.netloc, WELL_KNOWN + parts.path, parts.query, ""))


def document(resource: str, servers: list[str], scopes: Iterable[str], name: str | None) -> dict[str, Any]:
    """The metadata."""
    found: dict[str, Any] = {
        "resource": resource,
        "authorization_servers": servers,
        "bearer_methods_supported": ["header"],
    }
    supported = sorted(set(scopes) - {OFFLINE})
    if supported:
        found["scopes_supported"] = supported
    if name:
        found["resource_name"] = name
    return found


def trusted(key: str, url: str) -> SplitResult:
    """The parts of a URL that secrets or keys may go over: https, or http on this machine."""
    parts = split(key, url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ConfigError(f"{key}: expected an https URL; http is for loopback only")
    return parts


def split(key: str, url: str) -> SplitResult:
    """The parts of an absolute http(s) URL."""
    parts = _parsed(url)
    if parts is None:
        raise ConfigError(f"{key}: expected an absolute http(s) URL without a user, like https://mcp.example.com/mcp")
    return parts


def _parsed(url: str) -> SplitResult | None:
    if not url.isascii() or not url.isprintable() or set(url) & _NEVER:
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port  # is read only now
    except ValueError:  # a port that is no number, a bracket too many
        return None
    return parts if parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc else None


def is_loopback(host: str) -> bool:
    """Whether a host name is this machine."""
    return host.lower() == "localhost" or hosts.is_loopback(host)
