"""Where a request goes: a URL, taken apart and checked once, and the head of a request as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlsplit

from msgspec import Struct

from longshore import __version__
from longshore.errors import ConnectError

Pairs = Sequence[tuple[str, str]]

_PORTS: Final = {"http": 80, "https": 443}
_USUAL: Final = (("User-Agent", f"longshore/{__version__}"), ("Accept-Encoding", "identity"))
"""We never ask for a compressed answer: a small one could become a large one."""
_WRITABLE: Final = "/:@!$&'()*+,;=-._~%?"


class Address(Struct, frozen=True):
    """A URL as a connection and a request need it. `target` is its path and query."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.netloc}"

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def key(self) -> tuple[str, str, int]:
        """What two URLs have in common that can use the same connection."""
        return self.scheme, self.host, self.port

    @property
    def is_private(self) -> bool:
        """Whether nobody on the way can read along: TLS, or this very machine."""
        return self.scheme == "https" or self.is_loopback

    @property
    def is_loopback(self) -> bool:
        """Whether it is this very machine."""
        from longshore.protocol.hosts import is_loopback

        return self.host == "localhost" or is_loopback(self.host)


@lru_cache(maxsize=256)
def locate(url: str) -> Address:
    """Take a URL apart. Raises ConnectError for one that can't be asked."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host = host if ":" in host else host.encode("idna").decode() if host else ""
    except (ValueError, UnicodeError) as problem:
        why = "" if "@" in url else f": {problem}"  # the words of the problem may be a part of a password
        raise ConnectError(f"{_shown(url)} is no URL{why}") from None
    if parts.scheme not in _PORTS or not host:
        raise ConnectError(f"{_shown(url)} is no URL of a server; give one that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ConnectError(f"the URL of {host} holds a name or a password; give them by headers= or auth=")
    target = quote(parts.path or "/", safe=_WRITABLE)
    if parts.query:
        target += "?" + quote(parts.query, safe=_WRITABLE)
    return Address(parts.scheme, host, port or _PORTS[parts.scheme], target)


def without_secrets(url: str) -> str:
    """A URL for people to read: queries hold keys often enough, and what stands before an @ a password.

    One that can't be taken apart may have a password with / ? or # in it, so of that only the end is shown.
    """
    try:
        _ = urlsplit(url).port
    except ValueError:
        url = url.rpartition("@")[2]
    scheme, colon, rest = url.partition("#")[0].partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{colon}{host.rpartition('@')[2]}{slash}{path}"


def _shown(url: str) -> str:
    """One that can't be taken apart: whatever may be a password in it is left out, and more."""
    return repr(without_secrets(url.rpartition("@")[2])[:200])


def merge(*groups: Pairs) -> list[tuple[str, str]]:
    """Each header once: what a later group says of a name counts, whatever the case of its letters."""
    return list({pair[0].lower(): pair for group in groups for pair in group}.values())


def request_head(method: str, address: Address, headers: Pairs, size: int) -> bytes:
    """The head of a request. What is given replaces what every request says. Raises ConnectError."""
    given = {name.lower() for name, _ in headers}
    lines = [f"{method} {address.target} HTTP/1.1"]
    usual = (("Host", address.netloc), *_USUAL)
    lines += [f"{name}: {value}" for name, value in usual if name.lower() not in given]
    lines += [f"{name}: {value}" for name, value in headers]
    if size or method not in ("GET", "DELETE"):
        lines.append(f"Content-Length: {size}")
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1 or "\0" in text:
        raise ConnectError(f"a header holds a line break: {_culprit(headers)}", address.origin)
    return f"{text}\r\n\r\n".encode("utf-8", "surrogateescape")


def _culprit(headers: Iterable[tuple[str, str]]) -> str:
    """Its name alone: the value may be a secret."""
    return ", ".join(repr(name) for name, value in headers if set("\r\n\0") & set(name + value)) or "the method"
