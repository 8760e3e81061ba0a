"""Claims: what an access token says, be it a JWT's payload or the answer to an introspection."""

from __future__ import annotations

from urllib.parse import quote

from msgspec import Struct

from longshore.auth.verdict import Rejected
from longshore.protocol.peer import Principal

LEEWAY_SECONDS = 60.0
"""How far the issuer's clock may be ahead of ours. There is none after the expiry: it only ends a token early."""

_MOST_CHARACTERS = 255
"""A subject: OpenID Connect's own limit."""


class Claims(Struct, frozen=True):
    """The claims that we read. A claim of another type makes the token malformed."""

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


def check_times(claims: Claims, now: float) -> None:
    """Raise unless the token is valid now."""
    if claims.exp is not None and claims.exp <= now:
        raise Rejected("the access token has expired")
    if max(claims.nbf or 0.0, claims.iat or 0.0) > now + LEEWAY_SECONDS:
        raise Rejected("the access token is not valid yet")


def check_audience(claims: Claims, audience: str) -> None:
    """Raise unless the token was issued for this server. One for another service must not open this one."""
    if audience not in ([claims.aud] if isinstance(claims.aud, str) else claims.aud or []):
        raise Rejected(f"the access token was issued for another server: its aud must contain {audience}")


def principal(claims: Claims, issuer: str) -> Principal:
    """Whom the token is for. The name begins with the issuer, so two issuers' subjects are two callers."""
    label = quote(issuer.removeprefix("https://"), safe="/")  # no colon is left in it
    if claims.sub:
        name = f"{label}:{_subject(claims.sub)}"
    elif claims.client_id:
        name = f"{label}?client:{_subject(claims.client_id)}"
    else:
        raise Rejected("the access token does not say whom it is for")
    return Principal(name, claims.scopes)


def _subject(text: str) -> str:
    if len(text) > _MOST_CHARACTERS or not text.isprintable():
        raise Rejected("the access token does not say whom it is for")
    return text


def _words(value: str | list[str] | None) -> list[str]:
    return value.split() if isinstance(value, str) else value or []
