"""Verified access tokens: their claims, their principals, and a cache."""

from __future__ import annotations

from math import inf
from typing import final
from urllib.parse import quote

from msgspec import Struct

from longshore.protocol.peer import Principal

LEEWAY_SECONDS = 60.0
"""How far the issuer's clock may be ahead of ours. There is none after the expiry: it only ends a token early."""

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

    @property
    def scopes(self) -> frozenset[str]:
        """The standard `scope`, and `scp` as some issuers spell it."""
        return frozenset((*_words(self.scope), *_words(self.scp)))

    def check_times(self, now: float) -> None:
        """Raise RejectedToken unless the token is valid now."""
        if self.exp is not None and self.exp <= now:
            raise RejectedToken("the access token has expired")
        if max(self.nbf or 0.0, self.iat or 0.0) > now + LEEWAY_SECONDS:
            raise RejectedToken("the access token is not valid yet")

    def check_audience(self, audience: str) -> None:
        """Raise RejectedToken unless the token was issued for this server."""
        if audience not in ([self.aud] if isinstance(self.aud, str) else self.aud or []):
            raise RejectedToken(f"the access token was issued for another server: its aud must contain {audience}")

    def principal(self, issuer: str) -> Principal:
        """Whom the token is for. The name begins with the issuer, so two issuers' subjects are two callers."""
        label = quote(issuer.removeprefix("https://"), safe="/")  # no colon is left in it
        name = self.sub or self.client_id or ""
        if not name or len(name) > _SUBJECT_CHARACTERS or not name.isprintable():
            raise RejectedToken("the access token does not say whom it is for")
        return Principal(f"{label}:{name}" if self.sub else f"{label}?client:{name}", self.scopes)


def _words(value: str | list[str] | None) -> list[str]:
    return value.split() if isinstance(value, str) else value or []
