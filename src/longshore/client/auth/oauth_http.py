"""HTTP for OAuth: the rules for fetching URLs that a server names (SSRF protection), and the client that fetches them.

Discovery is a chain of URLs that a server names. Without a policy, a server could have us send requests to anything
that this machine can reach: its own services, its network, a cloud's metadata service. So a named URL must be https at
a public address, and its host must resolve to a public address when we connect. A server on this machine may also name
http on loopback, for development. A server in our own network may name URLs in it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Any, Self, final
from urllib.parse import SplitResult, quote_plus, urlencode, urlunsplit

import msgspec
from msgspec import Struct

from longshore.addresses import is_loopback, origin_of, parse_ip, split_url
from longshore.client.auth.authorizer import Headers
from longshore.errors import AuthorizationError, ConnectError
from longshore.http_client.dial import NotAllowed
from longshore.http_client.pool import HttpClient
from longshore.protocol.revisions import MODERN
from longshore.schema.kinds import as_object

SECONDS = 20.0
"""For one exchange, from connecting to the last byte. A person may be waiting."""
MOST_BYTES = 256 << 10
"""Of one response. The metadata of large issuers have 10 KiB."""
_SHOWN_CHARS = 200
"""Characters of foreign text in an error: two or three lines of a terminal."""
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
        assert parts is not None  # the authorizer has checked it
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
        """Whether a URL may be in our own network: the server is in it, or the caller named the URL."""
        parts = plain_url(url)
        return self._is_internal or (parts is not None and origin_of(parts) in self._free)


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
    """Text of others for an error: short, on one line."""
    return ascii(text if len(text) <= 120 else text[:120] + "…")


class OAuthResponse(Struct, frozen=True):
    """Status, headers (names in lower case), and the body if it is a JSON object, else an empty one."""

    status: int
    headers: Headers
    document: dict[str, Any]

    def text(self, name: str) -> str:
        """A text of the document; empty if there is none."""
        value = self.document.get(name)
        return value if isinstance(value, str) else ""


class TryLater(AuthorizationError):
    """An authorization server can't answer now."""


@final
class OAuthHttp:
    """An HTTP client for one authorization: `async with OAuthHttp(policy) as http`."""

    def __init__(self, policy: UrlPolicy) -> None:
        self.policy = policy
        self._public, self._any = HttpClient(allow=lambda address: not is_internal(address)), HttpClient()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._public.close()
        await self._any.close()

    async def get(self, url: str, what: str) -> OAuthResponse:
        """Fetch a document. Raises AuthorizationError if there is no response; any status is returned."""
        return await self._fetch("GET", url, what, [("MCP-Protocol-Version", MODERN[-1])])

    async def post_form(
        self, url: str, what: str, form: Mapping[str, str], headers: Headers, *, given: bool = False
    ) -> OAuthResponse:
        """Post a form, the format of token endpoints. `given`: the caller gave the URL, no server named it."""
        headers = [("Content-Type", "application/x-www-form-urlencoded"), *headers]
        return await self._fetch("POST", url, what, headers, urlencode(form).encode(), given=given)

    async def post_json(self, url: str, what: str, document: Mapping[str, Any]) -> OAuthResponse:
        """Post a JSON document, the format of registration endpoints."""
        headers = [("Content-Type", "application/json")]
        return await self._fetch("POST", url, what, headers, msgspec.json.encode(document))

    async def _fetch(
        self, method: str, url: str, what: str, headers: Headers, body: bytes = b"", *, given: bool = False
    ) -> OAuthResponse:
        """The addresses of the host of a URL that a server named are subject to the policy too."""
        if not given:
            self.policy.check(url, what)
        http = self._any if given or self.policy.may_be_internal(url) else self._public
        headers = [("Accept", "application/json"), *headers]
        try:
            response = await http.fetch(method, url, headers, body, seconds=SECONDS, limit=MOST_BYTES)
        except ConnectError as problem:
            said = f"{what} {shown(url)} could not be asked: {problem.what}"
            if isinstance(problem, NotAllowed):
                said += ", a place in this machine's own network, which a server outside has no reason to name"
                said += "; not used. If it is right, name it by issuer="
            raise AuthorizationError(said) from None
        try:
            document: Any = msgspec.json.decode(response.body)
        except (ValueError, RecursionError):
            document = None
        return OAuthResponse(response.status, response.headers, as_object(document))


def explain_refusal(response: OAuthResponse, secrets: Iterable[str | None] = ()) -> str:
    """The error code and description of an OAuth endpoint, short and on one line.

    It may quote the request. Secrets are removed before the text is cut: a part of one is still secret.
    """
    if not response.text("error"):
        redirect = "; redirects are not followed" if 300 <= response.status < 400 else ""
        return f"status {response.status}{redirect}"
    said = f"{response.text('error')}: {response.text('error_description')}"
    for secret in secrets:
        if secret:
            said = said.replace(secret, "…").replace(quote_plus(secret), "…")
    return one_line(said)


def one_line(text: str) -> str:
    """An error and its description, written by others, as one line of printable characters."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split()).removesuffix(":")
    return line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + "…"
