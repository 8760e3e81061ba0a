"""URLs, taken apart and checked once, and the head of a request as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlsplit

from msgspec import Struct

from longshore import __version__
from longshore.errors import ConnectError

HeaderPairs = Sequence[tuple[str, str]]

_PORTS: Final = {"http": 80, "https": 443}
_DEFAULT_HEADERS: Final = (("User-Agent", f"longshore/{__version__}"), ("Accept-Encoding", "gzip"))
_WRITABLE: Final = "/:@!$&'()*+,;=-._~%?"


class Url(Struct, frozen=True):
    """A URL as a connection and a request need it."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query."""
    origin: str
    """Scheme, host and port. Requests to one origin share connections."""

    @property
    def netloc(self) -> str:
        return self.origin.partition("://")[2]

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this machine."""
        from longshore.addresses import is_loopback

        return is_loopback(self.host)

    @property
    def is_confidential(self) -> bool:
        """Whether no one on the network can read requests to it: TLS, or this machine."""
        return self.scheme == "https" or self.is_loopback


@lru_cache(maxsize=256)
def parse_url(url: str) -> Url:
    """Take a URL apart. Raises ConnectError if it is not an http(s) URL, or holds a user or a password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host = host if ":" in host else host.encode("idna").decode() if host else ""
    except (ValueError, UnicodeError) as problem:
        why = "" if "@" in url else f": {problem}"  # the text of the problem may be a part of a password
        raise ConnectError(f"{_shown(url)} is no URL{why}") from None
    if parts.scheme not in _PORTS or not host:
        raise ConnectError(f"{_shown(url)} is no URL of a server; give one that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        what = f"the URL of {host} holds a name or a password"
        raise ConnectError(what, fix="give them by {} or {}", options=("headers", "auth"))
    target = quote(parts.path or "/", safe=_WRITABLE)
    if parts.query:
        target += "?" + quote(parts.query, safe=_WRITABLE)
    usual = _PORTS[parts.scheme]
    netloc = f"[{host}]" if ":" in host else host
    if port not in (None, usual):
        netloc += f":{port}"
    return Url(parts.scheme, host, port or usual, target, f"{parts.scheme}://{netloc}")


def without_secrets(url: str) -> str:
    """A URL for people to read: without the query, which often holds a key, and without user and password.

    The password in a malformed URL may contain / ? or #, so only the part after the last @ is shown.
    """
    try:
        _ = urlsplit(url).port
    except ValueError:
        url = url.rpartition("@")[2]
    scheme, colon, rest = url.partition("#")[0].partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{colon}{host.rpartition('@')[2]}{slash}{path}"


def _shown(url: str) -> str:
    """A malformed URL for an error message, without anything that may be a password."""
    return repr(without_secrets(url.rpartition("@")[2])[:200])


def merge_headers(*groups: HeaderPairs) -> list[tuple[str, str]]:
    """Each header once. A later group overrides an earlier one; case does not matter."""
    return list({pair[0].lower(): pair for group in groups for pair in group}.values())


def request_head(method: str, url: Url, headers: HeaderPairs, size: int) -> bytes:
    """The head of a request. `headers` override the default ones. Raises ConnectError for a line break in one."""
    given = {name.lower() for name, _ in headers}
    lines = [f"{method} {url.target} HTTP/1.1"]
    defaults = (("Host", url.netloc), *_DEFAULT_HEADERS)
    lines += [f"{name}: {value}" for name, value in defaults if name.lower() not in given]
    lines += [f"{name}: {value}" for name, value in headers]
    if size or method not in ("GET", "DELETE"):
        lines.append(f"Content-Length: {size}")
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1 or "\0" in text:
        raise ConnectError(f"a header holds a line break: {_broken_names(headers)}", url.origin)
    return f"{text}\r\n\r\n".encode("utf-8", "surrogateescape")


def _broken_names(headers: Iterable[tuple[str, str]]) -> str:
    """The names of the headers with line breaks. Their values may be secrets."""
    return ", ".join(repr(name) for name, value in headers if set("\r\n\0") & set(name + value)) or "the method"
