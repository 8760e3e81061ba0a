"""Verifiers of access tokens: which ones are configured, how they reach the issuer, and introspection (RFC 7662)."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable
from typing import Protocol, final
from urllib.parse import quote_plus, urlencode

import msgspec

from longshore.auth.metadata import trusted
from longshore.auth.verified_tokens import Claims, IssuerUnavailable, RejectedToken, Verified
from longshore.config.sections import AuthConfig
from longshore.errors import ConfigError, ConnectError
from longshore.http_client.pool import HttpClient

SECONDS = 5.0
"""From the request to the last byte of the response. A user waits for it."""

MOST_BYTES = 256 << 10
"""The key set of a large issuer has 20 KiB."""

KNOWN_SECONDS = 60.0
"""How long an introspection result is cached. A revoked token works for at most this long after."""

_HOW = "set auth.token_file, [tokens.NAME], or auth.issuer and auth.jwks"
_claims = msgspec.json.Decoder(Claims)


class Verifier(Protocol):
    """Checks access tokens of an authorization server. `takes`: whether a token looks like one of its."""

    def takes(self, token: bytes) -> bool: ...
    async def verify(self, token: bytes) -> Verified: ...
    def close(self) -> None: ...


def has_server(auth: AuthConfig) -> bool:
    """Whether an authorization server is configured."""
    return auth.jwks is not None or auth.introspection_url is not None


def check(auth: AuthConfig, any_verifier: bool) -> None:
    """Refuse settings that check nothing, or that nothing could pass."""
    if auth.mode == "required" and not any_verifier:
        raise ConfigError(f'auth.mode is "required", but nothing says who may come in; {_HOW}')
    if auth.jwks is not None and auth.issuer is None:
        raise ConfigError("auth.issuer: not set; auth.jwks needs it, to be compared with the `iss` of tokens")
    idle = [key for key in ("issuer", "audience", "authorization_servers") if getattr(auth, key)]
    if idle and not has_server(auth):
        raise ConfigError(f"auth.{idle[0]}: no access token can be checked; set auth.jwks or auth.introspection_url")
    for key in ("introspection_client", "introspection_secret"):
        if getattr(auth, key) is not None and auth.introspection_url is None:
            raise ConfigError(f"auth.{key}: of no use without auth.introspection_url")
    if auth.scopes and not any_verifier:
        raise ConfigError(f"auth.scopes: nothing checks who has them; {_HOW}")


def check_scopes(auth: AuthConfig) -> frozenset[str]:
    """The scopes that every request needs. A scope is a word."""
    for scope in auth.scopes:
        if not scope.isascii() or not scope.isprintable() or not scope or set(scope) & set(' "\\'):
            raise ConfigError('auth.scopes: a scope is printable ASCII without blanks, " and \\')
    return frozenset(auth.scopes)


def servers(auth: AuthConfig) -> list[str]:
    """The authorization servers that the metadata names."""
    if auth.issuer is not None:
        trusted("auth.issuer", auth.issuer)
    for url in auth.authorization_servers:
        trusted("auth.authorization_servers", url)
    return auth.authorization_servers or ([auth.issuer] if auth.issuer else [])


def make_verifiers(
    auth: AuthConfig, audience: str, removed: Callable[[], None], clock: Callable[[], float]
) -> list[Verifier]:
    """The verifiers, in the order in which they are tried."""
    found: list[Verifier] = []
    if auth.jwks is not None:
        found.append(_make_jwt(auth, audience, removed, clock))
    if auth.introspection_url is not None:
        found.append(Introspection(auth, audience, clock))
    return found


def _make_jwt(auth: AuthConfig, audience: str, removed: Callable[[], None], clock: Callable[[], float]) -> Verifier:
    try:
        from longshore.auth.jwt import JwtVerifier
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("joserfc", "cryptography"):
            raise
        raise ConfigError("auth.jwks: checking a JWT needs a package more: pip install 'longshore[jwt]'") from None
    return JwtVerifier(auth, auth.issuer or "", audience, removed, clock)


@final
class IssuerEndpoint:
    """One URL of the authorization server. It follows no redirect: keys and secrets go where the configuration says."""

    def __init__(self, key: str, url: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        parts = trusted(key, url)
        self.origin = f"{parts.scheme}://{parts.netloc.lower()}"
        self.url = url
        self._headers = (("Accept", "application/json"), ("Connection", "close"), *headers)
        self._requests: set[asyncio.Task[bytes]] = set()
        self._closed = False

    async def fetch(self, body: bytes | None = None) -> bytes:
        """The document; with a body, the response to a POST. Raises IssuerUnavailable."""
        if self._closed:
            raise IssuerUnavailable("the server is stopping")
        task = asyncio.create_task(self._fetch(body))
        self._requests.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if not self._closed:
                raise
            raise IssuerUnavailable(f"{self.url}: the server is stopping") from None
        finally:
            self._requests.discard(task)
            task.cancel()

    def close(self) -> None:
        """End the requests that are running; their callers get IssuerUnavailable."""
        self._closed = True
        for task in self._requests:
            task.cancel()

    async def _fetch(self, body: bytes | None) -> bytes:
        client = HttpClient()  # for one request: they are rare, and a guard may outlive its event loop
        method = "GET" if body is None else "POST"
        try:
            response = await client.fetch(
                method, self.url, self._headers, body or b"", seconds=SECONDS, limit=MOST_BYTES
            )
        except ConnectError as error:
            raise IssuerUnavailable(f"{self.url}: {error.what}") from None
        finally:
            await client.close()
            await asyncio.sleep(0)  # the loop closes the socket of a cancelled TLS handshake in its next turn
        if response.status != 200:
            redirect = "; redirects are not followed" if 300 <= response.status < 400 else ""
            raise IssuerUnavailable(f"{self.url} answered with status {response.status}{redirect}")
        return response.body


@final
class Introspection:
    """Looks opaque tokens up at one endpoint."""

    def __init__(self, auth: AuthConfig, audience: str, clock: Callable[[], float]) -> None:
        if not auth.introspection_client or not auth.introspection_secret:
            missing = "introspection_secret" if auth.introspection_client else "introspection_client"
            raise ConfigError(f"auth.{missing}: not set; auth.introspection_url needs a client id and its secret")
        # RFC 6749 has both form-encoded before they are joined.
        pair = f"{quote_plus(auth.introspection_client)}:{quote_plus(auth.introspection_secret)}"
        headers = (
            ("Authorization", "Basic " + b64encode(pair.encode()).decode()),
            ("Content-Type", "application/x-www-form-urlencoded"),
        )
        self._endpoint = IssuerEndpoint("auth.introspection_url", auth.introspection_url or "", headers)
        self._issuer = auth.issuer
        self._audience = audience
        self._clock = clock

    def takes(self, token: bytes) -> bool:  # noqa: ARG002  (a Verifier)
        """Any token can be looked up."""
        return True

    async def verify(self, token: bytes) -> Verified:
        """Raises RejectedToken or IssuerUnavailable."""
        body = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        return self._check(self._read(await self._endpoint.fetch(body)))

    def close(self) -> None:
        self._endpoint.close()

    def _read(self, answer: bytes) -> Claims:
        try:
            claims = _claims.decode(answer)
        except (ValueError, RecursionError):
            raise IssuerUnavailable(f"{self._endpoint.url} answered with something else than RFC 7662 says") from None
        if claims.active is None:
            raise IssuerUnavailable(f"{self._endpoint.url} did not say whether the token is active")
        return claims

    def _check(self, claims: Claims) -> Verified:
        now = self._clock()
        if not claims.active:
            raise RejectedToken("the access token is unknown, has expired or was revoked")
        if self._issuer is not None and claims.iss not in (None, self._issuer):
            raise RejectedToken("the access token comes from another issuer")
        claims.check_audience(self._audience)
        claims.check_times(now)
        expires = now + KNOWN_SECONDS if claims.exp is None else claims.exp
        who = claims.principal(claims.iss or self._issuer or self._endpoint.origin)
        return Verified(who, now, min(now + KNOWN_SECONDS, expires), expires)
