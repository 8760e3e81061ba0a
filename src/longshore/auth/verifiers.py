"""Access tokens of an authorization server: their claims, a cache of valid ones, and introspection (RFC 7662)."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Protocol, final
from urllib.parse import quote, quote_plus, urlencode

import msgspec
from msgspec import Struct

from longshore.auth.settings import has_server, trusted
from longshore.config.sections import AuthConfig
from longshore.errors import ConfigError, ConnectError
from longshore.http_client.pool import HttpClient
from longshore.protocol.peer import ANONYMOUS, Principal

SECONDS = 5.0
"""From the request to the last byte of the response. A user waits for it."""

MOST_BYTES = 256 << 10
"""The key set of a large issuer has 20 KiB."""

KNOWN_SECONDS = 60.0
"""How long an introspection result is cached. A revoked token works for at most this long after."""

LEEWAY_SECONDS = 60.0
"""How far the issuer's clock may be ahead of ours. There is none after the expiry: it only ends a token early."""

_RESERVED = frozenset({"", Principal().name, ANONYMOUS.name})
"""The names of callers without a token."""

_SUBJECT_CHARACTERS = 255
"""OpenID Connect's own limit."""


class RejectedToken(Exception):
    """The token is not valid. The text is for the client."""


class IssuerUnavailable(Exception):
    """The token can't be checked now. The text is for the operator."""


class Verified(Struct, frozen=True):
    """A valid token: whom it is for, from when to when it is cached, and when it expires, if it does.

    After `fresh` it is still accepted, but checked again in the background.
    """

    principal: Principal
    since: float
    until: float
    expires: float | None = None
    fresh: float = inf


@final
class VerifiedTokens:
    """Cache of valid tokens by their SHA-256, so that the time of a look-up says nothing about the bytes of any."""

    MOST = 1000
    """A caller has one token or a few. Beyond it the oldest is dropped, and would be checked again."""

    def __init__(self) -> None:
        self._tokens: dict[bytes, Verified] = {}

    def get(self, digest: bytes, now: float) -> Verified | None:
        """The cached result, unless it is out of date. A clock that was set back outdates it too."""
        found = self._tokens.get(digest)
        if found is None or found.since <= now < found.until:
            return found
        del self._tokens[digest]
        return None

    def add(self, digest: bytes, verified: Verified) -> None:
        self._tokens.pop(digest, None)
        while len(self._tokens) >= self.MOST:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[digest] = verified

    def clear_expiring(self) -> None:
        """Check every token of an authorization server again."""
        self._tokens = {digest: found for digest, found in self._tokens.items() if found.expires is None}


class Claims(Struct, frozen=True):
    """The claims that are read, of a JWT's payload or an introspection response. Other types make it malformed."""

    iss: str | None = None
    sub: str | None = None
    aud: str | list[str] | None = None
    exp: float | None = None
    nbf: float | None = None
    iat: float | None = None
    scope: str | list[str] | None = None
    scp: str | list[str] | None = None
    client_id: str | None = None
    active: bool | None = None

    def check(self, audience: str, now: float) -> None:
        """Raise RejectedToken unless the token was issued for this server and is valid now."""
        if audience not in ([self.aud] if isinstance(self.aud, str) else self.aud or []):
            raise RejectedToken(f"the access token was issued for another server: its aud must contain {audience}")
        if self.exp is not None and self.exp <= now:
            raise RejectedToken("the access token has expired")
        if max(self.nbf or 0.0, self.iat or 0.0) > now + LEEWAY_SECONDS:
            raise RejectedToken("the access token is not valid yet")

    def principal(self, issuer: str) -> Principal:
        """Whom the token is for. The name begins with the issuer, so two issuers' subjects are two callers.

        The scopes are those of the standard `scope`, and of `scp` as some issuers spell it.
        """
        label = quote(issuer.removeprefix("https://"), safe="/")  # no colon is left in it
        name = self.sub or self.client_id or ""
        if not name or len(name) > _SUBJECT_CHARACTERS or not name.isprintable():
            raise RejectedToken("the access token does not say whom it is for")
        scopes: list[str] = []
        for listed in (self.scope, self.scp):
            scopes += listed.split() if isinstance(listed, str) else listed or []
        return Principal(f"{label}:{name}" if self.sub else f"{label}?client:{name}", frozenset(scopes))


class Verifier(Protocol):
    """Checks access tokens of an authorization server."""

    def takes(self, token: bytes) -> bool:
        """Whether a token looks like one of its."""
        ...

    async def verify(self, token: bytes) -> Verified:
        """Raises RejectedToken or IssuerUnavailable."""
        ...


class TokenVerifier(Protocol):
    """Checks bearer tokens in an author's own way, as `Server(…, auth=MyVerifier())`.

    A result is cached for a minute: a revoked token works for at most this long after.
    """

    async def verify(self, token: str) -> Principal | None:
        """The caller that a token belongs to; None: the token is not valid.

        An exception, or no answer within five seconds, means that the token can't be checked now: the client gets 503.
        """
        ...


@final
class AuthorsVerifier:
    """The verifier of a server's author, behind the deadline and the checks that all verifiers have."""

    def __init__(self, verifier: TokenVerifier, clock: Callable[[], float], seconds: float = SECONDS) -> None:
        self._verifier, self._clock, self._seconds = verifier, clock, seconds
        self._name = type(verifier).__qualname__

    def takes(self, token: bytes) -> bool:  # noqa: ARG002 - it is asked about any token
        return True

    async def verify(self, token: bytes) -> Verified:
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._verifier.verify(token.decode("ascii"))
        except TimeoutError:
            raise IssuerUnavailable(f"{self._name}.verify did not end within {self._seconds:g} s") from None
        except (Exception, SystemExit) as problem:  # an exit would end the server for everyone
            raise IssuerUnavailable(f"{self._name}.verify raised {type(problem).__name__}: {problem}") from None
        found: Any = answer
        if found is None:
            raise RejectedToken("the token is not valid")
        if not isinstance(found, Principal):
            what = f"returned a {type(found).__name__}; it returns a Principal, or None for a token that is not valid"
            raise IssuerUnavailable(f"{self._name}.verify {what}")
        name: Any = found.name
        if not isinstance(name, str) or name in _RESERVED or len(name) > _SUBJECT_CHARACTERS or not name.isprintable():
            raise IssuerUnavailable(f"{self._name}.verify returned a Principal that can't be named {name!r:.40}")
        scopes: Any = found.scopes
        if scopes is not None and not isinstance(scopes, frozenset):
            raise IssuerUnavailable(f'{self._name}.verify returned scopes that are no frozenset: frozenset({{"read"}})')
        now = self._clock()
        return Verified(found, now, now + KNOWN_SECONDS)


def make_verifiers(
    auth: AuthConfig,
    audience: str,
    removed: Callable[[], None],
    clock: Callable[[], float],
    own: TokenVerifier | None = None,
) -> list[Verifier]:
    """The verifiers, in the order in which they are tried. `removed`: a key was withdrawn; `own` is the author's."""
    if own is not None and has_server(auth):
        key = "jwks" if auth.jwks is not None else "introspection_url"
        raise ConfigError(f"auth.{key}: the server checks tokens in its own way, Server(auth=…); leave one of them out")
    found: list[Verifier] = [] if own is None else [AuthorsVerifier(own, clock)]
    if auth.jwks is not None:
        try:
            from longshore.auth.jwt import JwtVerifier
        except ImportError as error:
            if (error.name or "").partition(".")[0] not in ("joserfc", "cryptography"):
                raise
            raise ConfigError("auth.jwks: checking a JWT needs a package more: pip install 'longshore[jwt]'") from None
        found.append(JwtVerifier(auth, audience, removed, clock))
    if auth.introspection_url is not None:
        found.append(Introspection(auth, auth.introspection_url, audience, clock))
    return found


async def fetch(url: str, headers: Sequence[tuple[str, str]] = (), body: bytes = b"") -> bytes:
    """A document of the authorization server; with a body, the response to a POST. Raises IssuerUnavailable.

    No redirect is followed: keys and secrets go where the configuration says.
    """
    client = HttpClient()  # for one request: they are rare, and a guard may outlive its event loop
    headers = (("Accept", "application/json"), ("Connection", "close"), *headers)
    try:
        method = "POST" if body else "GET"
        response = await client.fetch(method, url, headers, body, seconds=SECONDS, limit=MOST_BYTES)
    except ConnectError as error:
        raise IssuerUnavailable(f"{url}: {error.what}") from None
    finally:
        await client.close()
        await asyncio.sleep(0)  # the loop closes the socket of a cancelled TLS handshake in its next turn
    if response.status != 200:
        redirect = "; redirects are not followed" if 300 <= response.status < 400 else ""
        raise IssuerUnavailable(f"{url} answered with status {response.status}{redirect}")
    return response.body


@final
class Introspection:
    """Looks opaque tokens up at one endpoint."""

    def __init__(self, auth: AuthConfig, url: str, audience: str, clock: Callable[[], float]) -> None:
        if not auth.introspection_client or not auth.introspection_secret:
            missing = "introspection_secret" if auth.introspection_client else "introspection_client"
            raise ConfigError(f"auth.{missing}: not set; auth.introspection_url needs a client id and its secret")
        # RFC 6749 has both form-encoded before they are joined.
        pair = f"{quote_plus(auth.introspection_client)}:{quote_plus(auth.introspection_secret)}"
        self._headers = (
            ("Authorization", "Basic " + b64encode(pair.encode()).decode()),
            ("Content-Type", "application/x-www-form-urlencoded"),
        )
        parts = trusted("auth.introspection_url", url)
        self._url, self._origin = url, f"{parts.scheme}://{parts.netloc.lower()}"
        self._issuer, self._audience, self._clock = auth.issuer, audience, clock

    def takes(self, token: bytes) -> bool:  # noqa: ARG002 - any token can be looked up
        return True

    async def verify(self, token: bytes) -> Verified:
        body = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        try:
            claims = msgspec.json.decode(await fetch(self._url, self._headers, body), type=Claims)
        except (ValueError, RecursionError):
            raise IssuerUnavailable(f"{self._url} answered with something else than RFC 7662 says") from None
        if claims.active is None:
            raise IssuerUnavailable(f"{self._url} did not say whether the token is active")
        if not claims.active:
            raise RejectedToken("the access token is unknown, has expired or was revoked")
        if self._issuer is not None and claims.iss not in (None, self._issuer):
            raise RejectedToken("the access token comes from another issuer")
        now = self._clock()
        claims.check(self._audience, now)
        expires = now + KNOWN_SECONDS if claims.exp is None else claims.exp
        who = claims.principal(claims.iss or self._issuer or self._origin)
        return Verified(who, now, min(now + KNOWN_SECONDS, expires), expires)
