"""Protected-resource metadata (RFC 9728): it tells clients which authorization servers issue tokens for this server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from longshore.addresses import is_loopback, split_url
from longshore.auth.credentials import OFFLINE
from longshore.errors import ConfigError

WELL_KNOWN = "/.well-known/oauth-protected-resource"


def canonical(key: str, url: str) -> str:
    """A server's address in canonical form, as in `aud`: lower-case scheme and host, no fragment, no final slash."""
    parts = split(key, url)
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path.rstrip("/"), parts.query, ""))


def metadata_url(resource: str) -> str:
    """The URL of a resource's metadata: https://h/a/mcp → https://h/.well-known/oauth-protected-resource/a/mcp."""
    parts = urlsplit(resource)
    return urlunsplit((parts.scheme, parts.netloc, WELL_KNOWN + parts.path, parts.query, ""))


def document(resource: str, servers: list[str], scopes: Iterable[str], name: str | None) -> dict[str, Any]:
    """The metadata document."""
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
    """The parts of a URL for keys and secrets: https, or http on this machine. Raises ConfigError."""
    parts = split(key, url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ConfigError(f"{key}: expected an https URL; http is for loopback only")
    return parts


def split(key: str, url: str) -> SplitResult:
    """The parts of an absolute http(s) URL. Raises ConfigError."""
    parts = split_url(url)
    if parts is None:
        raise ConfigError(f"{key}: expected an absolute http(s) URL without a user, like https://mcp.example.com/mcp")
    return parts
